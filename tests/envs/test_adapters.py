"""Other people's environments; the worked example of docs/worlds.md runs here unchanged."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Sequence, Tuple
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


class Odd(gymnasium.Env):
    """Observes whatever space it is given."""

    action_space = Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (Box(-1, 1, ()), ["observation"]),
        (Box(-1, 1, (2,)), ["observation[0]", "observation[1]"]),
        (Box(0, 1, (1, 2)), ["observation[0,0]", "observation[0,1]"]),
        (
            Dict({"speed": Box(-1, 1, ()), "arm": Dict({"joints": Box(-1, 1, (2,))}), "gear": Discrete(2)}),
            ["arm.joints[0]", "arm.joints[1]", "gear[0]", "gear[1]", "speed"],
        ),
        (Tuple([Box(-1, 1, (1,)), Box(-1, 1, ())]), ["observation[0][0]", "observation[1]"]),
    ],
)
def test_components_are_named_by_key_and_index(space: gymnasium.Space, names: list[str], monkeypatch):
    monkeypatch.setattr(Odd, "observation_space", space, raising=False)
    env = small(f"{__name__}:Odd", observation="state")
    assert list(env.observation_names) == names
    observation, _ = env.reset(seed=0)
    np.testing.assert_array_equal(observation, env.state())
    assert env.observation_space.contains(observation)


def test_what_is_no_vector_is_refused_as_a_state_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Odd, "observation_space", Sequence(Box(-1, 1, (2,))), raising=False)
    small(f"{__name__}:Odd").close()
    with pytest.raises(UserError, match="Odd has the observation space Sequence"):
        small(f"{__name__}:Odd", observation="state")


def test_gymnasiums_mujoco_is_observed_without_gl():
    code = (
        "import sys; from ccwm.envs.factory import make_env; from ccwm.settings.agent import Env\n"
        "env = make_env('gym:Hopper-v5', Env(observation='state', size=32))\n"
        "env.step(env.action_space.high * 0) if env.reset(seed=0) else None\n"
        "raise SystemExit('OpenGL' in sys.modules or env.render().shape != (32, 32, 3))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
