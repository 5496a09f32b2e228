"""Does torch.compile pay?  python benchmarks/compiled.py [--json benchmarks/compiled.json]

The steps that an update repeats (the RSSM's prediction and correction, and the actor) compiled, beside the same update
as it is; both take turns, so that a busy machine slows both. A ratio above 1 says that compiling makes it faster.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from common import conditions, make_parser
from rich.progress import track
from update import CASES, Case, prepare, seconds_of

from ccwm.agents.model_based import ModelBasedLearner
from ccwm.files import write_json
from ccwm.training.update import JointUpdater


def compile_steps(updater: JointUpdater) -> None:
    """Compile what an update calls once for each time step."""
    learner = updater.module.learner
    assert isinstance(learner, ModelBasedLearner)
    rssm, actor = learner.world_model.rssm, learner.actor_critic.actor
    for owner, name in ((rssm, "predict"), (rssm, "correct"), (actor, "forward")):
        setattr(owner, name, torch.compile(getattr(owner, name), dynamic=False))


def measure(case: Case, *, threads: int, rounds: int) -> dict[str, Any]:
    """Seconds of both, and the median of their ratios."""
    config = case.config("ccwm", threads=threads)
    plain, compiled = prepare(config), prepare(config, compile_steps)
    seconds_of(plain)
    first = seconds_of(compiled)
    pairs = [(seconds_of(plain), seconds_of(compiled)) for _ in track(range(rounds), description=case.name)]
    return {
        "sizes": case.name,
        "threads": threads,
        "seconds_plain": statistics.median(before for before, _ in pairs),
        "seconds_compiled": statistics.median(after for _, after in pairs),
        "seconds_first_compiled": first,
        "times_faster": statistics.median(before / after for before, after in pairs),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", nargs="*", choices=CASES, default=["maze", "paper"], help="default: maze, paper")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="default: all cores")
    parser.add_argument("--rounds", type=int, help="pairs of updates; default: 20 for quick and maze, else 3")
    given = parser.parse_args()
    facts = conditions(given.threads)
    rows = []
    for case in (CASES[name] for name in given.sizes):
        rows.append(measure(case, threads=given.threads, rounds=given.rounds or case.rounds))
        print(rows[-1], flush=True)
    if given.json:
        write_json(given.json, {"machine": facts, "updates": rows})


if __name__ == "__main__":
    main()
