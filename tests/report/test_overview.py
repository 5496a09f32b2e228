from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from ccwm.report.overview import caveats, comparison, difference_words, differences, head, write_overview
from ccwm.report.section import Report
from ccwm.report.statistics import Estimate

from .results_tree import results


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Estimate(5.0, 1.0, 2.0, 8.0, 4), "ahead of dreamer by 5.00"),
        (Estimate(-5.0, 1.0, -8.0, -2.0, 4), "behind dreamer by 5.00"),
        (Estimate(5.0, 9.0, -2.0, 12.0, 4), "no clear difference"),
        (Estimate(5.0, None, None, None, 1), "no interval"),
    ],
)
def test_the_words_follow_the_interval(difference: Estimate, said: str) -> None:
    assert said in difference_words("ccwm", "dreamer", difference, "seeds")


def test_episodes_of_one_seed_decide_nothing_about_variants() -> None:
    said = difference_words("ccwm", "dreamer", Estimate(-5.0, 1.0, -8.0, -2.0, 10), "episodes")
    assert "no verdict" in said
    assert "behind" not in said


def test_the_head_has_finding_budget_and_outcome(report: Report) -> None:
    got = head(report)
    assert "20,000 environment steps" in got["findings"][0]
    assert "20,000 environment steps" in got["comparison"]
    assert "2,000 updates" in got["comparison"]
    assert "10 paired episodes" in got["outcomes"]["walker_walk"]
    assert len(got["caveats"]) == 1  # one seed


def test_what_is_missing_is_counted(tmp_path: Path) -> None:
    assert caveats(results(tmp_path, seeds=5))[0].startswith("45 of 45 results")
    assert "No training" in comparison(results(tmp_path))


def test_the_picture_shows_what_there_is(
    report: Report, state_tree: Path, tmp_path: Path, make_report: Callable[..., Report]
) -> None:
    write_overview(report)
    path = report.folder / "figures" / "overview.png"
    whole = Image.open(path).size
    write_overview(make_report(state_tree))
    states = Image.open(path).size
    write_overview(make_report(tmp_path))
    empty = Image.open(path).size
    assert whole[0] == states[0] == empty[0] == 1536
    assert min(whole[1], states[1]) > empty[1]


def test_the_head_has_the_differences_of_the_study_that_its_sentences_are_about(report: Report) -> None:
    figure = differences(report)
    assert figure is not None
    assert figure.file == "differences"
    assert "than that of dreamer of the same seed" in figure.note
