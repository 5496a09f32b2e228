"""Variants override what only training reads; a stage sees, and is keyed by, just what it declares."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue
from settings_helpers import GOOD, edited, load, refusal

from ccwm.cells import STAGES, settings_hash, stage_values
from ccwm.settings.loading import OBSERVERS, for_stage
from ccwm.settings.parsing import BadParams, parse
from ccwm.settings.schema import Settings
from ccwm.settings.variants import OVERRIDABLE, resolve


def settings(**changes: JsonValue) -> Settings:
    return parse(edited(**changes), where="test")


def test_an_override_changes_its_field_and_nothing_else() -> None:
    before = settings(variants__probe={"retrace.weight": 0.25, "model.depth": 3})
    after = resolve(before, "probe")
    assert (after.retrace.weight, after.model.depth) == (0.25, 3)
    undone = {"retrace": before.retrace, "model": before.model}
    assert after.model_copy(update=undone) == before
    assert after.retrace.model_copy(update={"weight": before.retrace.weight}) == before.retrace


def test_an_empty_variant_is_the_settings_themselves() -> None:
    before = settings(variants__probe={})
    assert resolve(before, "probe") == before


def test_an_unknown_variant_is_guessed() -> None:
    with pytest.raises(BadParams, match=r"unknown variant 'dreamers'\. Did you mean 'dreamer'\? Known: "):
        resolve(settings(), "dreamers")


def test_a_study_names_only_variants_that_are_defined(tmp_path: Path) -> None:
    told = refusal(tmp_path, edited(study__variants=["cwm"]))
    assert told.startswith("study.variants: 'cwm' is not defined. Did you mean 'ccwm'?")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("retrace.weigth", 1, "variants.probe.retrace.weigth: `retrace` has no field 'weigth'. Did you mean 'weight'?"),
        ("retrace", {"weight": 1}, "variants.probe.retrace: a variant overrides `section.field`"),
        (
            "evaluate.episodes",
            3,
            "variants.probe.evaluate.episodes: a variant overrides `section.field` with a section",
        ),
        ("env.size", 64, "variants.probe.env.size: a variant overrides `section.field` with a section of model, "),
        ("retrace.weight", -1, "variants.probe: retrace.weight: must be a number of at least 0, got -1"),
        ("retrace.weight", True, "variants.probe: retrace.weight: must be a number of at least 0, got true"),
        ("retrace.weight", float("inf"), "variants.probe: retrace.weight: must be finite, a number of at least 0"),
    ],
)
def test_a_bad_override_is_refused_even_where_the_study_leaves_it_out(
    tmp_path: Path, key: str, value: JsonValue, told: str
) -> None:
    assert refusal(tmp_path, edited(variants__probe={key: value})).startswith(told)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_sees_just_the_sections_that_it_declares(stage: str) -> None:
    view = for_stage(settings(), stage)
    for section in Settings.model_fields:
        if section in (*STAGES[stage], *OBSERVERS):
            assert getattr(view, section) == getattr(settings(), section)
        else:
            with pytest.raises(AttributeError, match=f"stage {stage} reads `{section}` without declaring it"):
                getattr(view, section)


def test_variants_override_only_what_no_other_stage_reads() -> None:
    assert not set(OVERRIDABLE) & {section for stage, read in STAGES.items() if stage != "train" for section in read}


@pytest.mark.parametrize("stage", STAGES)
def test_the_hash_changes_with_what_a_stage_reads_and_with_nothing_else(stage: str) -> None:
    before = settings()
    elsewhere = resolve(settings(**OTHER_VALUES, variants__probe=OTHER_LEARNING), "probe")
    for section in Settings.model_fields:
        after = before.model_copy(update={section: getattr(elsewhere, section)})
        assert getattr(after, section) != getattr(before, section), f"give {section} another value in this test"
        changed = settings_hash(after, stage, task="t", seed=0) != settings_hash(before, stage, task="t", seed=0)
        assert changed == (section in STAGES[stage]), section


OTHER_VALUES: dict[str, JsonValue] = {
    "study__seeds": [99],
    "env__time_limit": 777,
    "render__quality": "full" if GOOD["render"]["quality"] == "fast" else "fast",
    "collect__heldout": 77,
    "trainer__threads": 77,
    "evaluate__episodes": 777,
    "rollout__horizon": 77,
    "states__neighbours": 77,
    "transfer__draws": 77,
    "report__title": "Another title",
    "tracking__experiment": "another",
    "tune__top": 77,
}
OTHER_LEARNING: dict[str, JsonValue] = {
    "replay.capacity": 777_777,
    "model.depth": 77,
    "retrace.weight": 0.77,
    "truncation.window": 77,
    "actor_critic.horizon": 77,
    "optimiser.clip": 77.0,
    "train.batch": 77,
}


@pytest.mark.parametrize("other", [{"task": "u"}, {"variant": "w"}, {"seed": 1}], ids=lambda other: next(iter(other)))
def test_the_hash_changes_with_task_variant_and_seed(other: dict[str, str | int]) -> None:
    identity: dict[str, str | int] = {"task": "t", "variant": "v", "seed": 0}
    assert settings_hash(settings(), "train", **identity) != settings_hash(settings(), "train", **{**identity, **other})


def test_the_hash_does_not_change_with_how_a_number_is_written() -> None:
    whole, decimal = settings(retrace__weight=1), settings(retrace__weight=1.0)
    assert settings_hash(whole, "train") == settings_hash(decimal, "train")


def test_a_stage_tracks_the_values_that_it_reads(tmp_path: Path) -> None:
    values = stage_values(load(tmp_path, edited(evaluate__episodes=7)), "evaluate")
    assert values == {"trainer": GOOD["trainer"], "evaluate": {"episodes": 7}}
