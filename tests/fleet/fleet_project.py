"""A project whose cells are fake and quick, its fleets as real processes, and what they leave."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from cli_helpers import COMMAND
from project import DVC, Project, make_project

from ccwm.settings.parsing import read_yaml

HERE = Path(__file__).parent
SCRIPTS = ("collect", "train", "evaluate", "rollout_viz", "transfer")
MADE = ("data", "models", "results")
TASK = "maze_two_rooms"


class FleetProject(Project):
    """A project with fake stages."""

    def copy(self, root: Path) -> FleetProject:
        return FleetProject(super().copy(root).root)

    @property
    def journal(self) -> Path:
        return self.root.parent / "journal"

    def steps(self) -> Counter[tuple[str, int]]:
        """How often each step of each cell was done."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return Counter((line.split()[0], int(line.split()[1])) for line in lines)

    def pids(self) -> list[int]:
        """The processes that have done a step."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [int(line.split()[2]) for line in lines]

    def fleet(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """`ccwm fleet run`, to its end."""
        journal = {"FAKE_JOURNAL": str(self.journal)}
        return self.command(*COMMAND, "fleet", "run", *arguments, code=code, **journal, **environment)

    def open_fleet(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        journal = {"FAKE_JOURNAL": str(self.journal)}
        return self.open(*COMMAND, "fleet", "run", *arguments, **journal, **environment)

    def repro(self) -> None:
        """`dvc repro` of every stage but the report."""
        self.command(*DVC, "repro", *(name.replace("_", "-") for name in SCRIPTS))

    def stale(self) -> set[str]:
        """Cells that DVC would run, the report apart."""
        said = self.command(*DVC, "status", "--json")
        return set(json.loads(said[said.index("{") :])) - {"report"}

    def lock(self) -> dict[str, object]:
        return dict(read_yaml(self.root / "dvc.lock")["stages"])

    def assert_like(self, other: FleetProject, *prefixes: str) -> None:
        """The same entries in dvc.lock and the same bytes in the same files, of all cells or those of some stages."""
        entries = [
            {name: entry for name, entry in each.lock().items() if not prefixes or name.startswith(prefixes)}
            for each in (self, other)
        ]
        assert entries[0] == entries[1]
        if not prefixes:
            assert self.files(*MADE) == other.files(*MADE)


def make_fleet_project(root: Path, *, store: Path) -> FleetProject:
    """Fake stages, a study of two variants, everything committed."""
    study = {"study": {"variants": ["dreamer", "ccwm"], "seeds": [0]}}
    project = FleetProject(make_project(root, study, store=store).root)
    for name in (*SCRIPTS, "report"):
        shutil.copy(HERE / "fake_stage.py", root / "pipeline" / f"{name}.py")
    project.init_dvc()
    return project
