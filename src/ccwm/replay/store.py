"""A directory of episodes: appended one by one, checked when opened, never trained on when damaged."""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.files import sync_directory, temporary_path, write_atomically
from ccwm.replay.episodes import DamagedEpisode, parse_episode, read_episode, serialise_episode
from ccwm.replay.manifest import MANIFEST, Entry, Manifest

QUARANTINE = "quarantine"
log = logging.getLogger(__name__)


class EpisodeStore:
    """Episodes in the order of their manifest, in a directory with at most one writer.

    ``capacity`` is in stored steps: ``eligible`` leaves out the oldest episodes beyond it, which stay on disk.
    ``read_only`` changes nothing on disk, not even to quarantine a damaged file.
    """

    def __init__(
        self, directory: Path, *, capacity: int | None = None, damaged_share: float = 0.05, read_only: bool = False
    ) -> None:
        self.directory, self.capacity = directory, capacity
        self.damaged_share, self.read_only = damaged_share, read_only
        if read_only and not (directory / MANIFEST).is_file():
            hint = "run the stage that makes it"
            raise UserError(f"{directory} is no episode store: it has no {MANIFEST}", hint=hint)
        if not read_only:
            directory.mkdir(parents=True, exist_ok=True)
        self._manifest = Manifest(directory, create=not read_only)
        self.entries: Sequence[Entry] = self._manifest.entries  # its own list, oldest first: it grows and shrinks
        self._damaged = self._verify()
        if not read_only:
            self._clean()

    def __len__(self) -> int:
        """Episodes in the manifest, the damaged ones included, so that a count keeps its meaning."""
        return len(self.entries)

    @property
    def steps(self) -> int:
        """Stored steps of all episodes, resets included: actions taken are ``steps - len(store)``."""
        return sum(entry.steps for entry in self.entries)

    @property
    def damaged(self) -> int:
        """Episodes of the manifest that cannot be read."""
        return len(self._damaged)

    def path(self, index: int) -> Path:
        """The file of the manifest's episode ``index``."""
        return self.directory / self.entries[index].name

    def episode(self, index: int) -> Episode:
        """The manifest's episode ``index``, whole; DamagedEpisode where it is damaged."""
        if index in self._damaged:
            raise DamagedEpisode(self.path(index), self._damaged[index])
        return read_episode(self.path(index))

    def eligible(self, episodes: int | None = None) -> list[int]:
        """Which of the manifest's first ``episodes`` may be drawn, oldest first: the whole ones within ``capacity``."""
        count = len(self) if episodes is None else episodes
        if not 0 <= count <= len(self):
            raise ValueError(f"{self.directory} holds {len(self)} episodes, so there are no first {count}")
        whole = [index for index in range(count) if index not in self._damaged]
        if self.capacity is None:
            return whole
        from_each = accumulate(self.entries[index].steps for index in reversed(whole))  # steps from it to the newest
        fitting = sum(steps <= self.capacity for steps in from_each)
        return whole[-max(fitting, 1) :]

    def append(self, episode: Episode) -> None:
        """Store one more episode; when this returns, it survives a kill and a power cut."""
        self._store(serialise_episode(episode), episode)

    def adopt(self, path: Path) -> None:
        """Store a checked copy of an episode file that lives elsewhere."""
        data = path.read_bytes()
        self._store(data, parse_episode(data, path))

    def copy_from(self, directory: Path) -> None:
        """Start with the whole episodes of another store; a repeated call resumes where a killed one stopped."""
        source = EpisodeStore(directory, damaged_share=self.damaged_share, read_only=True)
        copied = {entry.sha256 for entry in self.entries}
        wanted = [
            index
            for index, entry in enumerate(source.entries)
            if index not in source._damaged or entry.sha256 in copied  # it may be damaged since
        ]
        for position, index in enumerate(wanted):
            if position == len(self):
                self.adopt(source.path(index))
            elif self.entries[position].sha256 != source.entries[index].sha256:
                raise ValueError(f"{self.directory} does not start with {directory}: episode {position} differs")

    def refresh(self) -> None:
        """See the episodes that the directory's one writer, another process, has appended since."""
        self._manifest.refresh()

    def truncate(self, count: int) -> None:
        """Forget the episodes after the first ``count``, as a resume from an older checkpoint does."""
        self._refuse_read_only()
        if not 0 <= count <= len(self):
            raise ValueError(f"{self.directory} holds {len(self)} episodes, it cannot be cut to {count}")
        # The manifest first: a kill in between leaves files without a line, and the next append overwrites them.
        for entry in self._manifest.truncate(count):
            (self.directory / entry.name).unlink(missing_ok=True)
        self._damaged = {index: reason for index, reason in self._damaged.items() if index < count}
        sync_directory(self.directory)

    def _store(self, data: bytes, episode: Episode) -> None:
        """Write the file, then the manifest's line; without the line, take the file back."""
        self._refuse_read_only()
        entry = describe(len(self), data, episode)
        if self.entries and entry.kind != self.entries[0].kind:
            raise ValueError(f"{self.directory} holds episodes of {self.entries[0].kind}, this one has {entry.kind}")
        path = self.directory / entry.name
        write_atomically(path, data)
        try:
            self._manifest.append(entry)
        except OSError:
            path.unlink(missing_ok=True)
            raise

    def _refuse_read_only(self) -> None:
        if self.read_only:
            raise PermissionError(f"{self.directory} was opened read-only: copy it with copy_from to change it")

    def _verify(self) -> dict[int, str]:
        """Check each file against the manifest; index → reason of the damaged ones, or refuse above the share."""
        found = {index: self._fault(index) for index in range(len(self))}
        damaged = {index: reason for index, reason in found.items() if reason}
        if len(damaged) > self.damaged_share * len(self):
            names = ", ".join(self.entries[index].name for index in list(damaged)[:5])
            raise UserError(
                f"{len(damaged)} of {len(self)} episodes in {self.directory} are damaged (first: {names}), more than "
                f"the share of {self.damaged_share:.0%}",
                hint="restore the files, or remove the directory and collect again",
            )
        for index, reason in damaged.items():
            log.warning("%s is left out: %s", self.path(index), reason)
        return damaged

    def _fault(self, index: int) -> str | None:
        """What is wrong with an episode: its file, its content, or what the manifest says of it."""
        entry, path = self.entries[index], self.path(index)
        if not path.is_file():
            quarantined = (self.directory / QUARANTINE / entry.name).exists()
            return "it is in quarantine" if quarantined else "it is missing"
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != entry.sha256:
            return "its SHA-256 is not the manifest's"
        try:
            there = describe(index, data, parse_episode(data, path))
        except DamagedEpisode as error:
            return error.reason
        if not math.isclose(there.episode_return, entry.episode_return, rel_tol=1e-9, abs_tol=1e-9):
            return f"its return is {there.episode_return}, not the manifest's {entry.episode_return}"
        same = there.model_copy(update={"episode_return": entry.episode_return})
        return None if same == entry else "its name, length or kind is not the manifest's"

    def _clean(self) -> None:
        """Quarantine what is damaged, and remove the unfinished file of a writer that was killed."""
        for path in filter(Path.exists, map(self.path, self._damaged)):
            (self.directory / QUARANTINE).mkdir(exist_ok=True)
            path.replace(self.directory / QUARANTINE / path.name)
        for leftover in self.directory.glob(temporary_path(Path("*")).name):
            leftover.unlink()


def describe(index: int, data: bytes, episode: Episode) -> Entry:
    """The manifest's line of an episode."""
    return Entry(
        name=f"{index:06d}.safetensors",
        steps=len(episode.reward),
        observation_shape=episode.observation.shape[1:],
        observation_dtype=episode.observation.dtype.name,
        action_size=episode.action.shape[1],
        episode_return=float(episode.reward.sum(dtype="float64")),
        sha256=hashlib.sha256(data).hexdigest(),
    )
