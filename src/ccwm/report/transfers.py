"""Zero-shot transfer: returns in changed worlds, compared with the reference and with the paper's table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ccwm.report import words
from ccwm.report.claims import PaperTransfer
from ccwm.report.results import Cell, Results, finite
from ccwm.report.statistics import brown_forsythe, estimate, group, hedges, holm, welch
from ccwm.report.tables import Entry, Table, entry, sort_key

UNCHANGED = "unchanged"
REWARD = "R"
COLUMNS = ["row", "draw", "change", "return"]
PAPER_VARIANTS = ("ccwm", "dreamer")


@dataclass(frozen=True)
class Transfer:
    """Returns of one variant in the worlds of one row of changes, and its comparison with the reference.

    ``n`` counts seeds, each by its mean over worlds; where one seed ran, ``n`` counts its worlds.
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


def transfers(results: Results, task: str) -> list[Transfer]:
    """One row for each row of changes and each variant that was moved to it; the unchanged world comes first."""
    cells = {variant: results.cells("transfer", task=task, variant=variant) for variant in results.variants}
    values = {variant: _values(of) for variant, of in cells.items()}
    names = dict.fromkeys([UNCHANGED, *(name for of in values.values() for name in of)])
    rows: list[Transfer] = []
    for name in names:
        theirs = values[results.reference].get(name)
        for variant in results.variants:
            if ours := values[variant].get(name):
                unit = "seeds" if len(cells[variant]) > 1 else "worlds"
                row = Transfer(task, name, variant, tuple(cells[variant]), unit, *estimate(ours))
                rows.append(_compared(row, ours, theirs) if theirs and variant != results.reference else row)
    return _corrected(rows)


def _values(cells: list[Cell]) -> dict[str, list[float]]:
    """Every row's returns: one a seed, its mean over worlds; of a single seed, one a world."""
    if len(cells) == 1:
        frame = cells[0].table("returns.csv", COLUMNS)
        return (
            {} if frame is None else {str(name): of["return"].tolist() for name, of in frame.groupby("row", sort=False)}
        )
    found: dict[str, list[float]] = {}
    for cell in cells:
        metrics = cell.metrics()
        for name, value in {UNCHANGED: metrics.get(UNCHANGED), **(metrics.get("rows") or {})}.items():
            if (mean := finite((value or {}).get("mean"))) is not None:
                found.setdefault(name, []).append(mean)
    return found


def _compared(row: Transfer, ours: list[float], theirs: list[float]) -> Transfer:
    first, second = group(ours), group(theirs)
    return replace(
        row,
        difference=first.mean - second.mean,
        hedges_g=hedges(first, second),
        p=welch(first, second),
        p_spread=brown_forsythe(ours, theirs),
    )


def _corrected(rows: list[Transfer]) -> list[Transfer]:
    """The rows with Holm's correction, a variant's rows together, over those that change more than the reward."""
    corrected: dict[tuple[str, str], float] = {}
    for variant in dict.fromkeys(row.variant for row in rows):
        tested = [(row.row, row.p) for row in rows if row.variant == variant and row.row not in (UNCHANGED, REWARD)]
        family = {name: p for name, p in tested if p is not None}
        names = [(variant, name) for name in family]
        corrected |= dict(zip(names, holm(list(family.values())), strict=True))
    return [replace(row, p_holm=corrected.get((row.variant, row.row))) for row in rows]


def transfer_table(task: str, rows: list[Transfer], *, variants: list[str], paper: PaperTransfer | None) -> Table:
    """A line for each row of changes, the first variant as the reference, the paper's own numbers beside ours."""
    reference, *others = [variant for variant in variants if any(row.variant == variant for row in rows)]
    shown = [name for name in PAPER_VARIANTS if name in variants] if paper is not None and paper.task == task else []
    headings = ["Changed", reference]
    for other in others:
        headings += [other, f"{other} − {reference} (g)", "p (Holm)", "p of spread"]
    headings += [f"Paper: {name}" for name in shown] + (["Paper: p"] if shown else [])
    body = []
    for i, name in enumerate(dict.fromkeys(row.row for row in rows)):
        of = {row.variant: row for row in rows if row.row == name}
        line = [Entry("nothing" if name == UNCHANGED else name, float(i)), _returned(of.get(reference))]
        for other in others:
            line += [_returned(of.get(other)), *_comparison(of.get(other))]
        printed = paper.rows.get(name) if paper is not None else None
        for variant in shown:
            pair = None if printed is None else printed.ccwm if variant == "ccwm" else printed.dreamer
            line.append(Entry(words.NONE) if pair is None else Entry(f"{pair[0]:.2f} ± {pair[1]:.2f}", pair[0]))
        if shown:
            line.append(Entry(words.NONE) if printed is None else Entry(words.scientific(printed.p), printed.p))
        body.append(line)
    return Table(
        _caption(task, rows, reference, others, paper if shown else None), headings, body
    ).without_empty_columns()


def _caption(task: str, rows: list[Transfer], reference: str, others: list[str], paper: PaperTransfer | None) -> str:
    unit = rows[0].unit
    said = (
        f"{task}: return with no further training, in the original reward’s scale (mean ± sd over {rows[0].n} {unit}"
        f"{', each by its mean over changed worlds' if unit == 'seeds' else ' of one seed'}). "
        "R reward, M mass, F friction, S stiffness, L layout."
    )
    if others:
        said += (
            " g: Hedges’ g, the difference in pooled standard deviations. p: Welch’s one-sided t-test that the variant "
            f"is no better than {reference}, in brackets corrected by Holm over the rows that change more than the "
            "reward. p of spread: Brown–Forsythe test that both vary alike (two-sided)."
        )
        if unit == "worlds":
            said += " The worlds share one agent each, so no p says anything about another training run."
    if paper is not None:
        said += f" Paper: {paper.where}, mean ± sd over 15 seeds."
    return said


def reward_check(results: Results, task: str) -> str | None:
    """What the reward-only row shows: a rescaled reward that the agent never sees must change nothing."""
    largest, worlds, variants = 0.0, 0, []
    for cell in results.cells("transfer", task=task):
        frame = cell.table("returns.csv", COLUMNS)
        if frame is None or REWARD not in {*frame["row"]}:
            continue
        by_draw = {name: of.set_index("draw")["return"] for name, of in frame.groupby("row")}
        if UNCHANGED not in by_draw:
            continue
        gap = (by_draw[REWARD] - by_draw[UNCHANGED]).dropna().abs()
        scale = max(float(by_draw[UNCHANGED].abs().max()), 1.0)
        largest, worlds = max(largest, float(gap.max()) / scale), worlds + len(gap)
        variants.append(str(cell.variant))
    if not worlds:
        return None
    names = words.listing(list(dict.fromkeys(variants)))
    if math.isclose(largest, 0.0, abs_tol=1e-6):
        return (
            f"Sanity check passed: with the reward alone rescaled, {names} return what they return unchanged in all "
            f"{words.count(worlds, 'world')}, so the reward-only row shows no difference."
        )
    return (
        f"Sanity check FAILED: with the reward alone rescaled, returns differ from the unchanged world by up to "
        f"{largest:.1%} ({names}, {words.count(worlds, 'world')}). The agent never sees a reward, so these numbers "
        "are not to be trusted."
    )


def _returned(row: Transfer | None) -> Entry:
    return Entry(words.NONE) if row is None else Entry(words.spread(row.mean, row.sd), row.mean)


def _comparison(row: Transfer | None) -> list[Entry]:
    if row is None:
        return [Entry(words.NONE)] * 3
    return [
        Entry(_with(words.signed, row.difference, row.hedges_g), sort_key(row.difference)),
        Entry(_with(words.p_value, row.p, row.p_holm), sort_key(row.p)),
        entry(row.p_spread, words.p_value),
    ]


def _with(form: words.Form, value: float | None, other: float | None) -> str:
    """A number, and another in brackets where there is one."""
    return form(value) if other is None else f"{form(value)} ({form(other)})"
