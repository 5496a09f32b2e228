"""What the cells of each stage say together: one summary a row, numbers unrounded, cells named."""

from __future__ import annotations

from dataclasses import dataclass

from ccwm.report.results import STAGES, Cell, Results, average, finite
from ccwm.report.statistics import Estimate, Middle, estimate, interquartile_mean, paired_difference


@dataclass(frozen=True)
class Evaluation:
    """Greedy returns of one variant; spread and interval are over seeds, or over episodes where one seed ran."""

    task: str
    variant: str
    cells: tuple[Cell, ...]
    episodes: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    iqm: float | None
    iqm_low: float | None
    iqm_high: float | None
    score: float | None
    success_rate: float | None
    random_mean: float | None
    random_sd: float | None
    random_low: float | None
    random_high: float | None
    best_possible: float | None


@dataclass(frozen=True)
class Prediction:
    """Open-loop prediction of one variant, averaged over seeds."""

    task: str
    variant: str
    cells: tuple[Cell, ...]
    episodes: int
    context: int
    horizon: int
    useful_steps: float | None
    useful_low: float | None
    useful_high: float | None
    useful_median: float | None
    informed_steps: float | None
    informed_low: float | None
    informed_high: float | None
    error: float | None
    baseline_error: float | None
    ssim: float | None
    baseline_ssim: float | None


@dataclass(frozen=True)
class Cost:
    """What one stage cost for one variant, averaged over seeds; memory is the most that any seed took."""

    stage: str
    task: str
    variant: str | None
    cells: tuple[Cell, ...]
    seconds: float | None
    env_steps_per_second: float | None
    updates_per_second: float | None
    peak_memory_mb: float | None
    device: str


def evaluations(results: Results, task: str) -> list[Evaluation]:
    """One row for each variant that was evaluated on the task."""
    rows = []
    for variant in results.variants:
        cells = [
            c for c in results.cells("evaluate", task=task, variant=variant) if c.number("return_mean") is not None
        ]
        if cells:
            rows.append(_evaluation(task, variant, cells))
    return rows


def _evaluation(task: str, variant: str, cells: list[Cell]) -> Evaluation:
    def over(key: str) -> float | None:
        return average([cell.number(key) for cell in cells])

    mean, sd, low, high, _ = estimate([value for cell in cells if (value := cell.number("return_mean")) is not None])
    if len(cells) == 1:
        sd, low, high = over("return_sd"), over("return_low"), over("return_high")
    middle = _middle_of_returns(cells)
    return Evaluation(
        task=task,
        variant=variant,
        cells=tuple(cells),
        episodes=int(sum(cell.number("episodes") or 0 for cell in cells)),
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        iqm=middle.iqm,
        iqm_low=middle.low,
        iqm_high=middle.high,
        score=over("score"),
        success_rate=over("success_rate"),
        random_mean=over("random_mean"),
        random_sd=over("random_sd"),
        random_low=over("random_low"),
        random_high=over("random_high"),
        best_possible=over("best_possible"),
    )


def best_possible(results: Results, task: str) -> float | None:
    """The best possible return of an episode of this study; None where it is unknown."""
    return next((row.best_possible for row in evaluations(results, task) if row.best_possible is not None), None)


def _middle_of_returns(cells: list[Cell]) -> Middle:
    """Interquartile mean over seeds' returns, or over the episodes of a single seed."""
    returns = [value for cell in cells if (value := cell.number("return_mean")) is not None]
    if len(cells) == 1:
        returns = list(_returns_by_episode(cells[0]).values()) or returns
    return interquartile_mean([returns])


@dataclass(frozen=True)
class Aggregate:
    """Interquartile mean of a variant's scores over the seeds of several tasks, resampled task by task."""

    variant: str
    cells: tuple[Cell, ...]
    tasks: int
    iqm: float
    iqm_low: float | None
    iqm_high: float | None


def aggregates(results: Results) -> list[Aggregate]:
    """One row for each variant, over the tasks on which every variant has a score; none for fewer than two tasks."""

    def scored(task: str, variant: str) -> list[Cell]:
        cells = results.cells("evaluate", task=task, variant=variant)
        return [cell for cell in cells if cell.number("score") is not None]

    tasks = [task for task in results.tasks if all(scored(task, variant) for variant in results.variants)]
    if len(tasks) < 2:
        return []
    rows = []
    for variant in results.variants:
        strata = [scored(task, variant) for task in tasks]
        scores = [[value for cell in of if (value := cell.number("score")) is not None] for of in strata]
        cells = tuple(cell for of in strata for cell in of)
        rows.append(Aggregate(variant, cells, len(tasks), *interquartile_mean(scores)))
    return rows


def return_difference(results: Results, task: str, variant: str) -> tuple[Estimate, str] | None:
    """Variant − reference in evaluated return, and what the pairs are: "seeds", or "episodes" of one seed.

    Pairs share what can be shared: the first data of a training seed, or the start of an evaluated episode.
    """
    ours, theirs = (
        {cell.seed: value for cell in cells if (value := cell.number("return_mean")) is not None}
        for cells in (
            results.cells("evaluate", task=task, variant=variant),
            results.cells("evaluate", task=task, variant=results.reference),
        )
    )
    shared = sorted(ours.keys() & theirs.keys())
    if len(shared) == 1:
        by_episode = [
            _returns_by_episode(results.cell("evaluate", task, v, shared[0])) for v in (variant, results.reference)
        ]
        if (difference := paired_difference(*by_episode)) is not None:
            return difference, "episodes"
    difference = paired_difference(ours, theirs)
    return None if difference is None else (difference, "seeds")


def _returns_by_episode(cell: Cell) -> dict[int, float]:
    frame = cell.table("returns.csv", ["seed", "policy", "return"])
    if frame is None:
        return {}
    agent = frame[frame["policy"] == "agent"]
    return {int(seed): float(value) for seed, value in zip(agent["seed"], agent["return"], strict=True)}


def predictions(results: Results, task: str) -> list[Prediction]:
    """One row for each variant whose open-loop prediction was measured on the task."""
    rows = []
    for variant in results.variants:
        if cells := results.cells("rollout-viz", task=task, variant=variant):
            values = {key: average([cell.number(key) for cell in cells]) for key in _PREDICTION_KEYS}
            rows.append(
                Prediction(
                    task=task,
                    variant=variant,
                    cells=tuple(cells),
                    episodes=int(sum(cell.number("episodes") or 0 for cell in cells)),
                    context=int(values["context"] or 0),
                    horizon=int(values["horizon"] or 0),
                    useful_steps=values["useful_steps_of_mean"],
                    useful_low=values["useful_steps_of_mean_low"],
                    useful_high=values["useful_steps_of_mean_high"],
                    useful_median=values["useful_steps_median"],
                    informed_steps=values["informed_steps_of_mean"],
                    informed_low=values["informed_steps_of_mean_low"],
                    informed_high=values["informed_steps_of_mean_high"],
                    error=values["error_mean"],
                    baseline_error=values["baseline_error_mean"],
                    ssim=values["ssim_mean"],
                    baseline_ssim=values["baseline_ssim_mean"],
                )
            )
    return rows


_PREDICTION_KEYS = (
    "context",
    "horizon",
    "useful_steps_of_mean",
    "useful_steps_of_mean_low",
    "useful_steps_of_mean_high",
    "useful_steps_median",
    "informed_steps_of_mean",
    "informed_steps_of_mean_low",
    "informed_steps_of_mean_high",
    "error_mean",
    "baseline_error_mean",
    "ssim_mean",
    "baseline_ssim_mean",
)


def costs(results: Results) -> list[Cost]:
    """One row for each stage, task and variant that left a run record."""
    rows = []
    for stage in STAGES:
        for task in results.tasks:
            for variant in [None] if stage == "collect" else results.variants:
                cells = [cell for cell in results.cells(stage, task=task, variant=variant) if cell.run()]
                if cells:
                    rows.append(_cost(stage, task, variant, cells))
    return rows


def _cost(stage: str, task: str, variant: str | None, cells: list[Cell]) -> Cost:
    runs = [cell.run() for cell in cells]
    memory = [value for run in runs if (value := finite(run.get("peak_memory_mb"))) is not None]
    return Cost(
        stage=stage,
        task=task,
        variant=variant,
        cells=tuple(cells),
        seconds=average([finite(run.get("seconds")) for run in runs]),
        env_steps_per_second=average([finite(run.get("env_steps_per_second")) for run in runs]),
        updates_per_second=average([finite(run.get("updates_per_second")) for run in runs]),
        peak_memory_mb=max(memory, default=None),
        device=", ".join(dict.fromkeys(str(run["device"]) for run in runs if run.get("device"))),
    )
