"""The components of a state: the error of each, and predicted beside true ones as curves and as a video."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from ccwm.readers import NUMBER, TEXT, read_table
from ccwm.studies.images import PRINT, ink, write_figure, write_mp4
from ccwm.studies.tables import write_columns

COLUMNS, DRAWN, FILMED = 4, 8, 4
"""Panels of a row; components that a figure shows at most, and a video."""
WIDTH, ROW, BELOW = 9.6, 1.45, 0.65
"""Inches of a figure, of a row of its panels, and of what stands below them."""
FILM, DPI = (7.2, 3.6), 100
"""Inches of the curves in a video, and pixels an inch."""
COLOUR = "#0072b2"
"""Of a prediction that stands alone."""
CURSOR, EDGE = (150, 155, 162), 3
"""The colour of the line at the present step; pixels by which a curve may reach over the end of its panel."""


class Components(NamedTuple):
    """Every component of a state with its mean squared errors on the decoder's scale; pixels have none."""

    component: np.ndarray  # [n] names
    error: np.ndarray  # [n]
    baseline_error: np.ndarray  # [n], of the last seen state
    constant_error: np.ndarray  # [n], of the mean state: the component's variance

    def widest(self, most: int) -> np.ndarray:
        """The components with the largest variance, in the state's own order.   → int [≤ most]."""
        return np.sort(np.argsort(-self.constant_error, kind="stable")[:most])


class Curves(NamedTuple):
    """Components of a held-out episode as the variants predict them; the first ``context`` are reconstructions."""

    context: int
    names: list[str]
    truth: np.ndarray  # [T, components]
    predictions: dict[str, np.ndarray]  # of each variant, [T, components]

    @classmethod
    def of(
        cls, components: Components, context: int, truth: np.ndarray, predictions: Mapping[str, np.ndarray]
    ) -> Curves:
        """Those that a figure shows of whole states [T, n]."""
        chosen = components.widest(DRAWN)
        shown = {variant: states[:, chosen] for variant, states in predictions.items()}
        return cls(context, [str(name) for name in components.component[chosen]], truth[:, chosen], shown)

    @property
    def height(self) -> float:
        """Inches that a figure needs."""
        return -(-len(self.names) // COLUMNS) * ROW + BELOW


def write_components(folder: Path, components: Components) -> None:
    """Write ``components.csv``, a line for each."""
    write_columns(folder / "components.csv", components._asdict())


def read_components(folder: Path) -> Components:
    """The components and their errors."""
    kinds = {**dict.fromkeys(Components._fields, NUMBER), "component": TEXT}
    frame = read_table(folder / "components.csv", kinds)
    return Components(*(frame[name].to_numpy() for name in Components._fields))


def draw_components(
    figure: Figure | SubFigure, curves: Curves, colours: Mapping[str, str], *, columns: int = COLUMNS
) -> None:
    """A panel for each component: the truth, every variant's prediction, and the context shaded."""
    columns = min(len(curves.names), columns)
    grid = figure.subplots(-(-len(curves.names) // columns), columns, sharex=True, squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index < len(curves.names):
            _draw_panel(axes, curves, index, colours)
            if index + columns >= len(curves.names):  # nothing below it
                axes.tick_params(labelbottom=True)
                axes.set_xlabel("predicted step", fontsize=8)
        else:
            axes.set_axis_off()
    lines, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower left", ncols=len(lines), fontsize=8.5)


def _draw_panel(axes: Axes, curves: Curves, index: int, colours: Mapping[str, str]) -> None:
    """One component; step 0 is the last state of the context."""
    steps = np.arange(len(curves.truth)) - curves.context + 1
    axes.axvspan(steps[0], 0, color=ink(), alpha=0.09, lw=0, label="seen")
    axes.plot(steps, curves.truth[:, index], color=ink(), lw=1.3, label="truth")
    for variant, states in curves.predictions.items():
        axes.plot(steps, states[:, index], color=colours[variant], lw=1.5, label=variant)
    axes.set_title(curves.names[index], fontsize=8.5, loc="left", pad=3)
    axes.set_xlim(steps[0], steps[-1])
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.tick_params(labelsize=8)


def components_figure(curves: Curves, colours: Mapping[str, str]) -> Figure:
    """The panels as a figure of their own."""
    figure = Figure(figsize=(WIDTH, curves.height), layout="constrained")
    draw_components(figure, curves, colours)
    return figure


def components_video(curves: Curves, frames: np.ndarray, colours: Mapping[str, str]) -> np.ndarray:
    """The true rollout beside curves that grow with it, a frame a step.   [T, size, size, 3] → uint8 [T, h, w, 3]."""
    part = curves._replace(names=curves.names[:FILMED])
    figure = Figure(figsize=FILM, dpi=DPI, layout="constrained")
    draw_components(figure, part, colours, columns=2)
    drawn = _pixels(figure)
    panels = figure.axes[: len(part.names)]
    for axes in panels:
        for line in axes.get_lines():
            line.set_visible(False)
    empty, high = _pixels(figure), len(drawn)
    film = []
    for index, frame in enumerate(frames):
        grown = drawn.copy()
        for axes in panels:
            now, box = round(axes.transData.transform((index - part.context + 1, 0))[0]), axes.bbox
            rows, later = slice(high - round(box.y1), high - round(box.y0)), slice(now + 1, round(box.x1) + EDGE)
            grown[rows, later] = empty[rows, later]
            grown[rows, now] = CURSOR
        picture = Image.fromarray(frame).resize((high, high), Image.Resampling.BICUBIC)
        film.append(np.concatenate([np.asarray(picture), grown], 1))
    return np.stack(film)


def _pixels(figure: Figure) -> np.ndarray:
    """A figure as uint8 [h, w, 3]."""
    buffer, (wide, high) = io.BytesIO(), (round(side * DPI) for side in figure.get_size_inches())
    figure.savefig(buffer, format="rgba", dpi=DPI, facecolor="white")
    return np.frombuffer(buffer.getvalue(), np.uint8).reshape(high, wide, 4)[..., :3]


@mpl.rc_context(PRINT)
def write_curves(folder: Path, curves: Curves, frames: np.ndarray | None) -> None:
    """Write ``components.png`` and, where the true rollout was rendered [T, size, size, 3], ``rollout.mp4``."""
    colours = dict.fromkeys(curves.predictions, COLOUR)
    write_figure(folder / "components.png", components_figure(curves, colours))
    if frames is not None:
        write_mp4(folder / "rollout.mp4", components_video(curves, frames, colours))
