"""The strip as a film: truth, every variant's prediction and its error, moving side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ccwm.report.strips import Frames, Strip, error_pictures
from ccwm.studies.images import enlarge, write_mp4

GAP, HEAD = 8, 24
"""Pixels between tiles, and of the line of names above them."""
PAPER, INK = (255, 255, 255), (43, 47, 54)


def write_film(path: Path, strips: list[Strip]) -> None:
    """One episode after another as H.264, the same bytes for the same frames."""
    write_mp4(path, np.concatenate([film(strip) for strip in strips]))


def film(strip: Strip) -> Frames:
    """Truth and predictions above, errors below, a frame a step.   → uint8 [T, height, width, 3]."""
    steps = list(range(len(strip.truth)))
    errors = {variant: enlarge(of[..., :3]) for variant, of in error_pictures(strip, steps).items()}
    above = {"truth": enlarge(strip.truth), **{variant: enlarge(of) for variant, of in strip.predictions.items()}}
    tall, wide = above["truth"].shape[1:3]
    height, width = _even(HEAD + 2 * tall + GAP), _even(len(above) * (wide + GAP) - GAP)
    canvas = np.empty((len(steps), height, width, 3), np.uint8)
    canvas[:] = np.stack(
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


def _even(pixels: int) -> int:
    """H.264 halves the resolution of colours, so that sides are even."""
    return pixels + pixels % 2
