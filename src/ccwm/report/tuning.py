"""Searches for settings in the report: what was tried, what won, and what that is worth on other seeds."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.tri import Triangulation

from ccwm.report import figures, words
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
WHOLE, CUT, WINNER = figures.OKABE_ITO[0], "#8a8f98", figures.OKABE_ITO[1]
MAP = "viridis"


@dataclass(frozen=True)
class Search:
    """The files of one study."""

    folder: Path
    summary: dict[str, Any]
    trials: pd.DataFrame
    candidates: pd.DataFrame

    @property
    def keys(self) -> list[str]:
        """The searched settings."""
        return list(self.summary["space"])

    @property
    def numeric(self) -> list[str]:
        """The searched settings that are numbers."""
        return [key for key in self.keys if self.summary["space"][key]["kind"] != "choice"]

    @property
    def whole(self) -> pd.DataFrame:
        """The trials that came to their end."""
        return self.trials[self.trials["state"] == "complete"]

    @property
    def cut(self) -> pd.DataFrame:
        """The trials that were pruned after they had reported something."""
        return self.trials[(self.trials["state"] == "pruned") & self.trials["value"].notna()]

    @property
    def winner(self) -> int | None:
        """The number of the trial that won."""
        found = self.summary["winner"]
        return None if found is None else int(found["trial"])

    @property
    def run_id(self) -> str | None:
        """The MLflow run of the search, where its record is there."""
        record = self.folder / "run.json"
        return str(json.loads(record.read_text("utf-8"))["run_id"]) if record.is_file() else None

    def is_log(self, key: str) -> bool:
        """Whether the setting was searched over orders of magnitude."""
        return bool(self.summary["space"][key].get("log"))


def read_search(folder: Path) -> Search:
    """Read what a search has published."""
    summary = json.loads((folder / "study.json").read_text("utf-8"))
    return Search(folder, summary, _read(folder / "trials.csv"), _read(folder / "candidates.csv"))


def tuning_section(results: Path, folder: Path) -> list[dict[str, Any]]:
    """Every search under ``results/tune`` for the page: words, the table of candidates, and figures in ``folder``."""
    shown = []
    for path in sorted((results / "tune").glob("*/study.json")):
        search = read_search(path.parent)
        name = search.summary["study"]
        drawn = [
            {
                "what": what,
                "file": f"tune-{name}-{what}",
                "svg": Markup(figures.save(figure, folder, f"tune-{name}-{what}")),
            }
            for what, figure in search_figures(search).items()
        ]
        table = candidates_table(search) if len(search.candidates) else None
        shown.append(
            {"study": name, "words": search_words(search), "table": table, "figures": drawn, "run_id": search.run_id}
        )
    return shown


def draw_study(folder: Path) -> None:
    """Write every figure of a search beside its files, as SVG."""
    for what, figure in search_figures(read_search(folder)).items():
        (folder / f"{what}.svg").write_text(
            figures.to_svg(figure).replace("<defs>", f"{figures.ADAPTIVE}<defs>", 1), "utf-8"
        )


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
                *(Entry(_value(row[key]), _sort(row[key])) for key in search.keys),
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


def search_figures(search: Search) -> dict[str, Figure]:
    """History, slice, contour, importance and parallel coordinates; what the trials are too few for is left out."""
    drawn = {"history": history_figure(search), "slice": slice_figure(search)}
    if len(search.numeric) >= 2 and len(search.whole) >= 3:
        drawn["contour"] = contour_figure(search, *search.numeric[:2])
    if search.summary["importance"]:
        drawn["importance"] = importance_figure(search)
    if len(search.whole):
        drawn["parallel"] = parallel_figure(search)
    return drawn


@mpl.rc_context(figures.STYLE)
def history_figure(search: Search) -> Figure:
    """Every trial's value in the order of their numbers, and the best so far."""
    figure = Figure(figsize=(figures.WIDTH, 3.1))
    axes = figure.add_subplot()
    whole, cut = search.whole, search.cut
    axes.step(whole["trial"], whole["value"].cummax(), where="post", color=figures.INK, lw=1.2, label="best so far")
    _points(axes, search, "trial")
    default = whole[whole["anchor"].str.contains("default")]
    if len(default):
        level = float(default["value"].iloc[0])
        axes.axhline(level, color=figures.INK, lw=1, ls=(0, (4, 3)), label="default settings", zorder=1)
    axes.set(title="History", xlabel="trial", ylabel=search.summary["measure"])
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if not len(whole) and not len(cut):
        axes.set_xlim(0, 1)
    figures.shared_legend(figure, width=figures.WIDTH)
    return figure


@mpl.rc_context(figures.STYLE)
def slice_figure(search: Search) -> Figure:
    """Value against each setting on its own."""
    keys = search.keys
    figure = Figure(figsize=(2.4 * len(keys), 2.9))
    panels = np.atleast_1d(figure.subplots(1, len(keys), sharey=True))
    for axes, key in zip(panels, keys, strict=True):
        _points(axes, search, key)
        axes.set_xlabel(label(key))
        if search.is_log(key):
            _log(axes.xaxis)
    panels[0].set_ylabel(search.summary["measure"])
    figure.suptitle("Slices", x=0.01, ha="left", fontsize=10)
    figures.shared_legend(figure, width=2.4 * len(keys))
    return figure


@mpl.rc_context(figures.STYLE)
def contour_figure(search: Search, x: str, y: str) -> Figure:
    """Value over two settings, interpolated between whole trials; the dots are where something was measured."""
    figure = Figure(figsize=(figures.WIDTH, 3.4))
    axes = figure.add_subplot()
    means = pd.DataFrame(search.whole.groupby([x, y], as_index=False)["value"].mean())
    at_x, at_y = _places(search, means, x), _places(search, means, y)
    value = means["value"].to_numpy(np.float64)
    triangles = _triangles(at_x, at_y)
    shade = None
    if triangles is not None and np.ptp(value) > 0:
        shade = axes.tricontourf(Triangulation(at_x, at_y, triangles.triangles), value, levels=12, cmap=MAP, alpha=0.75)
    dots = axes.scatter(
        at_x, at_y, c=value, cmap=MAP, edgecolor=figures.INK, lw=0.8, s=34, label="whole trial", zorder=3
    )
    looks: list[tuple[pd.DataFrame, dict[str, Any]]] = [
        (search.cut, {"marker": "x", "color": CUT, "s": 24, "lw": 1.2, "label": "pruned", "zorder": 2}),
        (_won(search), {"marker": "*", "color": WINNER, "s": 110, "label": "winner", "zorder": 4}),
    ]
    for rows, look in looks:
        axes.scatter(_places(search, rows, x), _places(search, rows, y), **look)
    figure.colorbar(shade or dots, ax=axes, label=search.summary["measure"])
    axes.set(title="Contour", xlabel=label(x), ylabel=label(y))
    axes.grid(False)
    axes.use_sticky_edges = False
    axes.margins(0.07)
    for axis, key in ((axes.xaxis, x), (axes.yaxis, y)):
        if search.is_log(key):  # drawn over logarithms, between which the contours are straight
            axis.set_major_formatter(FuncFormatter(lambda at, _: f"{10**at:.2g}"))
            axis.set_major_locator(MaxNLocator(5))
    figures.shared_legend(figure, width=figures.WIDTH)
    return figure


@mpl.rc_context(figures.STYLE)
def importance_figure(search: Search) -> Figure:
    """The share of the measure's variance that each setting explains."""
    shares = dict(sorted(search.summary["importance"].items(), key=lambda entry: entry[1]))
    figure = Figure(figsize=(figures.WIDTH, 0.9 + 0.42 * len(shares)))
    axes = figure.add_subplot()
    names = [" / ".join(label(part) for part in name.split(" / ")) for name in shares]
    bars = axes.barh(names, list(shares.values()), color=WHOLE, height=0.6)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set(title="Importance", xlabel="share of variance (fANOVA)", xlim=(0, 1.1 * max(1e-9, *shares.values())))
    axes.grid(False, axis="y")
    return figure


@mpl.rc_context(figures.STYLE)
def parallel_figure(search: Search) -> Figure:
    """Every whole trial as a line over its settings and its value."""
    columns = [*search.keys, "value"]
    whole = search.whole.sort_values("value")
    figure = Figure(figsize=(1.5 * len(columns) + 0.6, 3.1))
    axes = figure.add_subplot()
    tracks = {column: _track(search, column) for column in columns}
    value = tracks["value"][0]
    for number, (_, row) in enumerate(whole.iterrows()):
        heights = [tracks[column][0][number] for column in columns]
        won = row["trial"] == search.winner
        colour = WINNER if won else mpl.colormaps[MAP](value[number])
        axes.plot(range(len(columns)), heights, color=colour, lw=2.4 if won else 1.4, zorder=3 if won else 2)
    for place, column in enumerate(columns):
        axes.axvline(place, color=figures.INK, lw=0.8, zorder=1)
        for height, text in tracks[column][1]:
            side, align = (4, "bottom") if height == 1 else (-4, "top") if height == 0 else (0, "center")
            axes.annotate(text, (place, height), (4, side), textcoords="offset points", fontsize=8, va=align)
    names = [label(key) for key in search.keys]
    axes.set_xticks(range(len(columns)), [*names, search.summary["measure"]])
    axes.set(title="Parallel coordinates of whole trials", ylim=(-0.14, 1.14), xlim=(-0.1, len(columns) - 0.7))
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if search.winner in set(whole["trial"]):
        axes.plot([], [], color=WINNER, lw=2.4, label="winner")
        figures.shared_legend(figure, width=figures.WIDTH)
    return figure


def label(key: str) -> str:
    """A setting as an axis names it: the paper's letter and its field, or its key."""
    return f"{SYMBOLS[key]} ({key.partition('.')[2]})" if key in SYMBOLS else key


def _points(axes: Axes, search: Search, column: str) -> None:
    whole, cut = search.whole, search.cut
    axes.scatter(whole[column], whole["value"], color=WHOLE, s=26, label="whole trial", zorder=3)
    axes.scatter(cut[column], cut["value"], marker="x", color=CUT, s=24, lw=1.2, label="pruned (last value)", zorder=2)
    _star(axes, search, column, "value")


def _star(axes: Axes, search: Search, x: str, y: str) -> None:
    won = _won(search)
    axes.scatter(won[x], won[y], marker="*", color=WINNER, s=110, label="winner", zorder=4)


def _log(axis: Any) -> None:
    """Orders of magnitude with plain numbers at 1, 2 and 5 of each."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda at, _: f"{at:g}"))
    axis.set_minor_formatter(NullFormatter())


def _places(search: Search, rows: pd.DataFrame, key: str) -> np.ndarray:
    """A setting's values where they are drawn: as they are, or their logarithms."""
    return _scaled(rows[key].to_numpy(np.float64), search.is_log(key))


def _won(search: Search) -> pd.DataFrame:
    return search.trials[search.trials["trial"] == search.winner]


def _track(search: Search, column: str) -> tuple[list[float], list[tuple[float, str]]]:
    """Heights in [0, 1] of the whole trials in the order of their values, and what stands at the ends of the axis."""
    whole = search.whole.sort_values("value")[column]
    if column != "value" and search.summary["space"][column]["kind"] == "choice":
        names = [str(choice) for choice in search.summary["space"][column]["choices"]]
        ends = [(place / max(len(names) - 1, 1), name) for place, name in enumerate(names)]
        places = {name: height for height, name in ends}
        return [places.get(str(value), 0.0) for value in whole], ends
    log = column != "value" and search.is_log(column)
    scaled = _scaled(whole.to_numpy(np.float64), log)
    low, high = float(scaled.min()), float(scaled.max())
    width = high - low or 1.0
    ends = [(0.0, _value(float(whole.min())))] + ([(1.0, _value(float(whole.max())))] if high > low else [])
    return [float(value - low) / width for value in scaled], ends


def _scaled(values: np.ndarray, log: bool) -> np.ndarray:
    return np.log10(values) if log else values


def _triangles(x: np.ndarray, y: np.ndarray) -> Triangulation | None:
    """Triangles between the points, in the scale that they are drawn in; None where they lie on a line."""
    spans = np.ptp(x), np.ptp(y)
    if len(x) < 3 or min(spans) == 0:
        return None
    try:
        return Triangulation(x / spans[0], y / spans[1])
    except (RuntimeError, ValueError):
        return None


def _against_default(search: Search) -> str:
    """The winner against the default settings on the fresh seeds, which both were trained on."""
    table = search.candidates
    default = table[table["anchor"].str.contains("default")]
    won = table[table["winner"].astype(bool)]
    if not len(default):
        return "The default settings came to no end and cannot be compared."
    if int(default["trial"].iloc[0]) == search.winner:
        return "The winner are the default settings: no other candidate was better on fresh seeds."
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


def _read(path: Path) -> pd.DataFrame:
    """A table whose anchors are text, also where none is set; one without candidates has no columns to read."""
    if path.stat().st_size <= 1:
        return pd.DataFrame(columns=["trial", "anchor", "winner"])
    table = pd.read_csv(path, dtype={"anchor": "string"})
    return table.assign(anchor=table["anchor"].fillna(""))


def _seeds(seeds: list[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {words.listing([str(seed) for seed in seeds])}"


def _point(point: dict[str, Any]) -> str:
    return words.listing([f"{SYMBOLS.get(key, key)} = {_value(value)}" for key, value in point.items()])


def _value(value: Any) -> str:
    if isinstance(value, float):
        return words.NONE if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _number(value: Any) -> float | None:
    return float(value) if value is not None and not math.isnan(float(value)) else None


def _sort(value: Any) -> float | str:
    return value if isinstance(value, str) else math.nan if value is None else float(value)
