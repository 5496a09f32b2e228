"""Retracing made visible: frames decoded from z̃ and from ž beside the true ones, with the value that masks them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import torch
from safetensors.numpy import save_file

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.files import write_csv
from ccwm.ops.truncation import relative_changes
from ccwm.seeds import named_seed
from ccwm.studies.drawings import PRINT, Retraced, retracing_figure, write_figure
from ccwm.studies.prediction import pixel_error, to_pixels
from ccwm.studies.trajectories import Seen


class Window(NamedTuple):
    """Which steps of which episode are shown: ``first`` … ``first + steps − 1``."""

    episode: int
    first: int
    steps: int


def choose_window(episodes: Sequence[Episode], *, steps: int, seed: int) -> Window:
    """Around the first irreversible transition of any episode; else where the first one's open-loop prediction starts.

    A function of the episodes and the seed, so that all variants show the same. An episode's last state, which nothing
    is retraced to, is left out.
    """
    for index, episode in enumerate(episodes):
        if episode.irreversible.any():
            length = len(episode.reward) - 1
            shown = min(steps, length)
            event = int(episode.irreversible.argmax())
            return Window(index, int(np.clip(event - shown // 2, 0, length - shown)), shown)
    length = len(episodes[0].reward) - 1
    shown = min(steps, length)
    return Window(0, named_seed("window", seed, 0) % (length - shown + 1), shown)


@torch.no_grad()
def show_retracing(agent: Agent, seen: Seen, kept: np.ndarray, window: Window, *, threshold: float) -> Retraced:
    """Decode z̃ and ž along the window; the mask of the whole episode is ``kept`` [L], its threshold η."""
    part = slice(window.first, window.first + window.steps)
    size = agent.card.truncation.window
    change = np.full(len(seen.value), np.nan)
    change[size:] = relative_changes(seen.value.unsqueeze(1), window=size)[:, 0].cpu().numpy()
    truth = seen.episode.observation[part]
    forward = to_pixels(agent.world_model.decoder(seen.states[part]))
    back = forward[:0] if seen.retraced is None else to_pixels(agent.world_model.decoder(seen.retraced[part]))
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


def retracing_rows(shown: Retraced) -> list[dict[str, object]]:
    """A line of ``retracing.csv`` for each step."""
    return [
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


@mpl.rc_context(PRINT)
def write_retracing(folder: Path, shown: Retraced) -> None:
    """Write ``retracing.csv``, the numbers, ``retracing.safetensors``, the frames, and a picture of both."""
    write_csv(folder / "retracing.csv", retracing_rows(shown))
    frames = {"truth": shown.truth, "forward": shown.forward, "retraced": shown.retraced}
    save_file({name: np.ascontiguousarray(of) for name, of in frames.items()}, folder / "retracing.safetensors")
    write_figure(folder / "retracing.png", retracing_figure(shown))
