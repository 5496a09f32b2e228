"""Load and act: the documented example runs, and `ccwm play` films any agent in any world that fits it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import imageio.v3 as iio
import pytest
import torch

from ccwm.agents.export import AgentCard, BadAgent, save_agent
from ccwm.agents.learner import Learner
from ccwm.cli import play as playing
from ccwm.cli.play import CannotPlay, parse_change, play
from ccwm.envs.change import Change
from ccwm.errors import UserError
from ccwm.settings.agent import ActorCritic, Env, Model, Retrace, Truncation
from ccwm.settings.schema import Render

ROOT = Path(__file__).parents[2]
STEPS = 20  # 40 frames, two an action


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """An untrained agent of a maze."""
    return export(tmp_path / "models" / "maze_two_rooms" / "ccwm" / "0", "maze_two_rooms")


def export(directory: Path, task: str) -> Path:
    parts = {
        "model": Model(depth=2, deter=8, stoch=4, hidden=8, reward_units=8),
        "retrace": Retrace(weight=0),
        "truncation": Truncation(),
        "actor_critic": ActorCritic(units=8),
    }
    card = AgentCard(
        task=task, variant="ccwm", seed=0, actions=2, env_steps=0, updates=0, env=Env(size=32, time_limit=40),
        render=Render(), **parts,
    )  # fmt: skip
    torch.manual_seed(0)
    directory.mkdir(parents=True)
    save_agent(directory, Learner(**parts, size=32, actions=2), card)
    return directory


def test_the_documented_example_runs(
    agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "agents.md").read_text(), re.DOTALL)[0]
    (tmp_path / "example.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("example.py")
    assert re.fullmatch(r"return -?\d+\.\d\n", capsys.readouterr().out)


def test_importing_ccwm_loads_nothing_heavy() -> None:
    code = "import sys, ccwm; print(sorted({'torch', 'mlflow', 'lightning', 'mujoco'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import ccwm

    with pytest.raises(AttributeError, match="has no attribute 'load_agents'"):
        ccwm.load_agents  # noqa: B018


def test_a_film_of_every_episode_and_its_returns(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "film.mp4"
    play(str(agent), episodes=2, out=out)
    frames = iio.imread(out)
    assert frames.shape == (2 * (STEPS + 1), 128, 128, 3)
    told = capsys.readouterr().out
    assert told.count(f" {STEPS} ") == 2
    assert "maze_two_rooms, mean return" in told
    assert not list(tmp_path.glob(".*"))


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
        ("mas=2", "Did you mean 'mass'"),
        ("mass", "must be NAME=VALUE"),
        ("mass=heavy", "'heavy' is no number above 0"),
        ("mass=-1", "no number above 0"),
        ("mass=inf", "no number above 0"),
        ("mass=1/2", "must be one number"),
        ("friction=1", "three numbers"),
        ("layout=opne", "Did you mean 'open'"),
        ("units=absolute", "must be NAME=VALUE"),
    ],
)
def test_a_bad_change_is_refused(text: str, told: str) -> None:
    with pytest.raises(CannotPlay, match=re.escape(told)):
        parse_change([text], "factor")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"task": "maze_opne"}, "Did you mean 'maze_open'"),
        (
            {"task": "gym:Pendulum-v1"},
            "takes actions of shape (1,), this agent, trained in maze_two_rooms",
        ),
        ({"change": ["mass=2"]}, "maze_two_rooms cannot be changed so (mass)"),
        ({"out": Path("film.gif")}, "name an .mp4 file"),
        ({"out": Path("/nowhere/at/all/film.mp4")}, "a directory that exists"),
    ],
)
def test_what_does_not_go_together_is_refused(agent: Path, tmp_path: Path, given: dict[str, object], told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        play(str(agent), **{"out": tmp_path / "film.mp4", **given})  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.mp4"))


def test_an_agents_file_does_not_choose_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that names a module: it is not imported, unless the person names it too."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    directory = export(tmp_path / "agent", "trap:World")
    with pytest.raises(CannotPlay, match="if you trust it, say --task trap:World"):
        play(str(directory), out=tmp_path / "film.mp4")
    with pytest.raises(SystemExit, match="imported"):
        play(str(directory), task="trap:World", out=tmp_path / "film.mp4")


def test_no_agent_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no exported agent"):
        play(str(tmp_path), out=tmp_path / "film.mp4")
    (tmp_path / "agent.json").write_text("{}")
    (tmp_path / "agent.safetensors").touch()
    with pytest.raises(BadAgent, match=r"agent\.json is not an agent"):
        play(str(tmp_path), out=tmp_path / "film.mp4")


def test_a_failed_film_leaves_nothing(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, frames: object) -> None:
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("ccwm.studies.images.write_mp4", half)
    with pytest.raises(OSError, match="no space"):
        playing.play(str(agent), out=tmp_path / "film.mp4")
    assert not list(tmp_path.glob("*.mp4")) + list(tmp_path.glob(".*.mp4"))
