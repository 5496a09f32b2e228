"""A project whose cells are fake and quick, its fleets as real processes, and what they leave."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from project import DVC, Process, Project, children_of, make_project

from ccwm.settings.parsing import read_yaml

HERE = Path(__file__).parent
SCRIPTS = ("collect", "train", "evaluate", "rollout_viz", "transfer")
MADE = ("data", "models", "results")
TASK = "maze_two_rooms"
TRAIN = ("--cells", "train@*")
TRAININGS = [f"train@{TASK}-{variant}-0" for variant in ("dreamer", "ccwm")]
ENDLESS: dict[str, Any] = {"steps": dict.fromkeys(TRAININGS, 10000), "seconds": 0.3}
"""Trainings that last until they are interrupted; resumed ones are told to end soon."""


class FleetProject(Project):
    """A project with fake stages."""

    def copy(self, root: Path) -> FleetProject:
        return FleetProject(super().copy(root).root)

    @property
    def journal(self) -> Path:
        return self.root.parent / "journal"

    def tell(self, **settings: Any) -> None:
        """Set how the fake cells of this project behave from now on, the running ones too."""
        path = self.root / ".work" / "fake.json"
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps({"journal": str(self.journal), **settings}))
        path.with_suffix(".new").replace(path)

    def steps(self) -> Counter[tuple[str, int]]:
        """How often each step of each cell was done."""
        return Counter((cell, step) for cell, step, _ in self._journal())

    def pids(self, cell: str = "") -> list[int]:
        """The processes that have done a step, of a cell or of all."""
        return [pid for name, _, pid in self._journal() if cell in ("", name)]

    def _journal(self) -> list[tuple[str, int, int]]:
        """Cell, step and process of every step that was done; a line that is being written is left out."""
        lines = self.journal.read_text().splitlines(keepends=True) if self.journal.exists() else []
        told = [line.split() for line in lines if line.endswith("\n")]
        return [(cell, int(step), int(pid)) for cell, step, pid in told]

    def ccwm(self, *arguments: str, **environment: str) -> Process:
        """A command, started."""
        number = len(list(self.root.parent.glob("command-*.log")))  # several may run at once, each with its own log
        log = self.root.parent / f"command-{number}.log"
        log.touch()
        return Process(run_ccwm, arguments, root=self.root, log=log, environment=self.environment(**environment))

    def said(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What a command said, which must end with this exit code."""
        process = self.ccwm(*arguments, **environment)
        assert process.end() == code, process.said
        return process.said

    def open_fleet(self, *arguments: str, **environment: str) -> Process:
        """`ccwm fleet run`, started; without settings of its own, cells do one step at once."""
        if not (self.root / ".work" / "fake.json").exists():
            self.tell()
        return self.ccwm("fleet", "run", *arguments, **environment)

    def fleet(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What `ccwm fleet run` said, from its start to its end."""
        process = self.open_fleet(*arguments, **environment)
        assert process.end() == code, process.said
        return process.said

    def repro(self) -> None:
        """`dvc repro` of every stage but the report."""
        self.command(*DVC, "repro", *(name.replace("_", "-") for name in SCRIPTS))

    def stale(self) -> set[str]:
        """Cells that DVC would run, the report apart."""
        with self.dvc() as repo:
            return set(repo.status()) - {"report"}

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

    def assert_whole(self, sequential: FleetProject, *arguments: str, **environment: str) -> None:
        """The same command again ends as an undisturbed run, and no step was done twice."""
        self.tell(steps=dict.fromkeys(TRAININGS, 5))
        self.fleet(*arguments, *TRAIN, **environment)
        self.assert_like(sequential, "collect", "train")
        assert not [cell for cell in self.stale() if cell.startswith(("collect", "train"))]
        assert set(self.steps().values()) == {1}
        assert self.guards() == []

    def guards(self) -> list[int]:
        """The guards of this project's cells, and the cells; they have left the fleet's own family."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.root / ".work").encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def is_training(self, *, since: int = 0) -> bool:
        """Whether both trainings have done some steps, after so many steps of all cells."""
        done = Counter(name for name, _, _ in self._journal()[since:])
        return all(done[cell] >= 3 for cell in TRAININGS)


def run_ccwm(*arguments: str) -> None:
    """Be `ccwm <arguments>`."""
    from ccwm.cli.app import main

    sys.argv = ["ccwm", *arguments]
    main()


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    return [pid, *(each for child in children_of(pid) for each in family(child))]


def make_fleet_project(root: Path, *, store: Path) -> FleetProject:
    """Fake stages, a study of two variants, everything committed."""
    study = {"study": {"variants": ["dreamer", "ccwm"], "seeds": [0]}}
    project = FleetProject(make_project(root, study, store=store).root)
    for name in (*SCRIPTS, "report"):
        shutil.copy(HERE / "fake_stage.py", root / "pipeline" / f"{name}.py")
    project.init_dvc()
    return project
