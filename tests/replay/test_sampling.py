"""Windows of episodes: which are drawn, and what they hold."""

from collections import Counter

import numpy as np
import pytest
import torch
from synthetic_episodes import PIXELS, VECTOR, synthetic_episode

from ccwm.errors import UserError
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore


def store_of(directory, lengths, *, shape=PIXELS, **options):
    store = EpisodeStore(directory, **options)
    for number, steps in enumerate(lengths):
        store.append(synthetic_episode(number, steps, shape=shape, terminated=number % 2 == 0))
    return store


def assert_same(first, second):
    for name, one, other in zip(first._fields, first, second, strict=True):
        assert torch.equal(one, other), name


def windows(sampler, draws):
    """How often each (episode length, start) was drawn."""
    counts = Counter()
    for update in range(draws):
        batch = sampler.draw(update)
        counts.update(zip(batch.episode_length[0].tolist(), batch.position[0].tolist(), strict=True))
    return counts


def chi_square(counts, expected):
    assert set(counts) <= set(expected)
    return sum((counts[key] - mean) ** 2 / mean for key, mean in expected.items())


@pytest.mark.parametrize("shape", [PIXELS, VECTOR])
def test_every_window_is_the_slice_that_its_position_names(tmp_path, shape):
    store = store_of(tmp_path, [6, 9, 7], shape=shape)
    batch = WindowSampler(store, batch=16, length=4, seed=0).draw(0)
    number_of = {6: 0, 9: 1, 7: 2}
    for column in range(16):
        length, start = int(batch.episode_length[0, column]), int(batch.position[0, column])
        episode = store.episode(number_of[length])
        steps = slice(start, start + 4)
        assert batch.position[:, column].tolist() == [start, start + 1, start + 2, start + 3]
        assert batch.episode_length[:, column].tolist() == [length] * 4
        for name in ("observation", "action", "reward", "is_first", "continues", "irreversible"):
            got = getattr(batch, name)[:, column].numpy()
            np.testing.assert_array_equal(got, getattr(episode, name)[steps], strict=True, err_msg=name)
    assert torch.equal(batch.is_first, batch.position == 0)


@pytest.mark.parametrize("sampling", ["episodes", "steps"])
def test_columns_are_those_of_the_whole_draw(tmp_path, sampling):
    store = store_of(tmp_path, [6, 9, 7])
    options = {"batch": 5, "length": 4, "seed": 0, "sampling": sampling}
    whole = WindowSampler(store, **options).draw(3)
    part = WindowSampler(store, **options, columns=slice(2, 5)).draw(3)
    assert_same(part, type(whole)(*(field[:, 2:5] for field in whole)))


@pytest.mark.parametrize(("shape", "dtype"), [(PIXELS, torch.uint8), (VECTOR, torch.float32)])
def test_shapes_and_types(tmp_path, shape, dtype):
    batch = WindowSampler(store_of(tmp_path, [6], shape=shape), batch=3, length=5, seed=0).draw(0)
    assert (batch.observation.shape, batch.observation.dtype) == ((5, 3, *shape), dtype)
    assert (batch.action.shape, batch.action.dtype) == ((5, 3, 2), torch.float32)
    assert {batch.reward.dtype, batch.continues.dtype} == {torch.float32}
    assert {batch.is_first.dtype, batch.irreversible.dtype} == {torch.bool}
    assert {batch.position.dtype, batch.episode_length.dtype} == {torch.int64}
    assert batch.observation.is_contiguous()


@pytest.mark.parametrize("sampling", ["episodes", "steps"])
def test_a_draw_depends_on_seed_update_and_manifest_only(tmp_path, sampling):
    options = {"batch": 8, "length": 4, "sampling": sampling}
    store = store_of(tmp_path, [6, 9, 7])
    sampler = WindowSampler(store, seed=1, **options)
    first = sampler.draw(5)
    sampler.draw(6)
    assert_same(sampler.draw(5), first)
    assert_same(WindowSampler(EpisodeStore(tmp_path), seed=1, **options).draw(5), first)
    assert not torch.equal(sampler.draw(6).reward, first.reward)
    assert not torch.equal(WindowSampler(store, seed=2, **options).draw(5).reward, first.reward)
    store.append(synthetic_episode(3, 50))
    assert_same(sampler.draw(5, episodes=3), first)
    assert not torch.equal(sampler.draw(5).reward, first.reward)


def test_a_draw_with_capacity_is_independent_of_later_episodes(tmp_path):
    store = store_of(tmp_path, [6, 9, 7], capacity=16)
    sampler = WindowSampler(store, batch=32, length=4, seed=0)
    first = sampler.draw(0)
    assert set(first.episode_length.unique().tolist()) == {9, 7}
    store.append(synthetic_episode(3, 16))
    assert_same(sampler.draw(0, episodes=3), first)
    assert sampler.draw(0).episode_length.unique().tolist() == [16]


def test_steps_draws_every_window_alike(tmp_path):
    # Lengths 5 and 9 hold 2 and 6 windows of 4: 3,200 draws are 400 each. χ² of 7 degrees is < 24.3 at p = 0.001.
    counts = windows(WindowSampler(store_of(tmp_path, [5, 9]), batch=64, length=4, seed=0, sampling="steps"), 50)
    expected = {(5, start): 400 for start in range(2)} | {(9, start): 400 for start in range(6)}
    assert chi_square(counts, expected) < 24.3


def test_episodes_draws_every_episode_alike(tmp_path):
    # Each episode gets 1,600 of 3,200 draws: 800 for each of 2 windows, 266.7 for each of 6.
    counts = windows(WindowSampler(store_of(tmp_path, [5, 9]), batch=64, length=4, seed=0, sampling="episodes"), 50)
    expected = {(5, start): 800 for start in range(2)} | {(9, start): 1600 / 6 for start in range(6)}
    assert chi_square(counts, expected) < 24.3


@pytest.mark.parametrize("sampling", ["episodes", "steps"])
def test_short_episodes_are_skipped(tmp_path, sampling):
    store = store_of(tmp_path, [3, 4, 2, 6])
    sampler = WindowSampler(store, batch=32, length=4, seed=0, sampling=sampling)
    assert set(sampler.draw(0).episode_length.unique().tolist()) == {4, 6}
    with pytest.raises(UserError, match=r"4 episodes .* train\.length = 7"):
        WindowSampler(store, batch=1, length=7, seed=0, sampling=sampling).draw(0)


def test_damaged_episodes_are_never_drawn(tmp_path):
    store_of(tmp_path, [5, 6, 7])
    (tmp_path / "000001.safetensors").write_bytes(b"")
    sampler = WindowSampler(EpisodeStore(tmp_path, damaged_share=0.5), batch=32, length=4, seed=0)
    assert set(sampler.draw(0).episode_length.unique().tolist()) == {5, 7}
