"""Two processes with half a batch each make the update that one makes with all of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from shared_updates import BATCH, CASES, LENGTH, batch_of, columns_of, updated
from tiny_learner import tiny_learner
from torch.distributed import TCPStore

from ccwm.ops.gaussian import kl_divergence
from ccwm.ops.ranks import own_part, own_weight

# Relative to the largest number of a tensor: sums of other orders differ in their last bits.
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-13}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The snapshots that two real processes came to, by rank."""
    folder = tmp_path_factory.mktemp("shared")
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    script = Path(__file__).with_name("shared_updates.py")
    files = [folder / f"{rank}.pt" for rank in range(2)]
    processes = [
        subprocess.Popen([sys.executable, script, str(rank), "2", str(store.port), files[rank]]) for rank in range(2)
    ]
    assert [process.wait(240) for process in processes] == [0, 0]
    return [torch.load(file, weights_only=True) for file in files]


def flat(snapshot, prefix=""):
    """Every number of a snapshot, as tensors by name."""
    for name, value in snapshot.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}/{name}")
        elif isinstance(value, torch.Tensor):
            yield f"{prefix}/{name}", value


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_weights_optimisers_and_logged_terms_are_those_of_one_process(shared, name, dtype):
    alone, first, second = (dict(flat(s)) for s in (updated(name, dtype), *(made[name, dtype] for made in shared)))
    assert first.keys() == alone.keys()
    assert first["/sums/model/kl"] != 0
    for key, value in alone.items():
        assert torch.equal(first[key], second[key]), key  # ranks never drift apart
        gap, size = (first[key] - value).abs().max(), value.abs().max()
        assert gap <= TOLERANCE[dtype] * size.clamp_min(1e-3), f"{key}: {gap / size:.1e}"


HALVES = (slice(2), slice(2, None))


def test_the_halves_keep_other_numbers_of_states():
    """So that a mean of the halves' own masked means is not that of the whole."""
    batch = batch_of(0, torch.float32)
    for name in ("ccwm", "adaptive", "scheduled"):
        learner = tiny_learner(**CASES[name])
        kept = []
        for half in HALVES:
            part = columns_of(batch, half)
            observed = learner.world_model.observe(part, torch.zeros(LENGTH, BATCH // 2, 3))
            model, actor_critic = learner.world_model, learner.actor_critic
            mask = learner.retracing.kept(
                part, observed.posterior, model, actor_critic.actor, actor_critic.critic, 1000
            )
            kept.append(int((mask[1:] & mask[:-1] & ~part.is_first[1:]).sum()))
        assert kept[0] != kept[1], name


def test_one_half_is_above_the_free_nats_that_the_whole_is_below():
    """So that a clamp of a half's own KL passes on a gradient that the whole has not."""
    batch, learner = batch_of(0, torch.float32), tiny_learner()
    noise = learner.noise(0, 0, batch).posterior
    halves = []
    for half in HALVES:
        observed = learner.world_model.observe(columns_of(batch, half), noise[:, half])
        halves.append(kl_divergence(observed.posterior.gaussian, observed.prior).mean().item())
    assert max(halves) > CASES["free nats"]["model"]["free_nats"] > sum(halves) / 2


def test_a_process_alone_has_everything():
    assert own_part(7) == slice(0, 7)
    assert own_weight(7) == 1
