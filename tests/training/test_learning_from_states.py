"""The robust Dreamer learns a small world from its state, through the whole loop, in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tiny_learner import ROBUST, TINY, config_of

from ccwm.cells import Cell
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import AgentConfig
from ccwm.training.collect import collect_random
from ccwm.training.loop import train
from ccwm.training.progress import hidden_progress

TASK, STEPS, FIRST = "point_world:Point", 20, 8


def config() -> AgentConfig:
    """Eight random episodes and four of its own, with 100 updates."""
    sections = {name: values | ROBUST.get(name, {}) for name, values in TINY.items()}
    found: AgentConfig = config_of(
        sections,
        env={"observation": "state", "action_repeat": 1, "time_limit": STEPS},
        model={"deter": 32, "stoch": 8, "hidden": 32, "vector_units": 32, "reward_units": 32,
               "free_nats": 0.05, "observation_scale": 5.0},
        retrace={"weight": 0.0},
        actor_critic={"horizon": 5, "units": 32, "actor_layers": 2, "critic_layers": 2, "starts_per_window": 4,
                      "slow_critic": 0.1, "discount": 0.9, "entropy": 1e-3, "init_std": 1.0},
        optimiser={"model_lr": 5e-3, "critic_lr": 3e-3, "actor_lr": 3e-3},
        train={"env_steps": (FIRST + 4) * STEPS, "update_every": STEPS, "pretrain": 60, "updates": 10, "batch": 8,
               "length": 8, "evaluate_every": 10_000, "evaluate_episodes": 5, "log_every": 10},
        trainer={"threads": 1},
    )  # fmt: skip
    return found


def test_the_return_rises_clearly_over_that_of_random_actions(tmp_path: Path) -> None:
    settings = config()
    collect_random(TASK, tmp_path, parts={"train": FIRST}, env=settings.env, seed=0, advance=lambda: None)
    store = EpisodeStore(tmp_path / "train", read_only=True)
    random = float(np.mean([store.episode(index).reward.sum() for index in range(FIRST)]))
    with hidden_progress():
        trained = train(
            settings,
            Cell("train", TASK, "dreamer", 0),
            data=tmp_path / "train",
            work=tmp_path / "work",
            log=lambda metrics, env_steps: None,
            label="",
        )
    final = trained.history.curve[-1]["return_mean"]
    assert trained.module.counters.updates == 60 + 4 * 10
    assert final > 4 * random, (random, final)  # 16.1 against 1.9
