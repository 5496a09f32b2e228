import numpy as np
import torch
from tiny_learner import tiny_learner

from ccwm.agents.recurrent import RecurrentPolicy

FRAMES = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)


def policy_of(learner, *, exploration=None):
    return RecurrentPolicy(learner.world_model, learner.actor_critic.actor, exploration=exploration)


def recurrent(*, exploration=None):
    return policy_of(tiny_learner(actor_critic={"init_std": 1.0}), exploration=exploration)


def played(policy, seed):
    """The actions of an episode on the fixed frames: [step, A]."""
    policy.reset(seed)
    return np.stack([policy.act(frame) for frame in FRAMES])


def test_greedy_acting_draws_nothing():
    policy = recurrent()
    first = played(policy, 1)
    assert (first.shape, first.dtype) == ((4, 2), np.float32)
    assert np.array_equal(played(policy, 4), first)


def test_greedy_acting_is_the_mode_on_filtered_means():
    learner = tiny_learner(actor_critic={"init_std": 1.0})
    model, actor = learner.world_model, learner.actor_critic.actor
    state, action = model.rssm.initial(torch.zeros(1, 1)), torch.zeros(1, 2)
    wanted = []
    with torch.no_grad():
        for frame in FRAMES:
            embed = model.embed(model.target(torch.from_numpy(frame[None])))
            state = model.rssm.correct(state, action, embed, torch.zeros(1, 3))
            action = actor.greedy(state.feature)  # what was done enters the next state
            wanted.append(action[0].numpy())
    np.testing.assert_allclose(played(policy_of(learner), 0), np.stack(wanted), atol=1e-6)


def test_an_episode_starts_from_nothing():
    policy = recurrent()
    first = played(policy, 0)
    policy.reset(0)
    policy.act(FRAMES[3])
    assert np.array_equal(played(policy, 0), first)
    policy.reset(0)
    fresh = policy.act(FRAMES[1])
    assert not np.array_equal(fresh, first[1])  # within an episode the past counts


def test_exploring_is_a_function_of_the_seed():
    policy = recurrent(exploration=0.3)
    first = played(policy, 1)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 (the hidden stream must have no part in it)
    assert not np.allclose(played(policy, 7), first)
    assert np.array_equal(played(policy, 1), first)


def test_exploration_is_added_and_clipped():
    wild = np.stack([played(recurrent(exploration=2.0), seed) for seed in range(3)])
    assert np.abs(wild).max() == 1.0
    drawn = played(recurrent(exploration=0.0), 0)  # draws of the actor, with no noise on top
    assert not np.array_equal(drawn, played(recurrent(), 0))
    assert np.abs(drawn).max() < 1.0


def test_acting_makes_no_graph_and_follows_the_weights():
    learner = tiny_learner(actor_critic={"init_std": 1.0})
    policy = policy_of(learner)
    first = played(policy, 0)
    assert not policy.state.stoch.requires_grad
    learner.actor_critic.actor.layers[-1].bias.data += 1.0
    assert not np.array_equal(played(policy, 0), first)


def test_double_precision_acts_in_float32():
    learner = tiny_learner(actor_critic={"init_std": 1.0})
    single = played(policy_of(learner), 0)
    double = played(policy_of(learner.double()), 0)
    assert double.dtype == np.float32
    np.testing.assert_allclose(double, single, atol=1e-5)
