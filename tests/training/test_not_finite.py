"""NaN and infinity stop training before an optimiser has seen them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from torch.utils.data import DataLoader
from training_project import ENTRY, KEY, TASK, UPDATES, Project, learning_of, write_params

from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.collect import collect_random
from ccwm.training.finite import NotFinite
from ccwm.training.loop import build_module, train
from ccwm.training.module import CCWM


@pytest.fixture
def module(collected: Project) -> CCWM:
    return build_module(learning_of(collected.root / "params.yaml"), seed=0, actions=2)


@pytest.fixture
def batch(collected: Project) -> Batch:
    store = EpisodeStore(collected.root / "data" / TASK / "0" / "train", read_only=True)
    return WindowSampler(store, batch=2, length=6, seed=0).draw(0)


def fit(module: CCWM, batches: list[Batch]) -> None:
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, enable_checkpointing=False, **quiet)
    trainer.fit(module, DataLoader(batches, batch_size=None))  # type: ignore[arg-type]


def assert_equal(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def stopped(module: CCWM, good: Batch, bad: Batch) -> str:
    """Learn from a good batch, then from the bad one, which must change nothing; returns what was told."""
    fit(module, [good])
    before = copy.deepcopy(module.snapshot())
    with pytest.raises(NotFinite) as caught:
        fit(module, [bad])
    assert_equal(module.snapshot(), before)
    return str(caught.value)


def test_a_batch_that_is_fine_does_change_the_weights(module: CCWM, batch: Batch) -> None:
    before = copy.deepcopy(module.learner.state_dict())
    fit(module, [batch])
    changed = [name for name, weight in module.learner.state_dict().items() if not torch.equal(weight, before[name])]
    assert {name.split(".")[0] for name in changed} == {"world_model", "actor_critic", "retracing"}
    assert module.counters.updates == 1


@pytest.mark.parametrize("poison", [float("nan"), 1e30])  # in the batch; its square, in the loss
def test_a_bad_reward_is_stopped_by_name(module: CCWM, batch: Batch, poison: float) -> None:
    reward = batch.reward.clone()
    reward[2, 1] = poison
    told = stopped(module, batch, batch._replace(reward=reward))
    assert told.startswith("update 1: model/reward")
    assert "the last checkpoint is kept" in told


def test_a_bad_gradient_of_a_fine_loss_is_stopped_by_name(module: CCWM, batch: Batch) -> None:
    weight = next(module.learner.actor_critic.critic.parameters())

    def poison(gradient: torch.Tensor) -> torch.Tensor:
        return gradient if module.counters.updates == 0 else gradient / 0

    weight.register_hook(poison)  # type: ignore[no-untyped-call]
    assert stopped(module, batch, batch).startswith("update 1: grad_norm/critic not finite")


def test_the_checkpoints_before_it_are_kept(collected: Project, tmp_path: Path) -> None:
    """The world's third episode, played in cycle 2, breaks the reward's loss."""
    learning = learning_of(collected.root / "params.yaml")
    task = "unbounded_world:Unbounded"
    collect_random(
        task, tmp_path, parts={"train": 2}, env=learning.env, render=learning.render, seed=0, advance=lambda: None
    )
    log: list[int] = []
    with pytest.raises(NotFinite, match=r"update 2\d: model/reward"):
        train(
            learning,
            task=task,
            seed=0,
            data=tmp_path / "train",
            work=tmp_path / "work",
            log=lambda metrics, env_steps: log.append(env_steps),
            label="",
        )
    assert log[-1] == 160
    saved = Checkpoints(tmp_path / "work" / "checkpoints").latest()
    assert saved is not None
    assert saved["module"]["counters"]["updates"] == 2 * UPDATES
    assert all(weight.isfinite().all() for weight in saved["module"]["learner"].values())


def test_the_stage_says_so_and_fails(project: Project) -> None:
    """Other settings than those of an earlier, unfinished run, too: that one's directory is not touched."""
    earlier = project.root / ".work" / "train" / KEY / "0123456789ab" / "checkpoints" / "000000.pt"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of other settings")
    write_params(project.root / "params.yaml", {"model": {"observation_scale": 1e38}})
    stage = project.run("train", *ENTRY)
    assert stage.end() == 2
    assert "error: update 0: model/image" in stage.said
    assert "Traceback" not in stage.said
    assert [run.info.status for run in project.mlflow_runs("train")] == ["FAILED"]
    assert not project.files("models", "results/train")
    assert earlier.read_text() == "of other settings"
