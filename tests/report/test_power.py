from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.plan.power import seeds_needed
from ccwm.report.claims import Paper
from ccwm.report.statistics import pairs_needed

from .results_tree import source
from .test_findings import pair


def test_a_claim_needs_seeds_by_the_spread_of_its_differences(tmp_path: Path, paper: Paper) -> None:
    pair(tmp_path, "walker_walk", [-4.0, -5.0, -6.0])
    (row,) = [row for row in seeds_needed([source(tmp_path, seeds=3)], paper) if row["claim"] == "efficient"]
    # differences with sd 1; a tenth of dreamer's 20 is 2
    assert (row["tier"], row["task"], row["seeds"], row["sd"]) == ("states", "walker_walk", 3, pytest.approx(1.0))
    assert row["matters"] == pytest.approx(2.0)
    assert row["needed"] == pairs_needed(1.0, 2.0)
    assert seeds_needed([source(tmp_path / "empty")], paper) == []


def test_one_seed_has_no_spread(tmp_path: Path, paper: Paper) -> None:
    pair(tmp_path, "walker_walk", [1.0])
    assert seeds_needed([source(tmp_path, seeds=3)], paper) == []
