from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.errors import UserError
from ccwm.report.claims import Paper
from ccwm.report.sources import evidence_sources, own_source

from .results_tree import settings

PARAMS = """
study: {tasks: [cheetah_run], variants: [ccwm], seeds: [0, 1]}
env: {observation: pixels, a_key_of_another_version: 1}
transfer: {units: absolute}
"""


def test_every_directory_with_settings_is_a_study(tmp_path: Path, paper: Paper) -> None:
    for name in ("b", "a", "notes"):
        (tmp_path / "evidence" / name).mkdir(parents=True)
        if name != "notes":
            (tmp_path / "evidence" / name / "params.yaml").write_text(PARAMS)
    (tmp_path / "evidence" / "README.md").write_text("words")
    first, second = evidence_sources(tmp_path)
    assert (first.name, second.name, first.units) == ("a", "b", "absolute")
    assert first.results.study.seeds == [0, 1]
    assert first.results.root == tmp_path / "evidence" / "a"
    assert [first.is_of(paper.tiers, tier) for tier in ("paper", "states")] == [True, False]
    assert evidence_sources(tmp_path / "elsewhere") == []


def test_the_projects_own_study_has_its_tier_from_its_settings(tmp_path: Path, paper: Paper) -> None:
    own = own_source(tmp_path, settings(seeds=2))
    assert (own.results.root, own.results.study.seeds) == (tmp_path, [0, 1])
    assert [own.is_of(paper.tiers, tier) for tier in ("paper", "states")] == [False, True]


@pytest.mark.parametrize("text", ["study: 3\n", "study: {tasks: []}\n", "env: {}\n"])
def test_a_file_that_is_no_settings_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "evidence" / "a").mkdir(parents=True)
    (tmp_path / "evidence" / "a" / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"evidence/a/params\.yaml"):
        evidence_sources(tmp_path)
