"""Retracing made visible: what z̃ and ž decode to beside the true observations, with the value that masks them."""

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
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.ops.truncation import relative_changes
from ccwm.readers import FLAG, NUMBER, OPTIONAL, BadResult, read_arrays, read_table
from ccwm.seeds import named_seed
from ccwm.studies.components import Components
from ccwm.studies.errors import is_pixels, squared_error
from ccwm.studies.images import PICTURES, PRINT, bare, ink, shown_steps, tiled, write_figure
from ccwm.studies.tables import write_arrays, write_columns
from ccwm.studies.trajectories import Seen
from ccwm.studies.truncation import runs

COLUMNS, COMPONENTS = 12, 4
"""Frames of a row at most; components of a state at most."""
DECODED = ("truth", "forward", "retraced")
ARRAYS = f"{PICTURES}/retracing.safetensors"
SERIES = {
    "value": NUMBER,
    "change": OPTIONAL,
    "threshold": NUMBER,
    "kept": FLAG,
    "irreversible": FLAG,
    "forward_error": NUMBER,
    "retraced_error": OPTIONAL,
}
"""What ``retracing.csv`` holds of ``Retraced`` for each step."""
VALUE, CHANGE, TRUNCATED, IRREVERSIBLE = "#0072b2", "#009e73", "#e69f00", "#d55e00"
FORWARD, BACK = "#0072b2", "#cc79a7"


class Retraced(NamedTuple):
    """T consecutive steps of one episode, beginning at its step ``first``."""

    first: int
    truth: np.ndarray  # [T, *observation]
    forward: np.ndarray  # [T, *observation], decoded from z̃
    retraced: np.ndarray  # [T, *observation], decoded from ž; [0, …] for an agent that does not retrace
    forward_error: np.ndarray  # [T], mean squared error on the decoder's scale
    retraced_error: np.ndarray  # [T], or [0]
    value: np.ndarray  # [T]
    change: np.ndarray  # [T], Δ of the comparison whose newest step this is; NaN in an episode's first S steps
    threshold: float  # η
    kept: np.ndarray  # [T] bool
    irreversible: np.ndarray  # [T] bool, the true label of the transition into the step


def choose_window(episodes: Sequence[Episode], *, steps: int, seed: int) -> tuple[int, slice]:
    """Which steps of which episode are shown: those around the first irreversible transition of any.

    Without one they begin where the first episode's open-loop prediction starts. A function of the episodes and the
    seed, so that all variants show the same. An episode's last state, which nothing is retraced to, is left out.
    """
    index = next((i for i, episode in enumerate(episodes) if episode.irreversible.any()), None)
    length = len(episodes[index or 0].reward) - 1
    shown = min(steps, length)
    if index is None:
        first = named_seed("window", seed, 0) % (length - shown + 1)
    else:
        first = int(np.clip(episodes[index].irreversible.argmax() - shown // 2, 0, length - shown))
    return index or 0, slice(first, first + shown)


@torch.no_grad()
def show_retracing(agent: Agent, seen: Seen, kept: np.ndarray, part: slice, *, threshold: float) -> Retraced:
    """Decode z̃ and ž along a part of an episode; the mask of the whole episode is ``kept`` [L], its threshold η."""

    model = agent.modelled.world_model

    def decoded(feature: Tensor) -> np.ndarray:
        return model.to_observation(model.decode(feature)).cpu().numpy()

    size, value = agent.card.config.truncation.window, seen.value.unsqueeze(1)
    change = np.full(len(value), np.nan)
    change[size:] = relative_changes(value, window=size)[:, 0].cpu().numpy()
    truth, forward = seen.episode.observation[part], decoded(seen.states[part])
    back = forward[:0] if seen.retraced is None else decoded(seen.retraced[part])
    return Retraced(
        first=part.start,
        truth=truth,
        forward=forward,
        retraced=back,
        forward_error=squared_error(model, forward, truth),
        retraced_error=squared_error(model, back, truth[: len(back)]),
        value=seen.value[part].double().cpu().numpy(),
        change=change[part],
        threshold=threshold,
        kept=kept[part],
        irreversible=seen.episode.irreversible[part],
    )


@mpl.rc_context(PRINT)
def write_retracing(folder: Path, shown: Retraced, components: Components) -> None:
    """Write ``retracing.csv``, the numbers, the observations as arrays, and a picture of both."""
    series = {name: getattr(shown, name) for name in SERIES}
    write_columns(folder / "retracing.csv", {"step": shown.first + np.arange(len(shown.truth)), **series})
    (folder / PICTURES).mkdir(exist_ok=True)
    write_arrays(folder / ARRAYS, {name: getattr(shown, name) for name in DECODED})
    write_figure(folder / PICTURES / "retracing.png", retracing_figure(shown, components))


def read_retracing(folder: Path) -> Retraced:
    """What was shown."""
    path = folder / "retracing.csv"
    frame = read_table(path, {"step": NUMBER, **SERIES})
    arrays = read_arrays(folder / ARRAYS, DECODED)
    if len(frame) != len(arrays["truth"]) or frame.empty:
        raise BadResult(f"{path} has {len(frame)} lines for the {len(arrays['truth'])} observations beside it")
    found: dict[str, Any] = {**arrays, **{name: frame[name].to_numpy() for name in SERIES}}
    found["retraced_error"] = found["retraced_error"][: len(arrays["retraced"])]
    found["threshold"] = float(frame["threshold"].iloc[0])
    return Retraced(first=int(frame["step"].iloc[0]), **found)


def retracing_figure(shown: Retraced, components: Components) -> Figure:
    """Frames, or components, over value, Δ and error, on one axis of time, with what is truncated and what is true."""
    rows = {"truth": shown.truth, "seen z̃": shown.forward}
    if len(shown.retraced):
        rows["retraced ž"] = shown.retraced
    steps, time = shown_steps(len(shown.truth), COLUMNS), shown.first + np.arange(len(shown.truth))
    chosen = components.widest(COMPONENTS)
    upper = [len(rows) * 8.7 / len(steps)] if is_pixels(shown.truth) else [0.8] * len(chosen)
    heights, gap, bottom, top = [*upper, 0.95, 0.95, 0.95], 0.15, 0.8, 0.1
    wide, high = 9.6, sum(heights) + (len(heights) - 1) * gap + bottom + top
    # Placed by hand: the constrained layout differs in its last bits from run to run, and so would the ids of the SVG.
    figure = Figure(figsize=(wide, high))
    figure.set_layout_engine("none")
    grid = {"left": 0.85 / wide, "right": 1 - 0.05 / wide, "bottom": bottom / high, "top": 1 - top / high}
    spaced = {**grid, "hspace": len(heights) * gap / sum(heights)}
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, gridspec_kw=spaced)
    above, (value, change, error) = panels[:-3], panels[-3:]
    if is_pixels(shown.truth):
        _draw_frames(above[0], rows, steps, shown.first)
    for axes, index in zip(above, chosen, strict=False):
        for (name, states), colour in zip(rows.items(), (ink(), FORWARD, BACK), strict=False):
            axes.plot(time, states[:, index], color=colour, lw=1.3, label=name)
        axes.set_ylabel(components.component[index], fontsize=7.5)
    value.plot(time, shown.value, color=VALUE, lw=1.5)
    value.set_ylabel("value")
    change.plot(time, shown.change, color=CHANGE, lw=1.5)
    change.axhline(shown.threshold, color=ink(), lw=1, ls=(0, (4, 3)), label=f"η = {shown.threshold:.3g}")
    change.set(ylabel="Δ", ylim=(0, None))
    error.plot(time, shown.forward_error, color=FORWARD, lw=1.5, label="seen z̃")
    if len(shown.retraced_error):
        error.plot(time, shown.retraced_error, color=BACK, lw=1.5, label="retraced ž")
    error.set(ylabel="MSE", xlabel="step of the episode", ylim=(0, None))
    for axes in (value, change, error):
        for start, end in shown.first - 0.5 + runs(~shown.kept):
            axes.axvspan(start, end, color=TRUNCATED, alpha=0.25, lw=0, label="truncated")
        axes.yaxis.set_major_locator(MaxNLocator(3))
    drawn: dict[Any, Any] = {}
    for axes in panels:
        axes.yaxis.set_label_coords(-0.065, 0.5)
        for at in time[shown.irreversible]:
            axes.axvline(at - 0.5, color=IRREVERSIBLE, lw=1.5, label="irreversible in truth")
        lines, labels = axes.get_legend_handles_labels()
        drawn |= zip(labels, lines, strict=True)
    figure.legend(drawn.values(), drawn.keys(), loc="lower left", ncols=len(drawn), fontsize=8.5)
    return figure


def _draw_frames(axes: Axes, rows: dict[str, np.ndarray], steps: np.ndarray, first: int) -> None:
    """Tiles in a grid, each around the time of its step."""
    size = next(iter(rows.values())).shape[1]
    gap = max(size // 16, 1)
    picture = tiled([frames[steps] for frames in rows.values()], [i * (size + gap) for i in range(len(steps))], gap)
    half = (steps[-1] - steps[0]) / (2 * max(len(steps) - 1, 1)) or 0.5
    place = (first + steps[0] - half, first + steps[-1] + half, len(rows), 0)
    axes.imshow(picture, extent=place, aspect="auto", interpolation="none")
    axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
    axes.tick_params(labelbottom=False)
    bare(axes)
