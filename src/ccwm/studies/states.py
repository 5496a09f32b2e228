"""The three studies of latent states, on the same episodes: retracing made visible, maps, and truncation quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.studies.drawings import Retraced
from ccwm.studies.embeddings import MAPS, Embeddings, embed_states
from ccwm.studies.retracing import choose_window, show_retracing
from ccwm.studies.trajectories import Seen, exploring_episodes, greedy_trajectory, see
from ccwm.studies.truncation import Quality, own_mask, own_threshold, truncation_quality

PIECES = MAPS + 1
"""Calls of ``advance`` beside two for each new episode and one for each held-out one: the trajectory and the maps."""


class StateStudy(NamedTuple):
    """What was found."""

    retracing: Retraced
    embeddings: Embeddings
    truncation: list[Quality]

    def metrics(self) -> dict[str, float]:
        """What there is of the maps' numbers and of the agent's own truncation, by name."""
        maps = {f"{row['map']}/{name}": value for row in self.embeddings.numbers for name, value in row.items()}
        own = next(row for row in self.truncation if row.own)._asdict()
        every = {**maps, **{f"truncation/{name}": value for name, value in own.items()}}
        return {name: float(value) for name, value in every.items() if isinstance(value, float)}


def study_states(
    agent: Agent,
    heldout: Sequence[Episode],
    settings: Latents,
    *,
    shown: int,
    seed: int,
    advance: Callable[[], None],
) -> StateStudy:
    """See the held-out episodes, new exploring ones and a greedy trajectory; ``shown`` steps of one are drawn."""

    def seen_of(episode: Episode) -> Seen:
        seen = see(agent, episode)
        advance()
        return seen

    played = exploring_episodes(agent, episodes=settings.episodes, seed=seed, advance=advance)
    seen = [seen_of(episode) for episode in (*heldout, *played)]
    trajectory = seen_of(greedy_trajectory(agent, seed=seed))
    window = choose_window(heldout, steps=shown, seed=seed)
    of = seen[window.episode]
    return StateStudy(
        show_retracing(agent, of, own_mask(agent, of.value), window, threshold=own_threshold(agent)),
        embed_states(
            trajectory,
            own_mask(agent, trajectory.value),
            seen,
            steps=settings.trajectory,
            late=settings.late,
            mapped=settings.mapped,
            perplexity=settings.perplexity,
            neighbours=settings.neighbours,
            seed=seed,
            advance=advance,
        ),
        truncation_quality(agent, seen, thresholds=settings.thresholds),
    )
