"""A study in numbers over environment steps: for each task and variant, returns over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ccwm.cells import Cell
from ccwm.ops.statistics import interquartile_mean
from ccwm.readers import read_object
from ccwm.report import format, learning
from ccwm.report.sources import OWN, Source
from ccwm.report.statistics import estimate
from ccwm.training.history import read_curve


class Summary(NamedTuple):
    """All seeds of a task and variant."""

    title: str
    """`ccwm · walker_walk · 3 seeds`, then the name of a study that is not the project's own."""
    tags: dict[str, str]
    points: dict[int, dict[str, float]]
    """By environment steps that all seeds were evaluated at: mean, 95% t interval and interquartile mean."""
    runs: list[str]
    """The ids of the MLflow runs that trained the agents."""


def summaries(sources: Iterable[Source]) -> Iterator[Summary]:
    """Every task and variant of every study that has a learning curve."""
    for source in sources:
        for task in source.results.study.tasks:
            curves = source.results.load("train", task, read_curve, learning.FILES)
            for variant, found in curves.items():
                seeds = format.count(len(found), "seed")
                title = " · ".join((variant, task, seeds, *([source.name] if source.name != OWN else ())))
                tags = {"stage": "study", "study": source.name, "task": task, "variant": variant}
                returns = [dict(zip(of["env_steps"], of["return_mean"], strict=True)) for of in found.values()]
                shared = sorted(set.intersection(*map(set, returns)))
                points = {int(steps): _over_seeds([of[steps] for of in returns]) for steps in shared}
                yield Summary(title, tags, points, [*_runs(source, found)])


def _over_seeds(returns: list[float]) -> dict[str, float]:
    over = estimate(returns)
    found = {"mean": over.mean, "low": over.low, "high": over.high, "iqm": float(interquartile_mean(np.array(returns)))}
    return {f"study/return_{name}": value for name, value in found.items() if value is not None}


def _runs(source: Source, cells: Iterable[Cell]) -> Iterator[str]:
    for cell in cells:
        path = source.results.root / cell.record
        if path.is_file():
            yield str(read_object(path)["run_id"])
