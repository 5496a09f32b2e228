"""What is maximised, by hand."""

from __future__ import annotations

import pytest
import torch

from ccwm.tuning.measures import MEASURES, f1_score


def test_measures_of_a_learning_curve() -> None:
    rows = [(0, 0.0), (100, 10.0), (400, 10.0)]
    curve = [{"env_steps": at, "updates": at, "return_mean": value} for at, value in rows]
    auc, final = MEASURES["auc"].of_curve, MEASURES["final"].of_curve
    assert auc is not None
    assert final is not None
    assert auc(curve) == pytest.approx(8.75)  # (100 · 5 + 300 · 10) / 400
    assert auc(curve[:1]) == 0.0
    assert final(curve) == 10.0


def test_f1_counts_over_all_masks_together() -> None:
    left_out = torch.tensor([True, True, False, False]), torch.tensor([True, False, False, False])
    truth = torch.tensor([True, False, True, False]), torch.tensor([False, False, False, False])
    assert f1_score(zip(left_out, truth, strict=True)) == pytest.approx(0.4)  # hits 1, left out 3, true 2: 2 / 5
    nothing = torch.zeros(3, dtype=torch.bool)
    assert f1_score([(nothing, nothing)]) == 1.0
    assert f1_score([(nothing, ~nothing)]) == 0.0


def test_every_measure_can_be_taken() -> None:
    assert all(measure.of_curve or measure.of_agent for measure in MEASURES.values())
