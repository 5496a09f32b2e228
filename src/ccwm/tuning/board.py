"""What a person sees of a search while it runs: a live table on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ccwm.tuning.outcome import Outcome, Row

LAST = 12
"""Trials that the live table shows, the best one besides."""
PERIOD = 2.0
STYLES = {"complete": "green", "pruned": "yellow", "failed": "red", "running": "cyan"}


class Board:
    """Trials, the best so far, and the time left."""

    def __init__(
        self, read: Callable[[], Outcome], *, keys: list[str], trials: int | None, deadline: float | None, check: float
    ) -> None:
        """``check`` is what the fresh seeds of one candidate cost, in whole trials."""
        self._read, self._keys, self._trials, self._deadline, self._check = read, keys, trials, deadline, check
        self._console = Console(stderr=True)
        self._outcome = Outcome([], [])
        self._looked = -PERIOD
        self._now = ""
        self._live = Live(console=self._console, refresh_per_second=2, get_renderable=self._render)

    def __enter__(self) -> Board:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._look()
            self._live.stop()

    def show(self, now: str) -> None:
        """Say what this process is doing, on a terminal alone."""
        self._now = now
        if self._live.is_started and time.monotonic() - self._looked > PERIOD:
            self._look()

    def note(self, event: str) -> None:
        """Say what happened."""
        self._look()
        left = self.time_left()
        ending = "" if self._live.is_started or not left else f" · about {_duration(left)} left"
        self._console.print(f"{event}{ending}", highlight=False, soft_wrap=True, markup=False)

    def time_left(self) -> float | None:
        """Seconds until the end, from the mean length of the trials so far; None before there is one."""
        seconds = [row.seconds for row in self._outcome.rows if row.seconds is not None and row.state != "failed"]
        running = max(sum(row.state == "running" for row in self._outcome.rows), 1)
        bounds = []
        if seconds and self._trials is not None:
            whole = [row.seconds for row in self._outcome.rows if row.seconds and row.state == "complete"] or seconds
            mean, long = sum(seconds) / len(seconds), sum(whole) / len(whole)
            unchecked = sum(candidate.fresh is None for candidate in self._outcome.candidates)
            owed = max(self._trials - len(seconds), 0) * mean + unchecked * self._check * long
            bounds.append(owed / running)
        if self._deadline is not None:
            bounds.append(max(self._deadline - time.monotonic(), 0.0))
        return min(bounds, default=None)

    def _look(self) -> None:
        self._outcome, self._looked = self._read(), time.monotonic()

    def _render(self) -> Group:
        best = self._outcome.best
        rows = self._outcome.rows[-LAST:]
        table = trials_table([best, *rows] if best and best not in rows else rows, self._keys, best)
        left = self.time_left()
        total = f" of {self._trials}" if self._trials else ""
        finished = sum(row.state != "running" for row in self._outcome.rows)
        parts = [f"{finished}{total} trials", f"best {best.value:.4g} (trial {best.number})" if best else "no best yet"]
        parts += [f"about {_duration(left)} left"] if left is not None else []
        return Group(table, Text(" · ".join(parts), "bold"), Text(self._now, "dim"))


def trials_table(rows: list[Row], keys: list[str], best: Row | None) -> Table:
    """Trials as a table: number, state, the searched settings, value."""
    table = Table(
        "trial", "state", *(key.partition(".")[2] for key in keys), "seeds", "value", box=None, padding=(0, 1)
    )
    for row in rows:
        values = [_short(row.point.get(key)) for key in keys]
        name = f"{row.number} ({row.anchor})" if row.anchor else str(row.number)
        value = (
            "" if row.value is None else f"{row.value:.4g}{' ±' + format(row.sd, '.2g') if row.sd is not None else ''}"
        )
        style = "bold" if row is best else None
        table.add_row(name, Text(row.state, STYLES[row.state]), *values, str(len(row.seeds)), value, style=style)
    return table


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
