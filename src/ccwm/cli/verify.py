"""`ccwm verify`: what agreed, what did not, and an exit code that tells."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccwm.cells import entries
from ccwm.settings.loading import load_settings
from ccwm.settings.presets import preset_path
from ccwm.verify.compare import Row, Verdict, compare
from ccwm.verify.record import (
    FOLDER,
    RESULTS,
    Record,
    StageRecord,
    edited_files,
    load_record,
    read_checkout,
    save_record,
)
from ccwm.verify.rerun import CannotVerify, Clone, chosen_stages

STYLES = {Verdict.EQUAL: "green", Verdict.WITHIN: "green", Verdict.SKIPPED: "dim"}


def verify(
    stages: Annotated[list[str] | None, typer.Argument(help="`train` or `train@task-variant-0`; all if none.")] = None,
    preset: Annotated[str, typer.Option(help="Verify this preset's record, verify/PRESET.json, instead.")] = "",
    record: Annotated[bool, typer.Option("--record", help="Write the record instead of comparing with it.")] = False,
    twice: Annotated[bool, typer.Option("--twice", help="Run again here too, which must give equal bits.")] = False,
) -> None:
    """Run the last commit's pipeline again in a temporary clone, and compare every number and file.

    Bits must be equal on the machine that made the results; elsewhere tolerances hold (docs/verify.md).
    """
    if record and not preset:
        record_results(Path.cwd())
        return
    if preset and stages:
        raise CannotVerify("a preset's record is of the whole pipeline: name stages or a preset, not both")
    with tempfile.TemporaryDirectory(prefix="ccwm-verify-") as folder:
        clone = Clone(Path.cwd(), Path(folder) / "project")
        rows: list[Row] = []
        if preset:
            found = run_preset(clone, preset)
            if not record:
                path = clone.root / FOLDER / f"{preset}.json"
                rows = compare(load_record(path, cure=f"run `ccwm verify --preset {preset} --record`"), found)
            chosen: list[str] = []
        else:
            chosen = chosen_stages(stages or (), clone.root)
            rows, found = run_committed(clone, chosen, whole=not stages)
        if twice:
            rows += run_again(clone, chosen if stages else [], found)
    if record:
        save_record(FOLDER / f"{preset}.json", found)
        typer.echo(f"{FOLDER / preset}.json now records {clone.commit[:12]}: commit it")
    if not rows:
        return
    if not show(rows, Console()):
        raise typer.Exit(1)


def run_preset(clone: Clone, preset: str) -> Record:
    """The whole pipeline with a preset's settings, as if nothing had ever been run."""
    source = preset_path(preset, clone.root / "presets")
    study = load_settings(source).study
    clone.forget_results()
    shutil.copy(source, clone.root / "params.yaml")
    clone.reproduce(total=len(entries(study)))
    return read_checkout(clone.root)


def run_committed(clone: Clone, chosen: Sequence[str], *, whole: bool) -> tuple[list[Row], Record]:
    """The stages of the committed dvc.lock, compared with the committed results."""
    committed = with_machines(read_checkout(clone.root), clone.root / RESULTS)
    rows = [
        Row(name, "sources and settings", Verdict.DIFFERS, f"{', '.join(changed)}; run `dvc repro` and commit")
        for name, changed in clone.stale().items()
        if name in chosen
    ]
    rows += [
        Row(name, path, Verdict.DIFFERS, "the committed file is not the one that dvc.lock names")
        for name, paths in edited_files(clone.root).items()
        for path in paths
        if name in chosen
    ]
    if not whole:
        clone.fetch_inputs(chosen)
    clone.reproduce(() if whole else chosen, total=len(chosen))
    found = read_checkout(clone.root)
    compared = [row for row in compare(committed, found) if row.stage in chosen or whole]
    return rows + compared, found


def run_again(clone: Clone, chosen: Sequence[str], first: Record) -> list[Row]:
    """A second run in the same clone, against the first."""
    shutil.rmtree(clone.root / ".work", ignore_errors=True)
    clone.reproduce(chosen, total=len(chosen or first.stages))
    rows = compare(first, read_checkout(clone.root))
    return [row._replace(stage=f"{row.stage} (again)") for row in rows if not chosen or row.stage in chosen]


def with_machines(record: Record, path: Path) -> Record:
    """Add what ``verify/results.json`` knows of the very executions that dvc.lock names."""
    if not path.is_file():
        return record
    known = load_record(path, cure="run `ccwm verify --record`").stages
    stages = {}
    for name, stage in record.stages.items():
        made = known.get(name)
        if made is not None and made.run == stage.run:
            stage = stage.model_copy(update={"machine": made.machine, "files": {**stage.files, **made.files}})
        stages[name] = stage
    return Record(stages=stages)


def record_results(root: Path) -> None:
    """Write down which machine made each stage of dvc.lock, as its run record tells, and the report's hashes."""
    found = read_checkout(root)
    nobody = [name for name, stage in found.stages.items() if not stage.machine]
    if nobody or not found.stages:
        missing = f"the run records of {', '.join(nobody)} are" if nobody else "dvc.lock is"
        raise CannotVerify(f"{missing} missing or older than dvc.lock: run `dvc repro` first")
    stages = {
        name: StageRecord(
            run=stage.run, machine=stage.machine, files=stage.files if name == "report" else {}, numbers={}
        )
        for name, stage in found.stages.items()
    }
    save_record(root / RESULTS, Record(stages=stages))
    typer.echo(f"{RESULTS} now tells who made dvc.lock: commit both")


def show(rows: Sequence[Row], console: Console) -> bool:
    """Print the table and its sum; whether there was no surprise."""
    table = Table("stage", "output", "verdict", "what", box=None)
    for row in sorted(rows, key=lambda row: row.surprise):
        style = STYLES.get(row.verdict, "bold red")
        table.add_row(Text(row.stage), Text(row.what), Text(row.verdict, style), Text(row.detail))
    console.print(table)
    surprises = sum(row.surprise for row in rows)
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in Verdict}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    console.print(f"{len(rows)} outputs: {told}", soft_wrap=True, highlight=False)
    return surprises == 0
