"""The module: the losses of each part, and counters that are part of its state."""

from __future__ import annotations

from ccwm.structs import Batch
from ccwm.training.module import CCWM, Counters


def test_a_training_step_gives_a_loss_for_each_part_and_metrics(module: CCWM, batches: list[Batch]) -> None:
    terms = list(module.training_step(batches[0]))
    assert [set(of.losses) for of in terms] == [{"model"}, {"actor", "critic"}]
    losses, metrics = terms[0].plus(terms[1])
    assert losses.keys() == module.learner.parts().keys()
    assert all(loss.requires_grad and loss.shape == () for loss in losses.values())
    assert not [name for name, metric in metrics.items() if metric.shape != ()]
    assert {"model/observation", "retrace/loss", "actor/loss", "critic/loss"} <= metrics.keys()


def test_a_step_is_a_function_of_weights_batch_and_update(module: CCWM, batches: list[Batch]) -> None:
    first, again = (next(module.training_step(batches[0])).losses["model"] for _ in range(2))
    module.counters.updates = 1
    other = next(module.training_step(batches[0])).losses["model"]
    assert first == again != other


def test_counters_are_resumed_in_place(module: CCWM) -> None:
    state = {**module.state_dict(), "_extra_state": {**module.get_extra_state(), "updates": 7, "episodes": 3}}
    watched = module.counters
    module.load_state_dict(state)
    assert watched == Counters(updates=7, episodes=3)
