"""A section of the report, and what every section builds from."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from ccwm.report import figures
from ccwm.report.blocks import Block, Heading, Picture, Video
from ccwm.report.claims import Paper
from ccwm.report.results import Results
from ccwm.studies.images import write_mp4


@dataclass(frozen=True)
class Report:
    """What every section builds from, and the folder that its figures and tables go to."""

    results: Results
    folder: Path
    colours: dict[str, str]
    target_score: float
    paper: Paper | None

    def picture(self, figure: Figure, name: str, label: str, *, note: str = "", style: str = "") -> Picture:
        """Write a figure as SVG and PDF; a task may hold a colon, which not every disk allows in a file's name."""
        file = name.replace(":", "-")
        return Picture(file, Markup(figures.save(figure, self.folder / "figures", file)), label, note, style)

    def video(self, frames: np.ndarray, name: str, label: str, *, note: str = "") -> Video:
        """Write frames as MP4."""
        path = self.folder / "figures" / f"{name}.mp4".replace(":", "-")
        write_mp4(path, frames)
        return Video(path.name, base64.b64encode(path.read_bytes()).decode("ascii"), label, note)

    def csv(self, name: str, rows: pd.DataFrame | Sequence[dict[str, Any]]) -> None:
        """Write rows unrounded, their cells by DVC's names; no file where there is no row."""
        if not isinstance(rows, pd.DataFrame):
            rows = pd.DataFrame([{**row, "cells": " ".join(map(str, row["cells"]))} for row in rows])
        if len(rows):
            rows.to_csv(self.folder / "tables" / f"{name}.csv", index=False, lineterminator="\n")

    def by_task(self, build: Callable[[str], list[Block]]) -> list[Block]:
        """The blocks of every task that has any, below its name where the study has several."""
        tasks = self.results.study.tasks
        found = {task: blocks for task in tasks if (blocks := build(task))}
        heading = [Heading] if len(tasks) > 1 else []
        return [block for task, blocks in found.items() for block in (*(of(task) for of in heading), *blocks)]


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page: the files that it needs of each stage, and how its blocks are built."""

    id: str
    title: str
    build: Callable[[Report], list[Block]]
    needs: dict[str, tuple[str, ...]]
