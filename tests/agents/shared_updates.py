"""Updates of a batch that several processes share, which find each other by the variables that torchrun sets."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import torch
from tiny_learner import DRAWN_HEADS, random_batch, tiny_learner

from ccwm.agents.distributed import own_rows, world_size
from ccwm.settings.agent import Trainer
from ccwm.training.devices import launch
from ccwm.training.module import CCWM
from ccwm.training.update import JointUpdater

LENGTH, BATCH, UPDATES = 6, 4, 2
IMAGES = 5  # fewer at a time than a rank has
UNEVEN = {"mode": "adaptive", "window": 2, "threshold": 0.5, "lookback": 1}
AUTO = {"mode": "auto", "window": 2, "lookback": 1}

CASES = {
    "chains": {"retrace": {"horizon": 3, "samples": 2}, "model": {"continues": True}, "truncation": UNEVEN},
    "auto": {"truncation": AUTO},
    "algorithm1 of q": {"truncation": UNEVEN | {"signal": "q", "rule": "algorithm1"}},
    "scheduled": {"truncation": {"mode": "scheduled", "final_share": 0.5}},
    "l2": {"retrace": {"loss": "l2", "reverse_action": "separate"}, "truncation": UNEVEN},
    "separate chains": {"retrace": {"horizon": 3, "reverse_action": "separate"}, "truncation": AUTO},
    "reconstruction": {"retrace": {"loss": "reconstruction", "detach": "original"}, "truncation": AUTO},
    "starts": {"actor_critic": {"starts_per_window": 2, "entropy": 0.1}, "truncation": UNEVEN},
    # Above the whole batch's KL and below that of a half; below the whole batch's and above that of a half.
    "dreamer, free nats above": {"retrace": {"weight": 0.0}, "model": {"free_nats": 0.21}},
    "reinforce, free nats below": {"actor_critic": {"gradient": "reinforce"}, "model": {"free_nats": 0.195}},
    "released": {"retrace": {"loss": "released"}, "truncation": UNEVEN},
    "robust chains": {
        "robust": True,
        "retrace": {"loss": "kl", "horizon": 2, "samples": 2, "length": 4},
        "model": DRAWN_HEADS["model"] | {"continues": True},
        "truncation": AUTO,
    },
    "robust metric": {
        "robust": True,
        "retrace": {"loss": "metric", "reverse_action": "separate"},
        "actor_critic": {"gradient": "reinforce", "starts_per_window": 2},
        "truncation": UNEVEN | {"signal": "q"},
    },
}
RUNS = [*((name, "64-true") for name in CASES), ("auto", "32-true"), ("robust chains", "32-true")]


def batch_of(name: str, update: int = 0):
    """Windows whose first two columns, rank 0's, lose other transitions than the last two."""
    batch = random_batch(LENGTH, BATCH, seed=update, robust=CASES[name].get("robust", False))
    batch.is_first[2, 0] = batch.is_first[4, 1] = batch.is_first[1, 0] = True
    return batch._replace(episode_length=batch.episode_length + torch.tensor([0, 4, 12, 30]))


def columns_of(batch, columns: slice):
    return type(batch)(*(part[:, columns] for part in batch))


def learner_of(name: str):
    return tiny_learner(train={"batch": BATCH, "length": LENGTH}, optimiser={"grad_clip": 0.5}, **CASES[name])


def made_by_updates(name: str, precision: str) -> dict[str, object]:
    """Weights, optimiser and logged numbers after some updates of this process's columns of each batch."""
    ranks = world_size()
    fabric = launch(Trainer(accelerator="cpu", devices=ranks, precision=precision, threads=1))
    module = CCWM(learner_of(name), seed=0)
    module.counters.env_steps = 1000
    updater = JointUpdater(fabric, module)
    with patch("ccwm.agents.world_model.IMAGES", IMAGES):
        for update in range(UPDATES):
            updater.step(columns_of(batch_of(name, update), own_rows(BATCH)))
    state = updater.state_dict()
    averages = {name: torch.tensor(value, dtype=torch.float64) for name, value in updater.averages().items()}
    return {"weights": dict(module.learner.state_dict()), "adam": state["optimizer"]["state"], "averages": averages}


def share_updates(out: Path) -> None:
    """Be one of two processes that make all the updates together, and write what they came to."""
    launch(Trainer(accelerator="cpu", devices=2, threads=1))
    made = {run: made_by_updates(*run) for run in RUNS}
    torch.save(made, out)
    torch.distributed.destroy_process_group()
