"""Training windows, drawn from the episodes on disk as a pure function of seed, update and manifest."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
import torch

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.replay.episodes import DTYPES, read_window
from ccwm.replay.manifest import Entry
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch


@dataclass(frozen=True)
class WindowSampler:
    """Draws batches of B windows of T consecutive steps; no window crosses an episode's end.

    ``sampling`` is ``episodes`` (uniform over episodes, then over starts; Dreamer's way) or ``steps`` (uniform over all
    windows). The batch of an update is the same after a restart, in another process, and after later appends
    if ``episodes`` says how many there were. ``columns`` says which of the B windows are read, where processes share
    a batch.
    """

    store: EpisodeStore
    _: KW_ONLY
    batch: int
    length: int
    seed: int
    sampling: Literal["episodes", "steps"] = "episodes"
    columns: slice = field(default_factory=lambda: slice(None))

    def draw(self, update: int, episodes: int | None = None) -> Batch:
        """The batch of ``update`` from the first ``episodes`` of the store, or its ``columns``: [T, B, ...]."""
        chosen, starts = (drawn[self.columns] for drawn in self._choose(update, episodes))
        entries = self.store.entries
        window = self._buffers(len(chosen), entries[chosen[0]])
        for column, (index, start) in enumerate(zip(chosen, starts, strict=True)):
            read_window(self.store.path(index), start, Episode(*(array[:, column] for array in window)))
        position = np.arange(self.length)[:, None] + np.array(starts)
        lengths = np.array([entries[index].steps for index in chosen])
        return Batch(
            **{name: torch.from_numpy(array) for name, array in window._asdict().items()},
            position=torch.from_numpy(position),
            episode_length=torch.from_numpy(np.tile(lengths, (self.length, 1))),
        )

    def _choose(self, update: int, episodes: int | None) -> tuple[list[int], list[int]]:
        """The manifest's index and the start of each of the B windows."""
        entries, eligible = self.store.entries, np.array(self.store.eligible(episodes), dtype=np.int64)
        windows = np.array([entries[index].steps for index in eligible], dtype=np.int64) - self.length + 1
        fits = windows >= 1
        if not fits.any():
            raise UserError(
                f"none of the {len(eligible)} episodes to draw from in {self.store.directory} has train.length = "
                f"{self.length} steps",
                hint="lower train.length, or collect longer episodes",
            )
        eligible, windows = eligible[fits], windows[fits]  # how many windows start in each
        random = np.random.Generator(np.random.Philox(key=np.array([self.seed, update], dtype=np.uint64)))
        if self.sampling == "episodes":
            drawn = random.integers(len(eligible), size=self.batch)
            starts = random.integers(windows[drawn])
        else:
            ends = np.cumsum(windows)
            window = random.integers(ends[-1], size=self.batch)
            drawn = np.searchsorted(ends, window, side="right")
            starts = window - (ends - windows)[drawn]
        return eligible[drawn].tolist(), starts.tolist()

    def _buffers(self, columns: int, entry: Entry) -> Episode:
        """Uninitialised memory for one batch, [T, B, ...] of each field."""
        axes = (self.length, columns)
        fields = {name: np.empty(axes, dtype) for name, dtype in DTYPES.items()}
        fields["observation"] = np.empty((*axes, *entry.observation_shape), entry.observation_dtype)
        fields["action"] = np.empty((*axes, entry.action_size), DTYPES["action"])
        return Episode(**fields)
