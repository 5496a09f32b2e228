"""`ccwm play`: any agent in any world or changed world, as returns and a film."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from ccwm.cli.pictures import written_whole
from ccwm.envs.change import PHYSICAL, Change
from ccwm.envs.gl import probe
from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.tasks import check_task, needs_gl
from ccwm.errors import UserError, did_you_mean
from ccwm.progress import counter
from ccwm.seeds import episode_seed

if TYPE_CHECKING:  # torch takes seconds to import, which a help text need not
    from ccwm.agents.export import Agent
    from ccwm.training.rollouts import Played

CHANGES = tuple(field.name for field in fields(Change) if field.name != "units")


class CannotPlay(UserError, ValueError):
    """This agent, world and change do not go together."""


def play(
    agent: Annotated[str, typer.Argument(help="Its directory, or models:/NAME/VERSION.")],
    task: Annotated[str, typer.Option(help="Another world than the one it was trained in.")] = "",
    change: Annotated[
        list[str] | None, typer.Option(help=f"NAME=VALUE with a name of {', '.join(CHANGES)}; may be repeated.")
    ] = None,
    absolute: Annotated[bool, typer.Option("--absolute", help="Values replace the world's own, not multiply.")] = False,
    episodes: Annotated[int, typer.Option(min=1, max=1000, help="Episodes to play.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes' starts.")] = 0,
    out: Annotated[Path, typer.Option(help="The film, an MP4 of what the agent saw.")] = Path("play.mp4"),
) -> None:
    """Play greedy episodes in the agent's own world, another one, or a changed one; record a film."""
    changed = parse_change(change or (), "absolute" if absolute else "factor")
    if out.suffix != ".mp4" or not out.parent.is_dir():
        raise CannotPlay(f"--out {out}: name an .mp4 file in a directory that exists")
    from ccwm.loading import load_agent

    player = load_agent(agent)
    if not task and ":" in player.card.task and not player.card.task.startswith("gym:"):
        raise CannotPlay(
            f"this agent's world is code of its own ({player.card.task}), which an agent's file must not choose: "
            f"if you trust it, say --task {player.card.task}"
        )
    task = task or player.card.task
    check_task(task)
    if needs_gl(task):
        probe()
    with counter("episodes", episodes) as advance:
        played = play_episodes(player, task, changed, [episode_seed("play", seed, n) for n in range(episodes)], advance)
    write_film(out, played)
    table = Table("episode", "return", "steps", "goal", box=None)
    for number, each in enumerate(played):
        goal = {None: "", True: "reached", False: "missed"}[each.success]
        table.add_row(str(number), f"{each.total / changed.reward:.2f}", str(len(each.episode.reward) - 1), goal)
    console = Console()
    console.print(table)
    mean = sum(each.total for each in played) / len(played) / changed.reward
    console.print(f"{task}, mean return {mean:.2f}; film in {out}", highlight=False, soft_wrap=True)


def parse_change(given: Sequence[str], units: Literal["factor", "absolute"]) -> Change:
    """`mass=0.5`, `friction=1.5/4/3`, `layout=open` as a change of a world."""
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in CHANGES:
            raise CannotPlay(f"--change {text}: must be NAME=VALUE.{did_you_mean(name, CHANGES)}")
        if name == "layout":
            if value not in LAYOUTS:
                raise CannotPlay(f"--change {text}: unknown layout.{did_you_mean(value, LAYOUTS)}")
            values[name] = value
            continue
        numbers = _positive(text, value)
        if len(numbers) != (3 if name == "friction" else 1):
            wanted = "three numbers above 0, as 1.5/4/3" if name == "friction" else "one number above 0"
            raise CannotPlay(f"--change {text}: must be {wanted}")
        values[name] = numbers if name == "friction" else numbers[0]
    return Change(units=units, **values)


def _positive(text: str, value: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in value.split("/"))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise CannotPlay(f"--change {text}: {value!r} is no number above 0")
    return numbers


def play_episodes(agent: Agent, task: str, change: Change, seeds: Sequence[int], advance: Any) -> list[Played]:
    """Greedy episodes with these seeds; refuses a world with another number of actions or without what is changed."""
    from ccwm.studies.returns import agent_world, greedy_episode

    card = agent.card
    try:
        world = agent_world(agent, change, task=task)
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        named = ", ".join(name for name in (*PHYSICAL, "layout") if getattr(change, name) is not None)
        raise CannotPlay(f"{task} cannot be changed so ({named}): {error}") from None
    try:
        if world.action_space.shape != (card.actions,):
            raise CannotPlay(
                f"{task} takes actions of shape {world.action_space.shape}, this agent, trained in {card.task}, gives "
                f"({card.actions},): choose a world with as many"
            )
        played = []
        for seed in seeds:
            played.append(greedy_episode(agent, world, seed))
            advance()
        return played
    finally:
        world.close()


def write_film(path: Path, played: Sequence[Played]) -> None:
    """All episodes one after the other, whole or not at all."""
    import numpy as np

    from ccwm.studies.images import enlarge, write_mp4

    with written_whole(path) as fresh:
        write_mp4(fresh, enlarge(np.concatenate([each.episode.observation for each in played])))
