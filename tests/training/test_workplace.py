"""Which work directory a run goes on in, and that only one process is in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from training_project import ROOT, SERVER, TASK, VARIANT, Project, write_params

from ccwm.settings.loading import load_settings
from ccwm.settings.variants import resolve
from ccwm.training import workplace
from ccwm.training.work_directory import WorkDirectoryBusy, exclusive, work_directory


def directory(project: Project) -> Path:
    settings = resolve(load_settings(project.root / "params.yaml"), VARIANT)
    data = project.root / "data" / TASK / "0"
    return work_directory(settings, task=TASK, variant=VARIANT, seed=0, data=data)


def test_other_settings_mean_another_directory(project: Project) -> None:
    before = directory(project)
    assert before.parts[:5] == (".work", "train", TASK, VARIANT, "0")
    write_params(project.root / "params.yaml", {"train": {"batch": 3}})
    assert directory(project) != before


def test_settings_that_training_does_not_read_do_not(project: Project) -> None:
    before = directory(project)
    write_params(project.root / "params.yaml", {"evaluate": {"episodes": 9}, "report": {"title": "another"}})
    assert directory(project) == before


def test_other_data_mean_another_directory(project: Project) -> None:
    before = directory(project)
    manifest = project.root / "data" / TASK / "0" / "train" / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"return":', '"return":1'))
    assert directory(project) != before


@pytest.mark.parametrize(
    ("file", "matters"),
    [("nets/rssm.py", True), ("training/cycle.py", True), ("seeds.py", True), ("report/page.py", False)],
)
def test_other_code_means_another_directory(
    file: str, matters: bool, collected: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = shutil.copytree(ROOT / "src" / "ccwm", tmp_path / "ccwm")
    monkeypatch.setattr(workplace, "__file__", str(package / "training" / "workplace.py"))
    before = directory(collected)
    with (package / file).open("a") as source:
        source.write("# changed\n")
    assert (directory(collected) != before) is matters


def hold(work: Path, held: object, release: object) -> None:
    with exclusive(work):
        held.set()  # type: ignore[attr-defined]
        release.wait()  # type: ignore[attr-defined]


def test_a_directory_is_held_by_one_process_until_it_ends(tmp_path: Path) -> None:
    held, release = SERVER.Event(), SERVER.Event()
    holder = SERVER.Process(daemon=True, target=hold, args=(tmp_path, held, release))
    holder.start()
    held.wait()
    with pytest.raises(WorkDirectoryBusy, match=f"in use by process {holder.pid};"), exclusive(tmp_path):
        pass
    holder.kill()
    holder.join()
    with exclusive(tmp_path):
        pass
