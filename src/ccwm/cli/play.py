"""`ccwm play`: any agent in any environment, changed or not, as returns and a video."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from ccwm.cli.pictures import check_path, written_whole
from ccwm.envs.change import Change
from ccwm.envs.gl import probe
from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.tasks import check_task, renders_by_gl
from ccwm.errors import UserError, did_you_mean
from ccwm.progress import counter
from ccwm.seeds import episode_seed

if TYPE_CHECKING:  # torch takes seconds to import, which a help text need not
    from ccwm.agents.export import Agent
    from ccwm.agents.policy import Policy
    from ccwm.envs.env import TaskEnv
    from ccwm.training.rollouts import Rollout

CHANGES = tuple(field.name for field in fields(Change) if field.name != "units")


def play(
    agent: Annotated[str, typer.Argument(help="Its directory, or models:/NAME/VERSION.")],
    task: Annotated[str, typer.Option(help="Another task than the one it was trained on.")] = "",
    change: Annotated[
        list[str] | None, typer.Option(help=f"NAME=VALUE with a name of {', '.join(CHANGES)}; may be repeated.")
    ] = None,
    absolute: Annotated[bool, typer.Option("--absolute", help="Values replace the task's own, not multiply.")] = False,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Episodes to play.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episodes.")] = 0,
    out: Annotated[Path, typer.Option(help="The video, an MP4; needs OpenGL where MuJoCo renders the task.")] = Path(
        "play.mp4"
    ),
) -> None:
    """Play greedy episodes of the agent's own task, another one, or a changed one; write a video."""
    changed = parse_change(change or (), "absolute" if absolute else "factor")
    check_path(out, ".mp4")
    from ccwm.loading import load_agent
    from ccwm.studies.images import enlarge, write_mp4

    player = load_agent(agent, task=task)
    task = player.task
    check_task(task)
    if renders_by_gl(task):
        probe()
    seeds = [episode_seed("play", seed, number) for number in range(episodes)]
    with counter("episodes", episodes) as advance:
        played = play_agent(player, changed, seeds, advance)
    with written_whole(out) as fresh:
        write_mp4(fresh, enlarge(np.concatenate([each.frames for each in played])))
    returns = [each.rollout.total / changed.reward for each in played]
    table = Table("episode", "return", "steps", "goal", box=None)
    for number, (rollout, _) in enumerate(played):
        goal = {None: "", True: "reached", False: "missed"}[rollout.success]
        table.add_row(str(number), f"{returns[number]:.2f}", str(len(rollout.episode.reward) - 1), goal)
    console = Console()
    console.print(table)
    console.print(f"{task}, mean return {np.mean(returns):.2f}; video in {out}", highlight=False, soft_wrap=True)


def parse_change(given: Sequence[str], units: Literal["factor", "absolute"]) -> Change:
    """`mass=0.5`, `friction=1.5/4/3`, `layout=open` as a change of an environment."""
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in CHANGES:
            raise UserError(f"--change {text}: must be NAME=VALUE.{did_you_mean(name, CHANGES)}")
        if name == "layout":
            if value not in LAYOUTS:
                raise UserError(f"--change {text}: unknown layout.{did_you_mean(value, LAYOUTS)}")
            values[name] = value
        else:
            values[name] = _positive(text, value, count=3 if name == "friction" else 1)
    return Change(units=units, **values)


def _positive(text: str, value: str, *, count: int) -> float | tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in value.split("/"))
    except ValueError:
        numbers = ()
    if len(numbers) != count or not all(0 < number < float("inf") for number in numbers):
        wanted = "three numbers above 0, as 1.5/4/3" if count == 3 else "one number above 0"
        raise UserError(f"--change {text}: must be {wanted}")
    return numbers if count == 3 else numbers[0]


class Played(NamedTuple):
    """An episode and its pictures, rendered whatever the agent observes."""

    rollout: Rollout
    frames: np.ndarray  # [L, size, size, 3] uint8


def play_agent(agent: Agent, change: Change, seeds: Sequence[int], advance: Callable[[], None]) -> list[Played]:
    """Greedy episodes with these seeds, observed exactly as in training; ``advance`` is called after each."""
    from ccwm.envs.factory import make_env

    card, task, policy = agent.card, agent.task, agent.policy()
    played = []
    with contextlib.closing(make_env(task, card.config.env, change=change)) as env:
        if env.action_size != card.action_size:
            raise UserError(
                f"{task} takes {env.action_size} actions, this agent, trained on {card.task}, gives {card.action_size}",
                hint="choose a task with as many",
            )
        seen = env.observation_space.shape
        if seen != card.observation_shape:
            raise UserError(
                f"{task} is observed as {seen}, this agent, trained on {card.task}, takes {card.observation_shape}",
                hint="choose a task with such observations",
            )
        for seed in seeds:
            played.append(_play_rendered(env, policy, seed))
            advance()
    return played


def _play_rendered(env: TaskEnv, policy: Policy, seed: int) -> Played:
    from ccwm.training.rollouts import play_episode

    frames: list[np.ndarray] = []
    rollout = play_episode(env, policy, seed, between=lambda: frames.append(env.render()))
    return Played(rollout, np.stack([*frames, env.render()]))
