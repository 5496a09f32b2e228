"""Updates of a batch that several processes share; run as a script, this is one of them.

python shared_updates.py RANK WORLD PORT OUT
"""

from __future__ import annotations

import sys

import lightning as L
import torch
from tiny_learner import random_batch, tiny_learner
from torch import distributed
from torch.utils.data import DataLoader

from ccwm.ops.ranks import own_part
from ccwm.settings.agent import Optimiser
from ccwm.training.module import CCWM

LENGTH, BATCH, UPDATES = 6, 4, 2
UNEVEN = {"mode": "adaptive", "window": 2, "threshold": 0.5, "start": 0, "lookback": 1}

CASES = {
    "dreamer": {"retrace": {"weight": 0.0}},
    "ccwm": {},
    "chains": {"retrace": {"horizon": 2, "samples": 2}, "model": {"continues": True}},
    "adaptive": {"truncation": UNEVEN},
    "auto": {"truncation": {"mode": "auto", "window": 2, "lookback": 1, "start": 0}},
    "q": {"truncation": UNEVEN | {"signal": "q", "rule": "algorithm1"}},
    "scheduled": {"truncation": {"mode": "scheduled", "final_share": 0.5}},
    "l2 separate": {"retrace": {"loss": "l2", "reverse_action": "separate"}, "truncation": UNEVEN},
    "reconstruction": {"retrace": {"loss": "reconstruction"}},
    "reinforce": {"actor_critic": {"gradient": "reinforce", "entropy": 0.1}},
    "uneven dreams": {"actor_critic": {"starts": 7, "entropy": 0.1}},
    "free nats": {"model": {"free_nats": 0.204}},  # above the whole batch's KL, below that of a half
}


def batch_of(update: int, dtype: torch.dtype):
    """Windows whose first two columns, rank 0's, lose other transitions than the last two."""
    batch = random_batch(LENGTH, BATCH, seed=update, dtype=dtype)
    batch.is_first[2, 0] = batch.is_first[4, 1] = batch.is_first[1, 0] = True
    return batch._replace(episode_length=batch.episode_length + torch.tensor([0, 4, 12, 30]))


def columns_of(batch, columns: slice):
    return type(batch)(*(part[:, columns] for part in batch))


def updated(name: str, dtype: torch.dtype) -> dict[str, object]:
    """The snapshot after some updates of this process's columns of each batch."""
    batches = [batch_of(update, dtype) for update in range(UPDATES)]
    module = CCWM(tiny_learner(**CASES[name]).to(dtype), optimiser=Optimiser(clip=0.5), seed=0)
    module.counters.env_steps = 1000
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = L.Trainer(accelerator="cpu", max_epochs=1, enable_checkpointing=False, **quiet)
    parts = [columns_of(batch, own_part(BATCH)) for batch in batches]
    trainer.fit(module, DataLoader(parts, batch_size=None))
    return module.snapshot()


def main(rank: str, world: str, port: str, out: str) -> None:
    torch.set_num_threads(1)
    store = distributed.TCPStore("127.0.0.1", int(port), is_master=False)
    distributed.init_process_group("gloo", store=store, rank=int(rank), world_size=int(world))
    made = {(name, dtype): updated(name, dtype) for dtype in (torch.float32, torch.float64) for name in CASES}
    torch.save(made, out)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
