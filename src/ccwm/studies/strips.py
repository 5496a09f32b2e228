"""Open-loop prediction of images: truth, predictions and errors side by side, as a strip and as a video."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ccwm.studies.images import enlarge, ink, shown_steps, tiled

Frames = NDArray[np.uint8]
CONTEXT_SHOWN, PREDICTED_SHOWN = 2, 8
WIDTH = 9.6
"""Inches of a strip."""
GAP, HEAD = 8, 24
"""Pixels between the tiles of a video, and of the line of names above them."""
PAPER, INK = (255, 255, 255), (43, 47, 54)


class Strip(NamedTuple):
    """A held-out episode as the variants predict it; the first ``context`` predicted frames are reconstructions."""

    context: int
    truth: Frames  # [T, size, size, 3]
    predictions: dict[str, Frames]  # of each variant, [T, size, size, 3]

    @property
    def steps(self) -> list[int]:
        """Indices of the frames that a strip shows: the last of the context, then predictions up to the last."""
        seen = list(range(max(self.context - CONTEXT_SHOWN, 0), self.context))
        return seen + [self.context + int(at) for at in shown_steps(len(self.truth) - self.context, PREDICTED_SHOWN)]

    def errors(self, steps: list[int]) -> dict[str, Frames]:
        """Each variant's absolute error, brighter is larger, one scale for all.   → [steps, size, size, 4]."""
        errors = {
            variant: np.abs(self.truth[steps].astype(np.float32) - frames[steps]).mean(-1)
            for variant, frames in self.predictions.items()
        }
        scale = max([1.0, *(float(error.max()) for error in errors.values())])
        return {variant: mpl.colormaps["magma"](error / scale, bytes=True) for variant, error in errors.items()}


def draw_strip(axes: Axes, strip: Strip) -> None:
    """Truth, then each variant's prediction and error, with a line where seeing ends and predicting begins."""
    steps, size = strip.steps, strip.truth.shape[1]
    errors = strip.errors(steps)
    rows = {"truth": strip.truth[steps]}
    for variant, frames in strip.predictions.items():
        rows |= {variant: frames[steps], f"error of {variant}": errors[variant]}
    gap, seen = max(size // 16, 1), sum(step < strip.context for step in steps)
    lefts = [j * (size + gap) + (4 * gap if j >= seen else 0) for j in range(len(steps))]
    names = ["error" if name.startswith("error of ") else name for name in rows]
    axes.imshow(tiled(list(rows.values()), lefts, gap), interpolation="none")
    axes.set_yticks([row * (size + gap) + size / 2 for row in range(len(rows))], names)
    labels = ["seen" if step < strip.context else f"+{step - strip.context + 1}" for step in steps]
    axes.set_xticks([left + size / 2 for left in lefts], labels)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.axvline(seen * (size + gap) + 1.5 * gap - 0.5, color=ink(), lw=1)


def strip_height(strip: Strip) -> float:
    """Inches that a strip needs at its width, with room for its names."""
    rows, columns = 1 + 2 * len(strip.predictions), len(strip.steps)
    return 8.9 * rows / (columns + 0.25) + 0.4


def strip_figure(strip: Strip) -> Figure:
    """The strip alone."""
    figure = Figure(figsize=(WIDTH, strip_height(strip)), layout="constrained")
    draw_strip(figure.add_subplot(), strip)
    return figure


def video(strip: Strip) -> Frames:
    """Truth and predictions above, errors below, a frame a step.   → uint8 [T, height, width, 3], sides even."""
    steps = list(range(len(strip.truth)))
    errors = {variant: enlarge(of[..., :3]) for variant, of in strip.errors(steps).items()}
    above = {"truth": enlarge(strip.truth), **{variant: enlarge(of) for variant, of in strip.predictions.items()}}
    tall, wide = above["truth"].shape[1:3]
    height, width = HEAD + 2 * tall + GAP, len(above) * (wide + GAP) - GAP
    canvas = np.stack(
        [_labels(strip, step, [*above], (width, height), wide + GAP, HEAD + tall + GAP) for step in steps]
    )
    for column, name in enumerate(above):
        left = column * (wide + GAP)
        canvas[:, HEAD : HEAD + tall, left : left + wide] = above[name]
        if name in errors:
            canvas[:, HEAD + tall + GAP : HEAD + 2 * tall + GAP, left : left + wide] = errors[name]
    return canvas


def _labels(strip: Strip, step: int, names: list[str], size: tuple[int, int], column: int, below: int) -> Frames:
    """An empty frame with the name of every column, and where in the episode it is."""
    picture = Image.new("RGB", size, PAPER)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=14)
    for i, name in enumerate(names):
        draw.text((i * column + 2, 3), name, INK, font)
    seen = step < strip.context
    draw.text((2, below + 4), "sees each frame" if seen else f"predicts, +{step - strip.context + 1}", INK, font)
    draw.text((2, below + 28), "error of each:", INK, font)
    return np.asarray(picture)
