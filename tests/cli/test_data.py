"""`ccwm data show`: what it prints and writes, and that looking changes nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import imageio.v3 as iio
import pytest
from synthetic_episodes import synthetic_episode

from ccwm.cli import main
from ccwm.cli.data import task_of
from ccwm.replay.store import EpisodeStore
from ccwm.studies.contact_sheet import shown_steps

Answer = tuple[int, str, str]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Episodes 0, 1 and 2 of 3, 4 and 5 steps; the returns are 0+1+2, 100+…+103 and 200+…+204."""
    made = EpisodeStore(tmp_path / "maze_pit" / "0" / "train")
    for number in range(3):
        made.append(synthetic_episode(number, 3 + number, size=8))
    return made.directory


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["ccwm", "data", "show", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
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


def test_a_store_is_told_in_numbers(store: Path, show: Callable[..., Answer]) -> None:
    code, out, err = show(store)
    assert (code, err) == (0, "")
    assert cells(out, "steps") == ["3", "4", "5", "12"]
    assert cells(out, "return") == ["3.00", "473.00", "1,010.00", ""]  # (3 + 406 + 1010) / 3
    size = sum(path.stat().st_size for path in store.glob("*.safetensors")) / 1e6
    assert cells(out, "megabytes")[-1] == f"{size:.2f}"
    facts = "3 episodes · 0 damaged · 0 in quarantine · 8 × 8 pixels, 2 actions · format 1 · task maze_pit"
    assert f"{store}: {facts}\n" in out


def test_a_directory_of_stores_is_shown_store_by_store(store: Path, show: Callable[..., Answer]) -> None:
    EpisodeStore(store.parent / "heldout")
    code, out, _ = show(store.parent)
    assert code == 0
    assert out.index("heldout") < out.index("train")
    assert "0 episodes · 0 damaged" in out
    code, _, err = show(store.parent, "--sheet", store.parent / "sheet.png")
    assert code == 2
    assert "take one store" in err


def test_looking_at_damage_changes_nothing(store: Path, show: Callable[..., Answer]) -> None:
    for name in ("000000", "000002"):  # two thirds are damaged, and it is shown all the same
        (store / f"{name}.safetensors").write_bytes(b"no episode")
    before = contents(store)
    code, out, err = show(store, "--episodes")
    assert (code, err) == (0, "")
    assert "3 episodes · 2 damaged · 0 in quarantine" in out
    assert cells(out, "steps") == ["4", "4", "4", "4"]
    states = [line.strip("│ ").split("│")[-1].strip() for line in out.splitlines() if re.match(r"│ +[012] │", line)]
    assert states == ["damaged: its SHA-256 is not the", "whole", states[0]]  # goes on in the next line
    code, _, err = show(store, "--video", store.parent / "film.mp4", "--episode", 2)
    assert code == 2
    assert "episode 2 cannot be shown" in err
    assert contents(store) == before


def test_a_contact_sheet_and_a_video_are_written(store: Path, show: Callable[..., Answer]) -> None:
    before, folder = contents(store), store.parent
    code, out, _ = show(store, "--sheet", folder / "sheet.png", "--video", folder / "film.mp4", "--episode", 1)
    assert code == 0
    assert "wrote" in out
    assert iio.imread(folder / "sheet.png").std() > 0
    film = iio.imread(folder / "film.mp4")
    assert film.shape == (4, 128, 128, 3)  # a frame a step, enlarged
    shown = store / "000001.safetensors"
    assert abs(film[2].mean() - EpisodeStore(store, read_only=True).episode(1).image[2].mean()) < 8, shown
    assert contents(store) == before
    assert sorted(path.name for path in folder.iterdir()) == ["film.mp4", "sheet.png", "train"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{store}/../absent"], "is no directory"),
        (["{store}/.."], "holds no episode store"),
        (["{store}", "--sheet", "sheet.jpg"], "must end in .png"),
        (["{store}", "--sheet", "{store}/sheet.png"], "lies in the store that it shows"),
        (["{store}", "--sheet", "{store}/../absent/sheet.png"], "is no directory: make it first"),
        (["{store}", "--video", "film.mp4", "--episode", "3"], "has no episode 3: it holds 3, numbered from 0"),
        (["{store}", "--video", "film.mp4", "--episode", "0", "--episode", "1"], "shows one episode, 2 were named"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    arguments: list[str], told: str, store: Path, show: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    if "no episode store" in told:
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


def test_steps_on_a_sheet_by_hand() -> None:
    assert shown_steps(101).tolist() == [0, 11, 22, 33, 44, 56, 67, 78, 89, 100]  # 100 / 9 = 11.1… apart
    assert shown_steps(3).tolist() == [0, 1, 2]


def test_the_task_stands_in_the_path() -> None:
    assert task_of(Path("data/walker_walk/0/train")) == "walker_walk"
    assert task_of(Path("data/gym:Pendulum-v1/0/train")) == "gym:Pendulum-v1"
    assert task_of(Path("replay")) is None
