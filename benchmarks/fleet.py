"""How well the fleet uses its slots, and what it gains on the quick study.

    python benchmarks/fleet.py slots --json benchmarks/fleet.json    cells that sleep, on 1, 2, 4 and 8 slots
    python benchmarks/fleet.py quick --json benchmarks/fleet.json    the quick study: the fleet against `dvc repro`

Both run in temporary clones of the last commit. ``slots`` needs little of the machine but the start of processes;
``quick`` trains twice and wants the machine for itself. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import append_json, conditions, make_parser

from ccwm.fleet.progress import read_about, read_status
from ccwm.machine import cores
from ccwm.settings.presets import preset_text
from ccwm.verify.rerun import Clone

ROOT = Path(__file__).parents[1]
CCWM = (sys.executable, "-c", "from ccwm.cli.app import main; main()")
CELLS = {1: 4, 2: 8, 4: 16, 8: 120}
"""How many cells a fleet of so many slots gets."""
EFFICIENCY, OVERHEAD, QUICK = 0.9, 5.0, 0.6
"""The bars: speed-up by slots, seconds a cell costs beside its work, the fleet's time over that of `dvc repro`."""
MADE = ("data", "models", "results")

SLEEPER = """
import argparse, time
from pathlib import Path
parser = argparse.ArgumentParser()
for name in ("--task", "--seed"):
    parser.add_argument(name)
given = parser.parse_args()
time.sleep({seconds})
key = Path(given.task) / given.seed
for path in (
    Path("data") / key / "train" / "a.txt",
    Path("data") / key / "heldout" / "a.txt",
    Path("results/collect") / key / "returns.csv",
    Path("results/collect") / key / "metrics.json",
):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(key))
"""


def sleeping_cells(folder: Path, *, slots: int, cells: int, seconds: float) -> dict[str, float]:
    """Cells that only sleep, by a fleet of so many slots."""
    clone = Clone(ROOT, folder / f"slots-{slots}")
    clone.forget_results()
    params = preset_text("smoke", ROOT / "presets").replace("seeds: [0]", f"seeds: {list(range(cells))}", 1)
    assert str(cells - 1) in params
    (clone.root / "params.yaml").write_text(params)
    (clone.root / "pipeline" / "collect.py").write_text(SLEEPER.format(seconds=seconds))
    command = [*CCWM, "fleet", "run", "--cells", "collect@*", "--cpus-per-cell", str(cores() / slots)]
    subprocess.run(command, cwd=clone.root, env=clone.environment, check=True)
    rows = read_status(clone.root).values()
    ends = [row.began + row.seconds for row in rows if row.state == "done" and row.seconds is not None]
    assert len(ends) == cells
    elapsed = max(ends) - float(read_about(clone.root)["began"])
    return {
        "slots": slots,
        "cells": cells,
        "seconds_of_a_cell": seconds,
        "elapsed": round(elapsed, 2),
        "cells_per_second": cells / elapsed,
        "overhead_of_a_cell": round(elapsed * slots / cells - seconds, 2),
    }


def quick_study(folder: Path) -> dict[str, object]:
    """Seconds of the whole quick study by `dvc repro` and by the fleet, and whether the results are the same bytes."""
    spent: dict[str, float] = {}
    files: dict[str, dict[str, bytes]] = {}
    ways = {"dvc": [["dvc", "repro"]], "fleet": [[*CCWM, "fleet", "run"], ["dvc", "repro"]]}
    for way, commands in ways.items():
        clone = Clone(ROOT, folder / way)
        clone.forget_results()
        (clone.root / "params.yaml").write_text(preset_text("quick", ROOT / "presets"))
        start = time.monotonic()
        for command in commands:
            subprocess.run(command, cwd=clone.root, env=clone.environment, check=True)
        spent[way] = time.monotonic() - start
        paths = [path for name in MADE for path in (clone.root / name).rglob("*")]
        files[way] = {
            path.relative_to(clone.root).as_posix(): path.read_bytes()
            for path in paths
            if path.is_file() and path.name != "run.json"
        }
    return {
        "dvc_seconds": round(spent["dvc"], 1),
        "fleet_seconds": round(spent["fleet"], 1),
        "ratio": spent["fleet"] / spent["dvc"],
        "files": len(files["dvc"]),
        "equal": files["dvc"] == files["fleet"],
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=("slots", "quick"))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a cell sleeps")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        machine = conditions(None)
        if given.what == "quick":
            row: dict[str, object] = quick_study(folder)
            missed = not row["equal"] or row["ratio"] > QUICK  # type: ignore[operator]
        else:
            measured = [
                sleeping_cells(folder, slots=slots, cells=cells, seconds=given.seconds)
                for slots, cells in CELLS.items()
            ]
            for each in measured:
                each["speed_up"] = round(each["cells_per_second"] / measured[0]["cells_per_second"], 3)
            missed = any(
                each["speed_up"] < EFFICIENCY * each["slots"] or each["overhead_of_a_cell"] > OVERHEAD
                for each in measured
            )
            row = {"runs": measured}
    print(json.dumps(row, indent=2))
    if given.json:
        append_json(given.json, "measurements", {"what": given.what, **row, "missed": missed, "conditions": machine})
    sys.exit(int(missed))


if __name__ == "__main__":
    main()
