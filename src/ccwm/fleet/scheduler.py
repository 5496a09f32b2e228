"""The loop: cells whose needs are met go to Ray, what comes back goes home, what a machine lost goes again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ccwm.cells import STAGES, Cell
from ccwm.errors import UserError
from ccwm.files import md5
from ccwm.fleet import worker
from ccwm.fleet.code import Code, keep_patch, narrow
from ccwm.fleet.guard import GRACE
from ccwm.fleet.home import Home
from ccwm.fleet.parcel import digest, pack
from ccwm.fleet.progress import Progress
from ccwm.settings.agent import Trainer
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve
from ccwm.training.signals import StopRequest

WITH_ACTORS = ("train", "evaluate")
"""The stages whose episodes the agent's actors play."""
TRIES = 5
"""How often a cell is begun whose process, machine or memory was lost, before it counts as failed."""
POLL = 0.5
QUEUED = 2
"""Cells that Ray has beyond those that fit, so that no slot waits for us; Ray itself keeps no order among them."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
INSTRUCTIONS = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
PINNED = (*THREADS, *INSTRUCTIONS, "MUJOCO_GL", "PYOPENGL_PLATFORM")


def pinned_environment(trainer: Trainer) -> dict[str, str]:
    """Variables that change bits, as they are here; threads as the settings say where nothing else does."""
    found = {name: os.environ[name] for name in PINNED if name in os.environ}
    return {"OMP_NUM_THREADS": str(trainer.threads), **found}


class Running(NamedTuple):
    """A cell that Ray has."""

    cell: Cell
    key: str
    group: PlacementGroup | None
    """The room of a cell with actors."""


def actors_by_variant(settings: Settings) -> dict[str, int]:
    """``train.actors`` of every variant of a study."""
    return {variant: resolve(settings, variant).train.actors for variant in settings.study.variants}


class Scheduler:
    """The cells of one run: waiting for others, given to Ray, or finished."""

    def __init__(
        self, home: Home, code: Code, settings: Settings, todo: list[Cell], *, share: tuple[float, float], uri: str
    ) -> None:
        self._home, self._code, self._todo, self._share = home, code, list(todo), share
        self._environment = pinned_environment(settings.trainer)
        self._uri, (self._cache, self._has_remote) = uri, home.dvc_places()
        self._marker, self._worker = home.marker, md5(Path(worker.__file__))
        self._patch = keep_patch(home.root, code.patch)
        self._actors = actors_by_variant(settings)
        self._running: dict[Any, Running] = {}
        self._tries: dict[Cell, int] = {}
        self.failed: dict[Cell, str] = {}

    def run(self, progress: Progress, stop: StopRequest) -> None:
        """Run every cell that can run, until a signal comes; those that failed are in ``failed``."""
        shipped = {"commit": self._code.commit.encode(), "pack": self._code.pack, "patch": self._code.patch}
        self._shipped = [ray.put(pack(shipped))]
        self._mailbox = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(worker.Mailbox).remote()
        try:
            self._submit_ready(progress)
            while self._running:
                ready, _ = ray.wait(list(self._running), timeout=POLL)
                stop.check()
                self._take_logs(progress)
                for ref in ready:
                    self._finish(ref, progress)
                if ready:
                    self._submit_ready(progress)
                if self._home.is_due:
                    self._home.settle()
            self._take_logs(progress)
        except BaseException:
            self._cancel(progress)
            raise
        finally:
            self._home.settle(patience=60.0)

    def _submit_ready(self, progress: Progress) -> None:
        """Give Ray the next cells whose needs are neither to run nor running; what depends on a failed one fails too.

        Later stages go first, so that an agent's results are complete before the next agent is trained.
        """
        open_cells, ready = {*self._todo, *(each.cell for each in self._running.values())}, list[Cell]()
        for cell in list(self._todo):
            lost = [need for need in cell.needs if need in self.failed]
            if not lost and open_cells.intersection(cell.needs):
                continue
            if not lost and not self._home.is_unchanged(cell):
                ready.append(cell)
                continue
            if lost:
                self._fail(cell, f"needs {lost[0]}", progress)
            else:
                progress.end(str(cell), "done", "unchanged")
            self._todo.remove(cell)
            open_cells.remove(cell)
        stages, room = list(STAGES), max(self._room() - len(self._running), 0)
        for cell in sorted(ready, key=lambda cell: -stages.index(cell.stage))[:room]:
            self._submit(cell, progress)
            self._todo.remove(cell)

    def _room(self) -> int:
        """How many cells Ray may have at once, on the machines that are there now."""
        there = ray.cluster_resources()
        cpus, gpus = self._share
        wanted = {"CPU": cpus + max(self._actors.values()), "GPU": gpus}
        return QUEUED + int(min(there.get(name, 0.0) // each for name, each in wanted.items() if each > 0))

    def _submit(self, cell: Cell, progress: Progress, *, again: str = "") -> None:
        inputs = self._home.inputs(cell)
        assert cell.seed is not None
        self._tries[cell] = self._tries.get(cell, 0) + 1
        room = f"{self._marker}-{cell}-{self._tries[cell]}" if self._has_actors(cell) else ""
        assignment = worker.Assignment(
            cell=str(cell),
            record=cell.record.as_posix(),
            key=digest(self._code.key, inputs),
            params=narrow(self._code.params, task=cell.task, variant=cell.variant, seed=cell.seed),
            home=str(self._home.root),
            marker=self._marker,
            cache=self._cache,
            has_remote=self._has_remote,
            environment=self._environment,
            tracking_uri=self._uri,
            patch=self._patch,
            worker=self._worker,
            room=room,
        )
        group = self._make_room(room, cell) if room else None
        progress.begin(str(cell), again=again)
        cpus, gpus = self._share
        options: dict[str, Any] = {"name": str(cell)}
        if group is not None:
            options["scheduling_strategy"] = PlacementGroupSchedulingStrategy(group, 0)
        task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=0)(worker.run_cell).options(**options)
        ref = task.remote(assignment.model_dump_json(), self._shipped, inputs, self._mailbox)
        self._running[ref] = Running(cell, assignment.key, group)

    def _has_actors(self, cell: Cell) -> bool:
        return cell.stage in WITH_ACTORS and self._actors[cell.variant or ""] > 0

    def _make_room(self, name: str, cell: Cell) -> PlacementGroup:
        """Keep CPUs for a cell and its actors, on one host if they fit; else they could wait for each other."""
        cpus, gpus = self._share
        own = {"CPU": cpus, "GPU": gpus} if gpus else {"CPU": cpus}
        return placement_group([own, *[{"CPU": 1.0}] * self._actors[cell.variant or ""]], strategy="PACK", name=name)

    def _finish(self, ref: Any, progress: Progress) -> None:
        cell, key, group = self._running.pop(ref)
        if group is not None:
            remove_placement_group(group)
        try:
            result = ray.get(ref)
            if not isinstance(result, bytes):
                raise UserError(f"{cell} returned no bytes")
            if result.startswith(b"{"):
                ended = json.loads(result)
                self._fail(cell, f"exit code {ended['exit']} on {ended['host']}", progress)
                return
            self._home.receive(cell, result, key)
        except (RayTaskError, UserError) as error:
            self._fail(cell, str(getattr(error, "cause", error)), progress)
        except RayError as error:
            reason = str(error).strip().splitlines()[0]
            if self._tries[cell] < TRIES:
                self._submit(cell, progress, again=reason)
            else:
                self._fail(cell, reason, progress)
        else:
            progress.end(str(cell), "done")

    def _fail(self, cell: Cell, reason: str, progress: Progress) -> None:
        self.failed[cell] = reason
        progress.end(str(cell), "failed", reason)

    def _take_logs(self, progress: Progress) -> None:
        for cell, text in ray.get(self._mailbox.take.remote()):
            progress.log(cell, text)

    def _cancel(self, progress: Progress) -> None:
        """Let every running cell write its checkpoint; what has finished meanwhile is taken home."""
        if not self._running:
            return
        progress.say("stopping: running cells write their checkpoints")
        for ref in self._running:
            ray.cancel(ref)
        ended, _ = ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE + 15)
        for ref in ended:
            cell, key, _ = self._running[ref]
            try:
                result = ray.get(ref)
            except (RayError, TaskCancelledError):
                continue
            if isinstance(result, bytes) and not result.startswith(b"{"):
                self._home.receive(cell, result, key)
