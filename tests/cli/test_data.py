"""`ccwm data show`: what it prints and writes, and that it changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest

from ccwm.cli.data import data, task_of
from ccwm.episode import Episode
from ccwm.errors import run_main
from ccwm.replay.store import EpisodeStore

Answer = tuple[int, str, str]


def episode(number: int, observation: np.ndarray) -> Episode:
    """reward[t] = 100·number + t."""
    steps = len(observation)
    return Episode(
        observation=observation,
        action=np.zeros((steps, 2), np.float32),
        reward=100 * number + np.arange(steps, dtype=np.float32),
        is_first=np.arange(steps) == 0,
        continues=np.ones(steps, np.float32),
        irreversible=np.zeros(steps, bool),
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Episodes 0, 1 and 2 of 3, 4 and 5 steps; the returns are 0+1+2, 100+…+103 and 200+…+204."""
    made = EpisodeStore(tmp_path / "maze_pit" / "0" / "train")
    rng = np.random.default_rng(0)
    for number in range(3):
        made.append(episode(number, rng.integers(256, size=(3 + number, 8, 8, 3), dtype=np.uint8)))
    return made.directory


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as end:
            run_main(lambda: data([str(argument) for argument in arguments]))
        code = end.value.code
        out, err = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in capsys.readouterr())
        return code if isinstance(code, int) else 0, out, err

    return run


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def cells(out: str, name: str) -> list[str]:
    (line,) = [line for line in out.splitlines() if line.startswith(f"│ {name} ")]
    return [cell.strip() for cell in line.strip("│").split("│")][1:]


def test_a_store_is_summarised_in_numbers(store: Path, show: Callable[..., Answer]) -> None:
    code, out, err = show(store)
    assert (code, err) == (0, "")
    assert cells(out, "steps") == ["3", "4", "5", "12"]
    assert cells(out, "return") == ["3.00", "473.00", "1,010.00", ""]  # (3 + 406 + 1010) / 3
    size = sum(path.stat().st_size for path in store.glob("*.safetensors")) / 1e6
    assert cells(out, "megabytes")[-1] == f"{size:.2f}"
    facts = (
        "3 episodes · 0 damaged · 0 in quarantine · observation uint8 8 × 8 × 3 · action 2 · format 2 · task maze_pit"
    )
    assert f"{store}: {facts}\n" in out


def test_a_directory_of_stores_is_shown_store_by_store(store: Path, show: Callable[..., Answer]) -> None:
    EpisodeStore(store.parent / "heldout")
    code, out, _ = show(store.parent)
    assert code == 0
    assert out.index("heldout") < out.index("train")
    assert "0 episodes · 0 damaged" in out
    code, _, err = show(store.parent, "--sheet", store.parent / "sheet.png")
    assert code == 2
    assert all(str(store.parent / name) in err for name in ("heldout", "train"))


def test_showing_damage_changes_nothing(store: Path, show: Callable[..., Answer]) -> None:
    for name in ("000000", "000002"):  # two thirds are damaged, and it is shown all the same
        (store / f"{name}.safetensors").write_bytes(b"no episode")
    before = contents(store)
    code, out, err = show(store, "--episodes")
    assert (code, err) == (0, "")
    assert "3 episodes · 2 damaged · 0 in quarantine" in out
    assert cells(out, "steps") == ["4", "4", "4", "4"]
    states = [line.strip("│ ").split("│")[-1].strip() for line in out.splitlines() if re.match(r"│ +[012] │", line)]
    assert [state.split(":")[0] for state in states] == ["damaged", "whole", "damaged"]
    code, _, err = show(store, "--video", store.parent / "video.mp4", "--episode", 2)
    assert code == 2
    assert "000002.safetensors" in err
    assert contents(store) == before


def test_a_contact_sheet_and_a_video_are_written(store: Path, show: Callable[..., Answer]) -> None:
    before, folder = contents(store), store.parent
    code, out, _ = show(store, "--sheet", folder / "sheet.png", "--video", folder / "video.mp4", "--episode", 1)
    assert code == 0
    assert "wrote" in out
    assert iio.imread(folder / "sheet.png").std() > 0
    video = iio.imread(folder / "video.mp4")
    assert video.shape == (4, 128, 128, 3)  # a frame a step, enlarged
    shown = EpisodeStore(store, read_only=True).episode(1).observation
    assert abs(video[2].mean() - shown[2].mean()) < 8
    assert contents(store) == before
    assert sorted(path.name for path in folder.iterdir()) == ["sheet.png", "train", "video.mp4"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{store}/../absent"], "absent is no directory"),
        (["{store}/.."], "manifest.jsonl"),
        (["{store}", "--sheet", "sheet.jpg"], ".png"),
        (["{store}", "--sheet", "{store}/sheet.png"], "train/sheet.png"),
        (["{store}", "--sheet", "{store}/../absent/sheet.png"], "absent/sheet.png"),
        (["{store}", "--video", "video.mp4", "--episode", "3"], "no episode 3"),
        (["{store}", "--video", "video.mp4", "--episode", "0", "--episode", "1"], "2 were named"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], told: str, store: Path, show: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    if told == "manifest.jsonl":
        (store / "manifest.jsonl").unlink()
    code, out, err = show(*(argument.format(store=store) for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert told in err
    assert {path.name for path in store.parent.iterdir()} == {"train"}


def test_a_broken_manifest_is_refused_by_its_line(store: Path, show: Callable[..., Answer]) -> None:
    (store / "manifest.jsonl").write_text("{}\n")
    code, _, err = show(store)
    assert code == 2
    assert "manifest.jsonl, line 1" in err


def test_states_are_told_by_component_and_plotted(tmp_path: Path, show: Callable[..., Answer]) -> None:
    store = EpisodeStore(tmp_path / "maze_pit" / "0" / "train")
    store.append(episode(0, np.array([[0.5, 0], [1, -2], [0, 4]], np.float32)))
    store.append(episode(1, np.array([[2.5, 0], [1, 8]], np.float32)))
    code, out, _ = show(store.directory, "--sheet", tmp_path / "sheet.png")
    assert code == 0
    assert "observation float32 2 · action 2 · format 2 · task maze_pit" in out
    assert cells(out, "x") == ["0", "1", "2.5"]  # (0.5 + 1 + 0 + 2.5 + 1) / 5
    assert cells(out, "y") == ["-2", "2", "8"]
    assert iio.imread(tmp_path / "sheet.png").std() > 0
    code, _, err = show(store.directory, "--video", tmp_path / "video.mp4")
    assert (code, (tmp_path / "video.mp4").exists()) == (2, False)
    assert "float32 [2]" in err
    assert "--sheet" in err


@pytest.mark.parametrize("task", ["replay", "maze_pit", "no_such:World"])
def test_components_without_a_known_name_are_numbered(task: str, tmp_path: Path, show: Callable[..., Answer]) -> None:
    """A maze's state has two components, not three; a module that only a path names is not imported."""
    store = EpisodeStore(tmp_path / task)
    store.append(episode(0, np.ones((3, 3), np.float32)))
    code, out, _ = show(store.directory)
    assert code == 0
    assert cells(out, "observation[2]") == ["1", "1", "1"]


def test_the_task_stands_in_the_path() -> None:
    assert task_of(Path("data/walker_walk/0/train")) == "walker_walk"
    assert task_of(Path("data/gym:Pendulum-v1/0/train")) == "gym:Pendulum-v1"
    assert task_of(Path("replay")) is None
