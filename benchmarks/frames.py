"""How many frames a second does an environment render?

    python benchmarks/frames.py [--task cheetah_run] [--size 64] [--json benchmarks/frames.json]

Compares plain dm_control (its own pixels wrapper) with our `full` and `fast`, and with the mazes, in one run: every
frame is stepped with a random action and rendered. The renderers take turns, round by round, and each one's median
round counts. Frames per second of the clock are what a person waits for, and depend on what else the machine does;
frames per second of processor time (of all threads, Mesa's included) hardly do, and the ratios are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from common import Spent, conditions, make_parser
from rich.console import Console
from rich.table import Table

import ccwm.envs  # noqa: F401  (chooses how MuJoCo renders, before dm_control is imported)
from ccwm.envs.factory import make_env
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS
from ccwm.files import write_json
from ccwm.progress import counter
from ccwm.settings.agent import Env

PLAIN = "dm_control"
Advance = Callable[[], object]


def plain(task: str, size: int) -> Advance:
    """One rendered frame of dm_control's own pixels wrapper."""
    from dm_control import suite
    from dm_control.suite.wrappers import pixels

    domain, name = SUITE_TASKS[task]
    camera = 2 if domain == "quadruped" else 0
    render = {"height": size, "width": size, "camera_id": camera}
    env = pixels.Wrapper(suite.load(domain, name, task_kwargs={"random": 0}), render_kwargs=render)
    spec, random = env.action_spec(), np.random.default_rng(0)
    low, high = np.maximum(spec.minimum, -1), np.minimum(spec.maximum, 1)
    env.reset()

    def advance() -> object:
        step = env.step(random.uniform(low, high))
        return env.reset() if step.last() else step.observation["pixels"]

    return advance


def ours(task: str, config: Env) -> Advance:
    """One rendered frame of our environment."""
    env = make_env(task, config)
    random = np.random.default_rng(0)
    env.reset(seed=0)

    def advance() -> object:
        image, _, terminated, truncated, _ = env.step(random.uniform(-1, 1, env.action_size).astype(np.float32))
        return env.reset() if terminated or truncated else image

    return advance


class Rates(NamedTuple):
    """Frames per second of the clock and of processor time."""

    clock: float
    processor: float


def measure(renderers: dict[str, Advance], *, rounds: int, seconds: float) -> dict[str, Rates]:
    """The median round's rates of each renderer, after ``seconds`` of processor time in each round."""
    rates: dict[str, list[Rates]] = {name: [] for name in renderers}
    for advance in renderers.values():
        advance()  # the first frame makes the GL context
    with counter("rounds", rounds) as step:
        for _ in range(rounds):
            for name, advance in renderers.items():
                frames, begin = 0, Spent.now()
                while (spent := Spent.now().since(begin)).processor < seconds:
                    advance()
                    frames += 1
                rates[name].append(Rates(frames / spent.clock, frames / spent.processor))
            step()
    return {name: Rates(*np.median(found, axis=0).tolist()) for name, found in rates.items()}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--task", default="cheetah_run", choices=SUITE_TASKS, metavar="TASK", help="of dm_control")
    parser.add_argument("--size", type=int, choices=(32, 64), default=64, help="pixels of a side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of processor time, of each renderer in each round")
    given = parser.parse_args()
    facts = conditions(None)
    full = Env(size=given.size, action_repeat=1, time_limit=1000, render_quality="full")
    fast = full.model_copy(update={"render_quality": "fast"})
    renderers = {PLAIN: plain(given.task, given.size), "full": ours(given.task, full), "fast": ours(given.task, fast)}
    renderers |= {task: ours(task, full) for task in MAZE_TASKS}
    rates = measure(renderers, rounds=given.rounds, seconds=given.seconds)
    ratios = {name: rate.processor / rates[PLAIN].processor for name, rate in rates.items()}
    columns = ("renderer", "frames/s of the clock", "frames/s of processor time", f"× {PLAIN}")
    table = Table(*columns, title=f"{given.task} and mazes, {given.size} × {given.size}")
    for name, rate in rates.items():
        table.add_row(name, f"{rate.clock:,.0f}", f"{rate.processor:,.0f}", f"{ratios[name]:.2f}")
    Console().print(table)
    if given.json:
        write_json(
            given.json,
            {
                "machine": facts,
                "task": given.task,
                "size": given.size,
                "rounds": given.rounds,
                "seconds_a_round": given.seconds,
                "frames_per_second_of_the_clock": {name: round(rate.clock, 1) for name, rate in rates.items()},
                "frames_per_second_of_processor_time": {name: round(rate.processor, 1) for name, rate in rates.items()},
                f"times_{PLAIN}_in_processor_time": {name: round(ratio, 2) for name, ratio in ratios.items()},
            },
        )


if __name__ == "__main__":
    main()
