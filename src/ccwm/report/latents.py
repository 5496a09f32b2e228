"""The section on maps of latent states: along one trajectory, where it would be truncated, and coloured by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from ccwm.cells import Cell
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Entry, Heading, Panels, Table, Words
from ccwm.report.section import Report, Section
from ccwm.report.statistics import average
from ccwm.report.table import number, table, text
from ccwm.report.words import say
from ccwm.studies.embeddings import read_maps, read_numbers
from ccwm.studies.maps import TrajectoryMap, draw_trajectory, draw_truncated, draw_values

FILES = ("embeddings.csv", "embeddings.safetensors")
MAPS = {"trajectory": "trajectory", "late": "its end", "values": "many states"}
MEASURES = {
    "trustworthiness": "Trustworthiness",
    "overlap": "Overlap",
    "overlap_not_retraced": "Not going back",
    "overlap_chance": "By chance",
    "value_smoothness": "Value smoothness",
    "value_smoothness_map": "In the map",
}


class Row(NamedTuple):
    """The numbers beside one map of a variant, averaged over seeds."""

    variant: str
    map: str
    cells: tuple[Cell, ...]
    numbers: dict[str, float | None]


def summarise(found: dict[str, dict[Cell, pd.DataFrame]]) -> list[Row]:
    """A row for each variant and map."""
    rows = []
    for variant, of in found.items():
        for name in MAPS:
            lines = [frame[frame["map"] == name].iloc[0] for frame in of.values()]
            numbers = {key: average(float(line[key]) for line in lines) for key in ("states", *MEASURES)}
            rows.append(Row(variant, name, tuple(of), numbers))
    return rows


def latents_table(task: str, rows: list[Row]) -> Table:
    """The numbers beside the maps."""

    def measure(key: str) -> Callable[[Row], Entry]:
        return lambda row: number(row.numbers[key])

    return table(
        say("latents", "table", task=task),
        rows,
        [
            ("Variant", lambda row: text(row.variant)),
            ("Map", lambda row: Entry(MAPS[row.map], list(MAPS).index(row.map))),
            ("States", lambda row: number(row.numbers["states"], format.steps)),
            *((heading, measure(key)) for key, heading in MEASURES.items()),
        ],
        texts=2,
    )


@figures.styled
def map_figure(
    draw: Callable[..., None], *drawn: Any, size: tuple[float, float] = (figures.WIDTH, 3.0), **options: Any
) -> Figure:
    """A figure that one of the study's own functions draws."""
    figure = Figure(figsize=size)
    draw(figure, *drawn, **options)
    return figure


def _panels(report: Report, task: str, variant: str, whole: TrajectoryMap, late: TrajectoryMap) -> Panels:
    first = len(whole.true) - len(late.true)
    drawn = {
        "trajectory": (map_figure(draw_trajectory, whole), len(whole.true)),
        "late": (map_figure(draw_trajectory, late, first=first), len(late.true)),
        "truncated": (map_figure(draw_truncated, whole), len(whole.true)),
    }
    return Panels(
        [
            report.picture(
                figure,
                f"{name}-{task}-{variant}",
                f"{name} map of {variant} on {task}",
                note=say("latents", name, steps=steps),
            )
            for name, (figure, steps) in drawn.items()
        ]
    )


def build(report: Report) -> list[Block]:
    """The maps of each variant's first seed, a table over seeds, and a CSV of all."""
    results = report.results
    everything: list[pd.DataFrame] = []

    def of_task(task: str) -> list[Block]:
        found = results.load("rollout-viz", task, read_numbers, FILES)
        if not found:
            return []
        everything.extend(
            frame.assign(task=task, variant=variant, seed=cell.seed, cells=str(cell))
            for variant, of in found.items()
            for cell, frame in of.items()
        )
        firsts = {variant: next(iter(of)) for variant, of in found.items()}
        maps = {variant: results.read(cell, read_maps) for variant, cell in firsts.items()}
        values = {variant: of[2] for variant, of in maps.items()}
        note = say("latents", "values")
        figure = map_figure(draw_values, values, size=(max(9.6, 3.2 * len(maps)), 4.2))
        blocks: list[Block] = [
            report.picture(figure, f"values-{task}", f"States coloured by value on {task}", note=note, style="strip")
        ]
        for variant, (whole, late, _) in maps.items():
            blocks += [
                Heading(f"{variant}, along one greedy episode (seed {firsts[variant].seed})"),
                _panels(report, task, variant, whole, late),
            ]
        return [*blocks, latents_table(task, summarise(found))]

    blocks = report.by_task(of_task)
    if not blocks:
        return []
    report.csv("embeddings", pd.concat(everything))
    return [Words(say("latents", "intro")), *blocks]


SECTION = Section("latents", "Maps of latent states", build, {"rollout-viz": FILES})
