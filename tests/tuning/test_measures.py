"""What is maximised, by hand."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from ccwm.settings.tune import Tune
from ccwm.tuning.measures import MEASURES, f1_score, measure_curve


def test_measures_of_a_learning_curve() -> None:
    rows = [(0, 0.0), (100, 10.0), (400, 10.0)]
    curve = [{"env_steps": at, "updates": at, "return_mean": value} for at, value in rows]
    assert measure_curve("auc", curve) == pytest.approx(8.75)  # (100 · 5 + 300 · 10) / 400
    assert measure_curve("auc", curve[:1]) == 0.0
    assert measure_curve("final", curve) == 10.0
    assert measure_curve("truncation_f1", curve) is None


def test_f1_counts_over_all_masks_together() -> None:
    left_out = torch.tensor([True, True, False, False]), torch.tensor([True, False, False, False])
    truth = torch.tensor([True, False, True, False]), torch.tensor([False, False, False, False])
    assert f1_score(zip(left_out, truth, strict=True)) == pytest.approx(0.4)  # hits 1, left out 3, true 2: 2 / 5
    nothing = torch.zeros(3, dtype=torch.bool)
    assert f1_score([(nothing, nothing)]) == 1.0
    assert f1_score([(nothing, ~nothing)]) == 0.0


def test_every_measure_of_the_settings_has_a_title() -> None:
    assert set(MEASURES) == set(get_args(Tune.model_fields["measure"].annotation))
