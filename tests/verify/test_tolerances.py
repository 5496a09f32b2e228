"""How far a number may be from the committed one on another machine: every metric has a rule, written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.verify.record import read_checkout
from ccwm.verify.tolerances import EARLY, EXACT, FREE, LATE, RULES, STEP, WORLD, Tolerance, tolerance

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("stage", "file", "key", "early", "late"),
    [
        ("train", "metrics.json", "updates", EXACT, EXACT),
        ("train", "metrics.json", "return_final", EARLY, LATE),
        ("train", "metrics.json", "episodes", EARLY, LATE),
        ("evaluate", "metrics.json", "episodes", EXACT, EXACT),
        ("train", "losses.csv", "model/observation", EARLY, FREE),
        ("collect", "returns.csv", "return", WORLD, WORLD),
        ("collect", "returns.csv", "seed", EXACT, EXACT),
        ("evaluate", "metrics.json", "random_mean", WORLD, WORLD),
        ("evaluate", "metrics.json", "return_sd", EARLY, FREE),
        ("evaluate", "metrics.json", "best_possible", EXACT, EXACT),
        ("rollout-viz", "metrics.json", "useful_steps_median", STEP, FREE),
        ("rollout-viz", "metrics.json", "baseline_error_mean", WORLD, WORLD),
        ("rollout-viz", "components.csv", "constant_error", WORLD, WORLD),
        ("rollout-viz", "errors.csv", "error", EARLY, FREE),
        ("transfer", "metrics.json", "rows.R+M.n", EXACT, EXACT),
        ("transfer", "metrics.json", "rows.R+M.sd", EARLY, FREE),
        ("transfer", "metrics.json", "unchanged.mean", EARLY, LATE),
    ],
)
def test_every_metric_has_a_tolerance(stage: str, file: str, key: str, early: Tolerance, late: Tolerance) -> None:
    assert tolerance(f"{stage}/{file}", key, updates=100) == early
    assert tolerance(f"{stage}/{file}", key, updates=101) == late


def test_the_tolerances_are_written_down_with_their_reasons() -> None:
    page = " ".join((ROOT / "docs" / "verify.md").read_text().split())
    for kind in {each for _, *both in RULES for each in both}:
        number = "—" if kind.relative is None else f"{kind.relative:g}"
        assert f"| `{kind.name}` | {number} | {kind.absolute:g} | {kind.reason} |" in page


def test_every_committed_metric_has_a_rule() -> None:
    """No number of the committed results falls through the rules."""
    stages = read_checkout(ROOT).stages
    keys = [
        (name, path, key) for name, stage in stages.items() for path in stage.numbers for key in stage.numbers[path]
    ]
    assert keys
    for name, path, key in keys:
        assert tolerance(f"{name.partition('@')[0]}/{Path(path).name}", key, updates=1000)
