"""A results tree of real files, written by the studies' own writers."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from ccwm.cells import Cell, cells
from ccwm.files import md5, write_csv, write_json
from ccwm.report.results import MEASURED, Results
from ccwm.report.sources import OWN, Source
from ccwm.settings import schema
from ccwm.settings.presets import load_preset
from ccwm.settings.schema import Settings, Study
from ccwm.studies.components import Components
from ccwm.studies.embeddings import Embeddings, Numbers, write_embeddings
from ccwm.studies.maps import TrajectoryMap, ValueMap
from ccwm.studies.prediction import Prediction, component_errors, errors, summarise, write_prediction
from ccwm.studies.retracing import Retraced, write_retracing
from ccwm.studies.returns import Return, write_evaluation
from ccwm.studies.returns import summarise as summarise_returns
from ccwm.studies.transfer import Transferred, write_transfer
from ccwm.studies.transfer import summarise as summarise_transfer
from ccwm.studies.truncation import Quality, write_truncation
from ccwm.training.history import History, write_history

SIZE, CONTEXT, HORIZON = 32, 3, 12
STEPS, LATE, MANY = 40, 12, 150
THRESHOLDS = (0.05, 0.1, 0.2)
EVENT = 6
"""The step of the one event that the shown window has."""
WORLDS = {  # what the draws of a row change
    "unchanged": ["nothing"],
    "R": ["reward 2"],
    "R+M": ["reward 2 · mass 6", "reward 2 · mass 20"],
    "R+M+F": ["reward 2 · mass 6 · friction 0.6/0.4/0.3", "reward 2 · mass 20 · friction 0.8/0.4/0.3"],
    "R+M+S+F": ["reward 2 · mass 6 · friction 0.6/0.4/0.3 · stiffness 2"],
}


def study(
    *, tasks: tuple[str, ...] = ("walker_walk",), variants: tuple[str, ...] = ("dreamer", "ccwm"), seeds: int = 1
):
    return Study(tasks=list(tasks), variants=list(variants), seeds=list(range(seeds)))


class Written(Results):
    """Results whose files are those that their runs have written, unless a ``run.json`` says otherwise."""

    @cached_property
    def _locked(self):
        every = [cell for stage in MEASURED for cell in self.expected(stage)]
        return {str(cell): sums(self.root / cell.results, cell) for cell in every}


def sums(folder: Path, cell: Cell) -> dict[str, str]:
    """What ``run.json`` and ``dvc.lock`` say of a cell's files."""
    made = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]
    return {(cell.results / path.relative_to(folder)).as_posix(): md5(path) for path in made}


def results(root: Path, **names) -> Results:
    return Written(root, study(**names))


def source(root: Path, *, observation: str = "state", units: str = "absolute", name: str = OWN, **names) -> Source:
    return Source(name, results(root, **names), observation, units)


def settings(title: str = "A <title>", **names) -> Settings:
    """The quick preset with a study and a title of its own."""
    changes = {"study": study(**names), "report": schema.Report(title=title)}
    return load_preset("quick", Path(__file__).parents[2] / "presets").model_copy(update=changes)


def write_tree(root: Path, of: Study, **rollout: bool) -> Path:
    """Every file of every cell; better variants come later in the list. ``rollout``: what ``write_rollout`` takes."""
    made = _tree(of.model_dump_json(), **rollout)  # its pictures take seconds
    return shutil.copytree(made.name, root, dirs_exist_ok=True)


@cache
def _tree(study: str, **rollout: bool) -> TemporaryDirectory[str]:
    """A tree that is made once in a process and removed at its end."""
    folder, of = TemporaryDirectory(), Study.model_validate_json(study)
    root = Path(folder.name)
    for cell in cells(of):
        if cell.stage == "report":
            continue
        rank = of.variants.index(cell.variant) if cell.variant else 0
        random = np.random.default_rng([cell.seed or 0, rank])
        results = root / cell.results
        results.mkdir(parents=True)
        options = rollout if cell.stage == "rollout-viz" else {}
        WRITERS[cell.stage](results, cell, rank, random, **options)
        write_run(root / cell.record, cell)
    return folder


def write_run(path: Path, cell: Cell, **changes: object) -> None:
    digest = hashlib.sha256(str(cell).encode()).hexdigest()
    record = {
        "stage": cell.stage,
        "run_id": digest[:32],
        "tracking_uri": "sqlite:////home/someone/project/mlflow.db",
        "experiment": "ccwm",
        "commit": "c0ffee" * 6 + "abcd",
        "dirty": "false",
        "settings_hash": digest[32:48],
        "seconds": 431.5,
        "env_steps_per_second": 97.25 if cell.stage in ("collect", "train") else None,
        "updates_per_second": 8.125 if cell.stage == "train" else None,
        "peak_memory_mb": 812.5,
        "device": "cpu",
        "files": sums(path.parent, cell),
    }
    path.write_text(json.dumps(record | changes), "utf-8")


def disc(step: float, size: int = SIZE) -> np.ndarray:
    """A ball on its way across a room, [size, size, 3]."""
    y, x = np.mgrid[:size, :size] / size
    ball = (x - 0.15 - 0.05 * step) ** 2 + (y - 0.5 - 0.3 * np.sin(step / 2)) ** 2 < 0.02
    room = np.stack([0.25 + 0.2 * y, 0.35 + 0.2 * y, 0.5 + 0.2 * x], -1)
    room[ball] = (0.95, 0.7, 0.2)
    return (room * 255).astype(np.uint8)


def write_collect(folder: Path, cell: Cell, rank: int, random: np.random.Generator) -> None:
    level = 31.25 + (cell.seed or 0)
    spent = {"episodes": 5, "heldout": 5, "steps": 2500, "env_steps": 5000}
    write_json(folder / "metrics.json", {**spent, "return_mean": level, "return_sd": 6.5})
    write_csv(folder / "returns.csv", chance().to_dict("records"))


def chance() -> pd.DataFrame:
    """Ten episodes of the random policy."""
    values = np.random.default_rng(9).normal(30, 6, 10)
    rows = [
        {"part": "train", "episode": i, "seed": i, "return": value, "length": 500} for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def write_train(folder: Path, cell: Cell, rank: int, random: np.random.Generator) -> None:
    history = History()
    for steps in range(5000, 20001, 1000):
        mean = (300 + 90 * rank) * (1 - np.exp(-(steps - 4000) / 7000)) + random.normal(0, 12)
        skill = {"retrace_skill_latent": steps / 40000, "retrace_skill_observation": -0.25} if rank else {}
        history.add_evaluation(steps, steps // 10, [mean - 20.0, mean, mean + 20.0], [], skill)
    terms = ["model/observation", "actor/loss", *(["retrace/loss"] if rank else [])]
    for steps in range(5000, 20001, 500):
        fall = float(np.exp(-(steps - 5000) / 5000))
        history.add_losses(steps, steps // 10, {term: (i + 1) * fall for i, term in enumerate(terms)})
    history.add_episode(5000, 100.0, 500)
    write_metrics(folder, history)


def write_metrics(folder: Path, history: History, *, env_steps: int = 20000) -> None:
    """The files of a training run, its metrics made up where the history does not matter."""
    spent = {"env_steps": env_steps, "updates": 2000, "episodes": 20}
    write_history(folder, history, {**spent, "return_final": 301.5, "return_best": 322.0, "return_auc": 188.25})


def write_evaluate(folder: Path, cell: Cell, rank: int, random: np.random.Generator) -> None:
    write_returns(folder, random.normal(280 + 90 * rank, 25, 10).tolist())


def write_returns(folder: Path, totals: list[float], *, best: float | None = 1000.0) -> None:
    rows = [Return(i, 1000 + i, total, 500, None) for i, total in enumerate(totals)]
    random = chance()
    write_evaluation(folder, summarise_returns(rows, random["return"].tolist(), best=best), rows, random)


def write_rollout(
    folder: Path,
    cell: Cell,
    rank: int,
    random: np.random.Generator,
    *,
    states: bool = False,
    rendered: bool = True,
) -> None:
    """A ball on its way, as pixels or, by its place, as a state; whether the truth of states was rendered."""
    length = CONTEXT + HORIZON
    drift = [max(t - CONTEXT, 0) * 0.08 * (2 - min(rank, 1)) for t in range(length)]
    show = place if states else disc
    truth = np.stack([show(t) for t in range(length)])[None]
    predicted = np.stack([show(t - late) for t, late in enumerate(drift)])[None]
    scale = 1 if states else 255
    found = errors(*(of.reshape(1, length, -1) / scale for of in (truth, predicted)), context=CONTEXT)
    if not states:
        found = {name: of.mean(-1, keepdims=True) for name, of in found.items()}
    prediction = Prediction(CONTEXT, truth, predicted, found)
    components = component_errors(prediction, ["x", "y"] if states else [])
    frames = np.stack([disc(t) for t in range(length)])[None] if states and rendered else None
    shown = {"variant": cell.variant, "shown": 1, "frames": frames}
    write_prediction(folder, prediction, summarise(prediction), components, **shown)
    write_latents(folder, truth[0], predicted[0], components, retraces=rank > 0)


def place(step: float) -> np.ndarray:
    """Where that ball is, [2]."""
    return np.array([0.15 + 0.05 * step, 0.5 + 0.3 * np.sin(step / 2)], np.float32)


def write_latents(
    folder: Path, truth: np.ndarray, decoded: np.ndarray, components: Components, *, retraces: bool
) -> None:
    """A spiral, a value, a mask and a few events; an agent that does not retrace has no retraced states."""
    steps = np.arange(len(truth))
    write_retracing(
        folder,
        Retraced(
            first=20,
            truth=truth,
            forward=decoded,
            retraced=decoded[::-1] if retraces else decoded[:0],
            forward_error=0.001 + steps * 0.0001,
            retraced_error=0.002 + steps * 0.0001 if retraces else np.empty(0),
            value=5 + np.sin(steps / 2),
            change=np.where(steps < 2, np.nan, 0.1 * np.abs(np.cos(steps))),
            threshold=0.08,
            kept=(steps < EVENT - 1) | (steps > EVENT + 1),
            irreversible=steps == EVENT,
        ),
        components,
    )
    write_embeddings(folder, embeddings(retraces), variant="ccwm" if retraces else "dreamer")
    write_truncation(
        folder,
        [
            Quality(
                rule=rule,
                threshold=threshold,
                own=rule == "prose" and threshold == 0.1,
                episodes=4,
                states=2000,
                events=3,
                detections=5,
                truncated_share=0.3 - threshold,
                true_share=0.003,
                precision=0.01 + threshold,
                recall=0.9 - threshold,
                f1=0.02,
                event_precision=0.2 + threshold,
                event_recall=1 - threshold,
                event_f1=0.4 + threshold * (1 if rule == "prose" else 9),
            )
            for rule in ("prose", "algorithm1")
            for threshold in THRESHOLDS
        ],
    )


def embeddings(retraces: bool) -> Embeddings:
    def spiral(count: int) -> np.ndarray:
        turn = np.linspace(0, 9, count)
        return np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1).astype(np.float32)

    def along(count: int) -> TrajectoryMap:
        back = spiral(count) + np.float32(0.3) if retraces else np.zeros((0, 2), np.float32)
        return TrajectoryMap(spiral(count), back, np.arange(count) % 10 > 2, np.arange(count) == 5)

    shared = {"perplexity": 12.0, "neighbours": 10, "trustworthiness": 0.975}
    moved = {"overlap_not_retraced": 0.5, "overlap_chance": 0.25, "truncated_share": 0.3}
    moved["overlap"] = 0.625 if retraces else None
    numbers = [
        Numbers("trajectory", states=2 * STEPS, **shared, **moved),
        Numbers("late", states=2 * LATE, **shared, **moved),
        Numbers("values", states=MANY, **shared, value_smoothness=0.875, value_smoothness_map=0.75),
    ]
    values = ValueMap(spiral(MANY), np.linspace(0, 50, MANY, dtype=np.float32))
    return Embeddings(along(STEPS), along(LATE), values, numbers)


def write_moved(folder: Path, cell: Cell, rank: int, random: np.random.Generator) -> None:
    """Six draws a row; a rescaled reward changes nothing, each further change costs the first variant more."""
    returns = {name: random.normal(270 + 90 * rank - 40 * i / (1 + rank), 20, 6) for i, name in enumerate(WORLDS)}
    returns["R"] = returns["unchanged"]
    write_rows(folder, {name: of.tolist() for name, of in returns.items()}, WORLDS)


def write_rows(folder: Path, rows: dict[str, list[float]], changes: dict[str, list[str]] | None = None) -> None:
    """Returns of a transfer study by row; the draws of a row take its changes in turn."""
    named = {name: (changes or {}).get(name) or ["nothing"] for name in rows}
    found = [
        Transferred(name, i, 50 + i, named[name][i % len(named[name])], float(total))
        for name, of in rows.items()
        for i, total in enumerate(of)
    ]
    write_transfer(folder, summarise_transfer(found), found)


WRITERS = {
    "collect": write_collect,
    "train": write_train,
    "evaluate": write_evaluate,
    "rollout-viz": write_rollout,
    "transfer": write_moved,
}


def one(blocks: list, kind: type):
    """The only block of a kind."""
    (found,) = [block for block in blocks if isinstance(block, kind)]
    return found


def texts(table, first: str) -> list[list[str]]:
    """The lines of a table that start with a text."""
    return [[entry.text for entry in row] for row in table.rows if row[0].text == first]
