"""Trains one point on one seed, as the train stage would train it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from ccwm.cells import WORK, Cell, settings_hash, stage_values
from ccwm.files import published
from ccwm.progress import counter
from ccwm.readers import BadResult, read_object
from ccwm.settings.schema import Settings
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.collect import check_collected, collect_random
from ccwm.training.history import Row, summarise
from ccwm.training.loop import train
from ccwm.training.progress import hidden_progress
from ccwm.training.publish import publish_agent
from ccwm.training.work_directory import exclusive, work_directory
from ccwm.tuning.measures import measure_curve, truncation_f1
from ccwm.tuning.points import trial_settings
from ccwm.tuning.runs import Runs
from ccwm.tuning.space import Point
from ccwm.tuning.storage import study_folder

RETURN = "evaluation/return_mean"


class Attempt(NamedTuple):
    """A trial as it is trained; ``number`` is that of its first attempt, by which all that it leaves is found."""

    point: Point
    number: int
    fresh: bool

    @property
    def name(self) -> str:
        """As messages and MLflow name it."""
        return f"trial {self.number}{' on fresh seeds' if self.fresh else ''}"


class TrialRunner:
    """Where the trials of a study are trained and their agents kept.

    A trial trains on one device, whatever ``trainer.devices`` says: a search uses more devices by more processes.
    """

    def __init__(self, settings: Settings, runs: Runs) -> None:
        self.settings, self.runs = settings, runs
        folder = study_folder(settings.tune.study)
        self._agents, self._work = folder / "agents", folder / "work"

    def train_seed(
        self, attempt: Attempt, seed: int, *, report: Callable[[list[Row]], None], show: Callable[[str], None]
    ) -> float:
        """Train one seed of a trial, from its last checkpoint where there is one, and measure it.

        ``report`` is called with the learning curve after each of its points, and may raise to end the trial.
        """
        tune, settings = self.settings.tune, trial_settings(self.settings, attempt.point)
        cell = Cell("train", tune.task, tune.variant, seed)
        data = first_episodes(self.settings, tune.task, seed)
        work = self._work / f"trial-{attempt.number}" / f"{seed}-{work_directory(settings, cell, data=data).name}"
        name, params = (attempt.name, f"seed {seed}"), stage_values(settings, "train")
        tags = {"trial": str(attempt.number)}
        with exclusive(work), self.runs.open("tune-seed", settings, params, path=name, seed=seed, tags=tags) as run:
            curve = _earlier_curve(work)

            def log(metrics: Mapping[str, float], env_steps: int) -> None:
                run.log_metrics(metrics, env_steps=env_steps)
                show(f"{', '.join(name)}: {env_steps:,} of {settings.train.env_steps:,} steps")
                if RETURN in metrics:
                    curve.append({"env_steps": env_steps, "return_mean": metrics[RETURN]})
                    report(curve)

            with hidden_progress():
                trained = train(settings.agent_config, cell, data=data / "train", work=work, log=log, label=str(cell))
            module, history = trained.module, trained.history
            value = measure_curve(tune.measure, history.curve)
            if value is None:
                value = truncation_f1(module, work / "replay")
            finals = {f"final/{name}": final for name, final in summarise(history, module.counters).items()}
            run.log_metrics({**finals, "value": value}, env_steps=module.counters.env_steps)
            if tune.keep != "none":
                publish_agent(self._agents / f"trial-{attempt.number}" / f"seed-{seed}", trained, cell)
        shutil.rmtree(work)
        return value

    def clear(self, number: int) -> None:
        """Remove what a finished trial has left in its work directory."""
        shutil.rmtree(self._work / f"trial-{number}", ignore_errors=True)

    def keep_agents_of(self, numbers: set[int]) -> None:
        """Remove the agents of all other trials, unless all are to be kept."""
        kept = {f"trial-{number}" for number in numbers}
        for place in self._agents.glob("trial-*"):
            if self.settings.tune.keep != "all" and place.name not in kept:
                shutil.rmtree(place, ignore_errors=True)


def first_episodes(settings: Settings, task: str, seed: int) -> Path:
    """A directory whose `train` holds the random episodes of this task and seed.

    They are the pipeline's where it made them with these settings, else they are collected once by the same code.
    """
    cell, manifest = Cell("collect", task, seed=seed), Path("train") / "manifest.jsonl"
    fingerprint = settings_hash(settings, cell)
    recorded = None
    with suppress(BadResult):  # it is no output of DVC, so that it may be missing
        recorded = read_object(cell.record).get("settings_hash")
    if (cell.data / manifest).is_file() and recorded == fingerprint:
        check_collected(cell.data / "train", settings.collect.episodes)
        return cell.data
    place, parts = WORK / "tune" / "data" / fingerprint, {"train": settings.collect.episodes}
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_suffix(".lock")):
        if not (place / manifest).is_file():
            with published(place) as folder, counter(f"random episodes, seed {seed}", parts["train"]) as advance:
                collect_random(task, folder, parts=parts, env=settings.env, seed=seed, advance=advance)
        check_collected(place / "train", settings.collect.episodes)
    return place


def _earlier_curve(work: Path) -> list[Row]:
    """The learning curve up to the checkpoint from which training resumes; the points after it are measured again."""
    state = Checkpoints(work / "checkpoints").latest()
    return list(state["history"]["curve"]) if state else []
