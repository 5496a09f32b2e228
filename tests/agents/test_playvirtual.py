"""PlayVirtual: the way out and back by hand, what trains what, and how it acts on the last frames."""

import numpy as np
import pytest
import torch
from tiny_learner import ACTIONS, NUMBERS, random_batch, reached
from tiny_playvirtual import tiny_playvirtual
from torch import nn
from torch.testing import assert_close

from ccwm.agents.noise import draw_virtual


class Turn(nn.Module):
    """Turns a state in its plane by an angle times the sign."""

    def __init__(self, sign):
        super().__init__()
        self.sign = sign

    def forward(self, state, angle):
        cos, sin = torch.cos(self.sign * angle[..., :1]), torch.sin(self.sign * angle[..., :1])
        return torch.cat(
            [cos * state[..., :1] - sin * state[..., 1:2], sin * state[..., :1] + cos * state[..., 1:2]], -1
        )


@pytest.fixture
def turning():
    """A learner whose actions turn its latent, and whose heads do nothing."""
    learner = tiny_playvirtual()
    learner.dynamics, learner.backward_dynamics = Turn(1), Turn(-1)
    learner.project = learner.predict = nn.Identity()
    return learner


def test_the_prediction_is_summed_along_the_actions_that_were_taken(turning):
    """From (1, 0) by 60° and 120°: 60° and 180°, against 60° and 90°, so that d = 0 + 1 − cos 90° = 1."""
    angles = torch.tensor([torch.pi / 3, 2 * torch.pi / 3]).reshape(2, 1, 1)
    wanted = torch.tensor([[[1.0, 0.0]], [[0.5, 3**0.5 / 2]], [[0.0, 2.0]]])
    assert_close(turning.prediction(wanted, wanted, angles), torch.tensor(1.0))


def test_a_cycle_closes_where_backward_undoes_forward_and_measures_by_how_much_it_does_not(turning):
    latent = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]])  # [1, B, 2]
    actions = torch.rand(3, 4, 2, 1)
    assert_close(turning.cycle(latent, latent, actions), torch.tensor(0.0), atol=1e-6, rtol=0)
    turning.backward_dynamics = Turn(-0.5)
    actions = torch.full((2, 4, 2, 1), torch.pi / 3)
    # Out by 2 · 60°, back by 2 · 30°: 60° are left, d = 1 − cos 60°.
    assert_close(turning.cycle(latent, latent, actions), torch.tensor(0.5))


def test_the_way_back_takes_the_newest_action_first(turning):
    taken = []
    for model in (turning.dynamics, turning.backward_dynamics):
        model.forward = lambda state, action: taken.append(float(action[0, 0])) or state
    actions = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1, 1)
    turning.cycle(torch.ones(1, 1, 2), torch.ones(1, 1, 2), actions)
    assert taken == [1, 2, 3, 3, 2, 1]


@pytest.mark.parametrize("pixels", [False, True])
def test_what_trains_what(pixels):
    learner = tiny_playvirtual(pixels=pixels)
    batch = random_batch(4 if pixels else 3, robust=not pixels)
    virtual = draw_virtual(0, 0, batch, learner.config)
    latent, wanted = learner.encode(batch, virtual)
    assert latent.shape == wanted.shape == (3, 3, 4)
    assert not wanted.requires_grad
    prediction = learner.prediction(latent, wanted, batch.action[-2:])
    cycle = learner.cycle(latent, wanted, virtual.actions)
    shared = [*learner.encoder.parameters(), *learner.dynamics.parameters(), *learner.predict.parameters()]
    assert all(reached(prediction, shared))
    assert all(reached(cycle, [*shared, *learner.backward_dynamics.parameters()]))
    assert not any(reached(prediction, learner.backward_dynamics.parameters()))
    assert not any(reached(prediction + cycle, [*learner.networks.parameters(), learner.log_temperature]))
    assert {id(one) for one in learner.parts()["model"]} == {
        id(one) for one in learner.parameters() if one.requires_grad
    } - {id(one) for one in [*learner.networks.parameters(), learner.log_temperature]}


def test_the_slow_copies_follow():
    learner = tiny_playvirtual(playvirtual={"target_rate": 0.25})
    with torch.no_grad():
        learner.project[0].bias += 4.0
    before = learner.slow_project[0].bias.clone()
    learner.after_step()
    assert_close(learner.slow_project[0].bias, before + 1.0)  # a quarter of 4


def test_without_a_weight_it_has_no_backward_dynamics_and_starts_from_the_same_weights():
    learner, without = tiny_playvirtual(), tiny_playvirtual(retrace={"weight": 0.0})
    assert without.backward_dynamics is None
    weights = learner.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in without.state_dict().items())


def test_virtual_draws_are_a_function_of_seed_and_update():
    learner, batch = tiny_playvirtual(), random_batch(3, robust=True)
    drawn = [draw_virtual(*of, batch, learner.config) for of in ((0, 0), (0, 0), (0, 1), (1, 0))]
    assert drawn[0].actions.shape == (2, 3, 3, ACTIONS)
    assert drawn[0].actions.abs().max() <= 1
    assert drawn[0].actions.min() < -0.5
    assert (drawn[0].offsets.min() >= 0) & (drawn[0].offsets.max() <= 8)
    assert torch.equal(drawn[0].actions, drawn[1].actions)
    assert not torch.equal(drawn[0].actions, drawn[2].actions)
    assert not torch.equal(drawn[0].actions, drawn[3].actions)


def test_acting_stacks_the_last_frames():
    learner = tiny_playvirtual(pixels=True)
    frames = torch.randint(0, 256, (3, 32, 32, 3), dtype=torch.uint8)
    policy = learner.policy()
    with torch.no_grad():
        found = [policy.feature(frame.numpy()) for frame in frames]
        padded = torch.stack([frames[0], *frames]).unsqueeze(1)  # before the first stands the first again
        assert_close(torch.stack(found), learner.encoder(learner.target(padded)))
    action = policy.act(frames[0].numpy())
    assert (action.dtype, action.shape) == (np.float32, (ACTIONS,))
    policy.reset(0)
    assert len(policy.frames) == 0


def test_what_acts_is_named_and_there_is_no_world_model():
    learner = tiny_playvirtual()
    acting = {name.split(".")[0] for name in learner.state_dict() if name.startswith(learner.acting_parts)}
    assert acting == {"encoder", "networks"}
    assert not learner.has_world_model
    assert learner.policy().act(np.ones(NUMBERS, np.float32)).shape == (ACTIONS,)
