from __future__ import annotations

from pathlib import Path

from ccwm.report.blocks import Picture, Table
from ccwm.report.retracing import FILES, build, summarise
from ccwm.report.section import Report
from ccwm.studies.retracing import read_retracing

from .results_tree import one, results, texts


def test_a_row_by_hand(tree: Path) -> None:
    found = results(tree).load("rollout-viz", "walker_walk", read_retracing, FILES)
    row = summarise("ccwm", found["ccwm"])
    assert round(row.forward_error, 9) == 0.0017  # the mean of 0.001 + 0.0001 t over t = 0 … 14
    assert round(row.retraced_error, 9) == 0.0027
    assert (round(row.truncated, 9), row.events) == (0.2, 1)  # 3 of 15
    assert summarise("dreamer", found["dreamer"]).retraced_error is None


def test_a_picture_for_each_variant_and_a_dash_for_who_does_not_retrace(report: Report) -> None:
    blocks = build(report)
    pictures = [block.file for block in blocks if isinstance(block, Picture)]
    assert pictures == ["retracing-walker_walk-dreamer", "retracing-walker_walk-ccwm"]
    table = one(blocks, Table)
    assert texts(table, "ccwm") == [["ccwm", "0.0017", "0.0027", "0.200", "1"]]
    assert texts(table, "dreamer") == [["dreamer", "0.0017", "–", "0.200", "1"]]
