"""``ccwm data``: show episodes on disk without changing them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from ccwm.cli.pictures import check_path, check_pixels, written_whole
from ccwm.envs.factory import make_env
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS
from ccwm.envs.world import component_names
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.replay.episodes import SCHEMA, DamagedEpisode
from ccwm.replay.manifest import MANIFEST
from ccwm.replay.store import QUARANTINE, EpisodeStore
from ccwm.settings.agent import Env

SHEET_ROWS = 6
"""Episodes on a contact sheet where none is named."""

data = typer.Typer(no_args_is_help=True, help="Look at episodes on disk; this changes nothing.")
console = Console()


@data.command("show")
def show(
    directory: Annotated[Path, typer.Argument(help="An episode store, or a directory with stores in it.")],
    episodes: Annotated[bool, typer.Option("--episodes", help="Also print a line for each episode.")] = False,
    episode: Annotated[
        list[int] | None, typer.Option(min=0, help="Number of an episode for --sheet or --video; may be repeated.")
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            help=f"Write a .png of these, or of the first {SHEET_ROWS}: a contact sheet of their pixels, "
            "or the components of their states over time."
        ),
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="Write a video (.mp4) of one episode of pixels, by default the first.")
    ] = None,
) -> None:
    """Print what a store holds: episodes, steps, returns, sizes, damage; write a contact sheet or a video.

    Of states it also prints each component's least, mean and greatest value.
    """
    found = _stores(directory)
    if (sheet or video) and len(found) > 1:
        names = ", ".join(str(store.directory) for store in found)
        raise UserError(f"--sheet and --video show one store of {len(found)}", hint=f"name one of {names}")
    if sheet:
        from ccwm.studies.component_sheet import write_component_sheet
        from ccwm.studies.contact_sheet import Row, write_contact_sheet

        with _picture(sheet, ".png", found[0]) as fresh:
            rows = []
            for index, chosen in _chosen(found[0], episode, SHEET_ROWS).items():
                total = chosen.reward.sum(dtype=np.float64)
                rows.append(Row(f"episode {index} · {len(chosen.reward)} steps · return {total:.2f}", chosen))
            if _holds_states(found[0]):
                write_component_sheet(fresh, rows, _names(found[0]))
            else:
                write_contact_sheet(fresh, rows)
    if video:
        from ccwm.studies.images import enlarge, write_mp4

        if episode and len(episode) > 1:
            raise UserError(f"--video shows one episode, {len(episode)} were named")
        with _picture(video, ".mp4", found[0]) as fresh:
            (chosen,) = _chosen(found[0], episode, 1).values()
            write_mp4(fresh, enlarge(check_pixels(chosen.observation)))
    for store in found:
        console.print(_facts(store), soft_wrap=True, highlight=False)
        console.print(_summary(store))
        if _holds_states(store):
            console.print(_components(store))
        if episodes:
            console.print(_lines(store))


def _stores(directory: Path) -> list[EpisodeStore]:
    """All stores in a directory, opened so that nothing in them changes and any damage may be looked at."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory", hint="collected episodes are in data/<task>/<seed>")
    paths = sorted(path.parent for path in directory.rglob(MANIFEST))
    if not paths:
        raise UserError(f"{directory} holds no episode store, no {MANIFEST}", hint="`dvc repro collect` makes one")
    logging.disable(logging.WARNING)  # the table shows what is damaged
    try:
        with Console(stderr=True).status("checking the episodes' SHA-256"):
            return [EpisodeStore(path, read_only=True, damaged_share=1.0) for path in paths]
    finally:
        logging.disable(logging.NOTSET)


def _facts(store: EpisodeStore) -> str:
    """What the store is, in a line."""
    quarantined = sum(1 for path in (store.directory / QUARANTINE).glob("*") if path.is_file())
    facts = [f"{len(store)} episodes", f"{store.damaged} damaged", f"{quarantined} in quarantine"]
    for first in store.entries[:1]:
        shape = " × ".join(map(str, first.observation_shape))
        facts += [f"observation {first.observation_dtype} {shape}", f"action {first.action_size}"]
    facts += [f"format {SCHEMA}", f"task {task_of(store.directory) or 'not known'}"]
    return f"[bold]{escape(str(store.directory))}[/bold]: {escape(' · '.join(facts))}"


def _summary(store: EpisodeStore) -> Table:
    """Steps, returns and sizes of the whole episodes."""
    whole = store.eligible()
    numbers: dict[str, tuple[str, list[float]]] = {
        "steps": ("{:,.0f}", [store.entries[index].steps for index in whole]),
        "return": ("{:,.2f}", [store.entries[index].episode_return for index in whole]),
        "megabytes": ("{:,.2f}", [_megabytes(store, index) for index in whole]),
    }
    table = Table("", *(Column(name, justify="right") for name in ("least", "mean", "most", "all")))
    for name, (form, values) in numbers.items():
        shown = [form.format(value(values)) if values else "–" for value in (min, np.mean, max, sum)]
        table.add_row(name, *shown[:3], "" if name == "return" else shown[3])
    return table


def _holds_states(store: EpisodeStore) -> bool:
    """Whether the observations are vectors."""
    return any(len(entry.observation_shape) == 1 for entry in store.entries[:1])


def _components(store: EpisodeStore) -> Table:
    """What each component of the states was in the whole episodes."""
    table = Table("component", *(Column(name, justify="right") for name in ("least", "mean", "most")))
    states = [store.episode(index).observation for index in store.eligible()]
    if states:
        steps = np.concatenate(states)
        values = (steps.min(0), steps.mean(0, dtype=np.float64), steps.max(0))
        for name, *numbers in zip(_names(store), *values, strict=True):
            table.add_row(escape(name), *(f"{number:.4g}" for number in numbers))
    return table


def _names(store: EpisodeStore) -> tuple[str, ...]:
    """What the components of a store's states are called: by its task where its path names one, else by number."""
    (size,) = store.entries[0].observation_shape
    task = task_of(store.directory) or ""
    if task in MAZE_TASKS or task in SUITE_TASKS or task.startswith("gym:"):  # no path may choose a module to import
        config = Env(observation="state", action_repeat=1, time_limit=1000)
        with suppress(UserError), closing(make_env(task, config)) as env:  # its packages may not be here
            if len(env.observation_names) == size:
                return env.observation_names
    return component_names("observation", (size,))


def _lines(store: EpisodeStore) -> Table:
    """A line for each episode."""
    numbers = (Column(name, justify="right") for name in ("episode", "steps", "return", "megabytes"))
    table, whole = Table(*numbers, "state"), store.eligible()
    for index, entry in enumerate(store.entries):
        size, state = "–", "whole"
        if index in whole:
            size = f"{_megabytes(store, index):.2f}"
        else:
            try:
                store.episode(index)
            except DamagedEpisode as damage:
                state = f"[red]damaged: {escape(damage.reason)}[/red]"
        table.add_row(str(index), f"{entry.steps:,}", f"{entry.episode_return:,.2f}", size, state)
    return table


def _megabytes(store: EpisodeStore, index: int) -> float:
    return store.path(index).stat().st_size / 1e6


def task_of(directory: Path) -> str | None:
    """The task that a store's path names, as ``data/<task>/<seed>/<part>`` does; None where it names none."""
    names = directory.resolve().parts[::-1]
    known = [name for name in names if name in MAZE_TASKS or name in SUITE_TASKS]
    return next(iter([*known, *(name for name in names if ":" in name)]), None)


def _chosen(store: EpisodeStore, wanted: list[int] | None, most: int) -> dict[int, Episode]:
    """The wanted episodes, or the first whole ones, by number."""
    numbers = wanted or store.eligible()[:most]
    if not numbers:
        raise UserError(f"{store.directory} holds no whole episode to show")
    if max(numbers) >= len(store):
        raise UserError(f"{store.directory} has no episode {max(numbers)}: it holds {len(store)}, numbered from 0")
    try:
        return {number: store.episode(number) for number in numbers}
    except DamagedEpisode as damage:
        raise UserError(f"this episode cannot be shown: {damage}") from damage


@contextmanager
def _picture(path: Path, suffix: str, store: EpisodeStore) -> Iterator[Path]:
    """A place to write a picture to, which becomes ``path`` at the end; it is never in the store itself."""
    check_path(path, suffix)
    if store.directory.resolve() in path.resolve().parents:
        raise UserError(f"{path} is in the store that it shows", hint=f"choose a place outside {store.directory}")
    with written_whole(path) as fresh:
        yield fresh
    console.print(f"wrote {path}", soft_wrap=True, markup=False, highlight=False)
