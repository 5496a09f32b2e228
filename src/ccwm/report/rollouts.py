"""A few held-out episodes as they are predicted: a strip and a video of pixels, curves and a video of states."""

from __future__ import annotations

import numpy as np

from ccwm.errors import UserError
from ccwm.report.blocks import Block, Picture, Video, Words
from ccwm.report.results import Results
from ccwm.report.section import Report
from ccwm.report.words import say
from ccwm.studies.components import Curves, components_figure, components_video, read_components
from ccwm.studies.errors import is_pixels
from ccwm.studies.images import write_figure
from ccwm.studies.prediction import FRAMES, OBSERVATIONS, read_frames, read_metrics, read_observations
from ccwm.studies.strips import Strip, strip_figure, video

SHOWN = ("components.csv", OBSERVATIONS)


def load_shown(results: Results, task: str) -> tuple[int, list[Strip | Curves]] | None:
    """The first seed that has observations, and its shown episodes; None where no variant has any."""
    cells = results.cells("rollout-viz", task=task, files=SHOWN)
    if not cells:
        return None
    shown = [cell for cell in cells if cell.seed == cells[0].seed]
    truth, _ = results.read(shown[0], read_observations)  # [N, T, *observation]
    predicted = {}
    for cell in shown:
        other, predicted[cell.variant] = results.read(cell, read_observations)
        if not np.array_equal(other, truth):
            path = results.root / cell.results / OBSERVATIONS
            hint = f"predict again with `dvc repro --force {cell}`"
            raise UserError(f"{path} shows another episode than the other variants", hint=hint)
    context = max(results.read(cell, read_metrics).context for cell in shown)
    windows = [(of, {name: each[i] for name, each in predicted.items()}) for i, of in enumerate(truth)]
    seed = int(shown[0].seed or 0)
    if is_pixels(truth):
        return seed, [Strip(context, *window) for window in windows]
    components = results.read(shown[0], read_components)
    return seed, [Curves.of(components, context, *window) for window in windows]


def strip_blocks(report: Report, task: str, seed: int, strips: list[Strip]) -> tuple[Picture, Video]:
    """What only pixels have: a strip of frames, and a video of truth, predictions and errors."""
    figure, note = strip_figure(strips[0]), say("prediction", "strip", task=task, seed=seed)
    shown = report.picture(figure, f"strip-{task}", f"Predicted frames on {task}", note=note, style="strip")
    write_figure(report.folder / "figures" / f"{shown.file}.png", figure, dpi=200)
    frames, label = np.concatenate([video(strip) for strip in strips]), f"Truth, predictions and errors on {task}"
    return shown, report.video(frames, f"rollout-{task}", label, note=say("prediction", "video"))


def curve_blocks(report: Report, task: str, seed: int, shown: list[Curves]) -> list[Block]:
    """What only states have: their components as curves, and the true rollout beside them where it was rendered."""
    figure, note = components_figure(shown[0], report.colours), say("prediction", "curves", task=task, seed=seed)
    drawn = report.picture(figure, f"components-{task}", f"Components on {task}", note=note, style="strip")
    write_figure(report.folder / "figures" / f"{drawn.file}.png", figure, dpi=200)
    cells = report.results.cells("rollout-viz", task=task, files=[*SHOWN, FRAMES])
    rendered = [cell for cell in cells if cell.seed == seed]
    if not rendered:
        return [drawn, Words(say("prediction", "unrendered", task=task), "missing")]
    pictures = report.results.read(rendered[0], read_frames)  # [N, T, size, size, 3]
    pairs = zip(shown, pictures, strict=True)
    frames = np.concatenate([components_video(curves, of, report.colours) for curves, of in pairs])
    note = say("prediction", "filmed")
    return [drawn, report.video(frames, f"rollout-{task}", f"Truth beside predictions on {task}", note=note)]
