import numpy as np
import torch
from tiny_learner import tiny_learner

from ccwm.agents.policy import RandomPolicy
from ccwm.agents.recurrent import RecurrentPolicy

FRAMES = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32, 3), dtype=np.uint8)  # [step, B, size, size, 3]


def recurrent(*, exploration=None):
    learner = tiny_learner(actor_critic={"init_std": 1.0})
    return RecurrentPolicy(learner.world_model, learner.actor_critic.actor, exploration=exploration)


def played(policy, seeds, rows=slice(None)):
    """The actions of an episode on the fixed frames: [step, B, A]."""
    policy.reset(seeds)
    return np.stack([policy.act(frame[rows]) for frame in FRAMES])


def test_greedy_acting_draws_nothing():
    policy = recurrent()
    first = played(policy, [1, 2, 3])
    assert first.dtype == np.float32
    assert first.shape == (4, 3, 2)
    assert np.array_equal(played(policy, [4, 5, 6]), first)


def test_greedy_acting_is_the_mode_on_filtered_means():
    learner = tiny_learner(actor_critic={"init_std": 1.0})
    model, actor = learner.world_model, learner.actor_critic.actor
    state, action = model.rssm.initial(torch.zeros(3, 1)), torch.zeros(3, 2)
    wanted = []
    with torch.no_grad():
        for frame in FRAMES:
            embed = model.embed(model.centre(torch.from_numpy(frame).permute(0, 3, 1, 2)))
            state = model.rssm.correct(state, action, embed, torch.zeros(3, 3))
            action = actor.greedy(state.feature)  # what was done enters the next state
            wanted.append(action.numpy())
    np.testing.assert_allclose(played(RecurrentPolicy(model, actor), [0, 0, 0]), np.stack(wanted), atol=1e-6)


def test_an_episode_starts_from_nothing():
    policy = recurrent()
    first = played(policy, [0] * 3)
    policy.reset([0] * 3)
    policy.act(FRAMES[3])
    assert np.array_equal(played(policy, [0] * 3), first)
    policy.reset([0] * 3)
    fresh = policy.act(FRAMES[1])
    assert not np.array_equal(fresh, first[1])  # within an episode the past counts


def test_exploring_is_a_function_of_the_seed():
    policy = recurrent(exploration=0.3)
    first = played(policy, [1, 2, 3])
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 (the hidden stream must have no part in it)
    assert np.array_equal(played(policy, [1, 2, 3]), first)
    other = played(policy, [1, 7, 3])
    assert not np.allclose(other[:, 1], first[:, 1])
    np.testing.assert_array_equal(other[:, [0, 2]], first[:, [0, 2]])


def test_exploration_is_added_and_clipped():
    wild = played(recurrent(exploration=2.0), list(range(3)))
    assert np.abs(wild).max() == 1.0
    drawn = played(recurrent(exploration=0.0), list(range(3)))  # draws of the actor, with no noise on top
    assert not np.array_equal(drawn, played(recurrent(), list(range(3))))
    assert np.abs(drawn).max() < 1.0


def test_a_batch_acts_as_its_rows_do_alone_to_the_last_bit():
    """With wide layers, where products of matrices do differ between batch sizes."""
    for exploration in (None, 0.3):
        learner = tiny_learner(actor_critic={"init_std": 1.0, "units": 256}, model={"deter": 256, "hidden": 256})
        policy = RecurrentPolicy(learner.world_model, learner.actor_critic.actor, exploration=exploration)
        together = played(policy, [5, 6, 7])
        for row, seed in enumerate((5, 6, 7)):
            alone = played(policy, [seed], slice(row, row + 1))
            np.testing.assert_array_equal(alone[:, 0], together[:, row])


def test_random_actions_are_uniform_and_a_function_of_the_seed():
    policy = RandomPolicy(2)

    def episode(seed, steps):
        policy.reset(seed)
        return np.stack([policy.act(np.zeros((32, 32, 3), np.uint8)) for _ in range(steps)])

    first = episode(1, 2000)
    assert (first.shape, first.dtype) == ((2000, 2), np.float32)
    assert np.array_equal(episode(1, 5), first[:5])
    assert not np.array_equal(episode(2, 5), first[:5])
    counts, _ = np.histogram(first, bins=4, range=(-1, 1))
    assert np.abs(counts - 1000).max() < 110  # 4,000 draws: 1,000 ± 27.4 a quarter, four spreads
