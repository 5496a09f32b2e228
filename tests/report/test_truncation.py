from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ccwm.report.blocks import Panels, Table
from ccwm.report.section import Report
from ccwm.report.truncation import SECTION, best_threshold, summarise

from .results_tree import THRESHOLDS, one, texts


def sweep(own: float = 0.1, **columns: object) -> pd.DataFrame:
    frame = pd.DataFrame({"rule": "prose", "threshold": [0.1, 0.2], "event_f1": [0.3, 0.5]})
    measures = dict.fromkeys(("true_share", "precision", "recall", "f1", "event_precision", "event_recall"), 0.5)
    return frame.assign(**measures, truncated_share=[0.2, 0.4], events=3, own=frame["threshold"] == own, **columns)


def test_the_best_threshold_has_the_highest_mean_f1_of_events() -> None:
    assert best_threshold([sweep(), sweep().assign(event_f1=[0.9, 0.1])]) == 0.1  # 0.6 against 0.3
    assert best_threshold([sweep().assign(event_f1=np.nan)]) is None


def test_seeds_are_averaged() -> None:
    from ccwm.cells import Cell

    cells = [Cell("rollout-viz", "walker_walk", "ccwm", seed) for seed in (0, 1)]
    own, best = summarise({"ccwm": {cells[0]: sweep(), cells[1]: sweep(own=0.2)}})
    assert (own["threshold"], own["truncated_share"]) == (0.15000000000000002, 0.30000000000000004)
    assert (best["which"], best["threshold"], best["events"]) == ("best", 0.2, 6)


def test_the_own_threshold_and_the_best_one_are_shown(report: Report) -> None:
    blocks = SECTION.build(report)
    assert len(one(blocks, Panels).shown) == 5
    own, best = texts(one(blocks, Table), "ccwm")
    assert own[:5] == ["ccwm", "own", "prose", "0.100", "0.200"]
    # best F1 of events by the prose is at the largest η: 0.4 + 0.2; that of Algorithm 1 (0.4 + 9 · 0.2) does not count
    assert best[:5] == ["ccwm", "best", "prose", "0.200", "0.1000"]
    assert best[-2:] == ["0.600", "3"]
    assert len(pd.read_csv(report.folder / "tables" / "truncation.csv")) == 2 * 2 * len(THRESHOLDS)


def test_without_labels_only_the_share_is_shown(tree: Path, tmp_path: Path, make_report: Callable[..., Report]) -> None:
    shutil.copytree(tree / "results", tmp_path / "results")
    for path in (tmp_path / "results").rglob("truncation.csv"):
        frame = pd.read_csv(path).assign(events=0)
        frame[["true_share", "precision", "recall", "f1", "event_precision", "event_recall", "event_f1"]] = np.nan
        frame.to_csv(path, index=False)
        (path.parent / "run.json").unlink()
    blocks = SECTION.build(make_report(tmp_path))
    assert [picture.file for picture in one(blocks, Panels).shown] == ["truncation-truncated-share-walker_walk"]
    table = one(blocks, Table)
    assert table.headings == ["Variant", "η of", "Rule", "η", "Truncated", "Events"]
    assert texts(table, "ccwm") == [["ccwm", "own", "prose", "0.100", "0.200", "0"]]
