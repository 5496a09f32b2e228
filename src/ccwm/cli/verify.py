"""`ccwm verify`: what agreed and what did not; the exit code is 1 where something did not."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccwm.cells import PARAMS, cells
from ccwm.errors import UserError
from ccwm.settings.presets import apply_preset, load_preset
from ccwm.verify.compare import Row, Verdict, compare
from ccwm.verify.record import RESULTS, Record, edited_files, load_record, read_checkout, save_record, with_machines
from ccwm.verify.rerun import Clone, chosen_stages

STYLES = {Verdict.EQUAL: "green", Verdict.WITHIN: "green", Verdict.SKIPPED: "dim"}


def verify(
    stages: Annotated[list[str] | None, typer.Argument(help="`train` or `train@task-variant-0`; all if none.")] = None,
    preset: Annotated[str, typer.Option(help="Verify this preset's record, verify/PRESET.json, instead.")] = "",
    evidence: Annotated[str, typer.Option(help="Verify cells of this study in evidence/, each at its commit.")] = "",
    cell: Annotated[list[str] | None, typer.Option(help="With --evidence: a cell to run, with what it needs.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Write the record instead of comparing with it.")] = False,
    twice: Annotated[bool, typer.Option("--twice", help="Run again here too, which must give equal bits.")] = False,
) -> None:
    """Run the last commit's pipeline again in a temporary clone, and compare every number and file.

    Bits must be equal on the machine that made the results; elsewhere tolerances hold (docs/verify.md).
    """
    if evidence or cell:
        if stages or preset or record or twice or not evidence:
            raise UserError("--evidence and --cell belong together, and go with nothing else")
        from ccwm.verify.evidence import verify_evidence

        if not show(verify_evidence(Path.cwd(), evidence, cell or ()), Console()):
            raise typer.Exit(1)
        return
    if record and not preset:
        record_results(Path.cwd())
        return
    if preset and stages:
        raise UserError("a preset's record is of the whole pipeline", hint="name stages or a preset, not both")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="ccwm-verify-") as folder:
        clone = Clone(Path.cwd(), Path(folder) / "project")
        if preset:
            chosen, path = [], RESULTS.with_name(f"{preset}.json")
            found = run_preset(clone, preset)
            if not record:
                hint = f"run `ccwm verify --preset {preset} --record`, and commit it"
                rows = compare(load_record(clone.root / path, hint=hint), found)
        else:
            chosen = chosen_stages(stages or (), clone.root)
            rows, found = run_committed(clone, chosen, whole=not stages)
        if twice:
            rows += run_again(clone, chosen if stages else [], found)
    if preset and record:
        save_record(path, found)
        typer.echo(f"{path} now records {clone.commit[:12]}: commit it")
    if rows and not show(rows, Console()):
        raise typer.Exit(1)


def run_preset(clone: Clone, preset: str) -> Record:
    """The whole pipeline with a preset's settings, as if nothing had ever been run."""
    presets = clone.root / "presets"
    study = load_preset(preset, presets).study
    clone.forget_results()
    apply_preset(preset, clone.root / PARAMS, presets)
    clone.reproduce(total=len(cells(study)))
    return read_checkout(clone.root)


def run_committed(clone: Clone, chosen: Sequence[str], *, whole: bool) -> tuple[list[Row], Record]:
    """The stages of the committed dvc.lock, compared with the committed results."""
    committed, known = read_checkout(clone.root), clone.root / RESULTS
    if known.is_file():
        committed = with_machines(committed, load_record(known, hint="run `ccwm verify --record`, and commit it"))
    rows = [
        Row(name, "sources and settings", Verdict.DIFFERS, f"{', '.join(changed)}; run `dvc repro` and commit")
        for name, changed in clone.stale().items()
    ]
    rows += [
        Row(name, path, Verdict.DIFFERS, "the committed file is not the one that dvc.lock names")
        for name, paths in edited_files(clone.root).items()
        for path in paths
    ]
    if not whole:
        clone.fetch_inputs(chosen)
    clone.reproduce(() if whole else chosen, total=len(chosen))
    found = read_checkout(clone.root)
    return [row for row in rows + compare(committed, found) if whole or row.stage in chosen], found


def run_again(clone: Clone, chosen: Sequence[str], first: Record) -> list[Row]:
    """A second run in the same clone, against the first."""
    shutil.rmtree(clone.root / ".work", ignore_errors=True)
    clone.reproduce(chosen, total=len(chosen or first.stages))
    rows = compare(first, read_checkout(clone.root))
    return [row._replace(stage=f"{row.stage} (again)") for row in rows if not chosen or row.stage in chosen]


def record_results(root: Path) -> None:
    """Write down which machine made each stage of dvc.lock, as its run.json says, and the hashes of what it made."""
    found = read_checkout(root)
    unknown = [name for name, stage in found.stages.items() if not stage.machine]
    if unknown or not found.stages:
        missing = f"the run.json of {', '.join(unknown)} is" if unknown else "dvc.lock is"
        raise UserError(f"{missing} missing or of other files than dvc.lock", hint="run `dvc repro` first")
    machines = {name: stage.model_copy(update={"numbers": {}}) for name, stage in found.stages.items()}
    save_record(root / RESULTS, Record(stages=machines))  # git has the files with the numbers
    typer.echo(f"{RESULTS} now names the machines that made dvc.lock: commit both")


def show(rows: Sequence[Row], console: Console) -> bool:
    """Print the table and its sum; whether there was no surprise."""
    table = Table("stage", "output", "verdict", "what", box=None)
    for row in sorted(rows, key=lambda row: row.surprise):
        style = STYLES.get(row.verdict, "bold red")
        table.add_row(Text(row.stage), Text(row.what), Text(row.verdict, style), Text(row.detail))
    console.print(table)
    counts = Counter(row.verdict for row in rows)
    message = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    console.print(f"{len(rows)} outputs: {message}", soft_wrap=True, highlight=False)
    return not any(row.surprise for row in rows)
