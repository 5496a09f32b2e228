"""One update against its parts by hand: gradients of each part alone, clipped by its own norm, one step of Adam."""

from __future__ import annotations

import copy
import weakref

import pytest
import torch
from tiny_learner import (
    DRAWN_HEADS,
    assert_equal,
    backward,
    random_batch,
    terms_of,
    tiny_learner,
    tiny_updater,
    updated,
)

RATES = {"model": 1e-2, "critic": 2e-2, "actor": 3e-2, "reverse": 1e-2}  # ρ learns at the model's rate
SETTINGS = {
    "retrace": {"reverse_action": "separate", "loss": "l2"},
    "truncation": {"mode": "auto", "window": 2},
    "optimiser": {"model_lr": 1e-2, "critic_lr": 2e-2, "actor_lr": 3e-2, "grad_clip": 0.05, "eps": 1e-3},
}
ROBUST_RETRACE = {"reverse_action": "separate", "loss": "kl", "length": 3, "horizon": 2, "samples": 2}
both_backbones = pytest.mark.parametrize(
    "settings",
    [SETTINGS, SETTINGS | {"robust": True, "retrace": ROBUST_RETRACE, **DRAWN_HEADS}],
    ids=["paper", "robust"],
)


def batch_of(settings, update):
    return random_batch(seed=update, robust=settings.get("robust", False))


@both_backbones
def test_an_update_is_a_clipped_step_of_adam_for_each_part(settings):
    updater, learner = tiny_updater(**settings), tiny_learner(**settings)
    groups = learner.parts()
    adams = {part: torch.optim.Adam(group, lr=RATES[part], eps=1e-3) for part, group in groups.items()}
    for update in range(2):
        batch = batch_of(settings, update)
        updater.step(batch)
        losses, metrics = terms_of(learner, batch, update=update)
        backward(learner, losses)
        norms = {}
        for part, group in groups.items():
            norms[part] = torch.cat([parameter.grad.flatten() for parameter in group]).norm()
            for parameter in group:
                parameter.grad *= min(1.0, 0.05 / float(norms[part]))
            adams[part].step()
        learner.actor_critic.follow_critic()
        assert max(norms.values()) > 0.05  # something is clipped
        logged = updater.averages()
        assert logged == pytest.approx(
            {name: float(value) for name, value in metrics.items()}
            | {f"grad_norm/{part}": float(norm) for part, norm in norms.items()},
            rel=1e-4,
        )
    torch.testing.assert_close(updater.module.learner.state_dict(), learner.state_dict(), rtol=1e-4, atol=1e-5)
    assert updater.module.counters.updates == 2


def test_logged_numbers_are_means_over_the_updates_since_the_last_call():
    batches = [random_batch(seed=seed) for seed in range(3)]
    each, together = tiny_updater(), tiny_updater()
    rows = []
    for batch in batches:
        each.step(batch)
        rows.append(each.averages())
    updated(together, batches[:2])
    assert together.averages() == pytest.approx({name: (rows[0][name] + rows[1][name]) / 2 for name in rows[0]})
    updated(together, batches[2:])
    assert together.averages() == pytest.approx(rows[2])


@both_backbones
def test_a_resumed_updater_makes_the_same_updates_to_the_bit(settings):
    batches = [batch_of(settings, update) for update in range(4)]
    whole = updated(tiny_updater(**settings), batches).state_dict()
    saved = copy.deepcopy(updated(tiny_updater(**settings), batches[:2]).state_dict())
    resumed = tiny_updater(**settings, seed=9)  # other initial weights, which the checkpoint replaces
    resumed.load_state_dict(saved)
    updated(resumed, batches[2:])
    assert_equal(resumed.state_dict(), whole)
    assert resumed.module.learner.truncation.running_median.num_updates == 4


def test_the_images_are_gone_before_imagination(monkeypatch):
    """They are large, and imagination has the peak of memory."""
    updater, held = tiny_updater(), []
    learner = updater.module.learner
    observe, imagine = learner.observe, learner.imagine

    def observed(*inputs):
        found, terms = observe(*inputs)
        held.append(weakref.ref(found.target))
        return found, terms

    def imagined(*inputs):
        held.append(held[0]() is None)
        return imagine(*inputs)

    monkeypatch.setattr(learner, "observe", observed)
    monkeypatch.setattr(learner, "imagine", imagined)
    updater.step(random_batch())
    assert held[1:] == [True]


def test_the_slow_critic_follows_after_each_step_of_the_optimiser():
    updater = tiny_updater(robust=True, **DRAWN_HEADS)
    actor_critic = updater.module.learner.actor_critic
    for update in range(2):
        before = [value.clone() for value in actor_critic.slow_critic.parameters()]
        updater.step(random_batch(seed=update, robust=True))
        for slow, old, fast in zip(
            actor_critic.slow_critic.parameters(), before, actor_critic.critic.parameters(), strict=True
        ):
            torch.testing.assert_close(slow, 0.75 * old + 0.25 * fast.detach())  # the setting is 0.25
            assert not torch.equal(slow, old)


def test_the_model_s_gradients_are_taken_before_imagination_begins(monkeypatch):
    """So that the graph of observing and retracing is gone when imagination makes its own."""
    updater = tiny_updater(**SETTINGS)
    learner, seen = updater.module.learner, []
    imagine = learner.imagine

    def watch(*inputs):
        seen.append({part: {weight.grad is not None for weight in group} for part, group in updater.parts.items()})
        return imagine(*inputs)

    monkeypatch.setattr(learner, "imagine", watch)
    metrics = updater.update(batch_of(SETTINGS, 0))
    assert seen == [{"model": {True}, "reverse": {True}, "actor": {False}, "critic": {False}}]
    assert not [name for name, metric in metrics.items() if metric.requires_grad]  # none keeps a graph alive
