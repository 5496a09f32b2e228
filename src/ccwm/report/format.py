"""Numbers in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

NONE = "–"
Form = Callable[[float | None], str]
"""A way to write a number that may be missing."""


def number(value: float | None) -> str:
    """A measured value with the digits that matter: 312.4, 4.56, 0.0789; a dash for None."""
    if value is None:
        return NONE
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.001:
        return f"{value:.1e}".replace("-", "−")
    decimals = 1 if size >= 100 else 2 if size >= 1 else 4 if size < 0.1 else 3
    return f"{value:,.{decimals}f}".replace("-", "−")


def value(of: str | float) -> str:
    """A text as it is, a count without decimals, a measured value with the digits that matter."""
    return of if isinstance(of, str) else whole(of) if isinstance(of, int) else number(of)


def whole(value: float | None) -> str:
    """A count without decimals: 12,500."""
    return NONE if value is None else f"{value:,.0f}"


def scientific(value: float) -> str:
    """A number as the paper prints it: 7.27 × 10⁻⁶, 10⁸."""
    digits, _, exponent = f"{value:.2e}".partition("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(digits) == 1 else f"{digits} × {power}"


def steps(value: float | None) -> str:
    """A number of steps, which may be a median between two: 6.5, 12."""
    return NONE if value is None else f"{value:.2f}".rstrip("0").removesuffix(".")


def signed(value: float | None) -> str:
    """A difference, with its sign even if positive."""
    return ("+" if value is not None and value > 0 else "") + number(value)


def spread(mean: float | None, sd: float | None) -> str:
    """mean ± sd, or the mean alone."""
    return number(mean) if sd is None else f"{number(mean)} ± {number(sd)}"


def beside(value: float | None, other: float | None, form: Form = number) -> str:
    """A value with another in brackets, where there is one."""
    return form(value) if value is None or other is None else f"{form(value)} ({form(other)})"


def interval(low: float | None, high: float | None, form: Form = number) -> str:
    """low to high, or a dash."""
    return NONE if low is None or high is None else f"{form(low)} to {form(high)}"


def around(mean: float | None, low: float | None, high: float | None) -> str:
    """A mean with its interval in brackets, where there is one."""
    return number(mean) if low is None else f"{number(mean)} ({interval(low, high)})"


def p_value(value: float | None) -> str:
    """Three decimals, and no pretence below them."""
    if value is None:
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float | None) -> str:
    """Seconds as 42 s, 3 min 05 s or 2 h 07 min."""
    if seconds is None:
        return NONE
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def count(n: int, noun: str) -> str:
    """1 seed, 5 seeds, 20,000 steps."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def inputs(observation: str) -> str:
    """What agents see, as a person says it: from states."""
    return f"from {observation.removesuffix('s')}s"


def listing(names: Sequence[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
