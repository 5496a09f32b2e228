"""The section on tuning: every search for settings, what it tried, what won, and what that is worth on other seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from ccwm.report import figures, format
from ccwm.report.blocks import Block, Entry, Heading, Panels, Picture, Table, Words
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Estimate, paired_difference
from ccwm.report.table import number, sortable, table
from ccwm.report.words import say
from ccwm.studies.search import STATES, Search, read_search

SYMBOLS = {
    "truncation.threshold": "η",
    "truncation.window": "S",
    "truncation.lookback": "τ",
    "truncation.start": "ξ",
    "retrace.weight": "λ",
}
"""The paper's letters."""


def label(key: str) -> str:
    """A setting as a table names it: the paper's letter and its field, or its key."""
    return f"{SYMBOLS[key]} ({key.partition('.')[2]})" if key in SYMBOLS else key


def setting(value: Any) -> str:
    """A value as text: four digits of a number, a dash where it has none."""
    if isinstance(value, float):
        return format.NONE if math.isnan(value) else f"{value:.4g}"
    return str(value)


def search_words(search: Search) -> list[str]:
    """What was searched and how, who won, and how much of that is luck."""
    said, of, winner = search.summary, search.summary["trials"], search.summary["winner"]
    states = ", ".join(f"{of[state]} {state}" for state in STATES if of[state])
    keys, trials = format.listing([label(key) for key in search.keys]), format.count(sum(of.values()), "trial")
    about = {**said, "keys": keys, "trials": trials, "states": states, "seeds": _seeds(said["seeds"])}
    lines = [say("tuning", "searched", **about)]
    if winner is None:
        return [*lines, say("tuning", "open")]
    lines.append(
        say(
            "tuning",
            "winner",
            trial=winner["trial"],
            point=format.listing([f"{SYMBOLS.get(key, key)} = {setting(of)}" for key, of in winner["point"].items()]),
            search=format.number(winner["search_mean"]),
            fresh=format.number(winner["fresh_mean"]),
            seeds=_seeds(said["fresh_seeds"]),
        )
    )
    lines.append(_against_default(search))
    return lines if len(said["commits"]) < 2 else [*lines, say("tuning", "commits", n=len(said["commits"]))]


def against_default(search: Search) -> Estimate | None:
    """The winner − the default settings, paired by fresh seed; None where either has no value there."""
    table = search.candidates
    rows = (table[table["winner"].astype(bool)], table[table["anchor"].str.contains("default")])
    ours, theirs = (_fresh(row) for row in rows)
    return paired_difference(ours, theirs)


def _against_default(search: Search) -> str:
    default = search.candidates[search.candidates["anchor"].str.contains("default")]
    if not len(default):
        return say("tuning", "unfinished")
    if int(default["trial"].iloc[0]) == search.winner:
        return say("tuning", "default")
    difference = against_default(search)
    if difference is None:
        return say("tuning", "unchecked")
    low, high = difference.low, difference.high
    if low is None or high is None:
        return say("tuning", "one_seed", size=format.signed(difference.mean))
    name = "clear" if low > 0 or high < 0 else "chance"
    return say("tuning", name, size=format.signed(difference.mean), interval=format.interval(low, high))


def _fresh(rows: pd.DataFrame) -> dict[int, float]:
    """The values of a candidate by fresh seed."""
    row = rows.iloc[0] if len(rows) else pd.Series(dtype=float)
    found = {int(str(name).rpartition(" ")[2]): row[name] for name in row.index if str(name).startswith("fresh seed ")}
    return {seed: float(value) for seed, value in found.items() if not math.isnan(float(value))}


def _seeds(seeds: list[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {format.listing([str(seed) for seed in seeds])}"


def candidates_table(search: Search) -> Table:
    """The best trials and the default settings, on both sets of seeds."""

    def trial(row: pd.Series[Any]) -> Entry:
        anchor = f" ({row['anchor']})" if row["anchor"] else ""
        return Entry(f"{row['trial']}{anchor}{', winner' if row['winner'] else ''}", float(row["trial"]))

    def searched(key: str) -> Callable[[pd.Series[Any]], Entry]:
        return lambda row: Entry(setting(row[key]), row[key] if isinstance(row[key], str) else float(row[key]))

    def seeds(which: str) -> Callable[[pd.Series[Any]], Entry]:
        def entry(row: pd.Series[Any]) -> Entry:
            mean, sd = (_number(row[f"{which}_{of}"]) for of in ("mean", "sd"))
            return sortable(format.spread(mean, sd), mean)

        return entry

    return table(
        say("tuning", "table"),
        [row for _, row in search.candidates.iterrows()],
        [
            ("Trial", trial),
            *((label(key), searched(key)) for key in search.keys),
            ("Search seeds", seeds("search")),
            ("Fresh seeds", seeds("fresh")),
            ("Fresh − search", lambda row: number(_number(row["fresh_mean"] - row["search_mean"]), format.signed)),
        ],
    )


def _number(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)


def searches(results: Path) -> dict[str, Path]:
    """The folders of all searches, by name."""
    return {path.parent.name: path.parent for path in sorted((results / "tune").glob("*/study.json"))}


def build(report: Report) -> list[Block]:
    """Words, the table of candidates and the figures of every search."""
    found = searches(report.results.root / "results")
    blocks: list[Block] = []
    for name, folder in found.items():
        search = read_search(folder)
        blocks += [Heading(name)] if len(found) > 1 else []
        blocks += [Words(line) for line in search_words(search)]
        blocks += [candidates_table(search)] if len(search.candidates) else []
        blocks.append(Panels([_picture(report, name, what, path) for what, path in search.figures.items()]))
    return blocks


def _picture(report: Report, name: str, what: str, path: Path) -> Picture:
    """A picture that the search has drawn itself, on the white that it was drawn for."""
    file, svg = f"tune-{name}-{what}", path.read_text("utf-8")
    (report.folder / "figures" / f"{file}.svg").write_text(svg, "utf-8")
    return Picture(file, Markup(figures.inline(svg, file)), f"{what} of the search {name}")


SECTION = Section("tuning", "Tuning", build, {})
