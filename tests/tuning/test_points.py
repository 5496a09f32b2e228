"""Points and settings, and what is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from tuning_project import ROOT, make_settings

from ccwm.errors import UserError
from ccwm.settings.parsing import BadParams
from ccwm.settings.presets import load_preset, preset_names
from ccwm.tuning.points import anchors, make_space, nested, trial_settings


def test_the_first_points_are_the_default_and_the_paper_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = make_settings()
    found = anchors(settings, make_space(settings))
    assert list(found) == ["default", "paper"]
    point = {"truncation.threshold": 0.1, "truncation.window": 3, "truncation.lookback": 2}
    assert found["default"] == (point, [])
    point = {"truncation.threshold": 0.1, "truncation.window": 5, "truncation.lookback": 5}
    assert found["paper"] == (point, ["truncation.window: 10 → 5"])
    same = make_settings(overrides={"truncation.window": 5, "truncation.lookback": 5})
    assert list(anchors(same, make_space(same))) == ["default, paper"]


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


def entry(**fields: Any) -> dict[str, Any]:
    return {"kind": "float", "low": 0.1, "high": 1.0, **fields}


@pytest.mark.parametrize(
    ("tune", "told"),
    [
        ({"space": {"truncation.treshold": entry()}}, "Did you mean 'truncation.threshold'?"),
        ({"space": {"env.size": entry()}}, "'env.size' is no setting of training"),
        ({"space": {"train.env_steps": entry(kind="int", low=10, high=20)}}, "changes what is measured"),
        ({"overrides": {"train.stepps": 3}}, "tune.overrides: 'train.stepps' is no setting of training"),
        (
            {"space": {"truncation.window": entry(kind="int", low=2, high=6)}},
            "truncation.window = 6, which the settings refuse: truncation.window (6) must be below train.length (6)",
        ),
        (
            {"space": {"truncation.threshold": entry(low=0.0)}},
            "truncation.threshold: must be a number above 0, got 0.0",
        ),
        ({"space": {"retrace.loss": {"kind": "choice", "choices": ["l2", "l3"]}}}, "retrace.loss = l3"),
        ({"space": {"truncation.lookback": entry(kind="int", low=0, high="retrace.loss")}}, "no number above the low"),
        (
            {
                "space": {
                    "truncation.window": entry(kind="int", low=2, high=5),
                    "truncation.lookback": entry(kind="int", low=3, high="truncation.window"),
                }
            },
            "truncation.window may be 2, which is below truncation.lookback's low of 3",
        ),
        ({"variant": "ccwm"}, "truncation has no effect"),
        ({"variant": "ccwm-trunkated"}, "Did you mean 'ccwm-truncated'?"),
        ({"overrides": {"truncation.start": 160}}, "end before truncation.start (160)"),
        ({"task": "maze_two_romos"}, "Did you mean 'maze_two_rooms'?"),
        ({"task": "cartpole_balance", "measure": "truncation_f1"}, "only a maze knows"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(tune: dict[str, Any], told: str) -> None:
    settings = make_settings(**tune)
    with pytest.raises(UserError) as refused:
        make_space(settings)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("tune", "told"),
    [
        ({"space": {"truncation.threshold": entry(low=2.0)}}, "must have a low that is below its high"),
        ({"space": {"truncation.threshold": entry(choices=[1])}}, "no choices, as its kind is float"),
        ({"space": {"retrace.loss": {"kind": "choice", "choices": []}}}, "must have `choices`, at least one"),
        ({"space": {"truncation.window": entry(kind="int")}}, "whole numbers as bounds"),
        ({"space": {"truncation.threshold": entry(low=0.0, log=True)}}, "must have a number above 0 as its low"),
        ({"space": {"truncation.window": entry(kind="intt")}}, "tune.space.truncation.window.kind"),
        ({"space": {}}, "tune.space"),
        ({"seeds": [0, 100]}, "must not name a seed twice"),
        ({"trials": None}, "must have trials, hours or both"),
        ({"storage": "sqlite:///study.db"}, "an address as `postgresql://user@host/database`"),
    ],
)
def test_a_malformed_search_is_refused_with_the_settings(tune: dict[str, Any], told: str) -> None:
    with pytest.raises(BadParams) as refused:
        make_settings(**tune)
    assert told in str(refused.value)


def test_a_high_outside_the_space_is_the_setting_s_value() -> None:
    space = {"truncation.lookback": {"kind": "int", "low": 0, "high": "truncation.window"}}
    settings = make_settings(space=space)
    assert make_space(settings).parameters["truncation.lookback"].high == 3  # the smoke preset's window


@pytest.mark.parametrize("name", preset_names(ROOT / "presets"))
def test_every_shipped_search_can_start(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = load_preset(name)
    assert anchors(settings, make_space(settings))
