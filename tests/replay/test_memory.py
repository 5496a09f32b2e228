"""Windows from memory are those from disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from synthetic_episodes import VECTOR, synthetic_episode

from ccwm.replay.memory import MemorySampler
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore


def store_of(directory: Path, lengths: list[int], **options: Any) -> EpisodeStore:
    store = EpisodeStore(directory, **options)
    for number, steps in enumerate(lengths):
        store.append(synthetic_episode(number, steps, shape=VECTOR, terminated=number % 2 == 0))
    return store


def assert_same(one: WindowSampler, other: WindowSampler, **options: Any) -> None:
    for update in range(5):
        first, second = one.draw(update, **options), other.draw(update, **options)
        for name, part, same in zip(first._fields, first, second, strict=True):
            assert part.dtype == same.dtype
            assert torch.equal(part, same), name


@pytest.mark.parametrize("sampling", ["episodes", "steps"])
def test_batches_are_those_from_disk_also_after_an_append(tmp_path: Path, sampling: Any) -> None:
    store, options = store_of(tmp_path, [6, 4, 9]), {"batch": 7, "length": 2, "seed": 3, "sampling": sampling}
    disk, memory = WindowSampler(store, **options), MemorySampler(store, **options)
    assert_same(disk, memory)
    store.append(synthetic_episode(3, 5, shape=VECTOR))
    assert_same(disk, memory)
    assert_same(disk, memory, episodes=2)
    assert_same(replace(disk, columns=slice(2, 4)), replace(memory, columns=slice(2, 4)))


def test_each_episode_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, read = store_of(tmp_path, [6, 6]), list[int]()
    own = EpisodeStore.episode
    monkeypatch.setattr(EpisodeStore, "episode", lambda store, index: read.append(index) or own(store, index))
    sampler = MemorySampler(store, batch=16, length=2, seed=0)
    for update in range(4):
        sampler.draw(update)
    replace(sampler, columns=slice(1)).draw(4)
    assert sorted(read) == [0, 1]


def test_only_what_fits_into_the_capacity_is_drawn(tmp_path: Path) -> None:
    store = store_of(tmp_path, [6, 4, 9], capacity=13)  # the last two
    options = {"batch": 9, "length": 2, "seed": 0}
    assert_same(WindowSampler(store, **options), MemorySampler(store, **options))
    assert {int(reward) // 100 for reward in MemorySampler(store, **options).draw(0).reward[0]} == {1, 2}
