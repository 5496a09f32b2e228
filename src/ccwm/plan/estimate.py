"""From measured seconds and sizes to hours and gigabytes, by arithmetic on the settings."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import NamedTuple

from ccwm.cells import STAGES, Cell
from ccwm.plan.measure import AgentCost, TaskCost
from ccwm.settings.schema import Settings
from ccwm.training.loop import number_of_cycles, updates_after

STAGE_ORDER = {stage: place for place, stage in enumerate(STAGES)}
COPIES = 3
"""A published file lies in the workspace, in DVC's cache and in MLflow's store."""


class Size(NamedTuple):
    """Bytes that stay, and bytes that one training needs on top of them while it runs."""

    kept: float
    working: float


def episode_steps(settings: Settings) -> int:
    """Actions of an episode that runs to its time limit."""
    return -(-settings.env.time_limit // settings.env.action_repeat)


def first_env_steps(settings: Settings) -> int:
    """Frames that training starts with."""
    return settings.collect.episodes * settings.env.time_limit


def updates(settings: Settings) -> int:
    """Updates of one training."""
    return updates_after(settings.train, number_of_cycles(settings.train, first_env_steps(settings)))


def seconds(settings: Settings, task: TaskCost, agent: AgentCost, start: float) -> dict[str, float]:
    """Of one cell of each stage that acts or learns; the others take little more than a process's start."""
    train, steps = settings.train, episode_steps(settings)
    acting = steps * (task.step + agent.act) + task.reset
    played = max(train.env_steps - first_env_steps(settings), 0) / settings.env.time_limit
    evaluations = 1 + train.env_steps // train.evaluate_every
    changed = settings.transfer.draws * (len(settings.transfer.rows) + 1)
    return {
        "collect": start + (settings.collect.episodes + settings.collect.heldout) * (steps * task.step + task.reset),
        "train": start + updates(settings) * agent.update + (played + evaluations * train.evaluate_episodes) * acting,
        "evaluate": start + settings.evaluate.episodes * acting,
        "transfer": start + changed * acting,
    }


def makespan(costs: Mapping[Cell, float], slots: int) -> float:
    """Seconds until cells that take so long are all done, so many at once, each after those that it needs.

    Slots take cells in the order of their stages, and the report waits for all others.
    """
    ends: dict[Cell, float] = {}
    free = [0.0] * slots
    for cell, seconds in sorted(costs.items(), key=lambda item: STAGE_ORDER[item[0].stage]):
        needs = list(ends) if cell.stage == "report" else cell.needs
        start = max([heapq.heappop(free), *(ends[need] for need in needs if need in ends)])
        ends[cell] = start + seconds
        heapq.heappush(free, ends[cell])
    return max(ends.values(), default=0.0)


def disk(settings: Settings, parameters: dict[str, int], task: TaskCost) -> Size:
    """Bytes of the whole study, by the number of weights of each variant."""
    study, rollout = settings.study, settings.rollout
    pairs = len(study.tasks) * len(study.seeds)
    observation = math.prod(task.observation_shape) * task.observation_bytes
    step = observation + 4 * task.action_size + 10
    frames = (settings.collect.episodes + settings.collect.heldout) * (episode_steps(settings) + 1)
    collected = pairs * frames * step * 2  # workspace and cache
    shown = 2 * rollout.shown * (rollout.context + rollout.horizon) * observation
    agents = sum(pairs * (2 * 4 * parameters[name] + shown) * COPIES for name in study.variants)  # last and best
    replay = settings.train.env_steps / settings.env.action_repeat * step  # episodes beyond capacity stay on disk
    checkpoints = 4 * 3 * 4 * max(parameters.values())  # weights and Adam's two moments; last two, best and the next
    return Size(collected + agents, replay + checkpoints)
