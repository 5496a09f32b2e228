"""Open-loop prediction of images: truth, predictions and errors side by side, as a strip and as a video."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ccwm.studies.images import PRINT, bare, enlarge, ink, shown_steps, tiled, write_figure, write_mp4

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

    @property
    def height(self) -> float:
        """Inches that a figure needs, with room for its names."""
        return 8.9 * (1 + 2 * len(self.predictions)) / (len(self.steps) + 0.25) + 0.4

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
    rows = [("truth", strip.truth[steps])]
    for variant, error in strip.errors(steps).items():
        rows += [(variant, strip.predictions[variant][steps]), ("error", error)]
    names, frames = zip(*rows, strict=True)
    gap, seen = max(size // 16, 1), sum(step < strip.context for step in steps)
    lefts = [j * (size + gap) + (4 * gap if j >= seen else 0) for j in range(len(steps))]
    axes.imshow(tiled(frames, lefts, gap), interpolation="none")
    axes.set_yticks([row * (size + gap) + size / 2 for row in range(len(rows))], names)
    labels = ["seen" if step < strip.context else f"+{step - strip.context + 1}" for step in steps]
    axes.set_xticks([left + size / 2 for left in lefts], labels)
    axes.xaxis.tick_top()
    bare(axes)
    axes.axvline(seen * (size + gap) + 1.5 * gap - 0.5, color=ink(), lw=1)


def strip_figure(strip: Strip) -> Figure:
    """The strip alone."""
    figure = Figure(figsize=(WIDTH, strip.height), layout="constrained")
    draw_strip(figure.add_subplot(), strip)
    return figure


@mpl.rc_context(PRINT)
def write_strip(folder: Path, strip: Strip) -> None:
    """Write ``strip.png``, and ``rollout.mp4`` with all steps."""
    write_figure(folder / "strip.png", strip_figure(strip))
    write_mp4(folder / "rollout.mp4", video(strip))


def video(strip: Strip) -> Frames:
    """Truth and predictions above, errors below, a frame a step.   → uint8 [T, height, width, 3], sides even."""
    above = {name: enlarge(of) for name, of in {"truth": strip.truth, **strip.predictions}.items()}
    errors = strip.errors(list(range(len(strip.truth))))
    tall, wide = above["truth"].shape[1:3]
    below = HEAD + tall + GAP
    size = len(above) * (wide + GAP) - GAP, below + tall
    canvas = np.stack([_labels(strip, step, size, wide + GAP, below) for step in range(len(strip.truth))])
    for column, (name, frames) in enumerate(above.items()):
        place = slice(column * (wide + GAP), column * (wide + GAP) + wide)
        canvas[:, HEAD : HEAD + tall, place] = frames
        if name in errors:
            canvas[:, below:, place] = enlarge(errors[name][..., :3])
    return canvas


def _labels(strip: Strip, step: int, size: tuple[int, int], column: int, below: int) -> Frames:
    """An empty frame with the name of every column, and where in the episode it is."""
    picture = Image.new("RGB", size, PAPER)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=14)
    for i, name in enumerate(("truth", *strip.predictions)):
        draw.text((i * column + 2, 3), name, INK, font)
    seen = step < strip.context
    draw.text((2, below + 4), "sees each frame" if seen else f"predicts, +{step - strip.context + 1}", INK, font)
    draw.text((2, below + 28), "error of each:", INK, font)
    return np.asarray(picture)
