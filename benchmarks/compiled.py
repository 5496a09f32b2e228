"""Does torch.compile pay?  python benchmarks/compiled.py [--json benchmarks/compiled.json]

The steps that an update repeats (the RSSM's prediction and correction, and the actor) compiled, beside the same update
as it is; both take turns, so that a busy machine slows both. A ratio above 1 says that compiling makes it faster.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from update import CASES, Case, prepare, seconds_of, settings_of

from ccwm.files import write_json
from ccwm.machine import conditions
from ccwm.training.memory import keep_freed_memory
from ccwm.training.module import CCWM


def compile_steps(module: CCWM) -> None:
    """Compile what an update calls once for each time step."""
    rssm, actor = module.learner.world_model.rssm, module.learner.actor_critic.actor
    for owner, name in ((rssm, "predict"), (rssm, "correct"), (actor, "forward")):
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))


def measure(case: Case, *, rounds: int) -> dict[str, Any]:
    """Seconds of both, and the median of their ratios."""
    settings = settings_of(case, "ccwm")
    plain, compiled = prepare(settings), prepare(settings, compile_steps)
    seconds_of(plain)
    first = seconds_of(compiled)
    pairs = [(seconds_of(plain), seconds_of(compiled)) for _ in track(range(rounds), description=case.name)]
    return {
        "sizes": case.name,
        "threads": torch.get_num_threads(),
        "seconds_plain": statistics.median(before for before, _ in pairs),
        "seconds_compiled": statistics.median(after for _, after in pairs),
        "seconds_first_compiled": first,
        "times_faster": statistics.median(before / after for before, after in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["quick", "paper"]
    parser.add_argument("--sizes", nargs="*", choices=names, default=names, help="default: all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: all cores")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_freed_memory()
    rows = []
    for case in CASES:
        if case.name in given.sizes:
            rows.append(measure(case, rounds=20 if case.name == "quick" else 3))
            print(rows[-1], flush=True)
    if given.json:
        write_json(given.json, {"machine": conditions(1), "updates": rows})


if __name__ == "__main__":
    main()
