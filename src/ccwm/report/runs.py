"""The page of runs: which MLflow run and which code made each result, and at what cost.

Runs, commits and seconds never repeat, so they stand apart from the report, which is a function of the results alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pandas as pd

from ccwm.cells import Cell
from ccwm.readers import is_number
from ccwm.report import format
from ccwm.report.blocks import Block, Entry, Heading, Table, Words
from ccwm.report.results import MEASURED, Results
from ccwm.report.statistics import average
from ccwm.report.table import number, sortable, table, text
from ccwm.report.tuning import searches
from ccwm.report.words import say

SAID = ("run_id", "experiment", "commit", "settings_hash", "device")
COSTS = ("seconds", "env_steps_per_second", "updates_per_second", "peak_memory_mb")


class Run(NamedTuple):
    """What ``run.json`` says of one result; what it does not say is empty."""

    name: str
    stage: str
    task: str
    variant: str
    run_id: str
    experiment: str
    store: str
    commit: str
    dirty: bool
    settings_hash: str
    device: str
    seconds: float | None
    env_steps_per_second: float | None
    updates_per_second: float | None
    peak_memory_mb: float | None


def load(results: Results) -> list[Run]:
    """The run behind every result that has a record, the searches' last."""
    found = [
        read_run(results.root / cell.record, str(cell), cell) for stage in MEASURED for cell in results.expected(stage)
    ]
    tuned = searches(results.root / "results").items()
    found += [read_run(folder / "run.json", f"tune {name}", Cell("tune")) for name, folder in tuned]
    return [run for run in found if run is not None]


def read_run(path: Path, name: str, cell: Cell) -> Run | None:
    """One record; None where it is not there, or is no JSON object: a report does not depend on it."""
    try:
        record: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict):
        return None
    said: dict[str, Any] = {key: str(record.get(key) or "") for key in SAID}
    said |= {key: float(record[key]) if is_number(record.get(key)) else None for key in COSTS}
    said["store"] = public_store(str(record.get("tracking_uri") or ""))
    said["dirty"] = str(record.get("dirty")).lower() == "true"  # beside "false" and "unknown"
    return Run(name, cell.stage, cell.task, cell.variant, **said)


def public_store(uri: str) -> str:
    """A tracking store that may be shown: without a password, and without this machine's folders."""
    if not uri:
        return ""
    parts = urlsplit(uri)
    if parts.hostname and parts.scheme in ("http", "https"):
        return parts.hostname + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme.split('+')[0] or 'file'}: {Path(parts.path).name}"


def cost_table(runs: Iterable[Run]) -> Table:
    """Time, throughput and memory of every stage, over seeds."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.stage, run.task, run.variant), []).append(run)

    def mean(of: list[Run], key: str) -> float | None:
        return average(getattr(run, key) for run in of)

    def memory(of: list[Run]) -> float | None:
        return max((run.peak_memory_mb for run in of if run.peak_memory_mb is not None), default=None)

    stages = list(dict.fromkeys(stage for stage, _, _ in groups))
    return table(
        say("runs", "cost"),
        list(groups.values()),
        [
            ("Stage", lambda of: Entry(of[0].stage, float(stages.index(of[0].stage)))),
            ("Task", lambda of: text(of[0].task or format.NONE)),
            ("Variant", lambda of: text(of[0].variant or "all")),
            (
                "Device",
                lambda of: text(", ".join(dict.fromkeys(run.device for run in of if run.device)) or format.NONE),
            ),
            ("Time", lambda of: sortable(format.duration(mean(of, "seconds")), mean(of, "seconds"))),
            ("Frames/s", lambda of: number(mean(of, "env_steps_per_second"))),
            ("Updates/s", lambda of: number(mean(of, "updates_per_second"))),
            ("Memory (MB)", lambda of: number(memory(of))),
            ("Runs", lambda of: number(len(of), format.whole)),
        ],
        texts=4,
    )


def runs_table(runs: list[Run]) -> Table:
    """The run behind every result; each line has the name of its cell as its id."""
    said = {key: ", ".join(dict.fromkeys(getattr(run, key) for run in runs)) for key in ("experiment", "store")}
    return table(
        say("runs", "table", **said),
        runs,
        [
            ("Result", lambda run: Entry(run.name, run.name, style="id")),
            ("MLflow run", lambda run: Entry(run.run_id, run.run_id, style="code")),
            (
                "Commit",
                lambda run: Entry(run.commit[:10] + (" + changes" if run.dirty else ""), run.commit, style="code"),
            ),
            ("Settings", lambda run: Entry(run.settings_hash[:12], run.settings_hash, style="code")),
        ],
        texts=4,
    )


def caveats(runs: list[Run]) -> list[str]:
    """What the runs say against the results: mixed or uncommitted code."""
    said = []
    commits = {run.commit for run in runs if run.commit}
    if len(commits) > 1:
        said.append(say("runs", "commits", n=len(commits)))
    if dirty := sum(run.dirty for run in runs):
        said.append(say("runs", "changed", results=format.count(dirty, "result")))
    return said


def build(results: Results, folder: Path) -> list[Block]:
    """The blocks of ``runs.html``; all records go to ``runs.csv``."""
    runs = load(results)
    pd.DataFrame(runs, columns=list(Run._fields)).to_csv(folder / "runs.csv", index=False, lineterminator="\n")
    if not runs:
        return [Words(say("runs", "none"), "missing")]
    warnings = [Words(line, "check failed") for line in caveats(runs)]
    return [*warnings, Heading("Cost"), cost_table(runs), Heading("Where each number comes from"), runs_table(runs)]
