"""A search for settings as `ccwm tune` publishes it."""

from __future__ import annotations

import json
from pathlib import Path

from ccwm.studies.search import Candidate, Outcome, TrialRow, write_search

Values = tuple[float, ...]
KEYS = ["truncation.threshold", "truncation.window", "truncation.lookback"]
TRIALS = [
    # number, anchor, state, values of seeds 0 and 1, η, S, τ
    (0, "default", "complete", (98.0, 102.0), 0.10, 10, 5),
    (1, "paper", "complete", (101.0, 101.0), 0.10, 10, 6),
    (2, "", "complete", (117.0, 123.0), 0.21, 7, 3),
    (3, "", "pruned", (60.0,), 0.45, 3, 3),
    (4, "", "failed", (), 0.02, 9, 9),
]
FRESH = {0: (98.0, 102.0), 2: (104.0, 108.0)}
"""Values of the candidates on the fresh seeds 100 and 101."""


def row(
    number: int, anchor: str, state: str, values: tuple[float, ...], *point: float, first_seed: int = 0
) -> TrialRow:
    seeds = {first_seed + i: value for i, value in enumerate(values)}
    mean = sum(values) / len(values) if values else None
    return TrialRow(number, number, state, anchor, dict(zip(KEYS, point, strict=True)), mean, seeds, commit="c0ffee")


def write_study(root: Path, fresh: dict[int, tuple[float, ...] | None] = FRESH) -> Path:
    """A search with five trials and two candidates."""
    folder = root / "results" / "tune" / "truncation"
    folder.mkdir(parents=True)
    rows = [row(*trial) for trial in TRIALS]
    candidates = [
        Candidate(
            rows[number], None if values is None else row(number, "", "complete", values, 0, 0, 0, first_seed=100)
        )
        for number, values in fresh.items()
    ]
    summary = {
        "study": "truncation",
        "task": "maze_one_way",
        "variant": "ccwm-truncated",
        "overrides": {},
        "measure": "auc",
        "measure_title": "mean height of the learning curve",
        "sampler": "tpe",
        "pruner": "median",
        "seeds": [0, 1],
        "fresh_seeds": [100, 101],
        "space": {key: {"kind": "float"} for key in KEYS},
        "importance": {},
    }
    write_search(folder, Outcome(rows, candidates), summary)
    (folder / "history.svg").write_text('<?xml version="1.0"?><svg id="a"><defs/></svg>')
    (folder / "run.json").write_text(json.dumps({"run_id": "ab" * 16}))
    return folder
