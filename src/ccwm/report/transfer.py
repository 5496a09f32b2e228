"""The section on zero-shot transfer: returns in changed environments, beside the reference's and the paper's table."""

from __future__ import annotations

from functools import partial

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import format, heatmap
from ccwm.report.blocks import Block, Table, Words
from ccwm.report.claims import PaperTransfer
from ccwm.report.results import Results
from ccwm.report.section import Report, Section, by_task
from ccwm.report.statistics import brown_forsythe, estimate, hedges, holm, welch
from ccwm.report.table import Column, Row, table
from ccwm.report.words import say
from ccwm.studies.transfer import UNCHANGED_ROW, read_metrics, read_returns

FILES = ("returns.csv",)
REWARD = "R"
ROUNDING = 1e-6
"""The share of the largest return up to which two returns count as the same."""

OURS = (("{variant}", ("mean", "sd"), format.spread),)
AGAINST = (
    ("{variant} − {reference} (g)", ("difference", "hedges_g"), partial(format.beside, form=format.signed)),
    ("p (Holm)", ("p", "p_holm"), partial(format.beside, form=format.p_value)),
    ("p of spread", ("p_spread",), format.p_value),
)
"""The columns of a variant, and those that compare it with the reference: heading, keys, form."""


def load(results: Results, task: str) -> dict[str, tuple[tuple[Cell, ...], dict[str, list[float]]]]:
    """Every variant's cells, and returns by row: one a seed, its mean over draws; of a single seed, one a draw."""
    loaded = {}
    for variant, found in results.load("transfer", task, read_metrics, FILES).items():
        values: dict[str, list[float]] = {}
        if len(found) == 1:
            frame = results.read(next(iter(found)), read_returns)
            values = {str(name): of["return"].tolist() for name, of in frame.groupby("row", sort=False)}
        else:
            for metrics in found.values():
                for name, row in {UNCHANGED_ROW: metrics.unchanged, **metrics.rows}.items():
                    values.setdefault(name, []).append(row.mean)
        loaded[variant] = tuple(found), values
    return loaded


def summarise(results: Results, task: str) -> list[Row]:
    """One row for each row of changes, the unchanged one first, and each variant that was moved to it.

    ``n`` counts seeds, each by its mean over draws; where one seed ran, ``n`` counts its draws.
    """
    loaded = load(results, task)
    _, reference = loaded.get(results.reference, ((), {}))
    rows: list[Row] = []
    for name in dict.fromkeys([UNCHANGED_ROW, *(name for _, of in loaded.values() for name in of)]):
        for variant, (cells, values) in loaded.items():
            if ours := values.get(name):
                theirs = reference.get(name) if variant != results.reference else None
                place = {"task": task, "row": name, "variant": variant, "cells": cells}
                unit = {"unit": "seeds" if len(cells) > 1 else "draws"}
                rows.append({**place, **unit, **estimate(ours)._asdict(), **compared(ours, theirs)})
    for variant in loaded:  # Holm's correction is over a variant's rows that change more than the reward
        tested = [row for row in rows if row["variant"] == variant and row["row"] not in (UNCHANGED_ROW, REWARD)]
        family = [row for row in tested if row["p"] is not None]
        for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
            row["p_holm"] = p
    return rows


def compared(ours: list[float], theirs: list[float] | None) -> Row:
    """A variant's returns against the reference's, where there are any; Holm's correction comes later."""
    return {
        "difference": estimate(ours).mean - estimate(theirs).mean if theirs else None,
        "hedges_g": hedges(ours, theirs or []),
        "p": welch(ours, theirs or []),
        "p_holm": None,
        "p_spread": brown_forsythe(ours, theirs or []),
    }


def transfer_table(task: str, rows: list[Row], *, reference: str, paper: PaperTransfer | None) -> Table:
    """A line for each row of changes, the reference first, the paper's own numbers beside ours."""
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    printed = paper if paper is not None and paper.task == task else None
    wide: dict[str, Row] = {}
    for row in rows:
        line = wide.setdefault(row["row"], {"order": len(wide), "row": row["row"], "cells": ()})
        line |= {f"{row['variant']} {key}": value for key, value in row.items()}
        line["cells"] += row["cells"]
        if printed is not None and row["row"] in printed.rows:
            line |= {f"paper {key}": value for key, value in printed.rows[row["row"]]}
    columns = [Column("Changed", ("order", "row"), lambda _, name: "nothing" if name == UNCHANGED_ROW else name)]
    for variant in variants:
        for heading, keys, form in OURS if variant == reference else (*OURS, *AGAINST):
            named = heading.format(variant=variant, reference=reference)
            columns.append(Column(named, tuple(f"{variant} {key}" for key in keys), form))
    columns += [Column(f"Paper: {of}", f"paper {of}", _spread) for of in ("ccwm", "dreamer") if of in variants]
    columns.append(Column("Paper: p", "paper p", format.scientific))
    against = reference if {*variants} - {reference} else ""
    return table(_caption(task, rows[0], against, printed), list(wide.values()), columns)


def _spread(printed: tuple[float, float]) -> str:
    """Mean ± standard deviation, with the paper's decimals."""
    return f"{printed[0]:.2f} ± {printed[1]:.2f}"


def _caption(task: str, first: Row, reference: str, paper: PaperTransfer | None) -> str:
    several = first["unit"] == "seeds"
    unit = "seeds, each by its mean over changed environments" if several else "draws of one seed"
    one_seed = "" if several else say("transfer", "one_seed")
    tests = say("transfer", "tests", reference=reference, one_seed=one_seed) if reference else ""
    printed = "" if paper is None else say("transfer", "paper", where=paper.where)
    return say("transfer", "table", task=task, n=first["n"], unit=unit, tests=tests, paper=printed)


def reward_gaps(results: Results, task: str) -> dict[str, list[float]]:
    """What a rescaled reward alone changes, by variant and draw, as a share of the largest unchanged return."""
    gaps: dict[str, list[float]] = {}
    for variant, found in results.load("transfer", task, read_returns, FILES).items():
        for frame in found.values():
            by_draw = frame.pivot_table(values="return", index="draw", columns="row")
            if {REWARD, UNCHANGED_ROW} <= {*by_draw.columns}:
                scale = max(float(by_draw[UNCHANGED_ROW].abs().max()), 1.0)
                gap = (by_draw[REWARD] - by_draw[UNCHANGED_ROW]).dropna().abs() / scale
                gaps.setdefault(variant, []).extend(gap)
    return gaps


def check_words(gaps: dict[str, list[float]]) -> list[Block]:
    """The sanity check, where it could be made: the agent never sees a reward, so its scale must change nothing."""
    every = [gap for of in gaps.values() for gap in of]
    if not every:
        return []
    style, largest = "passed" if max(every) < ROUNDING else "failed", max(every)
    names, draws = format.listing(list(gaps)), format.count(len(every), "draw")
    return [Words(say("transfer", style, names=names, draws=draws, largest=largest), f"check {style}")]


def of_task(report: Report, task: str) -> list[Block]:
    """The sanity check, a table and a heat map."""
    results, paper = report.results, report.paper
    rows = summarise(results, task)
    if not rows:
        return []
    report.csv("transfer", rows)
    made = transfer_table(task, rows, reference=results.reference, paper=paper.transfer if paper is not None else None)
    blocks = [*check_words(reward_gaps(results, task)), made]
    found = results.load("transfer", task, read_returns, FILES)
    grids = {variant: heatmap.grid(pd.concat(list(of.values()))) for variant, of in found.items()}
    if drawn := {variant: grid for variant, grid in grids.items() if grid is not None}:
        figure = heatmap.heatmap_figure(task, drawn, reference=results.reference)
        label, note = f"Return in every changed environment on {task}", say("transfer", "heatmap")
        blocks.append(report.picture(figure, f"transfer-{task}", label, note=note, style="wide"))
    return blocks


SECTION = Section("transfer", "Zero-shot transfer", by_task(of_task), {"transfer": FILES})
