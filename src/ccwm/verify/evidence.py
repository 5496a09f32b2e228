"""Cells of a study in ``evidence/``, run again at the commit that made each of them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ccwm.cells import PARAMS, Cell, cells
from ccwm.errors import UserError, did_you_mean
from ccwm.fleet.code import narrow
from ccwm.readers import read_object
from ccwm.report.sources import EVIDENCE, read_source
from ccwm.verify.compare import Row, compare
from ccwm.verify.record import Record, read_checkout
from ccwm.verify.rerun import Clone, chosen_stages


def verify_evidence(project: Path, study: str, names: Sequence[str]) -> list[Row]:
    """Compare each named cell, and what it needs, with a second run of both at the cell's commit."""
    kept = project / EVIDENCE / study
    there = [path.parent.name for path in sorted((project / EVIDENCE).glob(f"*/{PARAMS}"))]
    if study not in there:
        raise UserError(f"no study {study!r} in {EVIDENCE}.{did_you_mean(study, there)}")
    if not names:
        raise UserError("no cell is named", hint="such as --cell train@walker_walk-ccwm-0; more than one is allowed")
    by_name = {str(cell): cell for cell in cells(read_source(kept).results.study)}
    committed, rows = read_checkout(kept), list[Row]()
    for name in chosen_stages(names, kept):
        chain = [str(cell) for cell in _chain(by_name[name])]
        found = _run_again(project, kept, by_name[name], chain)
        rows += compare(*(Record(stages={of: record.stages[of] for of in chain}) for record in (committed, found)))
    return rows


def _chain(cell: Cell) -> list[Cell]:
    """The cell behind all that must have run before it."""
    before = [each for need in cell.needs for each in _chain(need)]
    return [*dict.fromkeys(before), cell]


def _run_again(project: Path, kept: Path, cell: Cell, chain: Sequence[str]) -> Record:
    """The chain in a clone of the cell's commit, with the study's settings."""
    run = read_object(kept / cell.record)
    if run["dirty"] == "true":
        raise UserError(f"{cell} ran with uncommitted changes, which no clone has")
    assert cell.seed is not None
    with tempfile.TemporaryDirectory(prefix="ccwm-verify-") as folder:
        clone = Clone(project, Path(folder) / "project", commit=run["commit"])
        clone.forget_results()
        params = narrow((kept / PARAMS).read_text(), task=cell.task, variant=cell.variant, seed=cell.seed)
        (clone.root / PARAMS).write_text(params)
        clone.reproduce(chain, total=len(chain))
        return read_checkout(clone.root)
