"""claims.yaml: whole, known, and each claim can be run by the preset that it names."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ccwm.envs.tasks import check_task
from ccwm.report.claims import BadClaims, Claim, Tiers, load_claims
from ccwm.settings.parsing import read_yaml
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve

ROOT = Path(__file__).parents[2]
PAPER = load_claims(ROOT / "claims.yaml")
GOOD = read_yaml(ROOT / "claims.yaml")


@pytest.mark.parametrize("tier", Tiers.model_fields)
@pytest.mark.parametrize("claim", PAPER.claims, ids=lambda claim: claim.id)
def test_its_preset_runs_what_it_needs(claim: Claim, tier: str) -> None:
    asked = PAPER.asked(claim, tier)
    if isinstance(asked, str):
        assert len(asked.split()) > 5
        return
    settings, scale = load_preset(asked.preset, ROOT / "presets"), getattr(PAPER.tiers, tier)
    assert settings.env.observation == scale.observation
    assert {*asked.tasks} <= {*settings.study.tasks}
    assert {*asked.variants} <= {*settings.study.variants}
    assert len(settings.study.seeds) >= scale.seeds
    needed = asked.env_steps if tier == "paper" else max(scale.budget, asked.budget or 0) * asked.env_steps
    for variant in asked.variants:
        assert resolve(settings, variant).train.env_steps >= needed
    for task in asked.tasks:
        check_task(task)
    assert asked.units in (None, settings.transfer.units)
    if asked.measure.stage == "transfer":
        assert str(asked.measure.key).split("/")[1].split("+") in settings.transfer.rows


def test_the_default_study_is_large_enough_for_the_reduced_tier() -> None:
    quick, scale = load_preset("quick", ROOT / "presets"), PAPER.tiers.states
    assert quick.env.observation == scale.observation
    assert len(quick.study.seeds) >= scale.seeds
    assert scale.env_steps is not None
    assert quick.train.env_steps >= scale.budget * scale.env_steps


def test_published_returns_are_of_the_same_inputs() -> None:
    from_states = PAPER.published_on("cheetah_run", "state")
    assert from_states["DreamerV3"] == {100000: 297.0, 200000: 405.0, 500000: 590.0}
    assert PAPER.published_on("cheetah_run", "pixels")["DreamerV3"][100000] == 305.0
    assert "DreamerV3" not in PAPER.published_on("quadruped_run", "state")
    assert PAPER.published_on("hopper_hop", "state")["DreamerV3"] == {100000: 1.0, 500000: 111.0}
    assert PAPER.published_on("cheetah_run", "state", 200.0) == {}  # of other episodes


def test_the_quoted_returns_are_those_of_the_paper() -> None:
    assert PAPER.quoted_on("cheetah_run") == {"D4PG": 523.8, "A3C": 213.9}
    assert PAPER.quoted_on("hopper_hop") == {"D4PG": 242.0, "A3C": 0.5}
    assert PAPER.quoted_on("cheetah_run", 1000.0) == {"D4PG": 523.8, "A3C": 213.9}
    assert PAPER.quoted_on("cheetah_run", 200.0) == {}  # shorter episodes are another scale
    assert PAPER.quoted_on("quadruped_run") == {}
    assert [len(of.returns) for of in PAPER.quoted] == [7, 7]


def test_the_transfer_table_is_that_of_the_paper() -> None:
    rows = PAPER.transfer.rows
    assert list(rows) == ["R", "R+M", "R+F", "R+S", "R+M+F", "R+M+S+F"]
    assert rows["R+M+F"].model_dump() == {"ccwm": (628.07, 36.95), "dreamer": (468.82, 94.73), "p": 7.27e-6}
    assert [row.p < 0.01 for row in rows.values()] == [False, False, False, False, True, True]


def test_what_the_paper_claims_is_there() -> None:
    ids = {claim.id for claim in PAPER.claims}
    assert {
        "outperforms-dreamer",
        "cheetah-900",
        "longer-walker",
        "longer-cheetah",
        "transfer-r",
        "transfer-r-m-s-f",
        "truncation-helps",
        "truncation-neutral",
        "bisimulation-beats-l2",
        "one-sample-is-enough",
    } <= ids
    curves = {task for claim in PAPER.claims for task in claim.tasks if claim.preset == "paper-curves"}
    assert len(curves) == 8


def changed(**fields: Any) -> dict[str, Any]:
    """The file with the first claim's fields changed; None takes a field away."""
    content = copy.deepcopy(GOOD)
    for name, value in fields.items():
        content["claims"][0] |= {name: value}
        if value is None:
            del content["claims"][0][name]
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(says=None), r"claims.yaml: claims.0.says: Field required"),
        (changed(colour="red"), r"claims.0.colour: Extra inputs are not permitted"),
        (changed(env_steps="many"), r"claims.0.env_steps: "),
        (changed(env_steps=0), r"claims.0.env_steps: Input should be greater than or equal to 1"),
        (changed(tasks=[]), r"claims.0.tasks: "),
        (changed(rule={"kind": "nearly"}), r"claims.0.rule.kind: Input should be 'greater'"),
        (changed(rule={"kind": "at_least"}), r"claims.0.rule: kind `at_least` needs `value`"),
        (changed(rule={"kind": "greater", "margin": 0.1}), r"claims.0.rule: kind `greater` does not read `margin`"),
        (changed(rule={"kind": "tally", "ahead": 1}), r"claims.0.rule: kind `tally` needs `behind`"),
        (changed(measure={"stage": "evaluate"}), r"claims.0.measure: needs either `curve`, or `stage` and `key`"),
        (changed(than=None), r"claims.0: needs exactly one of `than`, `quoted` and `rule.value`"),
        (changed(than=None, quoted="D4PG"), r"claim 'outperforms-dreamer': 'D4PG' has no return for all"),
        (changed(states={"why": "Because.", "preset": "paper"}), r"claims.0.states: `why` stands alone"),
        (changed(states={"quoted": "SAC"}), r"needs exactly one of `than`, `quoted` and `rule.value`"),
        (changed(id="efficient-cheetah"), r"the id 'efficient-cheetah' stands twice"),
    ],
)
def test_a_bad_file_is_refused_by_its_key(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    path = tmp_path / "claims.yaml"
    with path.open("w") as file:
        YAML(typ="safe").dump(content, file)
    with pytest.raises(BadClaims, match=message):
        load_claims(path)
