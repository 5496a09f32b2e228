"""`ccwm tune --fleet N`: N tuning processes on Ray; Optuna's storage tells each of them what to do."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ccwm.errors import UserError
from ccwm.fleet.guard import GRACE
from ccwm.fleet.home import Home
from ccwm.fleet.run import share_of
from ccwm.fleet.scheduler import POLL, TRIES, pinned_environment
from ccwm.fleet.worker import Mailbox, run_guarded, sees_home
from ccwm.settings.schema import Settings
from ccwm.settings.section import Section
from ccwm.tracking.store import connect, tracking_uri
from ccwm.training.device_check import one_device
from ccwm.training.signals import StopRequest
from ccwm.tuning.storage import study_folder

COMMAND = ["-c", "from ccwm.cli.app import main; main()", "tune"]


class TuningProcess(Section):
    """What a host must know to run one."""

    number: int
    arguments: list[str]
    """Of `ccwm tune`."""
    home: str
    marker: str
    only_host: str | None
    """The host that keeps the study's journal; None where a database does."""
    log: str
    environment: dict[str, str]


def run_process(process: str, mailbox: Any) -> int:
    """The exit code of a tuning process, which runs in the project's own directory."""
    task, host = TuningProcess.model_validate_json(process), platform.node()
    if not sees_home(task.home, task.marker):
        hint = "run `ccwm tune --storage postgresql://…` there by hand (docs/tuning.md)"
        raise UserError(f"{host} does not see {task.home}", hint=hint)
    if task.only_host not in (None, host):
        hint = "several hosts need a database: --storage postgresql://…"
        raise UserError(f"the study's journal is for the processes of {task.only_host}, not of {host}", hint=hint)
    return run_guarded(
        [*COMMAND, *task.arguments],
        root=Path(task.home),
        log=Path(task.log),
        pinned=task.environment,
        locks=(),
        send=lambda text: mailbox.put.remote(str(task.number), text),
    )


class TuningFleet:
    """The processes of one `ccwm tune --fleet`."""

    def __init__(
        self, project: Path, settings: Settings, arguments: list[str], resources: dict[str, float], *, processes: int
    ) -> None:
        alone = settings.model_copy(update={"trainer": one_device(settings.trainer)})
        actors = settings.train.actors  # processes of the trial's own host
        cpus, gpus = share_of(alone, resources, actors=actors, times=processes)
        self._remote = ray.remote(num_cpus=cpus + actors, num_gpus=gpus, max_retries=0)(run_process)
        self._mailbox = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Mailbox).remote()
        folder = project / study_folder(settings.tune.study)
        folder.mkdir(parents=True, exist_ok=True)
        template = TuningProcess(
            number=0,
            arguments=arguments,
            home=str(project),
            marker=Home(project, settings.study).marker,
            only_host=None if settings.tune.storage else platform.node(),
            log="",
            environment={**pinned_environment(settings.trainer), "MLFLOW_TRACKING_URI": tracking_uri()},
        )
        self._processes = [
            template.model_copy(update={"number": number, "log": str(folder / f"process-{number}.log")})
            for number in range(processes)
        ]
        self._running: dict[Any, tuple[TuningProcess, int]] = {}
        self.failed: dict[int, str] = {}

    def run(self, say: Callable[[str], None], stop: StopRequest) -> None:
        """Run all processes to their end; one that was lost with its worker is begun again."""
        connect()  # its first creation races
        for process in self._processes:
            self._submit(process, 1)
        try:
            while self._running:
                ready, _ = ray.wait(list(self._running), timeout=POLL)
                stop.check()
                self._show(say)
                for ref in ready:
                    self._finish(ref, say)
            self._show(say)
        except BaseException:
            for ref in self._running:  # each returns its trial to the queue
                ray.cancel(ref)
            ray.wait(list(self._running), num_returns=len(self._running), timeout=GRACE + 15)
            raise

    def _submit(self, process: TuningProcess, tries: int) -> None:
        self._running[self._remote.remote(process.model_dump_json(), self._mailbox)] = (process, tries)

    def _finish(self, ref: Any, say: Callable[[str], None]) -> None:
        process, tries = self._running.pop(ref)
        try:
            ended = ray.get(ref)
        except (RayTaskError, UserError) as error:
            self.failed[process.number] = str(getattr(error, "cause", error))
        except RayError as error:
            reason = str(error).strip().splitlines()[0]
            if tries < TRIES:
                say(f"process {process.number} is begun again: {reason}")
                self._submit(process, tries + 1)
            else:
                self.failed[process.number] = reason
        else:
            if ended:
                self.failed[process.number] = f"exit code {ended}; see {process.log}"

    def _show(self, say: Callable[[str], None]) -> None:
        for number, text in ray.get(self._mailbox.take.remote()):
            for line in text.decode(errors="replace").splitlines():
                say(f"process {number}: {line}")
