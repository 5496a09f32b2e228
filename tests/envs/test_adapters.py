"""Other people's environments; the worked example of docs/worlds.md runs here unchanged."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_env import small
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from ccwm.envs.change import Change
from ccwm.envs.env import TaskEnv
from ccwm.envs.tasks import check_task
from ccwm.errors import UserError

DOCS = Path(__file__).parents[2] / "docs" / "worlds.md"


@pytest.fixture
def hover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskEnv:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (tmp_path / "my_worlds.py").write_text(example)
    monkeypatch.syspath_prepend(tmp_path)
    check_task("my_worlds:Hover")
    return small("my_worlds:Hover", time_limit=100)


@pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36")  # of a network that is not ours
def test_the_worked_example_is_an_environment(hover: TaskEnv):
    check_env(hover, skip_render_check=True)
    sb3_check_env(hover)
    with pytest.raises(UserError, match=r"my_worlds has no gymnasium\.Env class 'Hoover'"):
        small("my_worlds:Hoover")


def test_actions_are_scaled_to_the_worlds_own_range(hover: TaskEnv):
    hover.reset(seed=0)
    hover.step(np.array([0.5], np.float32))  # 0.5 of ±2 is the lift of 1 that holds the ball
    assert hover.state()[1] == 0
    hover.step(np.array([1.0], np.float32))
    assert hover.state()[1] == pytest.approx(2 * 0.01)


def test_a_worlds_own_end_and_its_word_on_reversibility_pass_through(hover: TaskEnv):
    hover.reset(seed=0)
    while True:
        image, _, terminated, truncated, info = hover.step(np.array([-1.0], np.float32))
        if terminated or truncated:
            break
        assert info["irreversible"] is False
    assert (terminated, truncated, info["irreversible"]) == (True, False, True)
    assert image.shape == (32, 32, 3)


def test_pendulum_is_seen_and_scaled():
    env = small("gym:Pendulum-v1", size=64, action_repeat=16, time_limit=1000)
    image, _ = env.reset(seed=0)
    assert image.shape == (64, 64, 3)
    assert (image[0, 0] == 255).all()
    assert (image.min(axis=-1) < 200).sum() > 50  # the rod
    steps = [env.step(np.ones(1, np.float32)) for _ in range(13)]
    assert env.world._env.unwrapped.last_u == 2.0  # Pendulum's torque is ±2
    assert steps[-1][2:4] == (False, True)  # its own time limit of 200 frames


def test_a_lander_is_flown_with_continuous_actions_and_crashes_for_good():
    env = small("gym:LunarLander-v3", size=64, time_limit=1000)
    assert env.action_space.shape == (2,)  # main engine and side engines; the id's own default is four buttons
    image, _ = env.reset(seed=0)
    assert image.max() > 200  # the moon
    assert len(env.state()) == 8
    while True:
        image, _, terminated, truncated, _ = env.step(np.array([-1.0, 0.0], np.float32))
        if terminated or truncated:
            break
    assert (terminated, truncated) == (True, False)


@pytest.mark.parametrize(
    ("task", "package", "extra"),
    [("gym:LunarLander-v3", "Box2D", "box2d"), ("gym:Pendulum-v1", "pygame", "classic-control")],
)
def test_a_missing_package_is_named_with_its_hint(task: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # an import of it fails
    with pytest.raises(UserError, match=rf'{task}.*`pip install "gymnasium\[{extra}\]"`'):
        small(task).reset(seed=0)


def test_discrete_actions_are_refused():
    with pytest.raises(UserError, match=r"gym:CartPole-v1.* Discrete\(2\)"):
        small("gym:CartPole-v1")


def test_only_the_reward_can_change():
    with pytest.raises(UserError, match=r"gym:Pendulum-v1.*gravity.*reward$"):
        small("gym:Pendulum-v1", change=Change(gravity=2.0))
