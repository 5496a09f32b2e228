"""What is known of every cell while a fleet runs: a live table on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ccwm.cells import Cell
from ccwm.files import write_atomically
from ccwm.fleet import FLEET

STATUS = FLEET / "status.json"
LOGS = FLEET / "logs"
PERIOD = 2.0
SHOWN = 24
"""Rows of the live table."""
STYLES = {"waiting": "dim", "running": "cyan", "done": "green", "failed": "red"}
STEPS = re.compile(rb"([\d,]+)/([\d,]+) steps")
RETURN = re.compile(rb"return (-?[\d.]+)")


@dataclass
class Row:
    """One cell."""

    stage: str
    state: str = "waiting"
    began: float = 0.0
    seconds: float | None = None
    """How long a finished cell took."""
    share: float | None = None
    """How much of a running cell's steps is done."""
    first_share: float = 0.0
    """The share at its first sign of life; a resumed cell does not start at 0."""
    note: str = ""

    def seconds_left(self, usual: float | None) -> float | None:
        """Until this cell is done, by its own pace, or as long as others of its stage took."""
        spent = time.time() - self.began if self.state == "running" else 0.0
        if self.share is not None and self.share > self.first_share:
            return spent * (1 - self.share) / (self.share - self.first_share)
        return None if usual is None else max(usual - spent, 0.0)


class Progress:
    """All cells of a fleet; shown within a ``with`` block, and kept in a file for `ccwm fleet status`."""

    def __init__(self, root: Path, todo: list[Cell], about: dict[str, object]) -> None:
        self.rows = {str(cell): Row(cell.stage) for cell in todo}
        self._root, self._about, self._written_at = root, about, 0.0
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, refresh_per_second=1, get_renderable=self.render)
        (root / LOGS).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Progress:
        self._write()
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        if self._live.is_started:
            self._live.stop()

    def begin(self, cell: str, *, again: str = "") -> None:
        """A cell was given to Ray, for the first time or again."""
        self.rows[cell] = Row(self.rows[cell].stage)
        if again:
            self.say(f"{cell}: {again}; it is run again")
        else:
            (self._root / LOGS / f"{cell}.log").unlink(missing_ok=True)

    def end(self, cell: str, state: str, note: str = "") -> None:
        """A cell is done or has failed."""
        row = self.rows[cell]
        row.seconds = time.time() - row.began if row.began else None
        row.state, row.note = state, note
        counts = " · ".join(f"{number} {name}" for name, number in self.counts().items() if number)
        left = self.seconds_left()
        told = f" · about {_duration(left)} left" if left else ""
        took = f" in {_duration(row.seconds)}" if row.seconds is not None else ""
        self.say(f"{cell}: {state}{took}{f' ({note})' if note else ''} · {counts}{told}")
        self._write()

    def log(self, cell: str, text: bytes) -> None:
        """The next piece of a cell's log."""
        row = self.rows[cell]
        if row.state == "waiting":
            row.state, row.began = "running", time.time()
        with (self._root / LOGS / f"{cell}.log").open("ab") as file:
            file.write(text)
        if steps := STEPS.findall(text):
            done, total = (int(number.replace(b",", b"")) for number in steps[-1])
            if row.share is None:
                row.first_share = done / total
            row.share = done / total
            returns = RETURN.findall(text)
            row.note = f"{done:,} of {total:,} steps" + (f", return {float(returns[-1]):.1f}" if returns else "")
        if time.monotonic() - self._written_at > PERIOD:
            self._write()

    def say(self, line: str) -> None:
        """Print what happened."""
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def counts(self) -> dict[str, int]:
        """Cells by state."""
        return {state: sum(row.state == state for row in self.rows.values()) for state in STYLES}

    def seconds_left(self) -> float | None:
        """Until the last cell is done, by the cells so far and as many at once as now; None while nothing is known."""
        return seconds_left(self.rows)

    def render(self) -> Group:
        """The table as it is now."""
        return table(self.rows)

    def _write(self) -> None:
        rows = {name: asdict(row) for name, row in self.rows.items()}
        write_atomically(self._root / STATUS, json.dumps({**self._about, "cells": rows}).encode())
        self._written_at = time.monotonic()


def read_about(root: Path) -> dict[str, str]:
    """The process, host, commit and start of the last fleet."""
    found = json.loads((root / STATUS).read_text())
    return {name: str(value) for name, value in found.items() if name != "cells"}


def read_status(root: Path) -> dict[str, Row]:
    """The cells of the last fleet, as it left them."""
    path = root / STATUS
    return {name: Row(**row) for name, row in json.loads(path.read_text())["cells"].items()} if path.is_file() else {}


def seconds_left(rows: dict[str, Row]) -> float | None:
    """Work that is left over the number of cells that run at once; None until it is known what a training takes."""
    finished: dict[str, list[float]] = {}
    for row in rows.values():
        if row.state == "done" and row.seconds is not None:
            finished.setdefault(row.stage, []).append(row.seconds)
    usual = {stage: fmean(times) for stage, times in finished.items()}
    open_rows = [row for row in rows.values() if row.state in ("waiting", "running")]
    for row in open_rows:  # a running cell tells what those of its stage will take, before one has finished
        left = row.seconds_left(None)
        if row.state == "running" and left is not None and row.stage not in usual:
            usual[row.stage] = (time.time() - row.began) + left
    parts = [row.seconds_left(usual.get(row.stage)) for row in open_rows]
    if any(part is None and row.stage == "train" for row, part in zip(open_rows, parts, strict=True)):
        return None  # nearly all of the work
    known = [part for part in parts if part is not None]
    running = sum(row.state == "running" for row in open_rows)
    return max(sum(known) / max(running, 1), max(known)) if known else None


def table(rows: dict[str, Row]) -> Group:
    """Running cells first, then failed, waiting and done ones, as many as fit; the counts and the time left below."""
    order = ("running", "failed", "waiting", "done")
    shown = sorted(rows.items(), key=lambda item: order.index(item[1].state))[:SHOWN]
    drawn = Table("cell", "state", "time", "left", "", box=None, padding=(0, 1))
    for name, row in shown:
        spent = time.time() - row.began if row.state == "running" else row.seconds
        left = row.seconds_left(None) if row.state == "running" else None
        told = [_duration(seconds) if seconds is not None else "" for seconds in (spent, left)]
        drawn.add_row(name, Text(row.state, STYLES[row.state]), *told, row.note)
    parts = [f"{sum(row.state == state for row in rows.values())} {state}" for state in STYLES]
    left = seconds_left(rows)
    parts += [f"about {_duration(left)} left"] if left is not None else []
    return Group(drawn, Text(" · ".join(parts), "bold"))


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
