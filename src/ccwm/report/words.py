"""How numbers and outcomes are put into words."""

from __future__ import annotations

from collections.abc import Callable

from ccwm.report.results import STAGES, Results, average, is_dirty
from ccwm.report.statistics import Estimate
from ccwm.report.summaries import Evaluation, Prediction, evaluations, predictions, return_difference

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


def beside(value: float | None, other: float | None) -> str:
    """A value with another in brackets, for comparison."""
    return number(value) if value is None or other is None else f"{number(value)} ({number(other)})"


def interval(low: float | None, high: float | None, form: Form = number) -> str:
    """low to high, or a dash."""
    return NONE if low is None or high is None else f"{form(low)} to {form(high)}"


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


def listing(names: list[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def comparison(results: Results) -> str:
    """What was compared, on what, and with what budget."""
    what = f"{listing(results.variants)} on {listing(results.tasks)}, {count(len(results.seeds), 'seed')} each."
    trained = results.cells("train")
    frames, updates = ([cell.number(key) for cell in trained] for key in ("env_steps", "updates"))
    if (mean_steps := average(frames)) is None:
        return f"{what} No training has finished yet."
    budget = f"{count(round(mean_steps), 'environment step')} (simulator frames)"
    if (mean_updates := average(updates)) is not None:
        budget += f" and {count(round(mean_updates), 'update')}"
    return f"{what} Each agent was trained for {budget}{', on average' if len({*frames}) > 1 else ''}."


def outcomes(results: Results) -> dict[str, str]:
    """The main outcome of every task in a few sentences, each with its uncertainty."""
    said = {}
    for task in results.tasks:
        rows = evaluations(results, task)
        parts = [*_return_words(results, task, rows), *_prediction_words(predictions(results, task))]
        said[task] = " ".join(parts) or "Nothing has been evaluated yet."
    return said


def _return_words(results: Results, task: str, rows: list[Evaluation]) -> list[str]:
    if not rows:
        return []
    known = [
        f"{row.variant} {number(row.mean)}" + ("" if row.low is None else f" ({interval(row.low, row.high)})")
        for row in rows
    ]
    if (random := results.random_level(task)) is not None:
        known.append(f"random policy {number(random)}")
    sentences = [f"Return with its 95% interval: {', '.join(known)}."]
    for row in rows:
        if row.variant != results.reference and (found := return_difference(results, task, row.variant)):
            sentences.append(difference_words(row.variant, results.reference, *found))
    return sentences


def difference_words(variant: str, reference: str, difference: Estimate, pairs: str) -> str:
    """The verdict on a difference: clear only where its 95% interval leaves out zero."""
    size = signed(difference.mean)
    if difference.low is None or difference.high is None:
        return f"{variant} − {reference} is {size} from a single pair: no interval, so no verdict."
    paired = f"95% interval {interval(difference.low, difference.high)}, {difference.n} paired {pairs}"
    if difference.low > 0:
        return f"{variant} is ahead of {reference} by {number(difference.mean)} ({paired})."
    if difference.high < 0:
        return f"{variant} is behind {reference} by {number(-difference.mean)} ({paired})."
    return f"There is no clear difference between {variant} and {reference}: {size} ({paired})."


def _prediction_words(rows: list[Prediction]) -> list[str]:
    useful = [f"{steps(row.useful_steps)} ({row.variant})" for row in rows if row.useful_steps is not None]
    median = [f"{steps(row.useful_median)} ({row.variant})" for row in rows if row.useful_median is not None]
    if not useful:
        return []
    said = (
        f"The mean error of open-loop prediction stays below a frozen frame’s for {listing(useful)} of "
        f"{rows[0].horizon} steps"
    )
    return [f"{said}; in the median episode for {listing(median)}." if median else f"{said}."]


def caveats(results: Results) -> list[str]:
    """What the numbers cannot say: few seeds, unfinished stages, mixed or uncommitted code."""
    said = []
    if len(results.seeds) == 1:
        said.append("1 seed: no statement about seeds. Intervals cover the episodes of one agent each.")
    elif len(results.seeds) < 5:
        said.append(f"{len(results.seeds)} seeds: intervals over seeds are wide and rough.")
    expected = [cell for stage in STAGES for cell in results.expected(stage)]
    absent = [cell for cell in expected if not cell.present]
    if absent:
        said.append(f"{len(absent)} of {count(len(expected), 'result')} are missing; each section says which.")
    runs = [run for cell in expected if cell.present and (run := cell.run())]
    commits = {run["commit"] for run in runs if run.get("commit")}
    if len(commits) > 1:
        said.append(f"The results come from {len(commits)} different commits; the list of runs says which.")
    if dirty := sum(map(is_dirty, runs)):
        said.append(f"{count(dirty, 'result')} came from code with uncommitted changes.")
    return said
