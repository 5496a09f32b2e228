"""On one small fixed batch every part of the model learns; slow machines take the same steps."""

import pytest
import torch
from tiny_learner import backward, random_batch, terms_of, tiny_learner

LENGTH, BATCH = 8, 4
SIZES = {"depth": 4, "deter": 32, "stoch": 8, "hidden": 32, "reward_units": 32}


@pytest.fixture(scope="module")
def walk():
    """A bright square that moves with the action, rewarded for being on the right."""
    batch = random_batch(LENGTH, BATCH)
    place = torch.full((BATCH, 2), 12.0)
    batch.observation.zero_()
    for t in range(LENGTH):
        place = (place + 6 * batch.action[t]).clamp(0, 24)
        for row, (top, left) in enumerate(place.long().tolist()):
            batch.observation[t, row, top : top + 8, left : left + 8] = 255
        batch.reward[t] = place[:, 1] / 24
    batch.is_first[0] = True
    return batch


def train(learner, batch, *, updates, rates):
    """Adam on these parts alone; the mean terms of the first and of the last ten updates."""
    optimisers = [torch.optim.Adam(parameters, lr=rate) for parameters, rate in rates]
    history = []
    for update in range(updates):
        losses, metrics = terms_of(learner, batch, update=update)
        backward(learner, losses)
        for optimiser in optimisers:
            optimiser.step()
        history.append(metrics)
    return [{name: float(sum(terms[name] for terms in span) / 10) for name in history[0]}
            for span in (history[:10], history[-10:])]  # fmt: skip


@pytest.fixture(scope="module")
def trained(walk):
    """A learner after 120 updates of all its parts, with its terms at their beginning and end."""
    learner = tiny_learner(model=SIZES, retrace={"reverse_units": 32}, actor_critic={"starts_per_window": 4})
    parts = learner.parts()
    rates = [(parts["model"], 3e-3), (parts["actor"], 1e-3), (parts["critic"], 1e-3)]
    return learner, *train(learner, walk, updates=120, rates=rates)


def test_the_model_and_its_retracing_fit_a_batch(trained):
    _, first, last = trained
    assert last["model/observation"] < first["model/observation"] / 4
    assert last["model/reward"] < first["model/reward"] / 1.5
    assert last["retrace/loss"] < first["retrace/loss"] / 2


def test_the_actor_imagines_more_reward(trained):
    _, first, last = trained
    assert last["critic/reward"] > 2 * first["critic/reward"]


def test_reverse_actions_are_learned_with_the_model_as_it_is(trained, walk):
    learner = trained[0]
    before = [parameter.clone() for parameter in learner.world_model.parameters()]
    torch.manual_seed(1)
    for layer in learner.retracing.reverse.layers[::2]:
        layer.reset_parameters()
    first, last = train(learner, walk, updates=40, rates=[(learner.retracing.parameters(), 1e-2)])
    assert last["retrace/loss"] < first["retrace/loss"] / 1.5
    assert all(torch.equal(one, other) for one, other in zip(before, learner.world_model.parameters(), strict=True))
