"""A search in words and as a table: what was tried, what won, and what that is worth on other seeds."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from ccwm.report import words
from ccwm.report.searches import Search
from ccwm.report.statistics import Estimate, paired_difference
from ccwm.report.tables import Entry, Table

SYMBOLS = {
    "truncation.threshold": "η",
    "truncation.window": "S",
    "truncation.lookback": "τ",
    "truncation.start": "ξ",
    "retrace.weight": "λ",
}
"""The paper's letters."""


def search_words(search: Search) -> list[str]:
    """What was searched and how, who won, and how much of that is luck."""
    said, of = search.summary, search.summary["trials"]
    states = [f"{of[state]} {state}" for state in ("complete", "pruned", "failed", "running") if of[state]]
    total = sum(of.values())
    lines = [
        f"{words.listing([label(key) for key in search.keys])} of {said['variant']} on {said['task']}: "
        f"{words.count(total, 'trial')} ({', '.join(states)}), sampler {said['sampler']}, pruner {said['pruner']}. "
        f"A trial's value is the {said['measure_title']}, averaged over {_seeds(said['seeds'])}."
    ]
    winner = said["winner"]
    if winner is None:
        return [*lines, "No winner is named: the best trials have not been trained on fresh seeds."]
    lines.append(
        f"Winner: trial {winner['trial']} with {_point(winner['point'])}. It has {words.number(winner['search_mean'])} "
        f"on the seeds that it was chosen on, which flatter it, and {words.number(winner['fresh_mean'])} on "
        f"{_seeds(said['fresh_seeds'])}, which did not choose it."
    )
    lines.append(_against_default(search))
    if len(said["commits"]) > 1:
        lines.append(f"The trials were trained by {len(said['commits'])} different commits.")
    return lines


def candidates_table(search: Search) -> Table:
    """The best trials and the default settings, on both sets of seeds."""
    rows = []
    for _, row in search.candidates.iterrows():
        anchor = f" ({row['anchor']})" if row["anchor"] else ""
        searched, fresh = _number(row["search_mean"]), _number(row["fresh_mean"])
        fall = fresh - searched if fresh is not None and searched is not None else None
        rows.append(
            [
                Entry(f"{row['trial']}{anchor}{', winner' if row['winner'] else ''}", float(row["trial"])),
                *(Entry(setting(row[key]), _sort(row[key])) for key in search.keys),
                Entry(words.spread(searched, _number(row["search_sd"])), _sort(searched)),
                Entry(words.spread(fresh, _number(row["fresh_sd"])), _sort(fresh)),
                Entry(words.signed(fall), _sort(fall)),
            ]
        )
    caption = (
        "The best trials and the default settings, trained again on fresh seeds: mean ± standard deviation over seeds. "
        "The last column is what choosing the best had added."
    )
    headings = ["Trial", *(label(key) for key in search.keys), "Search seeds", "Fresh seeds", "Fresh − search"]
    return Table(caption, headings, rows)


def label(key: str) -> str:
    """A setting as an axis names it: the paper's letter and its field, or its key."""
    return f"{SYMBOLS[key]} ({key.partition('.')[2]})" if key in SYMBOLS else key


def setting(value: Any) -> str:
    """A value as text: four digits of a number, a dash where it has none."""
    if isinstance(value, float):
        return words.NONE if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _against_default(search: Search) -> str:
    """The winner against the default settings on the fresh seeds, which both were trained on."""
    table = search.candidates
    default = table[table["anchor"].str.contains("default")]
    won = table[table["winner"].astype(bool)]
    if not len(default):
        return "The default settings came to no end and cannot be compared."
    if int(default["trial"].iloc[0]) == search.winner:
        return "The default settings win: no other candidate was better on fresh seeds."
    difference = paired_difference(_fresh(won), _fresh(default))
    if difference is None:
        return "The default settings have no value on fresh seeds."
    return _verdict(difference)


def _verdict(difference: Estimate) -> str:
    size = words.signed(difference.mean)
    if difference.low is None or difference.high is None:
        return f"Against the default settings: {size} on one fresh seed, which says nothing about another."
    interval = words.interval(difference.low, difference.high)
    clear = difference.low > 0 or difference.high < 0
    ending = "a clear difference" if clear else "no clear difference: it may be chance"
    return f"Against the default settings, paired by fresh seed: {size} (95% interval {interval}), {ending}."


def _fresh(row: pd.DataFrame) -> dict[int, float]:
    found = {column: _number(row[column].iloc[0]) for column in row.columns if str(column).startswith("fresh seed ")}
    return {int(str(column).rpartition(" ")[2]): value for column, value in found.items() if value is not None}


def _seeds(seeds: list[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {words.listing([str(seed) for seed in seeds])}"


def _point(point: dict[str, Any]) -> str:
    return words.listing([f"{SYMBOLS.get(key, key)} = {setting(value)}" for key, value in point.items()])


def _number(value: Any) -> float | None:
    return float(value) if value is not None and not math.isnan(float(value)) else None


def _sort(value: Any) -> float | str:
    return value if isinstance(value, str) else math.nan if value is None else float(value)
