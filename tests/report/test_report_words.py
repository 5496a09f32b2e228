from __future__ import annotations

import pytest

from ccwm.report import words
from ccwm.report.figures import inline, variant_colours
from ccwm.report.statistics import Estimate
from ccwm.report.strips import shown_steps
from ccwm.report.tables import public_store


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (1234.56, "1,234.6"),
        (-312.44, "−312.4"),
        (4.564, "4.56"),
        (0.4567, "0.457"),
        (0.01234, "0.0123"),
        (0.00001, "1.0e−05"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (4.25, "4.2 s"), (185.0, "3 min 05 s"), (7620.0, "2 h 07 min")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (
            Estimate(5.0, 1.0, 2.0, 8.0, 4),
            "ccwm is ahead of dreamer by 5.00 (95% interval 2.00 to 8.00, 4 paired seeds).",
        ),
        (
            Estimate(-5.0, 1.0, -8.0, -2.0, 4),
            "ccwm is behind dreamer by 5.00 (95% interval −8.00 to −2.00, 4 paired seeds).",
        ),
        (
            Estimate(5.0, 9.0, -2.0, 12.0, 4),
            "There is no clear difference between ccwm and dreamer: +5.00 "
            "(95% interval −2.00 to 12.00, 4 paired seeds).",
        ),
        (Estimate(5.0, None, None, None, 1), "ccwm − dreamer is +5.00 from a single pair: no interval, so no verdict."),
    ],
)
def test_verdict_follows_the_interval(difference: Estimate, said: str) -> None:
    assert words.difference_words("ccwm", "dreamer", difference, "seeds") == said


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        (None, "–"),
        ("sqlite:////home/someone/mlflow.db", "sqlite: mlflow.db"),
        ("postgresql+psycopg://me:secret@db.example/runs", "postgresql: runs"),
        ("https://me:secret@tracking.example:5000/path", "tracking.example:5000"),
    ],
)
def test_store_is_shown_without_secrets_and_folders(uri: str | None, shown: str) -> None:
    assert public_store(uri) == shown


def test_given_colours_win_and_are_not_given_twice() -> None:
    got = variant_colours(["dreamer", "ccwm", "l2"], {"ccwm": "#0072B2"})
    assert got == {"dreamer": "#d55e00", "ccwm": "#0072B2", "l2": "#009e73"}


def test_strip_shows_the_end_of_the_context_and_the_last_prediction() -> None:
    assert shown_steps(5, 50) == [3, 4, 5, 11, 18, 24, 30, 36, 43, 49]
    assert shown_steps(1, 3) == [0, 1, 2]


def test_inline_figures_share_no_id() -> None:
    used = '<use xlink:href="#p" clip-path="url(#p)"/>'
    svg = f'<?xml version="1.0"?><svg xmlns:xlink="http://x" id="a"><path id="p"/>{used}</svg>'
    assert inline(svg, "one:x") == (
        '<svg id="one-x-a"><path id="one-x-p"/><use href="#one-x-p" clip-path="url(#one-x-p)"/></svg>'
    )
