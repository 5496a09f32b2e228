"""A cell of the matrix: its names and paths, what it needs, and the hash of what it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue
from settings_helpers import GOOD, edited

from ccwm.cells import STAGES, Cell, cells, settings_hash, stage_values
from ccwm.settings.agent import SAC, Agent, PlayVirtual
from ccwm.settings.parsing import parse
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve


def settings(**changes: JsonValue) -> Settings:
    return parse(edited(**changes), where="test")


def test_a_cell_names_its_stage_its_run_and_its_files() -> None:
    cell = Cell("train", "walker_walk", "ccwm", 0)
    assert (str(cell), cell.title) == ("train@walker_walk-ccwm-0", "ccwm · walker_walk · seed 0")
    assert cell.tags == {"stage": "train", "task": "walker_walk", "variant": "ccwm", "seed": "0"}
    assert cell.model == Path("models/walker_walk/ccwm/0")
    assert cell.record == Path("results/train/walker_walk/ccwm/0/run.json")
    assert (str(Cell("collect", "maze_pit", seed=3)), Cell("collect", "maze_pit", seed=3).title) == (
        "collect@maze_pit-3",
        "collect · maze_pit · seed 3",
    )
    report = Cell("report")
    assert (str(report), report.results, report.record) == ("report", Path("report"), Path("results/report/run.json"))


def test_a_study_has_a_cell_for_each_stage_task_variant_and_seed() -> None:
    study = settings(study__tasks=["a"], study__variants=["dreamer", "ccwm"], study__seeds=[0, 1]).study
    names = [str(cell) for cell in cells(study)]
    assert names[:3] == ["collect@a-0", "collect@a-1", "train@a-dreamer-0"]
    assert names[-1] == "report"
    assert len(names) == 2 + 4 * 4 + 1


def test_what_a_cell_needs() -> None:
    cell = Cell("evaluate", "t", "v", 0)
    assert cell.needs == [Cell("collect", "t", seed=0), Cell("train", "t", "v", 0)]
    assert Cell("train", "t", "v", 0).needs == [Cell("collect", "t", seed=0)]
    assert Cell("collect", "t", seed=0).needs == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_hash_changes_with_what_a_stage_reads_and_with_nothing_else(stage: str) -> None:
    before = settings()
    elsewhere = resolve(settings(**OTHER_VALUES, variants__probe=OTHER_LEARNING), "probe").model_copy(update=OTHER_KIND)
    cell = Cell(stage, "t", "v", 0)
    for section in Settings.model_fields:
        after = before.model_copy(update={section: getattr(elsewhere, section)})
        assert getattr(after, section) != getattr(before, section), f"give {section} another value in this test"
        changed = settings_hash(after, cell) != settings_hash(before, cell)
        assert changed == (section in STAGES[stage]), section


OTHER_VALUES: dict[str, JsonValue] = {
    "study__seeds": [99],
    "env__time_limit": 777,
    "collect__heldout": 77,
    "trainer__threads": 77,
    "evaluate__episodes": 777,
    "rollout__horizon": 77,
    "latents__neighbours": 77,
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
    "optimiser.grad_clip": 77.0,
    "train.batch": 77,
}
OTHER_KIND = {
    "agent": Agent(kind="sac"),
    "sac": SAC.model_validate({"units": 77}),
    "playvirtual": PlayVirtual.model_validate({"units": 77}),
}
"""Together with the others they would be refused."""


@pytest.mark.parametrize("other", [{"task": "u"}, {"variant": "w"}, {"seed": 1}], ids=lambda other: next(iter(other)))
def test_the_hash_changes_with_task_variant_and_seed(other: dict[str, str | int]) -> None:
    cell = Cell("train", "t", "v", 0)
    assert settings_hash(settings(), cell) != settings_hash(settings(), replace(cell, **other))  # type: ignore[arg-type]


def test_the_hash_does_not_change_with_how_a_number_is_written() -> None:
    whole, decimal = settings(retrace__weight=1), settings(retrace__weight=1.0)
    assert settings_hash(whole, Cell("train")) == settings_hash(decimal, Cell("train"))


def test_a_stage_tracks_the_values_that_it_reads() -> None:
    values = stage_values(settings(evaluate__episodes=7), "evaluate")
    assert values == {"trainer": GOOD["trainer"], "evaluate": {"episodes": 7}}
