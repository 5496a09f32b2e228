"""dvc.yaml says what the code does: a stage's params are the sections that it reads, its deps the files it runs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from imports import SOURCE, imported_files
from project import ROOT

from ccwm.cells import STAGES
from ccwm.settings.parsing import read_yaml

PACKAGE = SOURCE / "ccwm"
ENTRIES: dict[str, dict[str, Any]] = read_yaml(ROOT / "dvc.yaml")["stages"]

EXEMPT = {
    "__init__.py": "offers load_agent to users; no stage asks for it",
    "settings": "declares and reads settings; DVC watches the values themselves, and none comes from a default",
    "cells.py": "names and paths; DVC watches the outputs themselves",
    "checksums.py": "finds damage in the records for MLflow",
    "errors.py": "ends a stage that has no result",
    "fleet": "brings an actor's episodes home as they were played; tests/fleet/test_actors.py holds the bits",
    "machine.py": "tells which machine ran a stage",
    "progress.py": "shows how far a stage is",
    "readers.py": "reads result files, or refuses them",
    "tracking": "opens a stage, and copies its results to MLflow",
    "training/device_check.py": "refuses devices that are not there",
    "training/progress.py": "shows how far training is",
    "training/signals.py": "ends a stage that has no result yet",
    "training/work_directory.py": "finds the directory to resume in",
}
"""Files that no stage depends on, since they carry settings, watch or refuse and cannot change a result."""


def is_docstring_only(path: Path) -> bool:
    match ast.parse(path.read_text()).body:
        case [ast.Expr(value=ast.Constant(value=str()))]:
            return True
    return False


def is_exempt(path: Path) -> bool:
    inside = path.relative_to(PACKAGE)
    if any(entry in EXEMPT for entry in (inside.as_posix(), inside.parts[0])):
        return True
    return path.name == "__init__.py" and is_docstring_only(path)


def script_of(stage: str) -> Path:
    return ROOT / "pipeline" / f"{stage.replace('-', '_')}.py"


def paths(entries: list[str | dict[str, Any]]) -> list[str]:
    """The paths of deps or outs, with or without options."""
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def outputs(stage: str) -> list[str]:
    return [path for kind in ("outs", "metrics", "plots") for path in paths(ENTRIES[stage].get(kind, []))]


def code_deps(stage: str) -> list[Path]:
    return [ROOT / dep for dep in paths(ENTRIES[stage]["deps"]) if dep.startswith(("src/", "pipeline/"))]


def test_the_stages_are_those_that_the_code_knows() -> None:
    assert list(ENTRIES) == list(STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_params_are_the_sections_that_a_stage_reads(stage: str) -> None:
    own = {"variants.${item.variant}"} if stage == "train" else set()
    assert set(ENTRIES[stage]["params"]) == {*STAGES[stage], *own}
    assert len(ENTRIES[stage]["params"]) == len(STAGES[stage]) + len(own)


@pytest.mark.parametrize("stage", STAGES)
def test_every_file_that_a_stage_runs_is_a_dep(stage: str) -> None:
    deps = code_deps(stage)
    needed = {script_of(stage)} | {path for path in imported_files(script_of(stage)) if not is_exempt(path)}
    forgotten = [path for path in needed if not any(path == dep or dep in path.parents for dep in deps)]
    assert sorted(str(path.relative_to(ROOT)) for path in forgotten) == []


@pytest.mark.parametrize("stage", STAGES)
def test_every_dep_is_run_by_its_stage(stage: str) -> None:
    run = {script_of(stage)} | imported_files(script_of(stage))
    files = {dep: set(dep.rglob("*.py")) if dep.is_dir() else {dep} for dep in code_deps(stage)}
    unused = sorted(str(path.relative_to(ROOT)) for covered in files.values() for path in covered - run)
    assert unused == [], "name the files of this directory one by one"
    assert all(covered for covered in files.values())


@pytest.mark.parametrize("entry", EXEMPT)
def test_an_exemption_stands_for_a_file_that_stages_run(entry: str) -> None:
    path = PACKAGE / entry
    run = set().union(*(imported_files(script_of(stage)) for stage in STAGES))
    assert path in run or any(path in file.parents for file in run)


def test_an_init_file_is_exempt_only_while_it_holds_nothing_but_a_docstring(tmp_path: Path) -> None:
    path = tmp_path / "__init__.py"
    path.write_text('"""A docstring."""\n')
    assert is_docstring_only(path)
    path.write_text('"""A docstring."""\nimport os\n')
    assert not is_docstring_only(path)
    assert not is_exempt(PACKAGE / "envs" / "__init__.py")  # it chooses how MuJoCo draws


@pytest.mark.parametrize("stage", STAGES)
def test_outputs_lie_where_nothing_else_does(stage: str) -> None:
    assert outputs(stage)
    assert {Path(path).parts[0] for path in outputs(stage)} <= {"data", "models", "results", "report"}


def test_no_two_stages_write_one_path() -> None:
    written = [path for stage in STAGES for path in outputs(stage)]
    assert len(set(written)) == len(written)


@pytest.mark.parametrize("stage", STAGES)
def test_other_deps_are_outputs_of_earlier_stages(stage: str) -> None:
    earlier = [path for before in list(STAGES)[: list(STAGES).index(stage)] for path in outputs(before)]
    written = ("claims.yaml", "evidence") if stage == "report" else ()  # by hand, and by the fleet
    for dep in paths(ENTRIES[stage]["deps"]):
        if not dep.startswith(("src/", "pipeline/")) and dep not in written:
            assert any(path == dep or path.startswith(f"{dep}/") for path in earlier), dep


@pytest.mark.parametrize("stage", STAGES)
def test_small_results_are_for_git_and_the_rest_for_the_cache(stage: str) -> None:
    """Whoever reads a diff wants numbers; a run's id changes with every run, so it is no number to diff."""
    for kind in ("outs", "metrics", "plots"):
        for entry in ENTRIES[stage].get(kind, []):
            path, options = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
            assert options.get("cache", True) != path.endswith(("metrics.json", ".csv")), path


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "report"])
def test_the_command_names_its_entry_of_the_matrix(stage: str) -> None:
    options = " ".join(f"--{name} '${{item.{name}}}'" for name in ENTRIES[stage]["matrix"])
    assert ENTRIES[stage]["cmd"] == f"python {script_of(stage).relative_to(ROOT)} {options}"
    assert all(f"${{item.{name}}}" in path for path in outputs(stage) for name in ENTRIES[stage]["matrix"])
