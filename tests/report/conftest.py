from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import Markup

from ccwm.report.blocks import Picture, Video
from ccwm.report.claims import Paper, load_claims
from ccwm.report.page import build_report
from ccwm.report.section import Report

from .results_tree import settings, source, study, write_tree

COLOURS = {"dreamer": "#111111", "ccwm": "#222222"}


@pytest.fixture(scope="session")
def paper() -> Paper:
    return load_claims(Path(__file__).parents[2] / "claims.yaml")


@pytest.fixture(scope="session")
def tree(shared_folder: Callable[..., Path]) -> Path:
    """A project with the results of one task, two variants and one seed; read only."""
    return shared_folder("tree", lambda folder: write_tree(folder, study()))


@pytest.fixture(scope="session")
def state_tree(shared_folder: Callable[..., Path]) -> Path:
    """The same from states; read only."""
    return shared_folder("states", lambda folder: write_tree(folder, study(), states=True))


@pytest.fixture(scope="session")
def built(tree: Path, paper: Paper, shared_folder: Callable[..., Path]) -> Path:
    """The report of that tree; read only."""
    return shared_folder("built", lambda folder: build_report(tree, folder / "report", settings(), paper)) / "report"


class Unsaved(Report):
    """Figures are made but not written, which takes most of a section's time."""

    def picture(self, figure, name, label, *, note="", style=""):
        return Picture(name.replace(":", "-"), Markup(""), label, note, style)

    def video(self, frames, name, label, *, note=""):
        return Video(f"{name}.mp4", "", label, note)


@pytest.fixture
def make_report(tmp_path: Path, paper: Paper) -> Callable[..., Report]:
    """What a section builds from: a project with results, and an empty folder."""

    def make(root: Path, *, with_paper: bool = True, **names) -> Report:
        folder = tmp_path / "built"
        for name in ("figures", "tables"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        own = source(root, **names)
        return Unsaved(own.results, folder, COLOURS, 0.5, paper if with_paper else None, [own])

    return make


@pytest.fixture
def report(tree: Path, make_report: Callable[..., Report]) -> Report:
    """The same of the shared tree."""
    return make_report(tree)
