"""Cells that another study has finished already: where DVC finds them up to date, they are taken over and not run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ccwm.cells import PARAMS, Cell, cells
from ccwm.fleet.home import Home, read_lock, write_files
from ccwm.fleet.slot import DVC_LOCK
from ccwm.fleet.study import check_out_objects
from ccwm.settings.parsing import read_yaml


def adopt(home: Home, others: list[Path]) -> dict[str, int]:
    """Take over what other studies have finished of this one; how many cells of each study's directory.

    Small results and records come from those directories, as git keeps them; a record goes on naming the commit and
    the machine that ran the cell. Agents and data come from DVC's cache, as far as it has them.
    """
    offers = _offers(home, others)
    if not offers:
        return {}
    files = {cell: _small_files(other, cell, entry) for cell, (other, entry) in offers.items()}
    for found in files.values():
        write_files(home.root, found)
    home.entries |= {str(cell): entry for cell, (_, entry) in offers.items()}
    home.write_lock(home.entries, mirrored=False)
    changed, taken = home.changed(), dict[Cell, Path]()
    for cell, (other, _) in offers.items():
        if str(cell) not in changed and all(str(need) in home.entries for need in cell.needs):
            taken[cell] = other
            continue
        del home.entries[str(cell)]
        for path in files[cell]:
            (home.root / path).unlink()
    for cell in taken:
        write_files(home.mirror or home.root, files[cell])
    home.write_lock(home.entries)
    if taken:
        check_out_objects(home.root)
    return dict(Counter(other.name for other in taken.values()))


def _offers(home: Home, others: list[Path]) -> dict[Cell, tuple[Path, dict[str, Any]]]:
    """The first study that has finished a missing cell with the same settings, in an order in which cells can run."""
    missing = [cell for cell in cells(home.study)[:-1] if str(cell) not in home.entries]
    books = {other: read_lock(other / DVC_LOCK) for other in others}
    params, found = read_yaml(home.root / PARAMS), dict[Cell, tuple[Path, dict[str, Any]]]()
    for cell in missing:
        for other, entries in books.items():
            if str(cell) in entries and _has_settings(entries[str(cell)], params):
                found[cell] = other, entries[str(cell)]
                break
    return found


def _has_settings(entry: dict[str, Any], params: dict[str, Any]) -> bool:
    """Whether a lock entry was made with the settings of a study: DVC decides, but it takes DVC seconds."""
    return all(_value(params, key) == value for key, value in entry.get("params", {}).get(PARAMS.name, {}).items())


def _value(params: Any, key: str) -> Any:
    """The value of a dotted key; None where there is none."""
    for part in key.split("."):
        params = params.get(part) if isinstance(params, dict) else None
    return params


def _small_files(other: Path, cell: Cell, entry: dict[str, Any]) -> dict[str, bytes]:
    """The result files of a cell that git keeps, and its record."""
    paths = [*(out["path"] for out in entry["outs"]), cell.record.as_posix()]
    return {path: (other / path).read_bytes() for path in paths if (other / path).is_file()}
