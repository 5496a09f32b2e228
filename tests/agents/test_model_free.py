"""The model-free instantiation: what retraces, what values, what acts, and which gradient goes where."""

import numpy as np
import pytest
import torch
from tiny_learner import NUMBERS, noise_of, random_batch, reached
from tiny_model_free import tiny_model_free
from tiny_sac import flatten
from torch.testing import assert_close

from ccwm.training.model_free import ModelFree

LOSSES = ("bisimulation", "l2", "reconstruction", "metric")


def retraced(learner, batch, env_steps=0):
    noise = noise_of(learner, batch)
    observed, _ = learner.observe(batch, noise)
    return observed, learner.retrace(batch, observed, noise, env_steps)


@pytest.mark.parametrize("loss", LOSSES)
def test_retracing_trains_the_reversed_model_and_the_world_model_and_not_sac(loss):
    learner = tiny_model_free(retrace={"loss": loss})
    _, terms = retraced(learner, random_batch(robust=True))
    assert all(reached(terms.losses["model"], learner.retracing.parameters()))
    rssm = learner.world_model.rssm
    forward = [*learner.world_model.encoder.parameters(), *rssm.enter.parameters(), *rssm.cell.parameters()]
    assert all(reached(terms.losses["model"], forward))
    assert not any(reached(terms.losses["model"], [*learner.networks.parameters(), learner.log_temperature]))


@pytest.mark.parametrize("pixels", [False, True])
def test_one_loss_trains_the_whole_representation_and_nothing_else(pixels):
    learner = tiny_model_free(pixels=pixels)
    terms, feature = ModelFree(learner, seed=0).training_step(random_batch(robust=not pixels))
    (part,) = learner.parts().values()
    assert list(terms.losses) == ["model"]
    assert {id(one) for one in part} == {id(one) for one in learner.parameters()} - {
        id(one) for one in [*learner.networks.parameters(), learner.log_temperature]
    }
    assert all(reached(terms.losses["model"], part))
    assert feature.shape == (5, 3, 9)  # stoch 3, deter 6


def test_a_step_back_takes_the_action_that_was_taken():
    """ž_t = z̃_{t+1} + f(z̃_{t+1}, a_t), with f = a₀ on the first number of stoch and −a₁ on the first of deter."""
    learner = tiny_model_free()
    batch = random_batch(robust=True)
    observed, _ = retraced(learner, batch)

    def change(later, action):
        moved = torch.zeros_like(later)
        moved[..., 0], moved[..., 3] = action[..., 0], -action[..., 1]
        return later + moved

    learner.retracing.reversed.forward = change
    walked = learner.retracing.walk(observed, learner.world_model, torch.zeros(2, 1, 3, 3, 3))
    posterior, action = observed.posterior, batch.action
    assert_close(walked.stoch[0, 0, ..., 0], posterior.stoch[2:, :, 0] + action[2:, :, 0])
    # Two steps back: the newer action first, then the one before it.
    assert_close(walked.stoch[1, 0, ..., 0], posterior.stoch[2:, :, 0] + action[2:, :, 0] + action[1:-1, :, 0])
    assert_close(walked.deter[0, 0, ..., 0], posterior.deter[2:, :, 0] - action[2:, :, 1])
    assert not walked.std.any()


def test_the_value_is_the_lesser_q_at_the_modes_action():
    learner = tiny_model_free()
    networks = learner.networks
    flatten(networks.actor, (networks.actor.mu, [0.5, -1.0]), (networks.actor.log_std, [0.0, 0.0]))
    flatten(networks.critic, (networks.critic.q_networks[0][-1], [2.0]), (networks.critic.q_networks[1][-1], [3.0]))
    feature = torch.randn(4, 2, 9)
    assert_close(learner.control.value(feature), torch.full((4, 2), 2.0))
    assert_close(learner.control.greedy(feature[0]), torch.tanh(torch.tensor([0.5, -1.0])).expand(2, 2))
    seen = []
    networks.critic.forward = lambda state, action: seen.append(action) or (state[:, :1], state[:, 1:2])
    assert_close(learner.control.value(feature), feature[..., :2].amin(-1))
    assert_close(seen[0], torch.tanh(torch.tensor([0.5, -1.0])).expand(8, 2))


@pytest.mark.parametrize("signal", ["value", "q"])
def test_truncation_watches_the_critics(signal):
    learner = tiny_model_free(truncation={"mode": "adaptive", "signal": signal, "threshold": 1e-9, "lookback": 0})
    batch = random_batch(robust=True)
    assert retraced(learner, batch)[1].metrics["retrace/truncated_share"] > 0  # η is next to nothing
    networks = learner.networks
    flatten(networks.critic, (networks.critic.q_networks[0][-1], [1.0]), (networks.critic.q_networks[1][-1], [1.0]))
    flatten(learner.world_model.reward)
    assert retraced(learner, batch)[1].metrics["retrace/truncated_share"] == 0  # all values are alike


def test_the_control_starts_from_the_same_weights_and_has_nothing_to_retrace_with():
    learner, control = tiny_model_free(), tiny_model_free(retrace={"weight": 0.0})
    assert (control.retracing, control.truncation) == (None, None)
    weights = learner.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in control.state_dict().items())
    assert retraced(control, random_batch(robust=True))[1].losses == {}
    assert control.retrace_skill(random_batch(robust=True)) == {}


def test_acting_filters_and_takes_the_mode_or_draws():
    learner = tiny_model_free()
    actor = learner.networks.actor
    greedy, state = learner.policy(), np.ones(NUMBERS, np.float32)
    first = greedy.act(state)
    feature = greedy.state.feature
    assert first == pytest.approx(torch.tanh(actor.get_action_dist_params(feature)[0])[0].detach().numpy())
    assert not np.array_equal(greedy.act(state), first)  # it remembers what it saw
    exploring = learner.policy(explore=True)
    drawn = [exploring.act(state)]
    for seed in (0, 1):
        exploring.reset(seed)
        drawn.append(exploring.act(state))
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])


def test_what_acts_is_named():
    learner = tiny_model_free()
    acting = {name.rpartition(".")[0].split(".")[1] for name in learner.state_dict()
              if name.startswith(learner.acting_parts)}  # fmt: skip
    assert acting == {"encoder", "rssm", "actor"}
