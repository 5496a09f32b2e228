"""Pictures of held-out episodes of states: played again from their seeds and actions where that can be rendered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing
from itertools import islice

import numpy as np

from ccwm.agents.export import Agent
from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env
from ccwm.envs.gl import probe
from ccwm.envs.tasks import renders_by_gl
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.seeds import collected_seed
from ccwm.studies.prediction import window_of

SIZE = 240
"""Height and width of a picture: no agent sees it, so that it may be larger than what an agent would see."""
CLOSE = 1e-3
"""How far, absolute and relative, a component may be off in an episode that is still the same."""
log = logging.getLogger(__name__)


def render_heldout(
    agent: Agent, heldout: Mapping[int, Episode], *, length: int, shown: int, seed: int
) -> np.ndarray | None:
    """Pictures of the predicted windows of the first episodes, by number: uint8 [shown, length, SIZE, SIZE, 3].

    None, and a warning, where the world cannot be rendered, and where an episode is not the same when played again.
    """
    config, frames = agent.card.config.env.model_copy(update={"size": SIZE}), []
    try:
        if renders_by_gl(agent.task):
            probe()
        with closing(make_env(agent.task, config)) as env:
            for place, (number, episode) in enumerate(islice(heldout.items(), shown)):
                part = window_of(episode, length, seed=seed, index=place)
                frames.append(replay(env, episode, part, collected_seed(seed, "heldout", number)))
    except UserError as error:
        log.warning("no video of the true rollout: %s", error.message)
        return None
    return np.stack(frames)


def replay(env: TaskEnv, episode: Episode, part: slice, seed: int) -> np.ndarray:
    """Pictures of a part of an episode that was played with this seed.   → uint8 [T, size, size, 3]."""
    frames = []
    observation, _ = env.reset(seed=seed)
    for step in range(part.stop):
        if step:
            observation, *_ = env.step(episode.action[step])
        if not np.allclose(observation, episode.observation[step], rtol=CLOSE, atol=CLOSE):
            raise UserError("a held-out episode is another one when it is played again")
        if step >= part.start:
            try:
                frames.append(env.render())
            except Exception as error:  # each world has its own way to fail without a screen
                raise UserError(f"the world cannot be rendered here ({error})") from error
    return np.stack(frames)
