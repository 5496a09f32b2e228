"""Variants override what only training reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue
from settings_helpers import edited, refusal

from ccwm.cells import STAGES
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
        ("retrace.weigth", 1, "variants.probe: retrace.weigth: is not a known key. Did you mean 'weight'?"),
        ("retrace", {"weight": 1}, "variants.probe.retrace: a variant overrides `section.field`"),
        (
            "evaluate.episodes",
            3,
            "variants.probe.evaluate.episodes: a variant overrides `section.field` with a section",
        ),
        ("optimiser.clip", 1.0, "variants.probe: optimiser.clip: is now called optimiser.grad_clip"),
        ("behaviour.trace", 1.0, "variants.probe: behaviour.trace: is now called actor_critic.return_lambda"),
        ("behaviour.discount", 0.9, "variants.probe: behaviour.discount: is now called actor_critic.discount"),
        ("env.size", 64, "variants.probe.env.size: a variant overrides `section.field` with a section of agent, "),
        ("retrace.weight", -1, "variants.probe: retrace.weight: must be a number of at least 0, got -1"),
        ("retrace.weight", True, "variants.probe: retrace.weight: must be a number of at least 0, got true"),
        ("retrace.weight", float("inf"), "variants.probe: retrace.weight: must be finite, a number of at least 0"),
    ],
)
def test_a_bad_override_is_refused_even_where_the_study_leaves_it_out(
    tmp_path: Path, key: str, value: JsonValue, told: str
) -> None:
    assert refusal(tmp_path, edited(variants__probe={key: value})).startswith(told)


def test_variants_override_only_what_no_other_stage_reads() -> None:
    assert not set(OVERRIDABLE) & {section for stage, read in STAGES.items() if stage != "train" for section in read}
