"""The first sentences of the report: what was found, in the largest study that there is, from its numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ccwm.report import baseline, format, learning
from ccwm.report.claims import Paper
from ccwm.report.results import Results
from ccwm.report.sources import Source
from ccwm.report.statistics import Estimate, mean_of_means, paired_difference
from ccwm.report.words import say
from ccwm.training.history import read_curve, read_metrics

SAID = {"behind": "more slowly than", "ahead": "faster than", "level": "with no clear difference from"}
ALONE = {"behind": "behind", "ahead": "ahead", "level": "no clear difference"}
"""The same of a single task."""
NORMAL = {baseline.YES: "normal", baseline.NO: "below it", baseline.UNKNOWN: "too uncertain to call"}
SHOWN = 3
"""Variants that the first sentences speak of."""
NAMED = 2
"""Tasks that the first sentences name; of more they give the number."""
ENOUGH = 3
"""Seeds below which a task is not spoken of, as long as another has as many."""


class Gap(NamedTuple):
    """How much higher the learning curves of a variant are than the reference's: on each task, and over all."""

    tasks: dict[str, Estimate]
    overall: Estimate
    env_steps: int


def gap(results: Results, variant: str, *, seeds: int = 1) -> Gap | None:
    """Mean heights up to the end of the shortest curve: on each task paired by seed, over tasks the mean of theirs.

    Tasks of which fewer than ``seeds`` pairs have run are left out; of the others every pair counts.
    """
    found, steps = dict[str, Estimate](), list[int]()
    for task in results.study.tasks:
        curves = results.load("train", task, read_curve, learning.FILES)
        pair = [{cell.seed: cell for cell in curves.get(name, ())} for name in (variant, results.reference)]
        shared = pair[0].keys() & pair[1].keys()
        if len(shared) < seeds:
            continue
        ends = [results.read(of[seed], read_metrics).env_steps for of in pair for seed in shared]
        heights = [
            {seed: learning.curve_area(results.read(of[seed], read_curve), until=min(ends)) or 0.0 for seed in shared}
            for of in pair
        ]
        if (difference := paired_difference(*heights)) is not None:
            found[task] = difference
            steps.append(min(ends))
    return Gap(found, mean_of_means([*found.values()]), min(steps)) if found else None


def side(of: Estimate) -> str:
    """On which side of 0 the interval lies; without an interval, on neither."""
    return "ahead" if (of.low or 0.0) > 0 else "behind" if (of.high or 0.0) < 0 else "level"


def tasks_of(sides: dict[str, str], name: str) -> str:
    """The tasks of one side: by name where there are few, else how many."""
    tasks = [task for task, of in sides.items() if of == name]
    return format.listing(tasks) if len(sides) <= NAMED else f"{len(tasks)} of {len(sides)} tasks"


def sentence(source: Source, variant: str, found: Gap) -> str:
    """`From states at 30,000 environment steps, 3 seeds: over 2 tasks ccwm learned more slowly than dreamer …`."""
    reference, overall = source.results.reference, found.overall
    least, most = (which(of.n for of in found.tasks.values()) for which in (min, max))
    seeds = f"{least} to {most} seeds" if least < most else format.count(most, "seed")
    scale = f"{format.inputs(source.observation)} at {found.env_steps:,} environment steps, {seeds}"
    sides = {task: side(of) for task, of in found.tasks.items()}
    parts = [f"{ALONE[name]} on {tasks_of(sides, name)}" for name, _ in Counter(sides.values()).most_common()]
    size = format.signed(overall.mean)
    within = "no interval" if overall.low is None else f"95% {format.interval(overall.low, overall.high)} over seeds"
    said = {"scale": scale[0].upper() + scale[1:], "tasks": format.count(len(sides), "task"), "variant": variant}
    said |= {"overall": SAID[side(overall)], "reference": reference, "parts": format.listing(parts)}
    return say("head", "found", **said, size=size, within=within)


def normality(source: Source, paper: Paper) -> str:
    """On how many tasks the study's baseline is normal; nothing where it has no baseline."""
    rule = next((of for of in paper.normal if of.variant == source.results.reference), None)
    if rule is None:
        return ""
    rows = [baseline.compare(source, paper, rule, task) for task in source.results.study.tasks]
    counts = Counter(row["normal"] for row in rows if row is not None)
    said = [f"{words} on {format.count(counts[of], 'task')}" for of, words in NORMAL.items() if counts[of]]
    return (
        say("head", "baseline", counts=format.listing(said), variant=rule.variant, method=rule.method) if said else ""
    )


def largest(sources: Sequence[Source]) -> tuple[Source, dict[str, Gap]] | None:
    """The study that the first sentences are about: most environment steps, then most tasks, then most seeds."""
    for seeds in (ENOUGH, 1):
        found = []
        for source in sources:
            others = [variant for variant in source.results.study.variants if variant != source.results.reference]
            gaps = {name: of for name in others if (of := gap(source.results, name, seeds=seeds)) is not None}
            if gaps:
                first = next(iter(gaps.values()))
                found.append(((first.env_steps, len(first.tasks), first.overall.n), source, gaps))
        if found:
            _, source, gaps = max(found, key=lambda of: of[0])
            return source, gaps
    return None


def findings(sources: Sequence[Source], paper: Paper | None) -> list[str]:
    """What the largest study found."""
    found = largest(sources)
    if found is None:
        return []
    source, gaps = found
    said = [sentence(source, variant, of) for variant, of in list(gaps.items())[:SHOWN]]
    normal = normality(source, paper) if paper is not None else ""
    return [*said, normal] if normal else said
