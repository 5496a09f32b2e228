"""The section on zero-shot transfer: returns in changed environments, beside the reference's and the paper's table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from ccwm.cells import Cell
from ccwm.report import format, heatmap
from ccwm.report.blocks import Block, Entry, Table, Words
from ccwm.report.claims import PaperTransfer
from ccwm.report.results import Results
from ccwm.report.section import Report, Section
from ccwm.report.statistics import brown_forsythe, estimate, hedges, holm, welch
from ccwm.report.table import number, sortable, table
from ccwm.report.words import say
from ccwm.studies.transfer import UNCHANGED_ROW, read_metrics, read_returns

FILES = ("returns.csv",)
REWARD = "R"
PAPER_COLUMNS = ("ccwm", "dreamer", "p")


class Transfer(NamedTuple):
    """Returns of one variant in the environments of one row of changes, and its comparison with the reference.

    ``n`` counts seeds, each by its mean over draws; where one seed ran, ``n`` counts its draws.
    """

    task: str
    row: str
    variant: str
    cells: tuple[Cell, ...]
    unit: str
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    n: int
    difference: float | None = None
    hedges_g: float | None = None
    p: float | None = None
    p_holm: float | None = None
    p_spread: float | None = None


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


def summarise(results: Results, task: str) -> list[Transfer]:
    """One row for each row of changes and each variant that was moved to it; the unchanged one comes first."""
    loaded = load(results, task)
    names = dict.fromkeys([UNCHANGED_ROW, *(name for _, of in loaded.values() for name in of)])
    _, reference = loaded.get(results.reference, ((), {}))
    rows: list[Transfer] = []
    for name in names:
        for variant, (cells, values) in loaded.items():
            if ours := values.get(name):
                unit = "seeds" if len(cells) > 1 else "draws"
                row = Transfer(task, name, variant, cells, unit, *estimate(ours))
                theirs = reference.get(name) if variant != results.reference else None
                rows.append(_compared(row, ours, theirs) if theirs else row)
    return _corrected(rows)


def _compared(row: Transfer, ours: list[float], theirs: list[float]) -> Transfer:
    return row._replace(
        difference=row.mean - estimate(theirs).mean,
        hedges_g=hedges(ours, theirs),
        p=welch(ours, theirs),
        p_spread=brown_forsythe(ours, theirs),
    )


def _corrected(rows: list[Transfer]) -> list[Transfer]:
    """The rows with Holm's correction, a variant's rows together, over those that change more than the reward."""
    corrected: dict[tuple[str, str], float] = {}
    for variant in dict.fromkeys(row.variant for row in rows):
        tested = {row.row: row.p for row in rows if row.variant == variant and row.row not in (UNCHANGED_ROW, REWARD)}
        family = {name: p for name, p in tested.items() if p is not None}
        names = [(variant, name) for name in family]
        corrected |= dict(zip(names, holm(list(family.values())), strict=True))
    return [row._replace(p_holm=corrected.get((row.variant, row.row))) for row in rows]


def transfer_table(task: str, rows: list[Transfer], *, reference: str, paper: PaperTransfer | None) -> Table:
    """A line for each row of changes, the reference first, the paper's own numbers beside ours."""
    variants = list(dict.fromkeys(row.variant for row in rows))
    printed = paper if paper is not None and paper.task == task else None
    of = {(row.row, row.variant): row for row in rows}
    names = list(dict.fromkeys(row.row for row in rows))

    def column(variant: str, make: Callable[[Transfer], Entry]) -> Callable[[str], Entry]:
        return lambda name: make(of[name, variant]) if (name, variant) in of else Entry(format.NONE)

    columns: list[tuple[str, Callable[[str], Entry]]] = [
        ("Changed", lambda name: Entry("nothing" if name == UNCHANGED_ROW else name, float(names.index(name))))
    ]
    for variant in variants:
        columns.append((variant, column(variant, lambda row: sortable(format.spread(row.mean, row.sd), row.mean))))
        if variant != reference:
            columns += [
                (f"{variant} − {reference} (g)", column(variant, _difference)),
                ("p (Holm)", column(variant, _p)),
                ("p of spread", column(variant, lambda row: number(row.p_spread, format.p_value))),
            ]
    if printed is not None:
        shown = [which for which in PAPER_COLUMNS if which in (*variants, "p")]
        columns += [(f"Paper: {which}", _printed(printed, which)) for which in shown]
    others = [variant for variant in variants if variant != reference]
    made = table(_caption(task, rows[0], reference if others else "", printed), names, columns)
    return replace(made, cells=tuple(dict.fromkeys(cell for row in rows for cell in row.cells)))


def _printed(paper: PaperTransfer, which: str) -> Callable[[str], Entry]:
    """A column of the paper's table."""

    def entry(name: str) -> Entry:
        found = getattr(paper.rows.get(name), which, None)
        if found is None:
            return Entry(format.NONE)
        if which == "p":
            return Entry(format.scientific(found), found)
        return Entry(f"{found[0]:.2f} ± {found[1]:.2f}", found[0])

    return entry


def _difference(row: Transfer) -> Entry:
    return sortable(format.beside(row.difference, row.hedges_g, format.signed), row.difference)


def _p(row: Transfer) -> Entry:
    return sortable(format.beside(row.p, row.p_holm, format.p_value), row.p)


def _caption(task: str, first: Transfer, reference: str, paper: PaperTransfer | None) -> str:
    several = first.unit == "seeds"
    unit = "seeds, each by its mean over changed environments" if several else "draws of one seed"
    one_seed = "" if several else say("transfer", "one_seed")
    tests = say("transfer", "tests", reference=reference, one_seed=one_seed) if reference else ""
    printed = "" if paper is None else say("transfer", "paper", where=paper.where)
    return say("transfer", "table", task=task, n=first.n, unit=unit, tests=tests, paper=printed)


class RewardCheck(NamedTuple):
    """How much a rescaled reward changes: the largest difference from unchanged, as a share of the largest return."""

    largest: float
    draws: int
    variants: list[str]

    @property
    def passed(self) -> bool:
        """Whether nothing changes beyond rounding."""
        return self.largest < 1e-6


def reward_check(results: Results, task: str) -> RewardCheck | None:
    """What the reward-only row shows: a rescaled reward that the agent never sees must change nothing."""
    gaps: dict[str, list[float]] = {}
    for variant, found in results.load("transfer", task, read_returns, FILES).items():
        for frame in found.values():
            by_draw = frame.pivot_table(values="return", index="draw", columns="row")
            if {REWARD, UNCHANGED_ROW} <= {*by_draw.columns}:
                scale = max(float(by_draw[UNCHANGED_ROW].abs().max()), 1.0)
                gap = (by_draw[REWARD] - by_draw[UNCHANGED_ROW]).dropna().abs() / scale
                gaps.setdefault(variant, []).extend(gap)
    every = [gap for of in gaps.values() for gap in of]
    return RewardCheck(max(every), len(every), list(gaps)) if every else None


def check_words(check: RewardCheck) -> Words:
    """The sanity check as the page shows it."""
    names, draws = format.listing(check.variants), format.count(check.draws, "draw")
    style = "passed" if check.passed else "failed"
    return Words(say("transfer", style, names=names, draws=draws, largest=check.largest), f"check {style}")


def build(report: Report) -> list[Block]:
    """The sanity check, a table and a heat map for each task."""
    results = report.results
    rows = {task: found for task in results.study.tasks if (found := summarise(results, task))}
    report.csv("transfer", [row._asdict() for of in rows.values() for row in of])

    def of_task(task: str) -> list[Block]:
        if task not in rows:
            return []
        check = reward_check(results, task)
        printed = report.paper.transfer if report.paper is not None else None
        found = results.load("transfer", task, read_returns, FILES)
        grids = {variant: heatmap.grid(pd.concat(list(of.values()))) for variant, of in found.items()}
        drawn = {variant: grid for variant, grid in grids.items() if grid is not None}
        blocks: list[Block] = [check_words(check)] if check is not None else []
        blocks.append(transfer_table(task, rows[task], reference=results.reference, paper=printed))
        if drawn:
            figure = heatmap.heatmap_figure(task, drawn, reference=results.reference)
            label = f"Return in every changed environment on {task}"
            blocks.append(
                report.picture(figure, f"transfer-{task}", label, note=say("transfer", "heatmap"), style="wide")
            )
        return blocks

    return report.by_task(of_task)


SECTION = Section("transfer", "Zero-shot transfer", build, {"transfer": FILES})
