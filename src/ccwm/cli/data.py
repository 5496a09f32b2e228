"""``ccwm data``: show episodes on disk without changing them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ccwm.cli.pictures import check_pixels, written_whole
from ccwm.envs.tasks import MAZE_TASKS, SUITE_TASKS
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.replay.episodes import SCHEMA, DamagedEpisode
from ccwm.replay.manifest import MANIFEST
from ccwm.replay.store import QUARANTINE, EpisodeStore

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
        Path | None, typer.Option(help=f"Write a contact sheet (.png) of these, or of the first {SHEET_ROWS}.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="Write a video (.mp4) of one episode, by default the first.")
    ] = None,
) -> None:
    """Print what a store holds: episodes, steps, returns, sizes, damage; write a contact sheet or a video."""
    found = _stores(directory)
    if sheet or video:
        if len(found) > 1:
            names = ", ".join(str(store.directory) for store in found)
            raise UserError(f"--sheet and --video show one store of {len(found)}", hint=f"name one of {names}")
        if sheet:
            _write(sheet, ".png", found[0], lambda path: _write_sheet(path, found[0], episode))
        if video:
            _write(video, ".mp4", found[0], lambda path: _write_video(path, found[0], episode))
    for store in found:
        facts, table = _summary(store)
        console.print(facts, soft_wrap=True, highlight=False)
        console.print(table)
        if episodes:
            console.print(_lines(store))


def _stores(directory: Path) -> list[EpisodeStore]:
    """All stores in a directory, opened so that nothing in them changes and any damage may be looked at."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory", hint="collected episodes are in data/<task>/<seed>")
    paths = sorted(path.parent for path in directory.rglob(MANIFEST))
    if not paths:
        raise UserError(f"{directory} holds no episode store, no {MANIFEST}", hint="`dvc repro collect` makes one")
    with _silent(EpisodeStore.__module__), Console(stderr=True).status("checking the episodes' SHA-256"):
        return [EpisodeStore(path, read_only=True, damaged_share=1.0) for path in paths]


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Within, no warnings of this module: the table shows what is damaged."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _summary(store: EpisodeStore) -> tuple[str, Table]:
    """The store's facts in a line, and its numbers in a table."""
    entries, whole = store.entries, store.eligible()
    quarantined = sum(1 for path in (store.directory / QUARANTINE).glob("*") if path.is_file())
    facts = [f"{len(entries)} episodes", f"{store.damaged} damaged", f"{quarantined} in quarantine"]
    if entries:
        shape = " × ".join(map(str, entries[0].observation_shape))
        facts += [f"observation {entries[0].observation_dtype} {shape}", f"action {entries[0].action_size}"]
    facts += [f"format {SCHEMA}", f"task {task_of(store.directory) or 'not known'}"]
    table = Table("", "least", "mean", "most", "all")
    for column in table.columns[1:]:
        column.justify = "right"
    sizes = [store.path(index).stat().st_size / 1e6 for index in whole]
    _row(table, "steps", [entries[index].steps for index in whole], "{:,.0f}", total=True)
    _row(table, "return", [entries[index].episode_return for index in whole], "{:,.2f}", total=False)
    _row(table, "megabytes", sizes, "{:,.2f}", total=True)
    return f"[bold]{escape(str(store.directory))}[/bold]: {escape(' · '.join(facts))}", table


def _row(table: Table, name: str, values: list[float], form: str, *, total: bool) -> None:
    if not values:
        table.add_row(name, "–", "–", "–", "–")
        return
    numbers = (min(values), float(np.mean(values)), max(values))
    table.add_row(name, *(form.format(number) for number in numbers), form.format(sum(values)) if total else "")


def _lines(store: EpisodeStore) -> Table:
    table = Table("episode", "steps", "return", "megabytes", "state")
    for column in table.columns[:4]:
        column.justify = "right"
    for index, entry in enumerate(store.entries):
        reason = _fault(store, index)
        size = "–" if reason else f"{store.path(index).stat().st_size / 1e6:.2f}"
        state = f"[red]damaged: {escape(reason)}[/red]" if reason else "whole"
        table.add_row(str(index), f"{entry.steps:,}", f"{entry.episode_return:,.2f}", size, state)
    return table


def task_of(directory: Path) -> str | None:
    """The task that a store's path names, as ``data/<task>/<seed>/<part>`` does; None where it names none."""
    known = (name for name in reversed(directory.resolve().parts) if name in MAZE_TASKS or name in SUITE_TASKS)
    other = (name for name in reversed(directory.resolve().parts) if ":" in name)
    return next(known, None) or next(other, None)


def _fault(store: EpisodeStore, index: int) -> str | None:
    if index in store.eligible():
        return None
    try:
        store.episode(index)
    except DamagedEpisode as damage:
        return damage.reason
    return None


def _read(store: EpisodeStore, index: int) -> Episode:
    """An episode of pixels."""
    if index >= len(store):
        raise UserError(f"{store.directory} has no episode {index}: it holds {len(store)}, numbered from 0")
    try:
        episode = store.episode(index)
    except DamagedEpisode as damage:
        raise UserError(f"episode {index} cannot be shown: {damage}") from damage
    check_pixels(episode.observation)
    return episode


def _chosen(store: EpisodeStore, wanted: list[int] | None, most: int) -> list[int]:
    chosen = wanted or store.eligible()[:most]
    if not chosen:
        raise UserError(f"{store.directory} holds no whole episode to show")
    return chosen


def _write(path: Path, suffix: str, store: EpisodeStore, write: Callable[[Path], None]) -> None:
    """Write a picture to ``path``, whole or not at all, and never into the store itself."""
    if path.suffix != suffix:
        raise UserError(f"{path} must end in {suffix}")
    if store.directory.resolve() in path.resolve().parents:
        raise UserError(f"{path} is in the store that it shows", hint=f"choose a place outside {store.directory}")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent} is no directory", hint="make it first")
    with written_whole(path) as fresh:
        write(fresh)
    console.print(f"wrote {path}", soft_wrap=True, markup=False, highlight=False)


def _write_sheet(path: Path, store: EpisodeStore, wanted: list[int] | None) -> None:
    from ccwm.studies.contact_sheet import Row, write_contact_sheet

    rows = []
    for index in _chosen(store, wanted, SHEET_ROWS):
        episode = _read(store, index)
        total = episode.reward.sum(dtype=np.float64)
        rows.append(Row(f"episode {index} · {len(episode.reward)} steps · return {total:.2f}", episode))
    write_contact_sheet(path, rows)


def _write_video(path: Path, store: EpisodeStore, wanted: list[int] | None) -> None:
    from ccwm.studies.images import enlarge, write_mp4

    chosen = _chosen(store, wanted, 1)
    if len(chosen) > 1:
        raise UserError(f"--video shows one episode, {len(chosen)} were named")
    write_mp4(path, enlarge(_read(store, chosen[0]).observation))
