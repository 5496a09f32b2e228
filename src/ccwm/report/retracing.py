"""The section on retracing: frames decoded from z̃ and ž under the true ones, with what truncation makes of them."""

from __future__ import annotations

from typing import NamedTuple

from ccwm.cells import Cell
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Table, Words
from ccwm.report.section import Report, Section
from ccwm.report.statistics import average
from ccwm.report.table import number, table, text
from ccwm.report.words import say
from ccwm.studies.retracing import Retraced, read_retracing, retracing_figure

FILES = ("retracing.csv", "retracing.safetensors")


class Row(NamedTuple):
    """The shown steps of one variant, averaged over seeds."""

    variant: str
    cells: tuple[Cell, ...]
    forward_error: float | None
    retraced_error: float | None
    truncated: float | None
    events: int


def summarise(variant: str, found: dict[Cell, Retraced]) -> Row:
    """Mean errors, the share that is truncated, and how many transitions are irreversible."""
    of = list(found.values())
    return Row(
        variant,
        tuple(found),
        average(float(each.forward_error.mean()) for each in of),
        average(float(each.retraced_error.mean()) for each in of if len(each.retraced_error)),
        average(float(1 - each.kept.mean()) for each in of),
        sum(int(each.irreversible.sum()) for each in of),
    )


def retracing_table(task: str, rows: list[Row]) -> Table:
    """The shown steps in numbers."""
    return table(
        say("retracing", "table", task=task),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("Error, seen z̃", lambda row: number(row.forward_error)),
            ("Error, retraced ž", lambda row: number(row.retraced_error)),
            ("Truncated", lambda row: number(row.truncated)),
            ("Irreversible", lambda row: number(row.events, format.whole)),
        ],
    )


def build(report: Report) -> list[Block]:
    """A picture for each variant, of its first seed, and a table over seeds."""
    drawn = figures.styled(retracing_figure)

    def of_task(task: str) -> list[Block]:
        found = report.results.load("rollout-viz", task, read_retracing, FILES)
        if not found:
            return []
        pictures = [
            report.picture(
                drawn(next(iter(of.values()))),
                f"retracing-{task}-{variant}",
                f"Retracing of {variant} on {task}",
                note=f"{variant} on {task} (seed {next(iter(of)).seed}).",
                style="strip",
            )
            for variant, of in found.items()
        ]
        return [*pictures, retracing_table(task, [summarise(variant, of) for variant, of in found.items()])]

    blocks = report.by_task(of_task)
    return [Words(say("retracing", "intro")), *blocks] if blocks else []


SECTION = Section("retracing", "Retracing", build, {"rollout-viz": FILES})
