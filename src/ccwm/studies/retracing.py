"""Retracing made visible: frames decoded from z̃ and from ž beside the true ones, with the value that masks them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from safetensors.numpy import save_file
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.files import write_csv
from ccwm.ops.truncation import relative_changes
from ccwm.readers import FLAG, NUMBER, OPTIONAL, BadResult, read_arrays, read_table
from ccwm.seeds import named_seed
from ccwm.studies.images import PRINT, ink, pixel_error, shown_steps, tiled, write_figure
from ccwm.studies.trajectories import Seen

COLUMNS = 12
"""Frames of a row at most."""
FRAMES = ("truth", "forward", "retraced")
VALUE, CHANGE, TRUNCATED, IRREVERSIBLE = "#0072b2", "#009e73", "#e69f00", "#d55e00"
FORWARD, BACK = "#0072b2", "#cc79a7"


class Window(NamedTuple):
    """Which steps of which episode are shown: ``first`` … ``first + steps − 1``."""

    episode: int
    first: int
    steps: int


class Retraced(NamedTuple):
    """T consecutive steps of one episode, beginning at its step ``first``."""

    first: int
    truth: np.ndarray  # [T, size, size, 3] uint8
    forward: np.ndarray  # [T, size, size, 3] uint8, decoded from z̃
    retraced: np.ndarray  # [T, size, size, 3] uint8, decoded from ž; [0, …] for an agent that does not retrace
    forward_error: np.ndarray  # [T], mean squared error of pixels in [0, 1]
    retraced_error: np.ndarray  # [T], or [0]
    value: np.ndarray  # [T]
    change: np.ndarray  # [T], Δ of the comparison whose newest step this is; NaN in an episode's first S steps
    threshold: float  # η
    kept: np.ndarray  # [T] bool
    irreversible: np.ndarray  # [T] bool, the true label of the transition into the step


def choose_window(episodes: Sequence[Episode], *, steps: int, seed: int) -> Window:
    """Around the first irreversible transition of any episode; else where the first one's open-loop prediction starts.

    A function of the episodes and the seed, so that all variants show the same. An episode's last state, which nothing
    is retraced to, is left out.
    """
    index = next((i for i, episode in enumerate(episodes) if episode.irreversible.any()), None)
    length = len(episodes[index or 0].reward) - 1
    shown = min(steps, length)
    if index is None:
        return Window(0, named_seed("window", seed, 0) % (length - shown + 1), shown)
    event = int(episodes[index].irreversible.argmax())
    return Window(index, int(np.clip(event - shown // 2, 0, length - shown)), shown)


@torch.no_grad()
def show_retracing(agent: Agent, seen: Seen, kept: np.ndarray, window: Window, *, threshold: float) -> Retraced:
    """Decode z̃ and ž along the window; the mask of the whole episode is ``kept`` [L], its threshold η."""

    def decoded(feature: Tensor) -> np.ndarray:
        return agent.world_model.to_observation(agent.world_model.decode(feature)).cpu().numpy()

    part = slice(window.first, window.first + window.steps)
    size = agent.card.config.truncation.window
    change = np.full(len(seen.value), np.nan)
    change[size:] = relative_changes(seen.value.unsqueeze(1), window=size)[:, 0].cpu().numpy()
    truth, forward = seen.episode.observation[part], decoded(seen.states[part])
    back = forward[:0] if seen.retraced is None else decoded(seen.retraced[part])
    return Retraced(
        first=window.first,
        truth=truth,
        forward=forward,
        retraced=back,
        forward_error=pixel_error(forward, truth),
        retraced_error=pixel_error(back, truth[: len(back)]),
        value=seen.value[part].cpu().numpy(),
        change=change[part],
        threshold=threshold,
        kept=kept[part],
        irreversible=seen.episode.irreversible[part],
    )


@mpl.rc_context(PRINT)
def write_retracing(folder: Path, shown: Retraced) -> None:
    """Write ``retracing.csv``, the numbers, ``retracing.safetensors``, the frames, and a picture of both."""
    rows = [
        {
            "step": shown.first + t,
            "value": float(shown.value[t]),
            "change": None if np.isnan(shown.change[t]) else float(shown.change[t]),
            "threshold": shown.threshold,
            "kept": bool(shown.kept[t]),
            "irreversible": bool(shown.irreversible[t]),
            "forward_error": float(shown.forward_error[t]),
            "retraced_error": float(shown.retraced_error[t]) if len(shown.retraced_error) else None,
        }
        for t in range(len(shown.truth))
    ]
    write_csv(folder / "retracing.csv", rows)
    frames = {name: np.ascontiguousarray(getattr(shown, name)) for name in FRAMES}
    save_file(frames, folder / "retracing.safetensors")
    write_figure(folder / "retracing.png", retracing_figure(shown))


def read_retracing(folder: Path) -> Retraced:
    """What was shown."""
    path = folder / "retracing.csv"
    numbers = dict.fromkeys(("step", "value", "threshold", "forward_error"), NUMBER)
    optional, flags = (
        dict.fromkeys(("change", "retraced_error"), OPTIONAL),
        dict.fromkeys(("kept", "irreversible"), FLAG),
    )
    frame = read_table(path, {**numbers, **optional, **flags})
    frames = read_arrays(folder / "retracing.safetensors", FRAMES)
    if len(frame) != len(frames["truth"]) or frame.empty:
        raise BadResult(f"{path} has {len(frame)} lines for the {len(frames['truth'])} frames beside it")
    return Retraced(
        first=int(frame["step"].iloc[0]),
        **frames,
        forward_error=frame["forward_error"].to_numpy(np.float64),
        retraced_error=frame["retraced_error"].to_numpy(np.float64)[: len(frames["retraced"])],
        value=frame["value"].to_numpy(np.float64),
        change=frame["change"].to_numpy(np.float64),
        threshold=float(frame["threshold"].iloc[0]),
        kept=frame["kept"].to_numpy(bool),
        irreversible=frame["irreversible"].to_numpy(bool),
    )


def retracing_figure(shown: Retraced) -> Figure:
    """Rows of frames over value, Δ and pixel error, on one axis of time, with what is truncated and what is true."""
    rows = {"truth": shown.truth, "seen z̃": shown.forward}
    if len(shown.retraced):
        rows["retraced ž"] = shown.retraced
    steps = shown_steps(len(shown.truth), COLUMNS)
    heights, gap, bottom, top = [len(rows) * 8.7 / len(steps), 0.95, 0.95, 0.95], 0.15, 0.8, 0.1
    wide, high = 9.6, sum(heights) + 3 * gap + bottom + top
    # Placed by hand: the constrained layout differs in its last bits from run to run, and so would the ids of the SVG.
    figure = Figure(figsize=(wide, high))
    figure.set_layout_engine("none")
    grid = {"left": 0.85 / wide, "right": 1 - 0.05 / wide, "bottom": bottom / high, "top": 1 - top / high}
    frames, value, change, error = figure.subplots(
        4, 1, sharex=True, height_ratios=heights, gridspec_kw={**grid, "hspace": 4 * gap / sum(heights)}
    )
    _draw_frames(frames, rows, steps, shown.first)
    time = shown.first + np.arange(len(shown.truth))
    value.plot(time, shown.value, color=VALUE, lw=1.5)
    value.set_ylabel("value")
    change.plot(time, shown.change, color=CHANGE, lw=1.5)
    change.axhline(shown.threshold, color=ink(), lw=1, ls=(0, (4, 3)), label=f"η = {shown.threshold:.3g}")
    change.set(ylabel="Δ", ylim=(0, None))
    error.plot(time, shown.forward_error, color=FORWARD, lw=1.5, label="error of z̃ (seen)")
    if len(shown.retraced_error):
        error.plot(time, shown.retraced_error, color=BACK, lw=1.5, label="error of ž (retraced)")
    error.set(ylabel="MSE", xlabel="step of the episode", ylim=(0, None))
    for axes in (value, change, error):
        _mark(axes, shown)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_label_coords(-0.065, 0.5)
    for at in time[shown.irreversible]:
        frames.axvline(at - 0.5, color=IRREVERSIBLE, lw=1.5)
    drawn: dict[Any, Any] = {}
    for axes in figure.axes:
        lines, labels = axes.get_legend_handles_labels()
        drawn.update(zip(labels, lines, strict=True))
    figure.legend(drawn.values(), drawn.keys(), loc="lower left", ncols=len(drawn), fontsize=8.5)
    return figure


def _draw_frames(axes: Axes, rows: dict[str, np.ndarray], steps: np.ndarray, first: int) -> None:
    """Tiles in a grid, each around the time of its step."""
    size = next(iter(rows.values())).shape[1]
    gap = max(size // 16, 1)
    picture = tiled([frames[steps] for frames in rows.values()], [i * (size + gap) for i in range(len(steps))], gap)
    half = (steps[-1] - steps[0]) / (2 * max(len(steps) - 1, 1)) or 0.5
    axes.imshow(
        picture,
        extent=(first + steps[0] - half, first + steps[-1] + half, len(rows), 0),
        aspect="auto",
        interpolation="none",
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.tick_params(length=0, labelbottom=False)
    axes.grid(False)
    axes.spines[:].set_visible(False)


def _mark(axes: Axes, shown: Retraced) -> None:
    """Shade what is not kept, and draw a line at each transition that cannot be undone."""
    gone = np.concatenate([[False], ~shown.kept, [False]]).astype(np.int8)
    for start, end in shown.first - 0.5 + np.flatnonzero(np.diff(gone)).reshape(-1, 2):
        axes.axvspan(start, end, color=TRUNCATED, alpha=0.25, lw=0, label="truncated")
    for at in np.flatnonzero(shown.irreversible):
        axes.axvline(shown.first + at - 0.5, color=IRREVERSIBLE, lw=1.5, label="irreversible in truth")
