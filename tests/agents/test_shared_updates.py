"""Two processes with half a batch each make the updates that one makes with all of it."""

from __future__ import annotations

import socket

import pytest
import torch
from project import Process
from shared_updates import BATCH, CASES, LENGTH, RUNS, batch_of, columns_of, learner_of, made_by_updates, share_updates
from tiny_learner import noise_of

from ccwm.ops.gaussian import kl_divergence
from ccwm.ops.truncation import kept_pairs

# Relative to the largest number of a tensor: sums of other orders differ in their last bits.
TOLERANCE = {"32-true": 1e-4, "64-true": 1e-12}
HALVES = (slice(2), slice(2, None))


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """What two real processes came to, by rank; they are started as torchrun does."""
    folder, port = tmp_path_factory.mktemp("shared"), str(free_port())
    files = [folder / f"{rank}.pt" for rank in range(2)]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
              "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "test"}  # fmt: skip
    processes = [
        Process(
            share_updates,
            (file,),
            root=folder,
            log=folder / f"{rank}.log",
            environment={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank, file in enumerate(files)
    ]
    for process in processes:
        assert process.end() == 0, process.said
    return [torch.load(file, weights_only=True) for file in files]


def flat(parts, prefix=""):
    """Every tensor of nested dictionaries, by name."""
    for name, value in parts.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}/{name}")
        else:
            yield f"{prefix}/{name}", value


@pytest.mark.parametrize(("name", "precision"), RUNS)
def test_weights_optimiser_and_logged_numbers_are_those_of_one_process(shared, name, precision):
    alone = dict(flat(made_by_updates(name, precision)))
    first, second = (dict(flat(made[name, precision])) for made in shared)
    assert first.keys() == alone.keys()
    assert first["/averages/model/kl"] > 0
    for key, value in alone.items():
        assert torch.equal(first[key], second[key]), key  # ranks never drift apart
        gap, size = (first[key] - value).abs().max(), value.abs().max()
        assert gap <= TOLERANCE[precision] * size.clamp_min(1e-3), f"{key}: {gap / size:.1e}"


@pytest.mark.parametrize(
    "name", ["chains", "auto", "scheduled", "reinforce, free nats below", "released", "robust metric"]
)
def test_the_halves_keep_other_numbers_of_states(name):
    """So that a mean of the halves' own masked means is not that of the whole."""
    batch, learner = batch_of(name), learner_of(name)
    kept = []
    for half in HALVES:
        part = columns_of(batch, half)
        posterior = learner.world_model.observe(part, torch.zeros(LENGTH, BATCH // 2, 3)).posterior
        mask = learner.truncation(part, posterior, learner.world_model, learner.actor_critic, 1000)
        kept.append(int(kept_pairs(mask, part.is_first).sum()))
    assert kept[0] != kept[1]


def test_the_free_nats_lie_between_the_whole_and_a_half():
    """So that a clamp of a half's own KL has a gradient where the whole has none, and the other way round."""
    batch, learner = batch_of("auto"), learner_of("auto")
    noise = noise_of(learner, batch).posterior
    halves = []
    for half in HALVES:
        observed = learner.world_model.observe(columns_of(batch, half), noise[:, half])
        halves.append(kl_divergence(observed.posterior.gaussian, observed.prior).mean().item())
    above, below = (CASES[name]["model"]["free_nats"] for name in CASES if "free nats" in name)
    assert min(halves) < below < sum(halves) / 2 < above < max(halves), halves
