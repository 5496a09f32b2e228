"""The space: every draw is allowed, every point can be asked for again, and what validation refuses never starts."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tuning_project import ROOT, TINY, write_params

from ccwm.settings.parsing import BadParams
from ccwm.settings.presets import load_preset, preset_names
from ccwm.settings.tune import Parameter
from ccwm.tuning.space import Space, default_point, make_space, paper_point, trial_settings
from ccwm.tuning.study import anchors

SPACE = Space({key: Parameter(**entry) for key, entry in TINY["tune"]["space"].items()})


class Drawn:
    """A trial that draws at random, or what it was told."""

    def __init__(self, random: Random, told: dict[str, Any]) -> None:
        self.random, self.told = random, told

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return float(self.told.get(name, self.random.uniform(low, high)))

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        return int(self.told.get(name, self.random.randint(low, high)))

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        return self.told.get(name, self.random.choice(choices))


def test_every_draw_keeps_the_lookback_within_the_window_and_reaches_both_ends() -> None:
    random = Random(0)
    points = [SPACE.suggest(Drawn(random, {})) for _ in range(500)]
    assert all(0 <= point["truncation.lookback"] <= point["truncation.window"] for point in points)
    assert {point["truncation.lookback"] for point in points} == set(range(6))
    widest = [point["truncation.lookback"] for point in points if point["truncation.window"] == 2]
    assert {lookback: widest.count(lookback) > 20 for lookback in range(3)} == dict.fromkeys(range(3), True)


def test_a_point_can_be_asked_for_again() -> None:
    for window in range(2, 6):
        for lookback in range(window + 1):
            point = {"truncation.threshold": 0.1, "truncation.window": window, "truncation.lookback": lookback}
            assert SPACE.suggest(Drawn(Random(0), SPACE.params(point))) == point


def test_a_value_outside_is_moved_with_a_word_and_null_means_the_most() -> None:
    point, moved = SPACE.clip({"truncation.threshold": 0.9, "truncation.window": 10, "truncation.lookback": None})
    assert point == {"truncation.threshold": 0.5, "truncation.window": 5, "truncation.lookback": 5}
    assert moved == ["truncation.threshold: 0.9 → 0.5", "truncation.window: 10 → 5"]


def test_a_grid_has_every_combination_once_and_none_that_is_not_allowed() -> None:
    points = SPACE.grid(3)
    # Thresholds 0.02, 0.1, 0.5; windows 2, 4 (3.5 rounds up), 5; lookbacks {0, 1, 2}, {0, 2, 4}, {0, 3, 5}.
    assert len(points) == 3 * 3 * 3
    assert sorted({point["truncation.threshold"] for point in points}) == [0.02, 0.1, 0.5]
    pairs = {(point["truncation.window"], point["truncation.lookback"]) for point in points}
    assert pairs == {(2, 0), (2, 1), (2, 2), (4, 0), (4, 2), (4, 4), (5, 0), (5, 3), (5, 5)}
    assert len(SPACE.grid(100)) == 100 * sum(window + 1 for window in range(2, 6))


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
        ({"variant": "ccwm"}, "no setting of truncation has any effect"),
        ({"variant": "ccwm-trunkated"}, "Did you mean 'ccwm-truncated'?"),
        ({"overrides": {"truncation.start": 160}}, "end before truncation.start (160)"),
        ({"task": "maze_two_romos"}, "Did you mean 'maze_two_rooms'?"),
        ({"task": "cartpole_balance", "measure": "truncation_f1"}, "only a maze knows"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(tmp_path: Path, tune: dict[str, Any], told: str) -> None:
    settings = write_params(tmp_path / "params.yaml", **tune)
    with pytest.raises(ValueError) as refused:  # noqa: PT011
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
def test_a_malformed_search_is_refused_with_the_settings(tmp_path: Path, tune: dict[str, Any], told: str) -> None:
    with pytest.raises(BadParams) as refused:
        write_params(tmp_path / "params.yaml", **tune)
    assert told in str(refused.value)


def test_a_high_outside_the_space_is_the_setting_s_value(tmp_path: Path) -> None:
    space = {"truncation.lookback": {"kind": "int", "low": 0, "high": "truncation.window"}}
    settings = write_params(tmp_path / "params.yaml", space=space)
    assert make_space(settings).parameters["truncation.lookback"].high == 3  # the smoke preset's window


def test_the_first_points_are_the_default_and_the_paper_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = write_params(tmp_path / "params.yaml")
    space = make_space(settings)
    assert default_point(settings, space)[0] == {
        "truncation.threshold": 0.1,
        "truncation.window": 3,
        "truncation.lookback": 2,
    }
    point, moved = paper_point(settings, space)
    assert point == {"truncation.threshold": 0.1, "truncation.window": 5, "truncation.lookback": 5}
    assert moved == ["truncation.window: 10 → 5"]
    assert [anchor.name for anchor in anchors(settings, space)] == ["default", "paper"]
    same = write_params(tmp_path / "params.yaml", overrides={"truncation.window": 5, "truncation.lookback": 5})
    assert [anchor.name for anchor in anchors(same, space)] == ["default, paper"]


def test_a_trial_has_the_variant_s_settings_with_overrides_and_the_point(tmp_path: Path) -> None:
    settings = write_params(tmp_path / "params.yaml", overrides={"train.updates": 7, "truncation.threshold": 0.3})
    resolved = trial_settings(settings, {"truncation.threshold": 0.2})
    assert (resolved.truncation.mode, resolved.truncation.threshold, resolved.train.updates) == ("adaptive", 0.2, 7)


@pytest.mark.parametrize("name", preset_names(ROOT / "presets"))
def test_every_shipped_search_can_start(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    settings = load_preset(name)
    assert anchors(settings, make_space(settings))
