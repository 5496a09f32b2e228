"""Points and settings."""

from __future__ import annotations

import pytest
from tuning_project import ROOT, make_settings

from ccwm.tuning.points import anchors, nested, trial_settings
from ccwm.tuning.validation import make_space


def test_the_first_points_are_the_default_and_the_paper_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = make_settings()
    default, paper = anchors(settings, make_space(settings))
    point = {"truncation.threshold": 0.1, "truncation.window": 3, "truncation.lookback": 2}
    assert default == ("default", point, [])
    point = {"truncation.threshold": 0.1, "truncation.window": 5, "truncation.lookback": 5}
    assert paper == ("paper", point, ["truncation.window: 10 → 5"])
    same = make_settings(overrides={"truncation.window": 5, "truncation.lookback": 5})
    assert [anchor.name for anchor in anchors(same, make_space(same))] == ["default, paper"]


def test_a_trial_has_the_variant_s_settings_with_overrides_and_the_point() -> None:
    settings = make_settings(overrides={"train.updates": 7, "truncation.threshold": 0.3})
    resolved = trial_settings(settings, {"truncation.threshold": 0.2})
    assert (resolved.truncation.mode, resolved.truncation.threshold, resolved.train.updates) == ("adaptive", 0.2, 7)


def test_a_trial_trains_on_one_device() -> None:
    settings = make_settings()
    several = settings.trainer.model_copy(update={"devices": 2, "strategy": "ddp"})
    trainer = trial_settings(settings.model_copy(update={"trainer": several}), {}).trainer
    assert (trainer.devices, trainer.strategy) == (1, "auto")


def test_dotted_keys_become_sections() -> None:
    point = {"truncation.window": 3, "retrace.weight": 0.5, "truncation.lookback": 1}
    assert nested(point) == {"truncation": {"window": 3, "lookback": 1}, "retrace": {"weight": 0.5}}
