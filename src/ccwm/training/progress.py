"""The progress of a training run: a live bar on a terminal, a plain line every half minute elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ccwm.training.history import History
from ccwm.training.module import Counters

QUIET_SECONDS = 30.0
HIDDEN = ContextVar("HIDDEN", default=False)
SHOWN = ("model/observation", "model/kl", "retrace/loss", "actor/loss", "critic/loss")


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Within, training shows nothing: for a caller with a display of its own."""
    before = HIDDEN.set(True)
    try:
        yield
    finally:
        HIDDEN.reset(before)


class TrainingProgress:
    """Environment steps, return, losses, frames/s, updates/s and time left; shown within a ``with`` block."""

    def __init__(self, history: History, counters: Counters, *, env_steps: int, updates: int, label: str) -> None:
        self.history, self.counters, self.env_steps, self.label = history, counters, env_steps, label
        self.console = Console(stderr=True, quiet=HIDDEN.get())
        self.bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[line]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal or HIDDEN.get(),
        )
        self.task = self.bar.add_task(label, total=updates, completed=counters.updates, line="")
        self.start = (time.monotonic(), counters.env_steps, counters.updates)
        self.last_line = 0.0

    def __enter__(self) -> TrainingProgress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self) -> None:
        """Show the present state; to be called after every update."""
        now = time.monotonic()
        if self.bar.disable and now - self.last_line < QUIET_SECONDS:
            return
        line = self._line(now)
        self.bar.update(self.task, completed=self.counters.updates, line=line)
        if self.bar.disable:
            self.last_line = now
            self.console.print(f"{self.label}: {line}", soft_wrap=True, highlight=False)

    def _line(self, now: float) -> str:
        start, env_steps, updates = self.start
        counters, seconds = self.counters, max(now - start, 1e-9)
        parts = [
            f"{counters.env_steps:,}/{self.env_steps:,} steps",
            f"{(counters.env_steps - env_steps) / seconds:.0f} frames/s",
            f"{(counters.updates - updates) / seconds:.1f} updates/s",
        ]
        if self.history.curve:
            parts.append(f"return {self.history.curve[-1]['return_mean']:.1f}")
        if self.history.losses:
            last = self.history.losses[-1]
            parts += [f"{name.removesuffix('/loss')} {last[name]:.2f}" for name in SHOWN if name in last]
        return " · ".join(parts)
