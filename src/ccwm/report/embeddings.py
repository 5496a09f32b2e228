"""The section on maps of latent states: along one trajectory, where it would be truncated, and coloured by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ccwm.report import words
from ccwm.report.figures import STYLE, WIDTH
from ccwm.report.results import Cell, Results, average, finite
from ccwm.report.retracing import Save
from ccwm.report.tables import Entry, Table, sources
from ccwm.studies.drawings import TrajectoryMap, ValueMap, draw_trajectory, draw_truncated, draw_values

FILES = ["embeddings.csv", "embeddings.safetensors"]
NUMBERS = (
    "states",
    "trustworthiness",
    "overlap",
    "overlap_not_retraced",
    "overlap_chance",
    "value_smoothness",
    "value_smoothness_map",
)
MAPS = {"trajectory": "trajectory", "late": "its end", "values": "many states"}


def embeddings_section(study: Results, folder: Path, save: Save) -> list[dict[str, Any]]:
    """For every task that has any: the maps of each variant's first seed, a table over seeds, and a CSV of all."""
    shown, everything = [], []
    for task in study.tasks:
        maps, rows = {}, []
        for variant in study.variants:
            cells = [cell for cell in study.cells("rollout-viz", task=task, variant=variant) if cell.has(FILES)]
            if not cells:
                continue
            maps[variant] = (cells[0].seed, *load_maps(cells[0]))
            frames = {cell: _numbers(cell) for cell in cells}
            rows += [_row(variant, name, frames) for name in MAPS]
            everything += [
                frame.assign(task=task, variant=variant, seed=cell.seed, cells=cell.name)
                for cell, frame in frames.items()
            ]
        if rows:
            shown.append(
                {
                    "task": task,
                    "value_map": save(_values_figure({name: of[3] for name, of in maps.items()}), f"values-{task}"),
                    "agents": {name: _agent(task, name, *of[:3], save) for name, of in maps.items()},
                    "table": _table(task, rows),
                }
            )
    if everything:
        pd.concat(everything).to_csv(folder / "tables" / "embeddings.csv", index=False, lineterminator="\n")
    return shown


def load_maps(cell: Cell) -> tuple[TrajectoryMap, TrajectoryMap, ValueMap]:
    """The trajectory, its end, and many states with their values, from the stage's file."""
    path = cell.folder / "embeddings.safetensors"
    try:
        arrays = load_file(path)
        trajectory, late = (
            TrajectoryMap(*(arrays[f"{name}.{part}"] for part in TrajectoryMap._fields))
            for name in ("trajectory", "late")
        )
        return trajectory, late, ValueMap(*(arrays[f"values.{part}"] for part in ValueMap._fields))
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} holds no maps ({error}); {cell.cure}") from error


def _numbers(cell: Cell) -> pd.DataFrame:
    frame = cell.table("embeddings.csv", ["map", "perplexity", "neighbours", *NUMBERS])
    if frame is None or set(MAPS) - {*frame["map"]}:
        raise ValueError(f"{cell.folder / 'embeddings.csv'} lacks a map; {cell.cure}")
    return frame


def _agent(task: str, variant: str, seed: int, whole: TrajectoryMap, late: TrajectoryMap, save: Save) -> dict[str, Any]:
    return {
        "seed": seed,
        "steps": len(whole.true),
        "late_steps": len(late.true),
        "trajectory": save(_trajectory_figure(whole, 0), f"trajectory-{task}-{variant}"),
        "late": save(_trajectory_figure(late, len(whole.true) - len(late.true)), f"late-{task}-{variant}"),
        "truncated": save(_truncated_figure(whole), f"truncated-{task}-{variant}"),
    }


@mpl.rc_context(STYLE)
def _trajectory_figure(drawn: TrajectoryMap, first: int) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0))
    draw_trajectory(figure, drawn, first=first)
    return figure


@mpl.rc_context(STYLE)
def _truncated_figure(drawn: TrajectoryMap) -> Figure:
    figure = Figure(figsize=(WIDTH, 3.0))
    draw_truncated(figure, drawn)
    return figure


@mpl.rc_context(STYLE)
def _values_figure(maps: dict[str, ValueMap]) -> Figure:
    figure = Figure(figsize=(max(9.6, 3.2 * len(maps)), 4.2))
    draw_values(figure, maps)
    return figure


def _row(variant: str, name: str, frames: dict[Cell, pd.DataFrame]) -> list[Entry]:
    found = [frame[frame["map"] == name].iloc[0] for frame in frames.values()]
    means = {key: average([finite(float(of[key])) for of in found]) for key in NUMBERS}
    return [
        Entry(variant, variant),
        Entry(MAPS[name], list(MAPS).index(name)),
        *(
            Entry(words.steps(value) if key == "states" else words.number(value), "" if value is None else value)
            for key, value in means.items()
        ),
        sources(list(frames)),
    ]


def _table(task: str, rows: list[list[Entry]]) -> Table:
    return Table(
        f"{task}: the numbers beside the maps, means over seeds. Trustworthiness: 1 where neighbours in the map are "
        "neighbours in the latent space. Overlap: share of nearest true states that a state and the one retraced to it "
        "have in common; beside it the same with the next state itself in the place of the retraced one (not going "
        "back at all), and by chance. Value smoothness: 1 where neighbours are worth the same, 0 where they differ as "
        "any two states do, in the latent space and in the map.",
        [
            "Variant",
            "Map",
            "States",
            "Trustworthiness",
            "Overlap",
            "Not going back",
            "By chance",
            "Value smoothness",
            "In the map",
            "Runs",
        ],
        rows,
        texts=2,
    ).without_empty_columns()
