"""A search for settings as `ccwm tune` publishes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from ccwm.studies.search import write_search

KEYS = ["truncation.threshold", "truncation.window", "truncation.lookback"]
TRIALS = [
    # number, anchor, state, value, η, S, τ
    (0, "default", "complete", 100.0, 0.10, 10, 5),
    (1, "paper", "complete", 101.0, 0.10, 10, 6),
    (2, "", "complete", 120.0, 0.21, 7, 3),
    (3, "", "pruned", 60.0, 0.45, 3, 3),
    (4, "", "complete", 90.0, 0.03, 4, 0),
    (5, "", "failed", None, 0.02, 9, 9),
    (6, "", "complete", 118.0, 0.30, 8, 2),
]
FRESH = {0: [98.0, 102.0], 2: [104.0, 108.0], 6: [101.0, 103.0]}  # by seed 100 and 101


def write_study(root: Path, **changes: Any) -> Path:
    folder = root / "results" / "tune" / "truncation"
    folder.mkdir(parents=True)
    columns = ["trial", "anchor", "state", "value", *KEYS]
    trials = pd.DataFrame(TRIALS, columns=columns)
    candidates = trials[trials["trial"].isin(list(FRESH))].drop(columns=["state", "value"])
    candidates["winner"] = candidates["trial"] == 2
    candidates["search_mean"] = [100.0, 120.0, 118.0]
    candidates["search_sd"] = [2.0, 3.0, 4.0]
    candidates["fresh_mean"] = [100.0, 106.0, 102.0]
    candidates["fresh_sd"] = [2.83, 2.83, 1.41]
    for place, seed in enumerate((100, 101)):
        candidates[f"fresh seed {seed}"] = [FRESH[number][place] for number in candidates["trial"]]
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
        "space": {
            KEYS[0]: {"kind": "float", "low": 0.02, "high": 0.5, "log": True},
            KEYS[1]: {"kind": "int", "low": 2, "high": 11, "log": False},
            KEYS[2]: {"kind": "int", "low": 0, "high": KEYS[1], "log": False},
        },
        "trials": {"complete": 5, "pruned": 1, "failed": 1, "running": 0},
        "commits": ["c0ffee"],
        "importance": {KEYS[0]: 0.6, KEYS[1]: 0.3, f"{KEYS[2]} / {KEYS[1]}": 0.1},
        "winner": {
            "trial": 2,
            "search_mean": 120.0,
            "fresh_mean": 106.0,
            "point": {KEYS[0]: 0.21, KEYS[1]: 7, KEYS[2]: 3},
        },
        **changes,
    }
    write_search(folder, summary, trials.to_dict("records"), candidates.to_dict("records"))
    (folder / "run.json").write_text(json.dumps({"run_id": "ab" * 16}))
    return folder
