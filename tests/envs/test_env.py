"""What every environment promises, on a world of each kind."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_env import KINDS, digest, small
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from ccwm.envs.change import Change
from ccwm.envs.env import TaskEnv
from ccwm.envs.world import Outcome
from ccwm.settings.agent import Env

PLAY = """
import sys
sys.path.insert(0, {folder!r})
from small_env import digest
for task in sys.argv[2:]:
    print(task, digest(task, sys.argv[1]))
"""


class CountingWorld:
    """Counts its frames and its renders; the reward is the number of the frame."""

    action_size = 1
    observation_names = ("frames", "broken")

    def __init__(self, broken: float = 0.0) -> None:
        self.frames = self.renders = 0
        self.broken = broken

    def reset(self, seed: int | None) -> None:
        self.frames = 0

    def advance(self, action: np.ndarray) -> Outcome:
        self.frames += 1
        return Outcome(float("nan") if action[0] < 0 else self.frames, terminated=self.frames == 7)

    def render(self) -> np.ndarray:
        self.renders += 1
        return np.full((32, 32, 3), self.frames, np.uint8)

    def state(self) -> np.ndarray:
        return np.array([self.frames, self.broken], np.float32)

    def close(self) -> None: ...


def test_each_state_is_rendered_exactly_once():
    world = CountingWorld()
    env = TaskEnv(world, Env(size=32, action_repeat=3, time_limit=1000))
    env.reset(seed=0)
    assert world.renders == 1
    for step in (1, 2):
        observation, *_ = env.step(np.ones(1, np.float32))
        assert world.renders == step + 1
        assert env.render() is observation
        assert (observation == 3 * step).all()
    assert world.renders == 3
    assert env.state().tolist() == [6, 0]  # needs no render
    assert world.renders == 3


def test_a_state_is_observed_without_a_render():
    world = CountingWorld()
    env = TaskEnv(world, Env(observation="state", size=32, action_repeat=3, time_limit=1000))
    assert env.observation_space == gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    assert env.observation_names == ("frames", "broken")
    assert env.reset(seed=0)[0].tolist() == [0, 0]
    observation, reward, *_ = env.step(np.ones(1, np.float32))
    assert (observation.tolist(), observation.dtype, reward) == ([3, 0], np.float32, 1 + 2 + 3)
    assert world.renders == 0
    assert (env.render() == 3).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_state_that_is_not_finite_is_refused_by_its_name(bad: float):
    world = CountingWorld()
    env = TaskEnv(world, Env(observation="state", size=32, action_repeat=3, time_limit=1000))
    env.reset(seed=0)
    world.broken = bad
    with pytest.raises(ValueError, match=f"frame 3: broken is {bad}$"):
        env.step(np.ones(1, np.float32))


def test_a_world_ends_in_the_middle_of_an_action_and_nan_rewards_are_refused():
    env = TaskEnv(CountingWorld(), Env(size=32, action_repeat=4, time_limit=1000), reward_factor=2.0)
    env.reset(seed=0)
    env.step(np.ones(1, np.float32))
    _, reward, terminated, truncated, info = env.step(np.ones(1, np.float32))
    assert (reward, terminated, truncated, info["frames"]) == (2 * (5 + 6 + 7), True, False, 3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="reward of nan at frame 0"):
        env.step(-np.ones(1, np.float32))


@pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36")  # of a network that is not ours
@pytest.mark.parametrize("task", KINDS)
def test_gymnasium_and_stable_baselines_accept_it(task: str):
    env = small(task)
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    assert env.observation_names == ()
    assert env.action_space.shape == (env.action_size,)
    check_env(env, skip_render_check=True)
    sb3_check_env(env)


@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value")  # a state has no bounds
@pytest.mark.parametrize("task", KINDS)
def test_a_state_is_a_vector_with_a_name_for_each_component(task: str):
    env = small(task, observation="state")
    assert env.observation_space.shape == (len(env.observation_names),)
    assert len(set(env.observation_names)) == len(env.observation_names)
    observation, _ = env.reset(seed=1)
    np.testing.assert_array_equal(observation, env.state())
    check_env(env, skip_render_check=True)
    sb3_check_env(env)
    assert env.render().shape == (32, 32, 3)


@pytest.mark.parametrize("observation", ["pixels", "state"])
def test_the_same_seed_gives_the_same_observations_in_another_process(observation: str):
    code = PLAY.format(folder=str(Path(__file__).parent))
    run = subprocess.run([sys.executable, "-c", code, observation, *KINDS], capture_output=True, text=True, check=True)
    told = dict(line.split() for line in run.stdout.splitlines() if line.startswith(tuple(KINDS)))
    assert told == {task: digest(task, observation) for task in KINDS}


@pytest.mark.parametrize("task", KINDS)
def test_a_seed_wipes_out_what_was_before_and_no_seed_goes_on(task: str):
    env = small(task)
    env.reset(seed=1)
    start = env.state()
    env.step(env.action_space.high)
    env.reset()
    assert not np.array_equal(env.state(), start)
    env.reset(seed=1)
    np.testing.assert_array_equal(env.state(), start)
    env.reset(seed=2)
    assert not np.array_equal(env.state(), start)


@pytest.mark.parametrize("observation", ["pixels", "state"])
@pytest.mark.parametrize("task", KINDS)
def test_later_steps_do_not_change_an_observation(task: str, observation: str):
    env = small(task, observation=observation)
    first, _ = env.reset(seed=1)
    kept = first.copy()
    for _ in range(5):
        env.step(env.action_space.high)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("bad", [np.nan, 1.5, -1.01, np.inf])
def test_wild_actions_are_refused_by_name(bad: float):
    env = small("maze_open")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"NaN or outside \[-1, 1\]"):
        env.step(np.array([0.0, bad], np.float32))
    with pytest.raises(ValueError, match=r"\(3,\).* takes \(2,\)"):
        env.step(np.zeros(3, np.float32))


def test_a_time_limit_truncates_in_the_middle_of_an_action():
    env = small("maze_open", action_repeat=3, time_limit=10)
    env.reset(seed=0)
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(4)]
    assert [(terminated, truncated) for _, _, terminated, truncated, _ in steps] == [(False, False)] * 3 + [
        (False, True)
    ]
    assert [info["frames"] for *_, info in steps] == [3, 3, 3, 1]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2, np.float32))
    env.reset()
    assert env.step(np.zeros(2, np.float32))[4]["frames"] == 3


def test_rewards_of_repeated_frames_add_up_and_are_scaled():
    still = np.zeros(2, np.float32)
    rewards = []
    for repeat, change in ((1, Change()), (4, Change()), (4, Change(reward=2.5))):
        env = small("maze_open", action_repeat=repeat, change=change)
        env.reset(seed=3)
        rewards.append(env.step(still)[1])
    assert rewards[0] > 0
    assert rewards[1] == pytest.approx(4 * rewards[0])
    assert rewards[2] == pytest.approx(10 * rewards[0])


def test_every_info_tells_reversibility_and_frames():
    for task in KINDS:
        env = small(task)
        assert env.reset(seed=0)[1] == {"irreversible": False, "frames": 0}
        info = env.step(env.action_space.sample())[4]
        assert (info["irreversible"], info["frames"]) == (False, 2)
        assert ("success" in info) == task.startswith("maze_")
