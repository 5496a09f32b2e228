"""Pictures of open-loop prediction: truth, prediction and error side by side, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ccwm.report.curves import Curve
from ccwm.report.figures import INK, STYLE, draw_learning, shared_legend
from ccwm.report.results import Cell, Results

Frames = NDArray[np.uint8]
CONTEXT_SHOWN, PREDICTED_SHOWN = 2, 8


class Strip(NamedTuple):
    """A held-out episode as the variants predict it; the first ``context`` frames are reconstructions."""

    seed: int
    context: int
    truth: Frames  # [T, size, size, 3]
    predictions: dict[str, Frames]  # of each variant, [T, size, size, 3]


def load_strips(results: Results, task: str) -> list[Strip]:
    """The shown episodes of the first seed that has frames; none where no variant has any."""
    for seed in results.seeds:
        cells = {variant: results.cell("rollout-viz", task, variant, seed) for variant in results.variants}
        there = {variant: cell for variant, cell in cells.items() if (cell.folder / "frames.safetensors").is_file()}
        if not there:
            continue
        loaded = {variant: _frames(cell) for variant, cell in there.items()}
        truth = next(iter(loaded.values()))[0]  # [N, T, size, size, 3]
        for variant, (own, _) in loaded.items():
            if not np.array_equal(own, truth):
                raise ValueError(
                    f"{there[variant].folder / 'frames.safetensors'} shows another episode than the other variants; "
                    f"predict anew with `dvc repro --force {there[variant].name}`"
                )
        context = max(int(cell.number("context") or 1) for cell in there.values())
        return [
            Strip(seed, context, truth[i], {variant: prediction[i] for variant, (_, prediction) in loaded.items()})
            for i in range(len(truth))
        ]
    return []


def _frames(cell: Cell) -> tuple[Frames, Frames]:
    path = cell.folder / "frames.safetensors"
    try:
        tensors = load_file(path)
        return tensors["truth"], tensors["prediction"]
    except (SafetensorError, KeyError) as error:
        raise ValueError(f"{path} holds no truth and prediction ({error}); {cell.cure}") from error


def shown_steps(context: int, length: int) -> list[int]:
    """Indices of the frames worth showing: the last of the context, then evenly spread predictions to the end."""
    seen = list(range(max(context - CONTEXT_SHOWN, 0), min(context, length)))
    if length <= context:
        return seen
    return seen + sorted({round(at) for at in np.linspace(context, length - 1, PREDICTED_SHOWN)})


class Mosaic(NamedTuple):
    """All tiles of a strip in one picture, with transparent gaps, and where its names stand."""

    picture: Frames  # [height, width, 4]
    rows: dict[float, str]  # name of a row at the height of its middle
    columns: dict[float, str]  # name of a column at its middle
    boundary: float  # between what is seen and what is predicted


def mosaic(strip: Strip) -> Mosaic:
    """Truth, then each variant's prediction and error, at the steps worth showing; errors share one scale."""
    steps = shown_steps(strip.context, len(strip.truth))
    errors = error_pictures(strip, steps)
    rows: list[tuple[str, Frames]] = [("truth", _opaque(strip.truth[steps]))]
    for variant, frames in strip.predictions.items():
        rows += [(variant, _opaque(frames[steps])), ("error", errors[variant])]
    size = strip.truth.shape[1]
    gap = max(size // 16, 1)
    tops = [i * (size + gap) for i in range(len(rows))]
    lefts = [j * (size + gap) + (4 * gap if step >= strip.context else 0) for j, step in enumerate(steps)]
    picture = np.zeros((tops[-1] + size, lefts[-1] + size, 4), np.uint8)
    for top, (_, tiles) in zip(tops, rows, strict=True):
        for left, tile in zip(lefts, tiles, strict=True):
            picture[top : top + size, left : left + size] = tile
    labels = ["seen" if step < strip.context else f"+{step - strip.context + 1}" for step in steps]
    seen = labels.count("seen")
    return Mosaic(
        picture,
        {top + size / 2: name for top, (name, _) in zip(tops, rows, strict=True)},
        {left + size / 2: label for left, label in zip(lefts, labels, strict=True)},
        seen * (size + gap) + 1.5 * gap - 0.5,
    )


def error_pictures(strip: Strip, steps: Sequence[int]) -> dict[str, Frames]:
    """Each variant's absolute error at the steps, brighter is larger, one scale for all.   → [steps, size, size, 4]."""
    errors = {
        variant: np.abs(strip.truth[steps].astype(np.float32) - frames[steps]).mean(-1)
        for variant, frames in strip.predictions.items()
    }
    scale = max([1.0, *(float(error.max()) for error in errors.values())])
    return {variant: mpl.colormaps["magma"](error / scale, bytes=True) for variant, error in errors.items()}


def _opaque(frames: Frames) -> Frames:
    """[N, size, size, 3] → [N, size, size, 4]."""
    return np.concatenate([frames, np.full_like(frames[..., :1], 255)], -1)


def draw_strip(axes: Axes, strip: Strip) -> None:
    """Draw the picture with its rows and columns named, and a line where seeing ends and predicting begins."""
    drawn = mosaic(strip)
    axes.imshow(drawn.picture, interpolation="none")
    axes.set_yticks(list(drawn.rows), list(drawn.rows.values()))
    axes.set_xticks(list(drawn.columns), list(drawn.columns.values()))
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.axvline(drawn.boundary, color=INK, lw=1)


@mpl.rc_context(STYLE)
def strip_figure(strip: Strip) -> Figure:
    """The strip alone, as wide as the page."""
    figure = Figure(figsize=(9.6, _height(strip)))
    draw_strip(figure.add_subplot(), strip)
    return figure


@mpl.rc_context(STYLE)
def overview_figure(
    learning: Mapping[str, tuple[Mapping[str, Curve], float | None]], strip: Strip | None, colours: Mapping[str, str]
) -> Figure:
    """Learning curves of up to three tasks over one prediction strip: a picture fit for the README."""
    shown = list(learning.items())[:3]
    heights = [*([3.2] if shown else []), *([_height(strip)] if strip is not None else [])]
    figure = Figure(figsize=(9.6, sum(heights) or 1.2))
    if not heights:
        figure.text(0.5, 0.5, "no results yet", ha="center", va="center")
        return figure
    parts = iter(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).flat)
    if shown:
        part = next(parts)
        for axes, (task, (curves, random)) in zip(part.subplots(1, len(shown), squeeze=False).flat, shown, strict=True):
            draw_learning(axes, task, curves, colours, random=random)
        shared_legend(part, width=9.6)
    if strip is not None:
        draw_strip(next(parts).subplots(), strip)
    return figure


def _height(strip: Strip) -> float:
    """Inches that the strip needs at a width of 9.6, with room for its names."""
    tall, wide = mosaic(strip).picture.shape[:2]
    return float(8.9 * tall / wide + 0.4)
