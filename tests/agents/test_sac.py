"""SAC's networks act on the observation alone."""

import math

import numpy as np
import pytest
import torch
from tiny_learner import NUMBERS
from tiny_sac import flatten, tiny_sac

from ccwm.errors import UserError
from ccwm.seeds import named_seed

STATE = np.ones(NUMBERS, np.float32)


@pytest.fixture
def learner():
    """Its actor is N((0.5, −1), (e⁻¹, e⁻²)) before the tanh, whatever it sees."""
    learner = tiny_sac()
    actor = learner.networks.actor
    flatten(actor, (actor.mu, [0.5, -1.0]), (actor.log_std, [-1.0, -2.0]))
    return learner


def test_a_greedy_action_is_the_mode(learner):
    action = learner.policy().act(STATE)
    assert action.dtype == np.float32
    assert action == pytest.approx([0.46211716, -0.76159416])  # tanh 0.5, tanh −1


def test_an_exploring_action_is_drawn_as_a_function_of_the_seed(learner):
    policy = learner.policy(explore=True)
    policy.reset(7)
    first, second = np.random.default_rng(named_seed("explore", 7)).standard_normal(2, dtype=np.float32)
    assert policy.act(STATE) == pytest.approx(
        [math.tanh(0.5 + math.exp(-1) * first), math.tanh(-1 + math.exp(-2) * second)], abs=1e-6
    )
    again = policy.act(STATE)
    policy.reset(7)
    policy.act(STATE)
    assert np.array_equal(policy.act(STATE), again)
    policy.reset(8)
    policy.act(STATE)
    assert not np.array_equal(policy.act(STATE), again)


def test_an_action_that_is_not_finite_is_refused(learner):
    with torch.no_grad():
        learner.networks.actor.mu.bias.fill_(torch.nan)
    with pytest.raises(UserError, match="action is not finite"):
        learner.policy().act(STATE)


def test_all_that_is_learned_is_in_the_state_dict_and_what_acts_is_named():
    learner = tiny_sac()
    names = set(learner.state_dict())
    parts = {name.split(".")[1] for name in names if name.startswith("networks.")}
    assert parts == {"actor", "critic", "critic_target"}
    assert names - {name for name in names if name.startswith("networks.")} == {"log_temperature"}
    acting = [name for name in names if name.startswith(learner.acting_parts)]
    assert len(acting) == len(learner.networks.actor.state_dict())
    assert not learner.has_world_model


def test_the_slow_critics_begin_as_copies_and_the_temperature_at_one():
    learner = tiny_sac()
    fast, slow = learner.networks.critic.state_dict(), learner.networks.critic_target.state_dict()
    assert all(torch.equal(value, slow[name]) for name, value in fast.items())
    assert learner.log_temperature.exp() == 1


def test_sizes_are_those_of_the_settings():
    actor = tiny_sac(sac={"layers": 3, "units": 5}).networks.actor
    assert [layer.out_features for layer in actor.latent_pi if isinstance(layer, torch.nn.Linear)] == [5, 5, 5]
