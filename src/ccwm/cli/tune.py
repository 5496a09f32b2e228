"""`ccwm tune`: search, look at a search, and write its winner into params.yaml."""

from __future__ import annotations

import difflib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter

from ccwm.cells import PARAMS
from ccwm.cli.source import print_source
from ccwm.errors import UserError, did_you_mean
from ccwm.files import write_atomically
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import BadParams, parse
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

tune = typer.Typer(help="Search for better settings (docs/tuning.md).")
console = Console()

Study = Annotated[str | None, typer.Option(help="Join or begin the search of this name instead of tune.study.")]
Storage = Annotated[str | None, typer.Option(help="postgresql://user@host/database, instead of tune.storage.")]
Trials = Annotated[int | None, typer.Option(help="Trials of the whole study, instead of tune.trials.")]
Hours = Annotated[
    float | None, typer.Option(help="Hours after which this process begins no further trial, instead of tune.hours.")
]


@tune.callback(invoke_without_command=True)
def run(
    context: typer.Context,
    study: Study = None,
    trials: Trials = None,
    hours: Hours = None,
    storage: Storage = None,
    fleet: Annotated[
        int | None, typer.Option(min=1, help="Start so many processes on Ray: here, or at --address (docs/fleet.md).")
    ] = None,
    address: Annotated[str | None, typer.Option(help="With --fleet, a Ray cluster: auto or HOST:PORT.")] = None,
) -> None:
    """Search for better settings: `ccwm tune`, as often at once as there are cores to use."""
    if context.invoked_subcommand is not None:
        return
    given = {"study": study, "trials": trials, "hours": hours, "storage": storage}
    settings = search_settings(**given)
    if fleet is None and address is not None:
        raise UserError("--address is for --fleet", hint="say how many processes to start there")
    if fleet is not None:
        _run_fleet(settings, given, processes=fleet, address=address)
        return
    from ccwm.tuning.search import search

    folder = search(settings)
    console.print(f"Results in {folder}; `ccwm tune apply` writes the winner into {PARAMS}")


def _run_fleet(settings: Settings, given: Mapping[str, object], *, processes: int, address: str | None) -> None:
    """Start processes of this very command without `--fleet`, and wait for them."""
    from ccwm.fleet.cluster import connected
    from ccwm.studies.search import RESULTS
    from ccwm.training.signals import deferred_signals

    arguments = [part for name, value in given.items() if value is not None for part in (f"--{name}", str(value))]
    with connected(address) as resources, deferred_signals() as stop:
        from ccwm.fleet.tuning import TuningFleet

        started = TuningFleet(Path.cwd(), settings, arguments, resources, processes=processes)
        started.run(lambda line: console.print(line, highlight=False, soft_wrap=True, markup=False), stop)
    for number, reason in started.failed.items():
        console.print(f"process {number} failed: {reason}", highlight=False, soft_wrap=True, markup=False)
    if started.failed:
        raise typer.Exit(1)
    console.print(f"Results in {RESULTS / settings.tune.study}; `ccwm tune apply` writes the winner into {PARAMS}")


@tune.command("show")
def show(study: Study = None, storage: Storage = None) -> None:
    """Print the trials of a search, finished or not."""
    from ccwm.tuning.live_table import trials_table
    from ccwm.tuning.storage import open_storage
    from ccwm.tuning.study import load_studies, read_outcome

    settings = search_settings(study=study, storage=storage)
    searched, fresh = load_studies(open_storage(settings.tune), settings.tune.study)
    outcome = read_outcome(searched, fresh, top=settings.tune.top)
    console.print(trials_table(outcome.rows, list(settings.tune.space), outcome.best))
    for candidate in outcome.candidates:
        value = "not yet measured" if candidate.fresh_value is None else f"{candidate.fresh_value:.4g}"
        mark = ", the winner" if candidate is outcome.winner else ""
        console.print(f"trial {candidate.searched.trial} on fresh seeds: {value}{mark}", highlight=False)


@tune.command("apply")
def apply(
    study: Study = None, yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False
) -> None:
    """Write the winner of a search into the overrides of its variant in params.yaml."""
    from ccwm.studies.search import RESULTS, read_summary

    settings = load_settings(PARAMS)
    summary = read_summary(RESULTS / (study or settings.tune.study))
    variant, winner = summary["variant"], summary["winner"]
    if winner is None:
        raise UserError(f"the study {summary['study']!r} has no winner yet", hint="`ccwm tune` resumes the search")
    old = PARAMS.read_text(encoding="utf-8")
    new = with_winner(old, variant, winner["point"], settings)
    if new == old:
        console.print(f"{PARAMS} has these values already")
        return
    names = str(PARAMS), f"{PARAMS} with the winner"
    diff = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), *names, n=1))
    print_source(diff, "diff")
    if not yes:
        typer.confirm("Write this?", abort=True)
    write_atomically(PARAMS, new.encode())
    listed = variant in settings.study.variants
    hint = "`dvc repro` trains what changed" if listed else f"add {variant} to study.variants to have it trained"
    console.print(f"Written; {hint}")


def search_settings(**given: str | float | None) -> Settings:
    """params.yaml with fields of ``tune`` from the command line, checked like the file; None leaves a field alone."""
    content = load_settings(PARAMS).model_dump(mode="json")
    content["tune"] |= {name: value for name, value in given.items() if value is not None}
    return parse(content, where="command line")


def with_winner(text: str, variant: str, point: dict[str, Any], settings: Settings) -> str:
    """The text of params.yaml with the point in the variant's overrides, everything else as it was, and checked."""
    if variant not in settings.variants:
        guess = did_you_mean(variant, settings.variants)
        raise BadParams(f"{PARAMS}: variants has no {variant!r}, which was tuned.{guess}")
    layout, written = YAML(), io.StringIO()
    layout.Representer, layout.preserve_quotes, layout.width = _PlainNull, True, 4096
    content = layout.load(text)
    content["variants"][variant].update(point)
    layout.dump(content, written)
    resolve(parse(YAML(typ="safe").load(written.getvalue()), where=str(PARAMS)), variant)
    return written.getvalue()


class _PlainNull(RoundTripRepresenter):
    """Writes null as it was read, where ruamel would leave it out."""


_PlainNull.add_representer(
    type(None), lambda representer, _: representer.represent_scalar("tag:yaml.org,2002:null", "null")
)
