"""The section on maps of latent states: along one trajectory, where it would be truncated, and coloured by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from ccwm.report import figures, format
from ccwm.report.blocks import Block, Heading, Panels
from ccwm.report.section import Report, Section, by_task
from ccwm.report.table import Column, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.embeddings import ARRAYS, read_maps, read_numbers
from ccwm.studies.maps import TrajectoryMap, draw_trajectory, draw_truncated, draw_values

FILES = ("embeddings.csv", ARRAYS)
MAPS = {"trajectory": "trajectory", "late": "its end", "values": "many states"}
COLUMNS = (
    Column("Variant", "variant"),
    Column("Map", ("order", "map"), lambda _, name: MAPS[name]),
    Column("States", "states", format.steps),
    Column("Trustworthiness", "trustworthiness"),
    Column("Overlap", "overlap"),
    Column("Not going back", "overlap_not_retraced"),
    Column("By chance", "overlap_chance"),
    Column("Value smoothness", "value_smoothness"),
    Column("In the map", "value_smoothness_map"),
)


def map_figure(
    draw: Callable[..., None], *drawn: Any, size: tuple[float, float] = (figures.WIDTH, 3.0), **options: Any
) -> Figure:
    """A figure that one of the study's own functions draws."""
    figure = Figure(figsize=size)
    draw(figure, *drawn, **options)
    return figure


def _panels(report: Report, task: str, variant: str, whole: TrajectoryMap, late: TrajectoryMap) -> Panels:
    steps, end = len(whole.true), len(late.true)
    drawn = {
        "trajectory": map_figure(draw_trajectory, whole),
        "late": map_figure(draw_trajectory, late, first=steps - end),
        "truncated": map_figure(draw_truncated, whole),
    }
    pictures = []
    for name, figure in drawn.items():
        note = say("latents", name, steps=end if name == "late" else steps)
        label = f"{name} map of {variant} on {task}"
        pictures.append(report.picture(figure, f"{name}-{task}-{variant}", label, note=note))
    return Panels(pictures)


def of_task(report: Report, task: str) -> list[Block]:
    """The maps of each variant's first seed, a table over seeds, and a CSV of all."""
    found = report.results.load("rollout-viz", task, read_numbers, FILES)
    if not found:
        return []
    lines = rows_of(found)
    report.csv("embeddings", lines)
    firsts = {variant: next(iter(of)) for variant, of in found.items()}
    maps = {variant: report.results.read(cell, read_maps) for variant, cell in firsts.items()}
    values = {variant: of[2] for variant, of in maps.items()}
    figure = map_figure(draw_values, values, size=(max(9.6, 3.2 * len(maps)), 4.2))
    label, note = f"States coloured by value on {task}", say("latents", "values")
    blocks: list[Block] = [report.picture(figure, f"values-{task}", label, note=note, style="strip")]
    for variant, (whole, late, _) in maps.items():
        blocks.append(Heading(f"{variant}, along one greedy episode (seed {firsts[variant].seed})"))
        blocks.append(_panels(report, task, variant, whole, late))
    rows = [{**row, "order": list(MAPS).index(row["map"])} for row in averaged(lines, "variant", "map")]
    return [*blocks, table(say("latents", "table", task=task), rows, COLUMNS, texts=2)]


SECTION = Section("latents", "Maps of latent states", by_task(of_task, intro="latents"), {"rollout-viz": FILES})
