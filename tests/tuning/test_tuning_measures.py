"""What is maximised and where it is reported, by hand."""

from __future__ import annotations

import pytest
import torch

from ccwm.tuning.measures import MEASURES, curve_height, f1_score, last_return
from ccwm.tuning.trial import Steps


def row(env_steps: int, value: float) -> dict[str, float]:
    return {"env_steps": env_steps, "updates": env_steps, "return_mean": value}


def test_the_height_of_a_curve_is_its_area_over_its_width() -> None:
    curve = [row(0, 0.0), row(100, 10.0), row(400, 10.0)]
    assert curve_height(curve) == pytest.approx(8.75)  # (100 · 5 + 300 · 10) / 400
    assert curve_height(curve[:1]) == 0.0
    assert last_return(curve) == 10.0


def test_f1_counts_over_all_masks_together() -> None:
    left_out = torch.tensor([True, True, False, False]), torch.tensor([True, False, False, False])
    truth = torch.tensor([True, False, True, False]), torch.tensor([False, False, False, False])
    assert f1_score(zip(left_out, truth, strict=True)) == pytest.approx(0.4)  # hits 1, left out 3, true 2: 2 / 5
    nothing = torch.zeros(3, dtype=torch.bool)
    assert f1_score([(nothing, nothing)]) == 1.0
    assert f1_score([(nothing, ~nothing)]) == 0.0


def test_steps_of_several_seeds_are_one_rising_line() -> None:
    steps = Steps(env_steps=1000, every=300)
    assert steps.span == 1200
    assert [steps.evaluation(0, at) for at in (40, 299, 300, 999, 1060)] == [0, 0, 300, 900, 900]
    assert steps.end(0) == 1200
    assert steps.evaluation(1, 320) == 1500
    assert steps.end(1) == 2400
    exact = Steps(env_steps=900, every=300)  # the end must stand behind an evaluation at 900
    assert exact.evaluation(0, 900) == 900
    assert exact.end(0) == 1200


def test_every_measure_can_be_taken() -> None:
    assert all(measure.of_curve or measure.of_agent for measure in MEASURES.values())
