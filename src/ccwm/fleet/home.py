"""Home: the project whose ``dvc.lock`` the fleet fills. What is stale, what a cell reads, and what came back."""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from ruamel.yaml import YAML

from ccwm.cells import WORK, Cell, cells, dvc_status
from ccwm.errors import UserError
from ccwm.files import write_atomically
from ccwm.fleet import ARRIVED, FLEET, MARKER
from ccwm.fleet.parcel import LOCK, pack, unpack
from ccwm.fleet.slot import DVC_LOCK, SPOOL
from ccwm.settings.schema import Study


@contextmanager
def held(root: Path) -> Iterator[None]:
    """Within, no other fleet fills this project."""
    (root / ARRIVED).mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / FLEET / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        hint = "`ccwm fleet status` shows it, `ccwm fleet stop` ends it"
        raise UserError(f"another fleet is filling {root}", hint=hint) from None
    try:
        yield
    finally:
        lock.release()


def is_held(root: Path) -> bool:
    """Whether a fleet is filling this project now."""
    if not (root / FLEET / "lock").is_file():
        return False
    try:
        with held(root):
            return False
    except UserError:
        return True


MISSING = ("deleted", "not in cache")
"""What DVC calls an output that is not there."""
PATIENCE = 10.0
"""DVC may take a tenth of the time: hundreds of cells take it many seconds to read."""


class Home:
    """A project directory, and a second directory that gets a copy of all small results."""

    def __init__(self, root: Path, study: Study, mirror: Path | None = None) -> None:
        self.root, self.study, self.mirror = root, study, mirror
        self.entries: dict[str, Any] = read_lock(root / DVC_LOCK)
        self._changed: set[str] = set()
        self._unsettled: list[Path] = []
        self._far: list[str] = []
        self.took_spools = False
        self._settle_at = 0.0

    @property
    def marker(self) -> str:
        """The random name of this project, by which a host knows whether it shares home's files."""
        path = self.root / MARKER
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, uuid.uuid4().hex.encode())
        return path.read_text()

    def dvc_places(self) -> tuple[str, bool]:
        """DVC's cache, and whether it has a remote for hosts that do not share home's files."""
        from dvc.repo import Repo

        with Repo(str(self.root)) as repo:
            return str(repo.cache.local_cache_dir), bool(repo.config["core"].get("remote"))

    def stale(self, pattern: str = "*") -> list[Cell]:
        """Cells that are to run, in an order in which they can: those that match, and what they need."""
        self._changed = self.changed()
        if self._take_arrived():
            self._changed = self.changed()
        every, stale = cells(self.study)[:-1], dict[Cell, None]()
        for cell in every:
            if str(cell) in self._changed or any(need in stale for need in cell.needs):
                stale[cell] = None
        wanted = {cell for cell in stale if fnmatchcase(str(cell), pattern)}
        for cell in reversed(every):
            if cell in wanted:
                lost = [need for need in cell.needs if need not in stale and self._lost(need)]
                self._changed.update(map(str, lost))
                wanted.update(lost, (need for need in cell.needs if need in stale))
        return [cell for cell in every if cell in wanted]

    def changed(self) -> set[str]:
        """What DVC says has changed; of a study that is kept elsewhere not those whose objects are missing, no more."""
        found = dvc_status(self.root)
        if self.mirror is None:
            return set(found)
        objects = {path for entry in self.entries.values() for path in _objects(entry)}
        return {name for name, changes in found.items() if any(_is_change(of, objects) for of in changes)}

    def _lost(self, cell: Cell) -> bool:
        """Whether an object of a finished cell is not here."""
        return any(not (self.root / path).exists() for path in _objects(self.entries[str(cell)]))

    def is_unchanged(self, cell: Cell) -> bool:
        """Whether a cell that only ran behind others may stay: what they made is what it has read before."""
        if str(cell) in self._changed or str(cell) not in self.entries:
            return False
        made = {out["path"]: out["md5"] for need in cell.needs for out in self.entries[str(need)]["outs"]}
        return all(made.get(dep["path"], dep["md5"]) == dep["md5"] for dep in self.entries[str(cell)]["deps"])

    def inputs(self, cell: Cell) -> bytes:
        """What the cell reads of others: their lock entries and their small files."""
        entries = {str(need): self.entries[str(need)] for need in cell.needs}
        paths = [self.root / out["path"] for entry in entries.values() for out in entry["outs"]]
        paths = [path for path in paths if (self.root / "results") in path.parents]
        paths += [self.root / need.record for need in cell.needs]
        files = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths if path.is_file()}
        return pack({LOCK: json.dumps(entries).encode(), **files})

    def receive(self, cell: Cell, parcel: bytes, key: str) -> None:
        """Take a finished cell in: its small files at once, DVC's books with the next ``settle``."""
        path = self.root / ARRIVED / f"{cell}.{key}.tar"
        if not path.is_file():  # a slot that shares home's files has put it there itself
            write_atomically(path, parcel)
        self._take_in(cell, path)

    @property
    def is_due(self) -> bool:
        """Whether it is time to settle."""
        return bool(self._unsettled) and time.monotonic() >= self._settle_at

    def settle(self, *, patience: float = 0.0) -> None:
        """Write ``dvc.lock`` and have DVC put the cached files in their place; later, while someone else uses DVC."""
        from dvc.lock import LockError
        from dvc.repo import Repo

        logging.getLogger("dvc").setLevel(logging.ERROR)  # its bars would tear the live table
        start = time.monotonic()
        while self._unsettled:
            before = read_lock(self.root / DVC_LOCK)
            names = [path.name.rsplit(".", 2)[0] for path in self._unsettled]
            self.write_lock({**before, **{name: self.entries[name] for name in names}})
            try:
                with Repo(str(self.root)) as repo:
                    if self._far:
                        repo.fetch(targets=self._addresses(self._far))
                    _check_out(repo, names)
            except BaseException as error:
                self.write_lock(before)  # DVC would delete and run again what its books have and its cache has not
                if not isinstance(error, LockError) or time.monotonic() - start > patience > 0:
                    raise
                if not patience:
                    break
                time.sleep(1.0)
                continue
            for path in self._unsettled:
                path.unlink()
            self._unsettled.clear()
            self._far.clear()
        self._settle_at = time.monotonic() + PATIENCE * (time.monotonic() - start)

    def _addresses(self, names: list[str]) -> list[str]:
        """Stages by the file that has them: DVC looks a bare name up in the current directory's ``dvc.yaml``."""
        return [f"{self.root.resolve() / 'dvc.yaml'}:{name}" for name in names]

    def _take_arrived(self) -> bool:
        """Take in what a fleet that was killed has left, unless it has been made anew since."""
        known = {str(cell): cell for cell in cells(self.study)}
        for path in sorted((self.root / ARRIVED).glob("*.tar")):
            name = path.name.rsplit(".", 2)[0]
            if name not in known or name not in self._changed:
                path.unlink()
            else:
                try:
                    self._take_in(known[name], path)
                except UserError:
                    path.unlink(missing_ok=True)  # the cell runs again
        taken = bool(self._unsettled)
        self.settle(patience=60.0)
        return taken

    def _take_in(self, cell: Cell, path: Path) -> None:
        """Check a parcel against its own hashes and the cell's directories, and write its small files."""
        members = unpack(path.read_bytes())
        head = json.loads(members.pop(LOCK))
        entry = head["entry"]
        outs = {out["path"]: out["md5"] for out in entry["outs"]}
        spool = {path: members.pop(path) for path in list(members) if Path(path).parts[0] == SPOOL.name}
        record = cell.record.as_posix()
        hashes = {path: hashlib.md5(content, usedforsecurity=False).hexdigest() for path, content in members.items()}
        places = (cell.data, cell.model, cell.results)
        refused = [path for path in (*outs, *members) if not any(Path(path).is_relative_to(place) for place in places)]
        refused += [path for path in (*outs, *members, *spool) if ".." in Path(path).parts]
        refused += [path for path, found in hashes.items() if path != record and found != outs.get(path)]
        if refused:
            path.unlink()
            raise UserError(f"the parcel of {cell} is refused: {refused[0]} is not what dvc.lock and dvc.yaml say")
        for root in filter(None, (self.root, self.mirror)):
            write_files(root, members)
        write_files(self.root / WORK, spool)
        self.took_spools |= bool(spool)
        if head["remote"]:
            self._far.append(str(cell))
        self.entries[str(cell)] = entry
        self._unsettled.append(path)

    def write_lock(self, entries: dict[str, Any], *, mirrored: bool = True) -> None:
        """Write ``dvc.lock``, and its copy."""
        text = StringIO()
        layout = YAML()
        layout.default_flow_style = False
        layout.dump({"schema": "2.0", "stages": entries}, text)
        for root in filter(None, (self.root, self.mirror if mirrored else None)):
            write_atomically(root / DVC_LOCK, text.getvalue().encode())


def _check_out(repo: Any, names: list[str]) -> None:
    """As `dvc checkout`, which reads ``dvc.yaml`` and ``dvc.lock`` again for every stage: seconds each at 100 cells."""
    from dvc.dvcfile import load_file

    with repo.lock:
        stages = load_file(repo, str(Path(repo.root_dir) / "dvc.yaml")).stages
        for name in names:
            if lost := stages[name].checkout(force=True).get("failed"):
                raise UserError(f"DVC's cache does not hold {lost[0]}, which {name} has made")


def _objects(entry: dict[str, Any]) -> list[str]:
    """The outputs of a lock entry that git does not keep: directories."""
    return [out["path"] for out in entry["outs"] if out["md5"].endswith(".dir")]


def _is_change(change: Any, objects: set[str]) -> bool:
    """Whether one of DVC's changes of a stage is more than objects that are missing."""
    if not isinstance(change, dict):
        return True
    return any(
        state not in MISSING or path not in objects
        for paths in change.values()
        for path, state in (paths.items() if isinstance(paths, dict) else [(str(paths), "")])
    )


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Write every file, whole or not at all, below a directory."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(root / path, content)


def read_lock(path: Path) -> dict[str, Any]:
    """The entries of a ``dvc.lock`` by cell; none where there is no file."""
    found = YAML(typ="safe").load(path) if path.is_file() else {}
    return dict((found or {}).get("stages", {}))
