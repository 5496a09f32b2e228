from __future__ import annotations

import pytest

from ccwm.report import format


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
    assert format.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (4.25, "4.2 s"), (185.0, "3 min 05 s"), (7620.0, "2 h 07 min")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert format.duration(seconds) == text


def test_the_rest() -> None:
    assert [format.scientific(7.27e-6), format.scientific(1e8)] == ["7.27 × 10⁻⁶", "10⁸"]
    assert [format.steps(6.5), format.steps(12.0), format.steps(None)] == ["6.5", "12", "–"]
    assert [format.p_value(0.0004), format.p_value(0.05)] == ["< 0.001", "0.050"]
    assert [format.count(1, "seed"), format.count(20000, "step")] == ["1 seed", "20,000 steps"]
    assert format.listing(["a", "b", "c"]) == "a, b and c"
    assert [format.beside(1.0, 2.0), format.beside(1.0, None)] == ["1.00 (2.00)", "1.00"]
    assert format.interval(1.0, None) == "–"
    assert format.signed(2.0) == "+2.00"
