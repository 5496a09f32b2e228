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
        f"{task}: the numbers beside the maps, means over seeds. Trustworthiness: 1 where neighbours in the map are "
        "neighbours in the latent space. Overlap: share of nearest true states that a state and the one retraced to it "
        "have in common; beside it the same with the next state itself in the place of the retraced one (not going "
        "back at all), and by chance. Value smoothness: 1 where neighbours have the same value, 0 where they differ as "
        "any two states do, in the latent space and in the map.",
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
    shown = {
        "trajectory": (map_figure(draw_trajectory, whole), f"{len(whole.true)} steps."),
        "late": (
            map_figure(draw_trajectory, late, first=first),
            f"The last {len(late.true)} of them, mapped on their own.",
        ),
        "truncated": (
            map_figure(draw_truncated, whole),
            "Transitions that the value says should leave the retrace loss, whether the variant truncates or not.",
        ),
    }
    return Panels(
        [
            report.picture(figure, f"{name}-{task}-{variant}", f"{name} map of {variant} on {task}", note=note)
            for name, (figure, note) in shown.items()
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
        note = (
            "States of held-out random episodes and of new episodes of the exploring agent, drawn at random and "
            "coloured by value, on one scale for all variants; each variant has a map of its own states."
        )
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
    intro = "t-SNE of the world model's states. Distances between far groups, and the axes, mean nothing; the numbers"
    return [Words(f"{intro} in the table are about neighbours."), *blocks]


SECTION = Section("latents", "Maps of latent states", build, {"rollout-viz": FILES})
