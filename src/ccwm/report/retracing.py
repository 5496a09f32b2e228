"""The section on retracing: frames decoded from z̃ and ž under the true ones, with what truncation makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ccwm.report import words
from ccwm.report.figures import STYLE
from ccwm.report.results import Cell, Results, average
from ccwm.report.tables import Entry, Table, sources
from ccwm.studies.drawings import Retraced, retracing_figure

FILES = ["retracing.csv", "retracing.safetensors"]
COLUMNS = ["step", "value", "change", "threshold", "kept", "irreversible", "forward_error", "retraced_error"]
Save = Callable[[Figure, str], dict[str, Any]]
"""Writes a figure under a name, and gives its file's name and its SVG."""


def retracing_section(study: Results, save: Save) -> list[dict[str, Any]]:
    """For every task that has any: a picture for each variant, of its first seed, and a table over seeds."""
    shown = []
    for task in study.tasks:
        pictures, rows = {}, []
        for variant in study.variants:
            cells = [cell for cell in study.cells("rollout-viz", task=task, variant=variant) if cell.has(FILES)]
            if not cells:
                continue
            figure = mpl.rc_context(STYLE)(retracing_figure)(load_retracing(cells[0]))
            pictures[variant] = {"seed": cells[0].seed, **save(figure, f"retracing-{task}-{variant}")}
            rows.append(_row(variant, cells))
        if rows:
            shown.append({"task": task, "pictures": pictures, "table": _table(task, rows)})
    return shown


def load_retracing(cell: Cell) -> Retraced:
    """What the stage has shown, from its files."""
    frame = cell.table("retracing.csv", COLUMNS)
    path = cell.folder / "retracing.safetensors"
    try:
        frames = load_file(path)
        pictures = frames["truth"], frames["forward"], frames["retraced"]
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} holds no frames ({error}); {cell.cure}") from error
    if frame is None or len(frame) != len(pictures[0]):
        raise ValueError(
            f"{cell.folder / 'retracing.csv'} is not of the frames beside it; write both anew with "
            f"`dvc repro --force {cell.name}`"
        )
    errors = frame["retraced_error"].to_numpy(np.float64)
    return Retraced(
        int(frame["step"].iloc[0]),
        *pictures,
        forward_error=frame["forward_error"].to_numpy(np.float64),
        retraced_error=errors[: len(pictures[2])],
        value=frame["value"].to_numpy(np.float64),
        change=frame["change"].to_numpy(np.float64),
        threshold=float(frame["threshold"].iloc[0]),
        kept=frame["kept"].to_numpy(bool),
        irreversible=frame["irreversible"].to_numpy(bool),
    )


def _row(variant: str, cells: list[Cell]) -> list[Entry]:
    loaded = [load_retracing(cell) for cell in cells]
    forward = average([float(of.forward_error.mean()) for of in loaded])
    back = average([float(of.retraced_error.mean()) if len(of.retraced_error) else None for of in loaded])
    gone = average([float(1 - of.kept.mean()) for of in loaded])
    events = sum(int(of.irreversible.sum()) for of in loaded)
    return [
        Entry(variant, variant),
        *(Entry(words.number(value), "" if value is None else value) for value in (forward, back, gone)),
        Entry(str(events), float(events)),
        sources(cells),
    ]


def _table(task: str, rows: list[list[Entry]]) -> Table:
    return Table(
        f"{task}: the shown steps. Error: MSE per pixel of the frame decoded from the state z̃ that saw it, and from "
        "the state ž retraced to it from the next one. Truncated: share of states that the value says should leave the "
        "retrace loss, whether the variant truncates or not. Means over seeds.",
        ["Variant", "Error, seen z̃", "Error, retraced ž", "Truncated", "Irreversible", "Runs"],
        rows,
    ).without_empty_columns()
