"""Which work directory a run resumes in, and that only one process is in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from project import SERVER, TASK, TRAIN, VARIANT, Project, write_params

from ccwm.cells import Cell
from ccwm.errors import UserError
from ccwm.settings.parsing import read_yaml
from ccwm.training.work_directory import PIPELINE, exclusive, source_files, work_directory


@pytest.fixture
def directory(project: Project, monkeypatch: pytest.MonkeyPatch) -> Directory:
    monkeypatch.chdir(project.root)
    return Directory(project)


class Directory:
    """The work directory of a project, as its present files decide it."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def __call__(self) -> Path:
        return work_directory(self.project.settings(), TRAIN)

    def changes_with(self, file: str) -> bool:
        """Whether a comment at the end of this file means another directory."""
        with self.project.restored(file) as path:
            before = self()
            path.write_text(path.read_text() + "\n# changed\n")
            return self() != before


def test_it_lies_under_its_cell(directory: Directory) -> None:
    assert directory().parts[:-1] == (".work", "train", TASK, VARIANT, "0")


def test_other_settings_mean_another_directory(directory: Directory, project: Project) -> None:
    before = directory()
    write_params(project.params, {"train": {"batch": 3}})
    assert directory() != before


def test_settings_that_training_does_not_read_do_not(directory: Directory, project: Project) -> None:
    before = directory()
    write_params(project.params, {"evaluate": {"episodes": 9}, "report": {"title": "another"}})
    assert directory() == before


def test_other_data_mean_another_directory(directory: Directory) -> None:
    assert directory.changes_with(f"data/{TASK}/0/train/manifest.jsonl")


def test_no_data_are_refused(directory: Directory) -> None:
    with pytest.raises(UserError, match=f"data/{TASK}/7"):
        work_directory(directory.project.settings(), Cell("train", TASK, VARIANT, 7))


def test_the_code_that_counts_is_what_dvc_depends_on(project: Project) -> None:
    deps = [dep for dep in read_yaml(project.root / PIPELINE)["stages"]["train"]["deps"] if "$" not in dep]
    expected = {
        path for dep in deps for path in [project.root / dep, *(project.root / dep).rglob("*")] if path.suffix == ".py"
    }
    assert set(source_files(project.root / PIPELINE, "train")) == expected
    assert len(expected) > len(deps)  # some are directories


@pytest.mark.parametrize("file", ["pipeline/train.py", "src/ccwm/nets/rssm.py", "src/ccwm/training/update.py"])
def test_other_code_means_another_directory(file: str, directory: Directory) -> None:
    assert directory.changes_with(file)


def test_no_other_source_does(directory: Directory, project: Project) -> None:
    """A comment in the settings' schema abandons no half-finished training."""
    every = {path.relative_to(project.root) for path in (project.root / "src").rglob("*.py")}
    others = every - set(source_files(PIPELINE, "train"))
    assert {Path("src/ccwm/settings/agent.py"), Path("src/ccwm/settings/schema.py")} <= others
    before = directory()
    for file in others:
        with file.open("a") as source:
            source.write("\n# changed\n")
    assert directory() == before


def hold(work: Path, held: object, release: object) -> None:
    with exclusive(work):
        held.set()  # type: ignore[attr-defined]
        release.wait()  # type: ignore[attr-defined]


def test_a_directory_is_held_by_one_process_until_it_ends(tmp_path: Path) -> None:
    held, release = SERVER.Event(), SERVER.Event()
    holder = SERVER.Process(daemon=True, target=hold, args=(tmp_path, held, release))
    holder.start()
    held.wait()
    with pytest.raises(UserError, match=f"process {holder.pid}"), exclusive(tmp_path):
        pass
    holder.kill()
    holder.join()
    with exclusive(tmp_path):
        pass
