import numpy as np

from ccwm.agents.policy import RandomPolicy

OBSERVATION = np.zeros((32, 32, 3), dtype=np.uint8)


def played(policy, seed, steps=4):
    policy.reset(seed)
    return np.stack([policy.act(OBSERVATION) for _ in range(steps)])


def test_random_actions_are_a_function_of_the_seed():
    policy = RandomPolicy(2)
    first = played(policy, 1)
    assert (first.shape, first.dtype) == ((4, 2), np.float32)
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(played(policy, 2), first)
    assert np.array_equal(played(policy, 1), first)


def test_random_actions_are_uniform():
    counts, _ = np.histogram(played(RandomPolicy(2), 0, steps=2000), bins=4, range=(-1, 1))
    assert np.abs(counts - 1000).max() < 110  # 4,000 draws: 1,000 ± 27.4 a quarter, four standard deviations
