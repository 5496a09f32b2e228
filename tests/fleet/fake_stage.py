"""Stands in for every script of the pipeline: writes what dvc.yaml names, from what dvc.yaml reads, in small steps.

Each step is kept in the work directory and told in a journal, so that a resumed cell goes on where it was and a test
sees what was done twice. ``.work/fake.json`` says how many steps a cell has and how long they last, which cells
fail, and on which the disk is full in the end; it is read at every step.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stage = Path(__file__).stem.replace("_", "-")
    parser = argparse.ArgumentParser()
    for name in ("task", "variant", "seed"):
        parser.add_argument(f"--{name}", default="")
    item = vars(parser.parse_args())
    cell = f"{stage}@{'-'.join(filter(None, item.values()))}"
    described = YAML(typ="safe").load(Path("dvc.yaml"))["stages"][stage]
    read = [path for dep in described["deps"] if "$" in dep for path in files(resolved(dep, item))]
    key = hashlib.sha256(cell.encode() + b"".join(path.read_bytes() for path in read)).hexdigest()
    work(cell, key)
    if cell in told().get("full", ()):
        with open("/dev/full", "w") as file:
            file.write(key)
    for kind in ("outs", "metrics", "plots"):
        for out in described.get(kind, ()):
            path = Path(resolved(next(iter(out)) if isinstance(out, dict) else out, item))
            path = path if path.suffix else path / "content.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"path": str(path), "key": key}))
    record = Path("results") / stage / Path(*filter(None, item.values())) / "run.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({"threads": os.environ.get("OMP_NUM_THREADS"), "nice": os.nice(0)}))


def told() -> dict[str, Any]:
    """What the test has set for the project, in which a slot's or a study's work directory lies; nothing elsewhere."""
    work = Path(".work").resolve()
    found = [path for folder in (work, *work.parents) if (path := folder / "fake.json").exists()]
    return dict(json.loads(found[0].read_text())) if found else {}


def work(cell: str, key: str) -> None:
    folder = Path(".work") / "train" / key[:12]
    folder.mkdir(parents=True, exist_ok=True)
    step = 0
    while step < (total := told().get("steps", {}).get(cell, 1)):
        if not (folder / str(step)).exists():
            time.sleep(told().get("seconds", 0.0))
            if cell in told().get("fail", ()):
                sys.exit("this cell fails")
            (folder / str(step)).touch()
            if "journal" in told():
                with open(told()["journal"], "a") as file:
                    file.write(f"{cell} {step} {os.getpid()}\n")
            print(f"{cell}: {step + 1}/{total} steps · return {step}.5", flush=True)
        step += 1


def resolved(text: str, item: dict[str, str]) -> str:
    for name, value in item.items():
        text = text.replace(f"${{item.{name}}}", value)
    return text


def files(place: str) -> list[Path]:
    path = Path(place)
    return sorted(path.rglob("*.*")) if path.is_dir() else [path]


if __name__ == "__main__":
    main()
