"""One point, trained on one seed after the other, as the train stage would train it; each seed is an MLflow run."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from ccwm.cells import settings_hash, stage_values
from ccwm.files import write_json
from ccwm.settings.schema import Settings
from ccwm.tracking import Run, RunInfo, stage_run
from ccwm.tracking.stage import WORK
from ccwm.training.history import Row
from ccwm.training.loop import AgentConfig, Trained, train
from ccwm.training.progress import hidden_progress
from ccwm.training.publish import publish_agent, summarise
from ccwm.training.work_directory import exclusive, work_directory
from ccwm.tuning.data import first_episodes
from ccwm.tuning.measures import MEASURES, Finished, Measure
from ccwm.tuning.space import Point, nested, trial_settings
from ccwm.tuning.storage import study_folder

Report = Callable[[int, float], None]
"""Takes a step and the value there; raises to end the trial."""


class Pruned(Exception):
    """A report was the trial's last: it is hopeless."""


@dataclass(frozen=True)
class Steps:
    """Environment steps of several seeds as one line, the same for every trial, so that values can be compared.

    Seed number i takes the steps i · span … (i + 1) · span. An evaluation stands at the multiple of ``every`` that its
    environment steps have reached, however many frames the episodes before it happened to take; a seed's end stands at
    the end of its span.
    """

    env_steps: int
    every: int

    @property
    def span(self) -> int:
        """Steps that a seed takes: beyond the last multiple that an evaluation can reach."""
        return (self.env_steps // self.every + 1) * self.every

    def evaluation(self, index: int, env_steps: float) -> int:
        """Where an evaluation of seed number ``index`` stands."""
        reached = min(int(env_steps), self.env_steps) // self.every
        return index * self.span + reached * self.every

    def end(self, index: int) -> int:
        """Where the end of seed number ``index`` stands."""
        return (index + 1) * self.span


class SeedResult(NamedTuple):
    """A finished seed: its value, its run's metrics, and what it reported on the way, for a retry to report again."""

    value: float
    metrics: dict[str, float]
    reports: list[tuple[int, float]]


@dataclass(frozen=True)
class Bench:
    """Where the trials of a study are trained and tracked."""

    settings: Settings
    run_id: str
    """Of the search in MLflow; those of trials and seeds follow from it, so that a retry goes on with the same runs."""

    @property
    def folder(self) -> Path:
        """All that the study keeps outside its results."""
        return study_folder(self.settings.tune.study)

    def agents(self, root: int) -> Path:
        """Where the agents of a trial are kept."""
        return self.folder / "agents" / f"trial-{root}"

    def work(self, root: int) -> Path:
        """Where a trial trains."""
        return self.folder / "work" / f"trial-{root}"

    @contextmanager
    def trial_run(self, root: int, point: Point, *, fresh: bool) -> Iterator[Run]:
        """The MLflow run of a trial, nested under the search."""
        tune = self.settings.tune
        kind = "fresh" if fresh else "trial"
        info = RunInfo(
            "tune-trial",
            tune.task,
            tune.variant,
            None,
            settings_hash(trial_settings(self.settings, point), "train", task=tune.task, variant=tune.variant),
            title=f"{tune.study} trial {root}{', fresh seeds' if fresh else ''}",
            more_tags={"study": tune.study, "trial": str(root), "state": "running", "seeds": kind},
        )
        with self.run(info, nested(point), run_id=self._id(f"{kind}/{root}"), parent=self.run_id) as run:
            yield run

    def train_seed(
        self,
        point: Point,
        seed: int,
        index: int,
        *,
        root: int,
        fresh: bool,
        report: Report,
        show: Callable[[str], None],
    ) -> SeedResult:
        """Train one seed of a trial and measure it; what was begun before is gone on with."""
        tune, settings = self.settings.tune, trial_settings(self.settings, point)
        learning = AgentConfig(*(getattr(settings, section) for section in AgentConfig._fields))
        data = first_episodes(self.settings, tune.task, seed)
        info = RunInfo(
            "tune-seed",
            tune.task,
            tune.variant,
            seed,
            settings_hash(settings, "train", task=tune.task, variant=tune.variant, seed=seed),
            title=f"{tune.study} trial {root} seed {seed}",
            more_tags={"study": tune.study, "trial": str(root)},
        )
        kind = "fresh" if fresh else "trial"
        key = work_directory(settings, task=tune.task, variant=tune.variant, seed=seed, data=data).name
        work = self.work(root) / f"{seed}-{key}"
        pruned: Pruned | None = None
        with (
            exclusive(work),
            self.run(
                info,
                stage_values(settings, "train"),
                run_id=self._id(f"{kind}/{root}/{seed}"),
                parent=self._id(f"{kind}/{root}"),
            ) as run,
        ):
            reporting = _Reporting(work / "curve.json", index, learning, MEASURES[tune.measure], report)
            run.set_tags({"state": "running"})

            def hear(metrics: Mapping[str, float], env_steps: int) -> None:
                run.log_metrics(metrics, env_steps=env_steps)
                show(f"seed {seed}: {env_steps:,} of {learning.train.env_steps:,} steps")
                reporting.hear(metrics, env_steps)

            try:
                reporting.repeat()
                with hidden_progress():
                    trained = train(
                        learning, task=tune.task, seed=seed, data=data / "train", work=work, log=hear, label=info.name
                    )
                counters = trained.module.counters
                value = reporting.end(trained, Finished(trained.module, learning, work / "replay", seed))
                metrics = summarise(trained.history, counters)
                finals = {f"final/{name}": number for name, number in metrics.items()}
                run.log_metrics({**finals, "value": value}, env_steps=counters.env_steps)
                if tune.keep != "none":
                    place = self.agents(root) / f"seed-{seed}"
                    publish_agent(place, trained, learning, task=tune.task, variant=tune.variant, seed=seed)
                run.set_tags({"state": "complete"})
            except Pruned as verdict:  # no fault of the run's, which ends well
                pruned = verdict
                run.set_tags({"state": "pruned"})
        shutil.rmtree(work)
        if pruned is not None:
            raise pruned
        return SeedResult(value, metrics, reporting.reports)

    def clear(self, root: int) -> None:
        """Remove what a trial that is over has left in its work directory."""
        shutil.rmtree(self.work(root), ignore_errors=True)

    def keep_agents_of(self, roots: set[int]) -> None:
        """Remove the agents of all other trials, unless all are to be kept."""
        if self.settings.tune.keep == "all":
            return
        for place in (self.folder / "agents").glob("trial-*"):
            if int(place.name.removeprefix("trial-")) not in roots:
                shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def run(
        self, info: RunInfo, settings: dict[str, JsonValue], *, run_id: str, parent: str | None = None
    ) -> Iterator[Run]:
        """An MLflow run of this study: the search's, a trial's or a seed's."""
        tracking = self.settings.tracking
        with stage_run(
            info,
            settings=settings,
            experiment=tracking.experiment,
            timeout=tracking.timeout,
            spool=WORK / "spool",
            parent_run_id=parent,
            run_id=run_id,
        ) as run:
            yield run

    def _id(self, name: str) -> str:
        return uuid.uuid5(uuid.UUID(self.run_id), name).hex


class _Reporting:
    """From a seed's learning curve to reports, each at most once.

    The curve is kept on disk, since a run that goes on from a checkpoint does not tell of its earlier points.
    """

    def __init__(self, path: Path, index: int, learning: AgentConfig, measure: Measure, report: Report) -> None:
        self._path, self._index, self._measure, self._report = path, index, measure, report
        self._steps = Steps(learning.train.env_steps, learning.train.evaluate_every)
        self._curve: list[Row] = json.loads(path.read_text())["curve"] if path.is_file() else []
        self.reports: list[tuple[int, float]] = []

    def repeat(self) -> None:
        """Report what an earlier attempt had reached."""
        for end in range(1, len(self._curve) + 1):
            self._tell_curve(self._curve[:end])

    def hear(self, metrics: Mapping[str, float], env_steps: int) -> None:
        """Report a point of the curve, if there is a new one in the metrics."""
        if "evaluation/return_mean" not in metrics:
            return
        row: Row = {
            "env_steps": env_steps,
            "updates": metrics["evaluation/updates"],
            "return_mean": metrics["evaluation/return_mean"],
        }
        if row not in self._curve:
            self._curve.append(row)
            write_json(self._path, {"curve": self._curve})
            self._tell_curve(self._curve)

    def end(self, trained: Trained, finished: Finished) -> float:
        """Report the seed's value and return it."""
        if self._measure.of_curve:
            value = self._measure.of_curve(trained.history.curve)
        else:
            assert self._measure.of_agent is not None
            value = self._measure.of_agent(finished)
        self._tell(self._steps.end(self._index), value)
        return value

    def _tell_curve(self, curve: list[Row]) -> None:
        if self._measure.of_curve:
            self._tell(self._steps.evaluation(self._index, curve[-1]["env_steps"]), self._measure.of_curve(curve))

    def _tell(self, step: int, value: float) -> None:
        if step not in [earlier for earlier, _ in self.reports]:
            self.reports.append((step, value))
            self._report(step, value)
