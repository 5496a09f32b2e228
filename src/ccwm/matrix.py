"""The entries of the pipeline's matrix, and what DVC says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ccwm.config import Study
from ccwm.params import STAGES
from ccwm.refusal import Refusal


class NoPipeline(Refusal, RuntimeError):
    """DVC cannot tell the state of the pipeline."""


class Entry(NamedTuple):
    """One run of one stage; a stage that does not know a variant or a task has none."""

    stage: str
    task: str = ""
    variant: str = ""
    seed: int = 0

    @property
    def name(self) -> str:
        """As DVC calls it: `train@walker_walk-ccwm-0`."""
        item = "-".join(part for part in (self.task, self.variant, str(self.seed)) if part)
        return f"{self.stage}@{item}" if self.task else self.stage

    def follows(self, other: Entry) -> bool:
        """Whether DVC may have to run this one again after the other."""
        if "report" in (self.stage, other.stage):
            return self.stage == "report" != other.stage
        same = (self.task, self.seed) == (other.task, other.seed) and other.variant in ("", self.variant)
        return same and other.stage in ("collect", "train") and self.stage not in ("collect", other.stage)


def entries(study: Study) -> list[Entry]:
    """All runs of a study, in the order of the stages."""
    pairs = [(task, seed) for task in study.tasks for seed in study.seeds]
    found = [Entry("collect", task, seed=seed) for task, seed in pairs]
    for stage in STAGES:
        if stage not in ("collect", "report"):
            found += [Entry(stage, task, variant, seed) for task, seed in pairs for variant in study.variants]
    return [*found, Entry("report")]


def up_to_date(study: Study, root: Path) -> set[Entry]:
    """Runs that DVC would not repeat: neither changed nor behind one that is."""
    changed = dvc_status(root)
    known = entries(study)
    stale = [entry for entry in known if entry.name in changed]
    return {entry for entry in known if entry not in stale and not any(entry.follows(each) for each in stale)}


def dvc_status(root: Path) -> dict[str, list[Any]]:
    """What has changed of each stage that is not up to date, as `dvc status --json` tells it."""
    command = [sys.executable, "-m", "dvc", "status", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPipeline(f"`dvc status` failed: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
    found: dict[str, list[Any]] = json.loads(done.stdout[done.stdout.index("{") :])
    return found
