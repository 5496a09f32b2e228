"""Transfer over the grid of changes: a tile for each changed environment, coloured by its mean return."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

ACROSS = "friction"
OWN = "own"
DARK = "#16181c"  # on a light tile, whatever the page's own colours
WRITTEN = 24
"""Up to so many tiles of a panel carry their number."""


def parts(change: str) -> dict[str, str]:
    """What differs by name, but for the reward: `reward 2 · mass 6 · friction 0.6/0.4/0.3` → mass and friction."""
    named = dict(part.split(" ", 1) for part in change.split(" · ") if " " in part)
    return {name: value for name, value in named.items() if name != "reward"}


def grid(returns: pd.DataFrame) -> pd.DataFrame | None:
    """Mean return by environment: friction across, everything else down; None where nothing was changed."""
    changed = [parts(str(change)) for change in returns["change"]]
    if not any(changed):
        return None
    placed = returns.assign(
        across=[of.get(ACROSS, OWN) for of in changed],
        down=[" · ".join(f"{k} {v}" for k, v in of.items() if k != ACROSS) or OWN for of in changed],
    )
    table = placed.pivot_table(values="return", index="down", columns="across", aggfunc="mean")
    return table.loc[sorted(table.index, key=_order), sorted(table.columns, key=_order)]


def _order(name: str) -> tuple[object, ...]:
    """The unchanged first, fewer changes before more, then by number where there is one."""
    numbers = [float(word) for word in name.replace("/", " ").split() if word.replace(".", "", 1).isdigit()]
    return (name != OWN, name.count("·"), name.split(" ")[0] if not numbers or " " in name else "", numbers, name)


def heatmap_figure(task: str, grids: Mapping[str, pd.DataFrame], *, reference: str) -> Figure:
    """A panel for each variant on one scale of returns, then each other variant's difference from the reference."""
    down = list(dict.fromkeys(name for of in grids.values() for name in of.index))
    across = list(dict.fromkeys(name for of in grids.values() for name in of.columns))
    whole = {variant: of.reindex(index=down, columns=across) for variant, of in grids.items()}
    others = [variant for variant in whole if variant != reference and reference in whole]
    gaps = {f"{variant} − {reference}": whole[variant] - whole[reference] for variant in others}
    tall = 0.9 + 0.3 * len(down) + (0.9 if len(across) > 1 else 0.3)
    wide = max(1.2, 0.42 * len(across) + 0.3) + 0.7
    labels = 0.2 + 0.075 * max(map(len, down))
    figure = Figure(figsize=(min(labels + wide * (len(whole) + len(gaps)), 14), tall))
    panels = list(figure.subplots(1, len(whole) + len(gaps), sharey=True, squeeze=False).flat)
    values = np.stack([of.to_numpy(float) for of in whole.values()])
    scales = [(whole, "mean return", "viridis", np.nanmin(values), np.nanmax(values))]
    if gaps:
        largest = np.fmax.reduce(np.abs(np.stack([of.to_numpy(float) for of in gaps.values()])), None, initial=1e-9)
        scales.append((gaps, "difference", "RdBu", -largest, largest))
    for shown, label, colours, low, high in scales:
        used, panels = panels[: len(shown)], panels[len(shown) :]
        scale = ScalarMappable(Normalize(low, high), colours)
        for axes, (name, of) in zip(used, shown.items(), strict=True):
            _draw(axes, name, of, scale)
        figure.colorbar(scale, ax=used, label=label, pad=0.02, aspect=12)
    figure.suptitle(task, x=0.01, ha="left", fontsize=10)
    return figure


def _draw(axes: Axes, name: str, grid: pd.DataFrame, scale: ScalarMappable) -> None:
    """One panel: tiles, names, and numbers where there are few; what was not drawn stays empty."""
    down, across = ([str(name) for name in names] for names in grid.axes)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    low, high = scale.get_clim()
    axes.pcolormesh(grid.to_numpy(float), cmap=scale.cmap, vmin=low, vmax=high, edgecolors="none")
    axes.invert_yaxis()
    axes.set_title(name, fontsize=9)
    axes.set_yticks(np.arange(len(down)) + 0.5, down)
    axes.set_xticks(np.arange(len(across)) + 0.5, across if len(across) > 1 else [""], rotation=90)
    axes.set_xlabel(ACROSS if len(across) > 1 else "")
    for (row, column), value in np.ndenumerate(grid.to_numpy(float)):
        if np.isfinite(value) and grid.size <= WRITTEN:
            red, green, blue, _ = scale.to_rgba(value)
            ink = DARK if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
            axes.text(column + 0.5, row + 0.5, f"{value:.4g}", ha="center", va="center", fontsize=8, color=ink)
