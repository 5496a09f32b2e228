from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.report import words
from ccwm.report.words import load, say

REPORT = Path(words.__file__).parent
SOURCES = "".join(path.read_text("utf-8") for path in [*REPORT.glob("*.py"), REPORT.parent / "study_page.py"])


def test_words_are_on_one_line_with_their_names_filled_in() -> None:
    said = say("claims", "scale", title="From pixels", seeds=3, budget=0.5, of="100,000")
    assert "3 seeds" in said
    assert "50%" in said
    assert "\n" not in said


@pytest.mark.parametrize("section", load())
def test_no_words_are_left_over(section: str) -> None:
    for name in load()[section]:
        assert f'"{name}"' in SOURCES, f"{section}.{name}"
