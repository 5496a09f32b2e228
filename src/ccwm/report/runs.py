"""The page of runs: which MLflow run and which code made each result, and at what cost.

Runs, commits and seconds never repeat, so they stand apart from the report, which is a function of the results alone.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from ccwm.cells import Cell
from ccwm.readers import is_number
from ccwm.report import format
from ccwm.report.blocks import Block, Heading, Table, Words
from ccwm.report.results import MEASURED, Results
from ccwm.report.table import Column, Row, averaged, table
from ccwm.report.tuning import searches
from ccwm.report.words import say

PLACE = ("name", "stage", "task", "variant")
SAID = ("run_id", "experiment", "store", "commit", "dirty", "settings_hash", "device")
COSTS = ("seconds", "env_steps_per_second", "updates_per_second", "peak_memory_mb")
COST_COLUMNS = (
    Column("Stage", ("order", "stage"), lambda _, stage: stage),
    Column("Task", "task", lambda task: task or format.NONE),
    Column("Variant", "variant", lambda variant: variant or "all"),
    Column("Device", "device", lambda device: device or format.NONE),
    Column("Time", "seconds", format.duration),
    Column("Frames/s", "env_steps_per_second"),
    Column("Updates/s", "updates_per_second"),
    Column("Memory (MB)", "peak_memory_mb"),
    Column("Runs", "runs"),
)
RUN_COLUMNS = (
    Column("Result", "name", style="id"),
    Column("MLflow run", "run_id", style="code"),
    Column("Commit", ("commit", "dirty"), lambda commit, dirty: commit[:10] + " + changes" * dirty, "code"),
    Column("Settings", "settings_hash", lambda digest: digest[:12], "code"),
)


def load(results: Results) -> list[Row]:
    """The run behind every result that has a record, the searches' last."""
    records = {str(cell): (cell, results.root / cell.record) for stage in MEASURED for cell in results.expected(stage)}
    for name, folder in searches(results.root / "results").items():
        records[f"tune {name}"] = Cell("tune"), folder / "run.json"
    found = [read_run(path, name, cell) for name, (cell, path) in records.items()]
    return [run for run in found if run is not None]


def read_run(path: Path, name: str, cell: Cell) -> Row | None:
    """One record; None where it is not there, or is no JSON object: a report does not depend on it."""
    try:
        record: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict):
        return None
    place = dict(zip(PLACE, (name, cell.stage, cell.task, cell.variant), strict=True))
    said = {key: str(record.get(key) or "") for key in SAID}
    costs = {key: float(record[key]) if is_number(record.get(key)) else None for key in COSTS}
    store = public_store(str(record.get("tracking_uri") or ""))
    dirty = said["dirty"].lower() == "true"  # beside "false" and "unknown"
    return {**place, **said, **costs, "store": store, "dirty": dirty}


def public_store(uri: str) -> str:
    """A tracking store that may be shown: without a password, and without this machine's folders."""
    if not uri:
        return ""
    parts = urlsplit(uri)
    if parts.hostname and parts.scheme in ("http", "https"):
        return parts.hostname + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme.split('+')[0] or 'file'}: {Path(parts.path).name}"


def cost_table(runs: list[Row]) -> Table:
    """Time, throughput and memory of every stage, over seeds."""
    stages = list(dict.fromkeys(run["stage"] for run in runs))
    counted = [{**run, "runs": 1, "cells": (), "order": stages.index(run["stage"])} for run in runs]

    most = partial(max, key=lambda mb: mb or 0.0)
    rows = averaged(counted, "stage", "task", "variant", runs=sum, peak_memory_mb=most)
    return table(say("runs", "cost"), rows, COST_COLUMNS, texts=4)


def runs_table(runs: list[Row]) -> Table:
    """The run behind every result; each line has the name of its cell as its id."""
    said = {key: ", ".join(dict.fromkeys(run[key] for run in runs)) for key in ("experiment", "store")}
    return table(say("runs", "table", **said), runs, RUN_COLUMNS, texts=4)


def caveats(runs: list[Row]) -> list[str]:
    """What the runs say against the results: mixed or uncommitted code."""
    commits, dirty = {run["commit"] for run in runs} - {""}, sum(run["dirty"] for run in runs)
    mixed = [say("runs", "commits", n=len(commits))] if len(commits) > 1 else []
    return [*mixed, say("runs", "changed", results=format.count(dirty, "result"))] if dirty else mixed


def build(results: Results, folder: Path) -> list[Block]:
    """The blocks of ``runs.html``; all records go to ``runs.csv``."""
    runs = load(results)
    pd.DataFrame(runs, columns=[*PLACE, *SAID, *COSTS]).to_csv(folder / "runs.csv", index=False, lineterminator="\n")
    if not runs:
        return [Words(say("runs", "none"), "missing")]
    warnings = [Words(line, "check failed") for line in caveats(runs)]
    return [*warnings, Heading("Cost"), cost_table(runs), Heading("Where each number comes from"), runs_table(runs)]
