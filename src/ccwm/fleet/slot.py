"""One cell in a slot, as a process of its own: `python -m ccwm.fleet.slot SPEC`, in the slot's clone.

Inputs are laid out, DVC runs the cell, its objects are pushed, and the parcel with its lock entry and its small files
is written last and whole: a parcel that is there is a finished cell.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from ccwm.cells import WORK
from ccwm.errors import run_main
from ccwm.files import write_atomically
from ccwm.fleet.parcel import LOCK, pack, unpack
from ccwm.settings.section import Section

DVC_LOCK = Path("dvc.lock")
SPOOL = WORK / "spool"


class Spec(Section):
    """What a slot is to run."""

    cell: str
    record: str
    """Path of the cell's ``run.json``."""
    inputs: str
    """The parcel with what the cell reads of others."""
    parcel: str
    """Where the result goes."""
    remote: bool
    """Whether objects travel through DVC's remote; otherwise home's cache is this slot's."""
    origin: dict[str, str]
    """What ``run.json`` is to say besides: the host, and the patch where there is one."""
    spools: bool
    """Whether the cell's MLflow records travel in the parcel, because its host does not reach the store."""


def main() -> None:
    """Run the cell that the spec names."""
    from dvc.repo import Repo

    spec = Spec.model_validate_json(Path(sys.argv[1]).read_text())
    _lay_inputs(unpack(Path(spec.inputs).read_bytes()))
    with Repo() as repo:
        stages = {stage.addressing: stage for stage in repo.index.stages}
        cell = stages[spec.cell]
        read = {dep.def_path for dep in cell.deps}
        made = [out for name, stage in stages.items() if name != spec.cell for out in stage.outs]
        wanted = [out.def_path for out in made if out.use_cache and out.def_path in read and out.hash_info]
        if wanted and spec.remote:
            repo.fetch(targets=wanted)
        if wanted:
            repo.checkout(targets=wanted, force=True)
        repo.reproduce(spec.cell, single_item=True, force=True)  # it is stale, as home knows
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the cell is finished: a second is spent to say so
        if spec.remote:
            repo.push(targets=[spec.cell])
        small = [out.def_path for out in cell.outs if not out.use_cache]
    entry = YAML(typ="safe").load(DVC_LOCK)["stages"][spec.cell]
    found = {path: Path(path).read_bytes() for path in small}
    if Path(spec.record).is_file():
        found[spec.record] = json.dumps({**json.loads(Path(spec.record).read_text()), **spec.origin}).encode()
    if spec.spools:
        found |= {path.relative_to(WORK).as_posix(): path.read_bytes() for path in SPOOL.rglob("*") if path.is_file()}
    head = {"entry": entry, "remote": spec.remote}
    parcel = Path(spec.parcel)
    parcel.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(parcel, pack({LOCK: json.dumps(head).encode(), **found}))
    if spec.spools:
        shutil.rmtree(SPOOL, ignore_errors=True)


def _lay_inputs(members: dict[str, bytes]) -> None:
    for name in ("data", "models", "results"):
        shutil.rmtree(name, ignore_errors=True)
    entries: dict[str, Any] = json.loads(members.pop(LOCK))
    with DVC_LOCK.open("w") as file:
        YAML(typ="safe").dump({"schema": "2.0", "stages": entries}, file)
    for name, content in members.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    run_main(main)
