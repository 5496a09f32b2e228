"""What a user sees of a search while it runs: a live table on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from statistics import fmean

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ccwm.studies.search import Outcome, TrialRow

LAST = 12
"""Trials that the live table shows, the best one besides."""
PERIOD = 2.0
STYLES = {"complete": "green", "pruned": "yellow", "failed": "red", "running": "cyan"}


class LiveTable:
    """Trials, the best so far, and the time left; shown within a ``with`` block."""

    def __init__(
        self, read: Callable[[], Outcome], *, keys: list[str], trials: int | None, deadline: float | None
    ) -> None:
        self._read, self._keys, self._trials, self._deadline = read, keys, trials, deadline
        self._outcome, self._read_at, self._now = Outcome([], []), -PERIOD, ""
        self._live = Live(console=Console(stderr=True), refresh_per_second=2, get_renderable=self._render)

    def __enter__(self) -> LiveTable:
        if self._live.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live.is_started:
            self._refresh()
            self._live.stop()

    def show(self, now: str) -> None:
        """Show what this process is doing, on a terminal alone."""
        self._now = now
        if self._live.is_started and time.monotonic() - self._read_at > PERIOD:
            self._refresh()

    def note(self, event: str) -> None:
        """Print what happened."""
        self._refresh()
        parts = [event] if self._live.is_started else [event, *self._shown_time()]
        self._live.console.print(" · ".join(parts), highlight=False, soft_wrap=True, markup=False)

    def time_left(self) -> float | None:
        """Seconds until the last trial and the last candidate are trained, by the mean of the finished trials."""
        rows, bounds = self._outcome.rows, []
        timed = [row.seconds for row in rows if row.seconds and row.state in ("complete", "pruned")]
        if timed and self._trials is not None:
            owed = max(self._trials - len(timed), 0) + sum(each.fresh is None for each in self._outcome.candidates)
            bounds.append(owed * fmean(timed) / max(sum(row.state == "running" for row in rows), 1))
        if self._deadline is not None:
            bounds.append(max(self._deadline - time.monotonic(), 0.0))
        return min(bounds, default=None)

    def _shown_time(self) -> list[str]:
        left = self.time_left()
        return [f"about {timedelta(seconds=round(left))} left"] if left else []

    def _refresh(self) -> None:
        self._outcome, self._read_at = self._read(), time.monotonic()

    def _render(self) -> Group:
        best, rows = self._outcome.best, self._outcome.rows[-LAST:]
        finished = sum(row.state != "running" for row in self._outcome.rows)
        trials = f"{finished} of {self._trials} trials" if self._trials else f"{finished} trials"
        parts = [trials, f"best {best.value:.4g} (trial {best.trial})" if best else "no best yet", *self._shown_time()]
        table = trials_table([best, *rows] if best and best not in rows else rows, self._keys, best)
        return Group(table, Text(" · ".join(parts), "bold"), Text(self._now, "dim"))


def trials_table(rows: list[TrialRow], keys: list[str], best: TrialRow | None) -> Table:
    """Trials as a table: number, state, the searched settings, value."""
    fields = [key.partition(".")[2] for key in keys]
    table = Table("trial", "state", *fields, "seeds", "value", box=None, padding=(0, 1))
    for row in rows:
        name = f"{row.trial} ({row.anchor})" if row.anchor else str(row.trial)
        value = _short(row.value) + (f" ±{row.sd:.2g}" if row.sd is not None else "")
        values = [_short(row.point.get(key)) for key in keys]
        state = Text(row.state, STYLES[row.state])
        table.add_row(name, state, *values, str(len(row.seeds)), value, style="bold" if row is best else None)
    return table


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
