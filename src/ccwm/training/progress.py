"""The live line of a training run: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import lightning as L
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ccwm.training.history import History
from ccwm.training.module import CCWM

QUIET_SECONDS = 30.0
HIDDEN = ContextVar("HIDDEN", default=False)
SHOWN = ("model/image", "model/kl", "retrace/loss", "actor/loss", "critic/loss")


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Within, training shows nothing: for a caller with a display of its own."""
    before = HIDDEN.set(True)
    try:
        yield
    finally:
        HIDDEN.reset(before)


class LiveProgress(L.Callback):
    """Environment steps, return, losses, frames/s, updates/s and time left."""

    def __init__(self, history: History, *, env_steps: int, updates: int, label: str) -> None:
        self.history, self.env_steps, self.updates, self.label = history, env_steps, updates, label
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
        self.task: TaskID | None = None
        self.began = (time.monotonic(), 0, 0)
        self.spoke = 0.0

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Show the bar, starting where a resumed run goes on."""
        assert isinstance(pl_module, CCWM)
        counters = pl_module.counters
        self.began = (time.monotonic(), counters.env_steps, counters.updates)
        self.task = self.bar.add_task(self.label, total=self.updates, completed=counters.updates, line="")
        self.bar.start()

    def on_train_batch_end(self, trainer: L.Trainer, pl_module: L.LightningModule, *_: object) -> None:
        """Refresh."""
        assert isinstance(pl_module, CCWM)
        assert self.task is not None
        now = time.monotonic()
        if self.bar.disable and now - self.spoke < QUIET_SECONDS:
            return
        line = self._line(pl_module, now)
        self.bar.update(self.task, completed=pl_module.counters.updates, line=line)
        if self.bar.disable:
            self.spoke = now
            self.console.print(f"{self.label}: {line}", soft_wrap=True, highlight=False)

    def teardown(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Leave the terminal as it was, also after an error."""
        self.bar.stop()

    def _line(self, module: CCWM, now: float) -> str:
        start, env_steps, updates = self.began
        counters, seconds = module.counters, max(now - start, 1e-9)
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
