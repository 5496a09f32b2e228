"""Half precision ends at the networks' outputs: all maths is in float32."""

from __future__ import annotations

import pytest
import torch
from tiny_learner import ACTIONS, DRAWN_HEADS, backward, random_batch, terms_of, tiny_learner, trained_parameters
from torch import nn

from ccwm.agents.precision import cast_outputs
from ccwm.nets.actor import Actor
from ccwm.structs import Gaussian

HALF = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", HALF)
def test_a_network_computes_in_half_precision_and_returns_float32(dtype):
    network = nn.Linear(2, 1)
    network.weight.data.copy_(torch.tensor([[1.0, 2.0**-12]]))
    network.bias.data.zero_()
    cast_outputs(network)
    given = torch.ones(1, 2)
    with torch.autocast("cpu", dtype=dtype):
        out = network(given)
    assert out.dtype == torch.float32
    assert out.item() == 1.0  # 1 + 2⁻¹² needs more digits than half precision has
    assert network(given).item() == 1.0 + 2.0**-12  # and float32 has them


def test_what_is_no_half_precision_is_left_as_it_is():
    network = nn.Linear(2, 1).double()
    cast_outputs(network)
    assert network(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float64


def test_named_tuples_stay_what_they_are():
    actor = Actor(feature=3, actions=2, units=4, layers=1, init_std=1.0, min_std=0.1)
    cast_outputs(actor)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        policy = actor(torch.ones(1, 3))
    assert isinstance(policy, Gaussian)
    assert {part.dtype for part in policy} == {torch.float32}


@pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
@pytest.mark.parametrize("dtype", HALF)
def test_every_network_of_a_learner_returns_float32(dtype, robust):
    learner = tiny_learner(robust=robust, model={"continues": True})
    model, feature = learner.world_model, torch.randn(3, 9)
    batch = random_batch(4, 3, robust=robust)
    with torch.autocast("cpu", dtype=dtype):
        assert model.rssm.embed(model.encoder(model.target(batch.observation))).dtype == dtype  # it is in force
        observed = model.observe(batch, torch.randn(4, 3, 3))
        state = observed.posterior.map(lambda part: part[0])
        predicted = model.predict(state, torch.randn(3, ACTIONS), torch.randn(3, 3))
        policy, reward, critic = (
            net(feature) for net in (learner.actor_critic.actor, model.reward, learner.actor_critic.critic)
        )
        made = {
            "posterior": [*observed.posterior],
            "prior": [*observed.prior, *predicted],
            "decoder": [model.decode(feature)],
            "reward": [*reward, reward.mean, reward.nll(torch.zeros(3)), reward.kl(reward)],
            "continues": [*model.continues(feature), model.discount(feature, 0.9)],
            "actor": [*policy, learner.actor_critic.actor.greedy(feature)],
            "critic": [*critic, critic.mean],
            "slow critic": [*learner.actor_critic.slow_critic(feature)] if robust else [],
            "reverse": [learner.retracing.reverse(feature, feature)],
        }
    assert all(part.dtype == torch.float32 for parts in made.values() for part in parts), made


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(
    ("loss", "robust"),
    [("bisimulation", False), ("l2", False), ("reconstruction", False), ("released", False), ("kl", True),
     ("metric", True)],
)  # fmt: skip
def test_autocast_gives_nearly_the_same_finite_losses(loss, robust, dtype):
    model = DRAWN_HEADS["model"] | {"continues": True}
    learner, batch = tiny_learner(robust=robust, model=model, retrace={"loss": loss}), random_batch(robust=robust)
    plain = terms_of(learner, batch).metrics
    with torch.autocast("cpu", dtype=dtype):
        losses, metrics = terms_of(learner, batch)
    backward(learner, losses)
    assert all(parameter.grad.isfinite().all() for parameter in trained_parameters(learner))
    assert {value.dtype for value in (*losses.values(), *metrics.values())} == {torch.float32}
    for name, value in metrics.items():
        torch.testing.assert_close(value, plain[name], rtol=0.05, atol=0.02, msg=lambda text, n=name: n + text)


def test_a_square_that_half_precision_cannot_hold_is_a_finite_loss():
    """½ · 1000² = 500,000, where float16 ends at 65,504."""
    learner, batch = tiny_learner(), random_batch()
    batch.reward.fill_(1000.0)
    with torch.autocast("cpu", dtype=torch.float16):
        metrics = terms_of(learner, batch).metrics
    assert metrics["model/reward"].item() == pytest.approx(500_000, rel=0.01)  # ½ · 1000²
