"""`ccwm play`: any agent in any world that fits it, as returns and a video."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import imageio.v3 as iio
import numpy as np
import pytest
import torch

from ccwm.agents.build import build_learner
from ccwm.agents.export import AgentCard, load_agent, save_agent
from ccwm.cli.play import parse_change, play, play_agent
from ccwm.envs.change import UNCHANGED, Change
from ccwm.envs.factory import make_env
from ccwm.errors import UserError
from ccwm.settings.agent import AgentConfig, Env

ROOT = Path(__file__).parents[2]
STEPS = 20  # 40 frames, two an action
CONFIG = {
    "env": {"size": 32, "time_limit": 40, "render_quality": "fast"},
    "model": {"depth": 2, "deter": 8, "stoch": 4, "hidden": 8, "reward_units": 8},
    "retrace": {"weight": 0.0},
    "actor_critic": {"units": 8},
}


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An untrained agent of a maze."""
    return export(tmp_path / "models" / "maze_two_rooms" / "ccwm" / "0", "maze_two_rooms")


def export(
    directory: Path, task: str, *, action_size: int = 2, state_size: int | None = None, kind: str = "world_model"
) -> Path:
    """An untrained agent, which sees pixels unless it is told the size of the state that it sees."""
    content = {name: CONFIG.get(name, {}) for name in AgentConfig.model_fields} | {"agent": {"kind": kind}}
    if state_size:
        content["env"] = {**CONFIG["env"], "observation": "state"}
    config = AgentConfig(**content)  # type: ignore[arg-type]
    shape = (state_size,) if state_size else (32, 32, 3)
    card = AgentCard(
        task=task,
        variant="ccwm",
        seed=0,
        observation_shape=shape,
        observation_dtype="float32" if state_size else "uint8",
        action_size=action_size,
        env_steps=0,
        updates=0,
        config=config,
    )
    torch.manual_seed(0)
    directory.mkdir(parents=True)
    save_agent(directory, build_learner(config, observation_shape=shape, actions=action_size), card)
    return directory


def test_the_documented_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export(tmp_path / "models" / "walker_walk" / "ccwm" / "0", "walker_walk", action_size=6, state_size=24)
    example = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "agents.md").read_text(), re.DOTALL)[0]
    (tmp_path / "example.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("example.py")
    assert re.fullmatch(r"return -?\d+\.\d\n", capsys.readouterr().out)


def test_a_video_of_every_episode_and_its_returns(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "video.mp4"
    play(str(agent), episodes=2, out=out)
    frames = iio.imread(out)
    assert frames.shape == (2 * (STEPS + 1), 128, 128, 3)
    told = capsys.readouterr().out
    assert told.count(f" {STEPS} ") == 2
    assert "maze_two_rooms, mean return" in told
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["sac", "model_free", "playvirtual"])
def test_an_agent_of_any_kind_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    env = make_env("maze_two_rooms", Env(observation="state", size=32, time_limit=40))
    (size,) = env.observation_space.shape or ()
    agent = export(tmp_path / "agent", "maze_two_rooms", state_size=size, kind=kind)
    play(str(agent), out=tmp_path / "video.mp4")
    assert "maze_two_rooms, mean return" in capsys.readouterr().out
    assert len(iio.imread(tmp_path / "video.mp4")) == STEPS + 1


def test_a_changed_world_and_another_one_are_played(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    returns = {}
    for name, given in {"own": {}, "twice": {"change": ["reward=2"]}, "pit": {"task": "maze_pit"}}.items():
        play(str(agent), out=tmp_path / f"{name}.mp4", **given)
        returns[name] = re.search(r"mean return (\S+);", capsys.readouterr().out)[1]  # type: ignore[index]
    assert returns["own"] == returns["twice"]  # told in the original scale
    assert iio.imread(tmp_path / "own.mp4").tobytes() != iio.imread(tmp_path / "pit.mp4").tobytes()


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (["mass=0.5", "friction=1.5/4/3"], Change(mass=0.5, friction=(1.5, 4.0, 3.0))),
        (["layout=open", "reward=2"], Change(layout="open", reward=2.0)),
        ([], Change()),
    ],
)
def test_changes(given: list[str], change: Change) -> None:
    assert parse_change(given, "factor") == change


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mas=2", "'mass'"),
        ("mass", "NAME=VALUE"),
        ("mass=heavy", "one number above 0"),
        ("mass=-1", "one number above 0"),
        ("mass=inf", "one number above 0"),
        ("mass=1/2", "one number"),
        ("friction=1", "three numbers"),
        ("layout=opne", "'open'"),
        ("units=absolute", "NAME=VALUE"),
    ],
)
def test_a_bad_change_is_refused(text: str, told: str) -> None:
    with pytest.raises(UserError, match=f"--change {text}.*{told}"):
        parse_change([text], "factor")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"task": "maze_opne"}, "'maze_open'"),
        (
            {"task": "gym:Pendulum-v1"},
            "takes 1 actions, this agent, trained on maze_two_rooms, gives 2",
        ),
        ({"change": ["mass=2"]}, "maze_two_rooms has no mass"),
        ({"out": Path("video.gif")}, ".mp4"),
        ({"out": Path("/nowhere/at/all/video.mp4")}, "a directory that exists"),
    ],
)
def test_what_does_not_go_together_is_refused(agent: Path, tmp_path: Path, given: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        play(str(agent), **{"out": tmp_path / "video.mp4", **given})  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.mp4"))


def test_an_agents_file_does_not_choose_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that names a module: it is not imported, unless the person names it too."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    directory = export(tmp_path / "agent", "trap:World")
    with pytest.raises(UserError, match="--task trap:World"):
        play(str(directory), out=tmp_path / "video.mp4")
    with pytest.raises(SystemExit, match="imported"):
        play(str(directory), task="trap:World", out=tmp_path / "video.mp4")


def test_an_agent_sees_what_it_was_trained_on(tmp_path: Path) -> None:
    """The card's render quality, not the default, decides the pixels."""
    agent = load_agent(export(tmp_path / "agent", "cartpole_balance", action_size=1))
    (seen,) = play_agent(agent, UNCHANGED, [3], lambda: None)
    pixels = {}
    for quality in ("fast", "full"):
        env = make_env("cartpole_balance", agent.card.config.env.model_copy(update={"render_quality": quality}))
        pixels[quality] = env.reset(seed=3)[0]
        env.close()
    observed = seen.rollout.episode.observation
    assert np.array_equal(observed[0], pixels["fast"])
    assert not np.array_equal(observed[0], pixels["full"])
    assert np.array_equal(observed, seen.frames)


class Vectors:
    """Stands for an agent that sees states: it answers with what it saw."""

    def __init__(self, shape: tuple[int, ...], env: Env, task: str = "maze_open") -> None:
        self.task = task
        self.card = SimpleNamespace(
            task="maze_open", action_size=2, observation_shape=shape, config=SimpleNamespace(env=env)
        )

    def policy(self) -> Vectors:
        return self

    def reset(self, seed: int) -> None: ...

    def act(self, observation: np.ndarray) -> np.ndarray:
        return observation[:2]


def test_what_is_played_from_states_is_rendered() -> None:
    env = Env(observation="state", size=32, action_repeat=2, time_limit=40)
    (seen,) = play_agent(Vectors((2,), env), UNCHANGED, [3], lambda: None)  # type: ignore[arg-type]
    observed = seen.rollout.episode.observation
    assert (observed.shape, observed.dtype) == ((STEPS + 1, 2), np.float32)
    assert (seen.frames.shape, seen.frames.dtype) == ((STEPS + 1, 32, 32, 3), np.uint8)
    maze = make_env("maze_open", env)
    maze.reset(seed=3)
    assert np.array_equal(seen.frames[0], maze.render())
    maze.step(observed[0])
    assert np.array_equal(seen.frames[1], maze.render())


def test_a_task_with_other_observations_is_refused() -> None:
    agent = Vectors((3,), Env(observation="state", size=32, action_repeat=2, time_limit=40), "maze_pit")
    with pytest.raises(UserError, match=r"maze_pit is observed as \(2,\).*takes \(3,\)"):
        play_agent(agent, UNCHANGED, [3], lambda: None)  # type: ignore[arg-type]


def test_without_gl_a_mujoco_task_is_not_played(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> None:
        raise UserError("MuJoCo cannot render on this machine", hint="install libegl1")

    monkeypatch.setattr("ccwm.cli.play.probe", nothing)
    with pytest.raises(UserError, match="cannot render"):
        play(str(agent), task="walker_walk", out=tmp_path / "video.mp4")


def test_no_agent_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(str(tmp_path))):
        play(str(tmp_path), out=tmp_path / "video.mp4")
    (tmp_path / "agent.json").write_text("{}")
    (tmp_path / "agent.safetensors").touch()
    with pytest.raises(UserError, match=r"agent\.json"):
        play(str(tmp_path), out=tmp_path / "video.mp4")


def test_a_failed_video_leaves_nothing(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, frames: object) -> None:
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("ccwm.studies.images.write_mp4", half)
    with pytest.raises(OSError, match="no space"):
        play(str(agent), out=tmp_path / "video.mp4")
    assert not list(tmp_path.glob("*.mp4")) + list(tmp_path.glob(".*.mp4"))
