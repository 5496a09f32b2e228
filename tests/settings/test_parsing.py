"""Bad values are refused before anything runs: the message names the key, what is allowed and what was given."""

from __future__ import annotations

import copy
import re
import time
from pathlib import Path
from typing import Any

import pytest
from settings_helpers import GOOD, edited, load, refusal

from ccwm.settings.parsing import RENAMED, BadParams, read_yaml
from ccwm.settings.reference import known_keys
from ccwm.settings.schema import Settings

INFINITE, NOT_A_NUMBER = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"env__action_repeat": True}, "env.action_repeat: must be a whole number from 1 to 16, got true"),
        ({"env__action_repeat": "3"}, 'env.action_repeat: must be a whole number from 1 to 16, got "3"'),
        ({"env__action_repeat": 17}, "env.action_repeat: must be a whole number from 1 to 16, got 17"),
        ({"env__action_repeat": None}, "env.action_repeat: must be a whole number from 1 to 16, got null"),
        ({"env__size": True}, "env.size: must be `32` or `64`, got true"),
        ({"env__size": 48}, "env.size: must be `32` or `64`, got 48"),
        ({"model__continues": 1}, "model.continues: must be `true` or `false`, got 1"),
        ({"model__continues": "no"}, 'model.continues: must be `true` or `false`, got "no"'),
        ({"retrace__weight": INFINITE}, "retrace.weight: must be finite, a number of at least 0, got Infinity"),
        ({"retrace__weight": NOT_A_NUMBER}, "retrace.weight: must be finite, a number of at least 0, got NaN"),
        ({"retrace__weight": "1e-4"}, 'retrace.weight: must be a number of at least 0, got "1e-4"'),
        ({"actor_critic__discount": 1.0}, "actor_critic.discount: must be a number above 0 and below 1, got 1.0"),
        ({"train__env_steps": 1e5}, "train.env_steps: must be a whole number of at least 1, got 100000.0"),
        ({"trainer__devices": 0}, "trainer.devices: must be a whole number from 1 to 64, got 0"),
        ({"trainer__devices": "all"}, 'trainer.devices: must be a whole number from 1 to 64, got "all"'),
        ({"study__seeds": [0, -1]}, "study.seeds.1: must be a whole number of at least 0 and below 2147483648, got -1"),
        (
            {"transfer__friction": [[1, 2]]},
            "transfer.friction.0: must be a list of 3, each a number above 0, got [1, 2]",
        ),
        ({"transfer__mass": [2, 0]}, "transfer.mass.1: must be a number above 0, got 0"),
        ({"transfer__mass": []}, "transfer.mass: must be a list of one or more, each a number above 0, got []"),
        ({"transfer__rows": [["R"], ["M", "M"]]}, 'transfer.rows.1: must not name one twice, got ["M", "M"]'),
        ({"transfer__rows": [["X"]]}, 'transfer.rows.0.0: must be `R`, `M`, `F`, `S` or `L`, got "X"'),
        ({"report__title": ""}, 'report.title: must be text of 1 to 200 characters, got ""'),
        ({"report__colours": {"ccwm": "red"}}, 'report.colours.ccwm: must be a colour as `#rrggbb`, got "red"'),
        ({"variants__ccwm": None}, "variants.ccwm: must be `{key: value}` pairs, got null"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_bad_value(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    assert refusal(tmp_path, edited(**change)) == told


def test_a_long_value_is_cut_short(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(report__title="long " * 100))
    assert told.endswith("...")
    assert len(told) < 150


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc", ".hidden", "..", "", "a\n", "a b", "a'b", "x" * 81])
@pytest.mark.parametrize("key", ["study__tasks", "study__variants", "transfer__layouts"])
def test_a_name_that_could_leave_the_project(tmp_path: Path, key: str, name: str) -> None:
    told = refusal(tmp_path, edited(**{key: [name]}))
    assert told.startswith(f"{key.replace('__', '.')}.0: must be a name of up to 80 letters, digits, ")


def test_an_experiment_name_that_could_leave_the_project(tmp_path: Path) -> None:
    assert refusal(tmp_path, edited(tracking__experiment="../x")).startswith("tracking.experiment: must be a name ")


def test_a_bad_name_of_a_mapping_is_told_at_its_key(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(report__colours={"a/b": "#ffffff"}))
    assert told.startswith("report.colours.a/b: must be a name of up to 80 letters")


def test_a_variant_with_a_dot(tmp_path: Path) -> None:
    """DVC follows `variants.<name>` dot by dot, and would never find this one."""
    told = refusal(tmp_path, edited(**{"variants__ccwm-0.5": {}}))
    assert told.startswith("variants.ccwm-0.5: must be a name ")
    assert "`.`" not in told


@pytest.mark.parametrize("name", ["walker_walk", "gym:Pendulum-v1", "my_module:MyEnv", "package.module:MyEnv"])
def test_a_good_task_name(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, edited(study__tasks=[name])).study.tasks == [name]


def test_an_unknown_key_with_the_nearest_guess(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(env__action_repeats=2))
    assert told.startswith("env.action_repeats: is not a known key. Did you mean 'action_repeat'? Known: observation, ")


def test_an_unknown_section_with_the_nearest_guess(tmp_path: Path) -> None:
    told = refusal(tmp_path, {**GOOD, "optimizer": {}})
    assert told.startswith("optimizer: is not a known key. Did you mean 'optimiser'? Known: ")


def test_a_renamed_field_is_called_by_its_new_name(tmp_path: Path) -> None:
    content = edited(optimiser__clip=100.0)
    del content["optimiser"]["grad_clip"]
    assert refusal(tmp_path, content) == "optimiser.clip: is now called optimiser.grad_clip"


def test_a_renamed_section_is_told_with_its_renamed_fields_and_nothing_else(tmp_path: Path) -> None:
    content = copy.deepcopy(GOOD)
    content["behaviour"] = {"discount": 0.9, "trace": 0.95, "starts": None}
    content["render"] = {"quality": "fast"}
    content["states"] = content.pop("latents")
    del content["actor_critic"]
    _, *lines = refusal(tmp_path, content).splitlines()
    told = dict(line.strip().split(": is now called ") for line in lines)
    assert told == {
        "behaviour": "actor_critic",
        "behaviour.trace": "actor_critic.return_lambda",
        "behaviour.starts": "actor_critic.starts_per_window",
        "render.quality": "env.render_quality",
        "states": "latents",
    }


@pytest.mark.parametrize("new", [name for new in RENAMED.values() for name in new.split(" and ")])
def test_every_new_name_is_a_key_of_the_settings(new: str) -> None:
    for key in new.split(" and "):
        section, dot, field = key.partition(".")
        assert section in Settings.model_fields
        assert not dot or field in known_keys([section])


def test_a_missing_section(tmp_path: Path) -> None:
    content = {name: section for name, section in GOOD.items() if name != "env"}
    assert refusal(tmp_path, content).startswith("env: is missing; its value is a section with the keys observation, ")


def test_a_section_without_content(tmp_path: Path) -> None:
    told = refusal(tmp_path, {**GOOD, "evaluate": None})
    assert told == "evaluate: must be a section with the keys episodes, got null"


def test_a_missing_section_that_has_defaults_is_not_filled_in(tmp_path: Path) -> None:
    content = {name: section for name, section in GOOD.items() if name != "agent"}
    assert refusal(tmp_path, content) == 'agent.kind: is missing; write it out, its default is "world_model"'


def test_a_missing_field_is_not_filled_in(tmp_path: Path) -> None:
    content = copy.deepcopy(GOOD)
    del content["model"]["free_nats"]
    assert refusal(tmp_path, content) == "model.free_nats: is missing; write it out, its default is 3.0"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    header, *lines = refusal(tmp_path, edited(env__size=1, evaluate__episodes=0)).splitlines()
    assert header.endswith("params.yaml:")
    assert [line.strip().partition(":")[0] for line in lines] == ["env.size", "evaluate.episodes"]


@pytest.mark.parametrize(("key", "values"), [("tasks", ["a", "a"]), ("variants", ["ccwm"] * 2), ("seeds", [3, 3])])
def test_an_entry_that_stands_twice(tmp_path: Path, key: str, values: list[Any]) -> None:
    assert refusal(tmp_path, edited(**{f"study__{key}": values})).startswith(
        f"study.{key}: must not name one twice, got ["
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"retrace__horizon": 12}, "retrace.horizon (12) must be below train.length (12)"),
        (
            {"truncation__mode": "adaptive", "truncation__window": 12},
            "truncation.window (12) must be below train.length (12), or no change of value would ever be seen",
        ),
    ],
)
def test_windows_too_short_for_what_they_serve_are_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    assert refusal(tmp_path, edited(train__length=12, **changes)) == told


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"train__batch": 16, "trainer__devices": 3},
            "train.batch (16) must be a multiple of trainer.devices (3), which share it evenly",
        ),
        (
            {"train__length": 12, "actor_critic__starts_per_window": 13},
            "actor_critic.starts_per_window (13) must be at most train.length (12)",
        ),
    ],
)
def test_what_could_not_be_shared_or_drawn_is_refused(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    assert refusal(tmp_path, edited(**changes)) == told


NINE = {name: ", ".join(9 * [f"*{name}"]) for name in "abcdefgh"}
LAUGHS = "a: &a [x]\n" + "".join(f"{chr(ord(name) + 1)}: &{chr(ord(name) + 1)} [{of}]\n" for name, of in NINE.items())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: " + "[" * 5_000_000, "5,000,003 bytes"),
        ("a: " + "[" * 30_000, "nested more than 12 deep"),
        ("a:\n " + "- " * 30_000 + "1\n", "nested more than 12 deep"),
        ("{a: " * 10_000, "nested more than 12 deep"),
        (LAUGHS, "line 2: *a: settings have no aliases"),
        ("a: " + "1" * 5000, "a number of 5,000 characters"),
        ("a: [" + "1," * 30_000 + "1]", "more than 4,000 keys and values"),
    ],
    ids=["size", "brackets", "dashes", "braces", "laughs", "digits", "wide"],
)
def test_what_would_take_for_ever_is_refused_at_once(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    began = time.process_time()
    with pytest.raises(BadParams, match=re.escape(told)):
        read_yaml(path)
    assert time.process_time() - began < 2  # on a busy machine; far below 1 on an idle one
