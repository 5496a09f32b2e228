"""The code that a slot gets: the commit, the changes since, and the settings of its study."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ccwm.errors import UserError
from ccwm.fleet.code import capture, lay_out, narrow
from ccwm.tracking.git import git_state

PARAMS = "# Small\nstudy:\n  tasks: [a, b]\n  variants: [x, y]\n  seeds: [0, 1]\n\ntrain: {rate: 1.0e-07} # kept\n"


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    return subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    for name, text in {
        "src/a.py": "a = 1\n",
        "src/old.py": "",
        "pipeline/b.py": "b = 1\n",
        "params.yaml": PARAMS,
        "dvc.lock": "schema: '2.0'\n",
        "results/m.json": "{}",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "First")
    return root


def state(slot: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(slot)
    return git_state()


def test_a_slot_is_the_commit_without_what_runs_have_made(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, slot = capture(root), tmp_path / "slot"
    lay_out(code, slot)
    assert (slot / "src" / "a.py").read_text() == "a = 1\n"
    assert not (slot / "dvc.lock").exists()
    assert not (slot / "results").exists()
    assert state(slot, monkeypatch) == (git(root, "rev-parse", "HEAD").strip(), "false")


def test_changes_travel_and_are_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src" / "a.py").write_text("a = 2\n")
    (root / "src" / "new.py").write_text("new = 1\n")
    (root / "src" / "old.py").unlink()
    (root / "notes.txt").write_text("mine")
    (root / "results" / "m.json").write_text("{'a': 1}")
    code, slot = capture(root), tmp_path / "slot"
    lay_out(code, slot)
    files = sorted(path.relative_to(slot).as_posix() for path in slot.rglob("*.*") if ".git" not in path.parts)
    assert files == ["params.yaml", "pipeline/b.py", "src/a.py", "src/new.py"]
    assert (slot / "src" / "a.py").read_text() == "a = 2\n"
    assert state(slot, monkeypatch)[1] == "true"
    assert git(root, "status", "--short").count("\n") == 5  # nothing of it was staged


def test_a_slot_is_set_back_and_follows_the_commits(root: Path, tmp_path: Path) -> None:
    slot = tmp_path / "slot"
    (root / "src" / "new.py").write_text("")
    lay_out(capture(root), slot)
    (slot / "src" / "a.py").write_text("a = 9\n")
    (slot / "results").mkdir()
    (slot / "results" / "mine.json").write_text("kept")
    (root / "src" / "new.py").unlink()
    (root / "src" / "old.py").unlink()
    git(root, "commit", "--quiet", "--all", "--message", "Second")
    code = capture(root)
    lay_out(code, slot)
    assert sorted(path.name for path in (slot / "src").iterdir()) == ["a.py"]
    assert (slot / "src" / "a.py").read_text() == "a = 1\n"
    assert (slot / "results" / "mine.json").read_text() == "kept"
    assert git(slot, "rev-parse", "HEAD").strip() == code.commit


def test_an_earlier_commit_comes_without_changes(root: Path, tmp_path: Path) -> None:
    first = git(root, "rev-parse", "HEAD").strip()
    (root / "src" / "a.py").write_text("a = 2\n")
    git(root, "commit", "--quiet", "--all", "--message", "Second")
    (root / "src" / "a.py").write_text("a = 3\n")
    code = capture(root, commit="HEAD~1", params=PARAMS)
    assert (code.commit, code.patch) == (first, b"")
    lay_out(code, tmp_path / "slot")
    assert (tmp_path / "slot" / "src" / "a.py").read_text() == "a = 1\n"


def test_a_study_of_one_cell_is_no_change_but_an_edited_setting_is(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = narrow(PARAMS, task="b", variant="", seed=1)
    assert YAML(typ="safe").load(small)["study"] == {"tasks": ["b"], "variants": ["x"], "seeds": [1]}
    assert small.endswith("train: {rate: 1.0e-07} # kept\n")
    lay_out(capture(root)._replace(params=small), tmp_path / "slot")
    assert (tmp_path / "slot" / "params.yaml").read_text() == small
    assert state(tmp_path / "slot", monkeypatch)[1] == "false"

    (root / "params.yaml").write_text(PARAMS.replace("1.0e-07", "1.0e-06"))
    edited = capture(root)
    lay_out(edited._replace(params=narrow(edited.params, task="b", variant="", seed=1)), tmp_path / "slot")
    assert state(tmp_path / "slot", monkeypatch)[1] == "true"


def test_a_slot_of_one_cell_follows_a_commit_of_other_settings(root: Path, tmp_path: Path) -> None:
    slot = tmp_path / "slot"
    code = capture(root)
    lay_out(code._replace(params=narrow(code.params, task="a", variant="x", seed=0)), slot)
    (root / "params.yaml").write_text(PARAMS.replace("[a, b]", "[a]"))
    git(root, "commit", "--quiet", "--all", "--message", "Second")
    lay_out(capture(root), slot)
    assert (slot / "params.yaml").read_text() == (root / "params.yaml").read_text()


def test_a_directory_without_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="git"):
        capture(tmp_path)
