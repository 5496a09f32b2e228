"""The section on tuning: every search for settings, what it tried, what won, and what that is worth on other seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from ccwm.readers import BadResult
from ccwm.report import figures, format
from ccwm.report.blocks import Block, Heading, Panels, Picture, Table, Words
from ccwm.report.results import check_sums
from ccwm.report.section import Report, Section
from ccwm.report.statistics import Estimate, paired_difference
from ccwm.report.table import Column, lines, table
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
FRESH = "fresh seed "
"""How the columns with the values of fresh seeds start."""


def label(key: str) -> str:
    """A setting as a table names it: the paper's letter and its field, or its key."""
    return f"{SYMBOLS[key]} ({key.partition('.')[2]})" if key in SYMBOLS else key


def setting(value: Any) -> str:
    """A value as text: four digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def search_words(search: Search) -> list[str]:
    """What was searched and how, who won, and how much of that is luck."""
    said, of, winner = search.summary, search.summary["trials"], search.summary["winner"]
    states = ", ".join(f"{of[state]} {state}" for state in STATES if of[state])
    keys, trials = format.listing([label(key) for key in search.keys]), format.count(sum(of.values()), "trial")
    about = {**said, "keys": keys, "trials": trials, "states": states, "seeds": _seeds(said["seeds"])}
    lines = [say("tuning", "searched", **about)]
    if winner is None:
        return [*lines, say("tuning", "open")]
    point = format.listing([f"{SYMBOLS.get(key, key)} = {setting(of)}" for key, of in winner["point"].items()])
    means = {which: format.number(winner[f"{which}_mean"]) for which in ("search", "fresh")}
    seeds = _seeds(said["fresh_seeds"])
    lines.append(say("tuning", "winner", trial=winner["trial"], point=point, seeds=seeds, **means))
    lines.append(_against_default(search))
    return lines if len(said["commits"]) < 2 else [*lines, say("tuning", "commits", n=len(said["commits"]))]


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
    name = "one_seed" if low is None or high is None else "clear" if low > 0 or high < 0 else "chance"
    return say("tuning", name, size=format.signed(difference.mean), interval=format.interval(low, high))


def against_default(search: Search) -> Estimate | None:
    """The winner − the default settings, paired by fresh seed; None where either has no value there."""
    found = search.candidates
    chosen = (found[found["winner"].astype(bool)], found[found["anchor"].str.contains("default")])
    fresh = (rows.head(1).filter(like=FRESH).dropna(axis=1) for rows in chosen)
    return paired_difference(*({name: float(of.iloc[0]) for name, of in row.items() if len(of)} for row in fresh))


def _seeds(seeds: list[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {format.listing([str(seed) for seed in seeds])}"


def candidates_table(search: Search) -> Table:
    """The best trials and the default settings, on both sets of seeds."""

    def trial(number: int, anchor: str, winner: bool) -> str:
        return f"{number}{f' ({anchor})' if anchor else ''}{', winner' if winner else ''}"

    found = search.candidates.assign(gain=search.candidates["fresh_mean"] - search.candidates["search_mean"])
    columns = (
        Column("Trial", ("trial", "anchor", "winner"), trial),
        *(Column(label(key), key, setting) for key in search.keys),
        Column("Search seeds", ("search_mean", "search_sd"), format.spread),
        Column("Fresh seeds", ("fresh_mean", "fresh_sd"), format.spread),
        Column("Fresh − search", "gain", format.signed),
    )
    return table(say("tuning", "table"), lines(found), columns)


def searches(results: Path) -> dict[str, Path]:
    """The folders of all searches, by name."""
    return {path.parent.name: path.parent for path in sorted((results / "tune").glob("*/study.json"))}


def build(report: Report) -> list[Block]:
    """Words, the table of candidates and the figures of every search."""
    found = searches(report.results.root / "results")
    blocks: list[Block] = []
    for name, folder in found.items():
        blocks += [Heading(name)] if len(found) > 1 else []
        try:
            check_sums(report.results.root, folder)
            search = read_search(folder)
        except BadResult as error:
            report.broken.append(error.message)
            blocks.append(Words(say("missing", "search", of=error.message), "missing"))
            continue
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
