"""What the cells of each stage say together: one summary a row, numbers unrounded, cells named."""

from __future__ import annotations

from dataclasses import dataclass

from ccwm.report.results import STAGES, Cell, Results, average, finite
from ccwm.report.statistics import Estimate, Group, estimate, paired_difference, pool, welch


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
    error: float | None
    baseline_error: float | None


@dataclass(frozen=True)
class Transfer:
    """Returns of one variant in the worlds of one row of changes, with the reference for comparison."""

    task: str
    row: str
    variant: str
    cells: tuple[Cell, ...]
    mean: float
    sd: float | None
    n: int
    difference: float | None
    p: float | None


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
    return Evaluation(
        task=task,
        variant=variant,
        cells=tuple(cells),
        episodes=int(sum(cell.number("episodes") or 0 for cell in cells)),
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        iqm=over("return_iqm"),
        score=over("score"),
        success_rate=over("success_rate"),
        random_mean=over("random_mean"),
        random_sd=over("random_sd"),
        random_low=over("random_low"),
        random_high=over("random_high"),
        best_possible=over("best_possible"),
    )


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
                    useful_steps=values["useful_steps_median"],
                    useful_low=values["useful_steps_low"],
                    useful_high=values["useful_steps_high"],
                    error=values["error_mean"],
                    baseline_error=values["baseline_error_mean"],
                )
            )
    return rows


_PREDICTION_KEYS = (
    "context",
    "horizon",
    "useful_steps_median",
    "useful_steps_low",
    "useful_steps_high",
    "error_mean",
    "baseline_error_mean",
)

UNCHANGED = "unchanged"


def transfers(results: Results, task: str) -> list[Transfer]:
    """One row for each row of changes and each variant that was moved to it; the unchanged world comes first."""
    cells = {variant: results.cells("transfer", task=task, variant=variant) for variant in results.variants}
    groups = {variant: _groups(of) for variant, of in cells.items()}
    names = dict.fromkeys([UNCHANGED, *(name for of in groups.values() for name in of)])
    rows = []
    for name in names:
        reference = groups[results.reference].get(name)
        for variant in results.variants:
            if (group := groups[variant].get(name)) is None:
                continue
            other = None if variant == results.reference else reference
            difference = None if other is None else group.mean - other.mean
            p = None if other is None else welch(group, other)
            rows.append(Transfer(task, name, variant, tuple(cells[variant]), *group, difference, p))
    return rows


def _groups(cells: list[Cell]) -> dict[str, Group]:
    """Every row's returns, pooled over seeds."""
    found: dict[str, list[Group]] = {}
    for cell in cells:
        metrics = cell.metrics()
        for name, value in {UNCHANGED: metrics.get(UNCHANGED), **(metrics.get("rows") or {})}.items():
            of = value or {}
            if (mean := finite(of.get("mean"))) is not None and (n := finite(of.get("n"))):
                found.setdefault(name, []).append(Group(mean, finite(of.get("sd")), int(n)))
    return {name: pool(groups) for name, groups in found.items()}


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
