"""All randomness of an update is a function of seed and update."""

import pytest
import torch
from tiny_learner import noise_of, random_batch, tiny_learner

from ccwm.agents import distributed
from ccwm.agents.noise import draw_noise


def assert_same(one, other):
    for part, same in zip(one, other, strict=True):
        assert part == same if isinstance(part, int) else torch.equal(part, same)


def test_noise_is_a_function_of_seed_and_update():
    config, batch = tiny_learner(actor_critic={"starts_per_window": 2}).config, random_batch()
    first = draw_noise(0, 0, batch, config)
    torch.rand(3)  # the global stream has no part in it
    assert_same(first, draw_noise(0, 0, batch, config))
    for other in (draw_noise(1, 0, batch, config), draw_noise(0, 1, batch, config)):
        for name in ("posterior", "start", "imagined", "action", "retraced"):
            assert not torch.equal(getattr(first, name), getattr(other, name)), name


def test_shapes_and_dtype_follow_batch_and_settings():
    learner = tiny_learner(retrace={"horizon": 2, "samples": 4}, actor_critic={"starts_per_window": 2})
    noise = noise_of(learner, random_batch(5, 3, dtype=torch.float64))
    shapes = {"posterior": (5, 3, 3), "start": (2, 3), "imagined": (3, 6, 3), "action": (3, 6, 2),
              "retraced": (2, 4, 3, 3, 3)}  # fmt: skip
    drawn = {name: value for name, value in noise._asdict().items() if name != "stretch"}
    assert {name: tuple(value.shape) for name, value in drawn.items()} == shapes
    assert {value.dtype for name, value in drawn.items() if name != "start"} == {torch.float64}
    assert all(value.std() > 0.5 for name, value in drawn.items() if name != "start")


def test_every_window_has_starts_of_its_own_without_repeats():
    length, batch = 5, 64
    noise = noise_of(tiny_learner(actor_critic={"starts_per_window": 2}), random_batch(length, batch))
    pairs = [tuple(sorted(column)) for column in noise.start.T.tolist()]
    assert all(early != late for early, late in pairs)
    assert len(set(pairs)) == 10  # 5 over 2: every pair of times is drawn


def test_without_a_number_of_starts_imagination_starts_everywhere():
    noise = noise_of(tiny_learner(), random_batch(5, 3))
    assert noise.start.tolist() == [[t] * 3 for t in range(5)]


def test_nothing_is_drawn_for_retracing_where_there_is_none():
    batch = random_batch()
    dreamer, ccwm = (noise_of(tiny_learner(retrace={"weight": weight}), batch) for weight in (0.0, 1.0))
    assert dreamer.retraced.numel() == 0
    assert_same(dreamer[:-1], ccwm[:-1])  # all other draws are shared


def test_without_a_length_the_whole_window_is_retraced():
    noise = noise_of(tiny_learner(retrace={"horizon": 2}), random_batch(5, 3))
    assert noise.stretch == 0
    assert noise.retraced.shape == (2, 1, 5 - 2, 3, 3)


def test_a_stretch_of_a_length_begins_anywhere_in_the_window():
    learner, batch = tiny_learner(retrace={"length": 3, "horizon": 2}), random_batch(5, 3)
    drawn = [draw_noise(0, update, batch, learner.config) for update in range(40)]
    begins = [noise.stretch for noise in drawn]
    assert set(begins) == {0, 1, 2}  # 5 − 3 is the last
    assert {noise.retraced.shape for noise in drawn} == {(2, 1, 3 - 2, 3, 3)}
    again, other = (
        [draw_noise(seed, update, batch, learner.config).stretch for update in range(40)] for seed in (0, 1)
    )
    assert begins == again != other


@pytest.mark.parametrize("length", [3, 6, 8])  # of which two do not fit into the window of 5
def test_a_stretch_is_no_matter_where_nothing_is_retraced(length):
    noise = noise_of(tiny_learner(retrace={"weight": 0.0, "length": length}), random_batch(5, 3))
    assert (noise.stretch, noise.retraced.numel()) == (0, 0)


@pytest.mark.parametrize("starts", [None, 2])
def test_ranks_draw_their_columns_of_the_same_noise(starts, monkeypatch):
    retrace = {"horizon": 2, "samples": 2, "length": 4}
    learner = tiny_learner(actor_critic={"starts_per_window": starts}, retrace=retrace)
    whole = noise_of(learner, random_batch(5, 4))
    monkeypatch.setattr(distributed.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed.distributed, "get_world_size", lambda: 2)
    for rank in range(2):
        monkeypatch.setattr(distributed.distributed, "get_rank", lambda rank=rank: rank)
        own, noise = slice(2 * rank, 2 * rank + 2), noise_of(learner, random_batch(5, 2))
        assert torch.equal(noise.posterior, whole.posterior[:, own])
        assert torch.equal(noise.start, whole.start[:, own])
        assert noise.stretch == whole.stretch  # all ranks retrace the same steps
        assert torch.equal(noise.retraced, whole.retraced[:, :, :, own])
        for name in ("imagined", "action"):
            rollouts = getattr(whole, name).unflatten(1, (-1, 4))[:, :, own].flatten(1, 2)
            assert torch.equal(getattr(noise, name), rollouts), name
