"""The stages of the pipeline, and one cell of its matrix: its names, its paths, and what DVC says of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ccwm.errors import UserError
from ccwm.settings.agent import AgentConfig
from ccwm.settings.schema import Settings, Study

PARAMS = Path("params.yaml")
CLAIMS = Path("claims.yaml")
WORK = Path(".work")
"""Resumable work and unsent records: ignored by git and DVC."""

STAGES: dict[str, tuple[str, ...]] = {
    "collect": ("env", "collect"),
    "train": tuple(AgentConfig.model_fields),
    "evaluate": ("trainer", "evaluate"),
    "rollout-viz": ("trainer", "rollout", "latents"),
    "transfer": ("trainer", "transfer"),
    "report": ("env", "transfer", "study", "report"),
}
"""Every stage in the order in which they run, with the sections of ``params.yaml`` that it reads."""

NEEDS = {
    "collect": (),
    "train": ("collect",),
    "evaluate": ("collect", "train"),
    "rollout-viz": ("collect", "train"),
    "transfer": ("train",),
}
"""The stages whose outputs a stage reads; the report reads all."""


@dataclass(frozen=True, order=True)
class Cell:
    """One run of one stage: `collect` knows no variant, `report` is about all cells."""

    stage: str
    task: str = ""
    variant: str = ""
    seed: int | None = None

    def __str__(self) -> str:
        """As DVC names the stage: `train@walker_walk-ccwm-0`."""
        return "@".join(part for part in (self.stage, "-".join(self.key.parts)) if part)

    @property
    def title(self) -> str:
        """As a person reads it: `ccwm · walker_walk · seed 0`."""
        parts = (self.variant or self.stage, self.task, "" if self.seed is None else f"seed {self.seed}")
        return " · ".join(filter(None, parts))

    @property
    def tags(self) -> dict[str, str]:
        """What is known of the cell, by name."""
        return {name: str(value) for name, value in vars(self).items() if value not in ("", None)}

    @property
    def key(self) -> Path:
        """`task/variant/seed`, the part of every path that differs between cells."""
        return Path(*(str(part) for part in (self.task, self.variant, self.seed) if part not in ("", None)))

    @property
    def data(self) -> Path:
        """The random episodes, shared by all variants of a task and seed."""
        return Path("data") / self.task / str(self.seed)

    @property
    def model(self) -> Path:
        """The trained agent."""
        return Path("models") / self.key

    @property
    def results(self) -> Path:
        """The small result files of this cell."""
        return Path("report") if self.stage == "report" else Path("results") / self.stage / self.key

    @property
    def record(self) -> Path:
        """``run.json``: which run made the results, from which code, at what cost; git and DVC ignore it."""
        return Path("results") / self.stage / self.key / "run.json"

    def of(self, stage: str) -> Cell:
        """The cell of another stage about the same task, variant and seed."""
        return replace(self, stage=stage, variant="" if stage == "collect" else self.variant)

    @property
    def needs(self) -> list[Cell]:
        """The cells whose outputs this one reads; none for the report, which reads all there are."""
        return [self.of(stage) for stage in NEEDS.get(self.stage, ())]


def stage_values(settings: Settings, stage: str) -> dict[str, JsonValue]:
    """What a stage reads of the settings, as plain values."""
    return settings.model_dump(mode="json", include=set(STAGES[stage]))


def settings_hash(settings: Settings, cell: Cell) -> str:
    """Twelve hexadecimal digits that change with anything that the cell's stage reads, and with the cell itself."""
    canonical = json.dumps([stage_values(settings, cell.stage), cell.tags], sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def cells(study: Study, stage: str | None = None) -> list[Cell]:
    """All cells of a study, or those of one stage, in the order in which they can run."""
    pairs = [(task, seed) for task in study.tasks for seed in study.seeds]
    found: list[Cell] = []
    for name in STAGES if stage is None else (stage,):
        if name == "report":
            found.append(Cell("report"))
        elif name == "collect":
            found += [Cell(name, task, seed=seed) for task, seed in pairs]
        else:
            found += [Cell(name, task, variant, seed) for task, seed in pairs for variant in study.variants]
    return found


def up_to_date(study: Study, root: Path) -> set[Cell]:
    """Cells that DVC would not run: neither changed nor behind one that is."""
    changed, fresh = dvc_status(root), set[Cell]()
    *others, report = cells(study)
    for cell in (*others, report):
        if str(cell) not in changed and fresh.issuperset(others if cell == report else cell.needs):
            fresh.add(cell)
    return fresh


def dvc_status(root: Path, environment: dict[str, str] | None = None) -> dict[str, list[Any]]:
    """What has changed of each stage that is not up to date, as `dvc status --json` prints it."""
    command = [sys.executable, "-m", "dvc", "status", "--json"]
    printed = run_command(command, "`dvc status` failed", root, environment)
    found: dict[str, list[Any]] = json.loads(printed[printed.index("{") :])
    return found


def run_command(command: list[str], message: str, directory: Path, environment: dict[str, str] | None = None) -> str:
    """The output of a command that must succeed; otherwise UserError with ``message`` and what it printed."""
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{message} ({(done.stderr.strip() or done.stdout.strip())[-500:]})")
    return done.stdout
