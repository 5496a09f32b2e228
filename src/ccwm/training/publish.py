"""A finished training run as files."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np

from ccwm.agents.export import AgentCard, save_agent
from ccwm.files import published, write_csv, write_json
from ccwm.training.history import History, mean_height
from ccwm.training.loop import Learning, Trained
from ccwm.training.module import Counters


def publish_agent(directory: Path, trained: Trained, learning: Learning, *, task: str, variant: str, seed: int) -> None:
    """Export the agent with its last weights, and in ``best`` those of its best evaluation: safetensors and JSON."""
    learner, counters = trained.module.learner, trained.module.counters
    card = AgentCard(
        task=task,
        variant=variant,
        seed=seed,
        actions=learner.actions,
        env_steps=counters.env_steps,
        updates=counters.updates,
        env=learning.env,
        render=learning.render,
        model=learning.model,
        retrace=learning.retrace,
        truncation=learning.truncation,
        actor_critic=config.actor_critic,
    )
    with published(directory) as folder:
        save_agent(folder, learner, card)
        best, at = copy.deepcopy(learner), Counters(**trained.best["counters"])
        best.load_state_dict(trained.best["learner"])
        (folder / "best").mkdir()
        save_agent(folder / "best", best, card.model_copy(update={"env_steps": at.env_steps, "updates": at.updates}))


def publish_history(directory: Path, history: History, metrics: dict[str, float]) -> None:
    """Write the metrics, the learning curve, the losses and the episodes."""
    with published(directory) as folder:
        write_json(folder / "metrics.json", metrics)
        write_csv(folder / "curve.csv", history.curve)
        write_csv(folder / "losses.csv", history.losses)
        write_csv(folder / "episodes.csv", history.episodes)


def summarise(history: History, counters: Counters) -> dict[str, float]:
    """The run's metrics; the area under the learning curve is divided by its length, so that it is a mean return."""
    steps = np.array([row["env_steps"] for row in history.curve])
    returns = np.array([row["return_mean"] for row in history.curve])
    return {
        "env_steps": counters.env_steps,
        "updates": counters.updates,
        "episodes": counters.episodes,
        "return_final": float(returns[-1]),
        "return_best": float(returns.max()),
        "return_auc": mean_height(steps, returns),
    }
