"""Episodes kept in memory, for agents whose updates take many short windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import torch

from ccwm.episode import Episode
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.structs import Batch


class KeptEpisodes:
    """Episodes of a store one behind the other, each read when it is first asked for."""

    def __init__(self) -> None:
        self.steps: Episode | None = None  # [all steps, ...]
        self.first: dict[int, int] = {}  # the row at which an episode begins, by its index in the manifest

    def read(self, store: EpisodeStore, indices: Iterable[int]) -> Episode:
        """All steps, those of the episodes with these indices among them."""
        fresh = [index for index in dict.fromkeys(indices) if index not in self.first]
        parts = [] if self.steps is None else [self.steps]
        rows = 0 if self.steps is None else len(self.steps.reward)
        for index in fresh:
            parts.append(store.episode(index))
            self.first[index] = rows
            rows += len(parts[-1].reward)
        if fresh or self.steps is None:
            self.steps = Episode(*(np.concatenate(of) for of in zip(*parts, strict=True)))
        return self.steps


@dataclass(frozen=True)
class MemorySampler(WindowSampler):
    """The batches of a WindowSampler, bit for bit, without a read from disk for each window."""

    _: KW_ONLY
    kept: KeptEpisodes = field(default_factory=KeptEpisodes, repr=False, compare=False)

    def draw(self, update: int, episodes: int | None = None) -> Batch:
        """The batch of ``update`` from the first ``episodes`` of the store, or its ``columns``: [T, B, ...]."""
        chosen, starts = (drawn[self.columns] for drawn in self._choose(update, episodes))
        steps, entries = self.kept.read(self.store, chosen), self.store.entries
        position = np.arange(self.length)[:, None] + np.array(starts)
        rows = position + np.array([self.kept.first[index] for index in chosen])
        lengths = np.array([entries[index].steps for index in chosen])
        return Batch(
            **{name: torch.from_numpy(array[rows]) for name, array in steps._asdict().items()},
            position=torch.from_numpy(position),
            episode_length=torch.from_numpy(np.tile(lengths, (self.length, 1))),
        )
