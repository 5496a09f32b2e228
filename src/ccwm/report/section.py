"""A section of the report, and what every section builds from."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from ccwm.report import figures
from ccwm.report.blocks import Block, Heading, Legend, Picture, Video, Words
from ccwm.report.claims import Paper
from ccwm.report.results import Results
from ccwm.report.sources import Source
from ccwm.report.table import Row
from ccwm.report.words import say
from ccwm.studies.images import write_mp4


@dataclass(frozen=True)
class Report:
    """What every section builds from, and the folder that its figures and tables go to."""

    results: Results
    folder: Path
    colours: dict[str, str]
    target_score: float
    paper: Paper | None
    sources: Sequence[Source]
    """The study itself, then those in ``evidence/``."""
    broken: list[str] = field(default_factory=list)
    """Damaged files that belong to no cell."""
    _tables: dict[str, list[Row]] = field(default_factory=dict, repr=False, compare=False)

    def picture(self, figure: Figure, name: str, label: str, *, note: str = "", style: str = "") -> Picture:
        """Write a figure as SVG and PDF; a task may hold a colon, which not every disk allows in a file's name."""
        file = name.replace(":", "-")
        return Picture(file, Markup(figures.save(figure, self.folder / "figures", file)), label, note, style)

    def video(self, frames: np.ndarray, name: str, label: str, *, note: str = "") -> Video:
        """Write frames as MP4."""
        path = self.folder / "figures" / f"{name}.mp4".replace(":", "-")
        write_mp4(path, frames)
        return Video(path.name, base64.b64encode(path.read_bytes()).decode("ascii"), label, note)

    def csv(self, name: str, rows: Sequence[Row]) -> None:
        """Add rows to a table, unrounded, their cells by DVC's names; no file where there is no row."""
        table = self._tables.setdefault(name, [])
        table += [{**row, "cells": " ".join(map(str, row["cells"]))} for row in rows]
        if rows:
            pd.DataFrame(table).to_csv(self.folder / "tables" / f"{name}.csv", index=False, lineterminator="\n")


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page: the files that it needs of each stage, and how its blocks are built."""

    id: str
    title: str
    build: Callable[[Report], list[Block]]
    needs: dict[str, tuple[str, ...]]


def damaged(results: Results, stage: str) -> list[Block]:
    """The damaged files of a stage, by name."""
    return [
        Words(say("missing", "damaged", cell=cell, of=of), "missing") for cell, of in results.damaged(stage).items()
    ]


def by_task(
    of_task: Callable[[Report, str], list[Block]], *, intro: str = "", legend: bool = False
) -> Callable[[Report], list[Block]]:
    """Builds a section from the blocks of every task that has any, each below its name where the study has several.

    Above them stand the words that ``intro`` names, and the colours of the variants.
    """

    def build(report: Report) -> list[Block]:
        tasks, blocks = report.results.study.tasks, list[Block]()
        for task in tasks:
            if found := of_task(report, task):
                blocks += [Heading(task), *found] if len(tasks) > 1 else found
        above: list[Block] = [Words(say(intro, "intro"))] if intro else []
        above += [Legend(report.colours)] if legend else []
        return [*above, *blocks] if blocks else []

    return build
