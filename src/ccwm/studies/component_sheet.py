"""Episodes of states as curves: a panel for each component of the vector and one for the reward, over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from ccwm.studies.contact_sheet import Row
from ccwm.studies.images import PRINT, write_figure

COLUMNS = 4
MOST = 256
"""Components that are shown; beyond, a picture has more panels than anyone looks at."""
WIDTH, HEIGHT, ABOVE = 3.0, 1.3, 0.5
"""Inches of a panel, and over all of them for the legend and the number of components."""


def write_component_sheet(path: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw the episodes into a PNG, a line for each in every panel; ``names`` are those of the components."""
    shown = names[:MOST]
    lines = -(-(len(shown) + 1) // COLUMNS)
    with mpl.rc_context(PRINT):
        figure = Figure(figsize=(COLUMNS * WIDTH, lines * HEIGHT + ABOVE), layout="constrained")
        grid = figure.subplots(lines, COLUMNS, sharex=True, squeeze=False)
        for index, axes in enumerate(grid.flat):
            if index > len(shown):
                axes.set_axis_off()
                continue
            axes.set_title("reward" if index == len(shown) else shown[index], loc="left", fontsize=8)
            for title, episode in rows:
                values = episode.reward if index == len(shown) else episode.observation[:, index]
                axes.plot(values, linewidth=0.8, label=title)
            if index + COLUMNS > len(shown):  # nothing below it
                axes.tick_params(labelbottom=True)
                axes.set_xlabel("step")
        if len(shown) < len(names):
            figure.suptitle(f"{len(shown)} of {len(names)} components", fontsize=9)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=2, fontsize=8)
        write_figure(path, figure, dpi=120)
