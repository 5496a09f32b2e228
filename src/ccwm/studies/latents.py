"""The three studies of latent states, on the same episodes: retracing made visible, maps, and truncation quality."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.seeds import episode_seed
from ccwm.settings.schema import Latents
from ccwm.studies.agents import play
from ccwm.studies.components import Components
from ccwm.studies.embeddings import MAPS, Embeddings, embed_states, write_embeddings
from ccwm.studies.retracing import Retraced, choose_window, show_retracing, write_retracing
from ccwm.studies.trajectories import Seen, exploring_episodes, see
from ccwm.studies.truncation import Quality, mask, own_threshold, truncation_quality, write_truncation


class LatentStudy(NamedTuple):
    """What was found."""

    retracing: Retraced
    embeddings: Embeddings
    truncation: list[Quality]

    def metrics(self) -> dict[str, float]:
        """What there is of the maps' numbers and of the agent's own truncation, by name."""
        found = {f"{row.map}/{name}": value for row in self.embeddings.numbers for name, value in row._asdict().items()}
        own = next(row for row in self.truncation if row.own)
        found |= {f"truncation/{name}": value for name, value in own._asdict().items()}
        return {name: value for name, value in found.items() if isinstance(value, float)}


def advances(heldout: int, settings: Latents) -> int:
    """How often a study calls ``advance``: for each episode that is played and seen, the trajectory, and the maps."""
    return heldout + 2 * settings.episodes + 1 + len(MAPS)


def study_latents(
    agent: Agent,
    heldout: Sequence[Episode],
    settings: Latents,
    *,
    shown: int,
    seed: int,
    advance: Callable[[], None],
) -> LatentStudy:
    """See the held-out episodes, new exploring ones and a greedy trajectory; ``shown`` steps of one are drawn."""

    def seen_of(episode: Episode) -> Seen:
        seen = see(agent, episode)
        advance()
        return seen

    played = exploring_episodes(agent, episodes=settings.episodes, seed=seed, advance=advance)
    seen = [seen_of(episode) for episode in (*heldout, *played)]
    (greedy,) = play(agent, [episode_seed("trajectory", seed)])
    trajectory = seen_of(greedy.episode)
    index, part = choose_window(heldout, steps=shown, seed=seed)
    drawn = seen[index]
    return LatentStudy(
        show_retracing(agent, drawn, mask(agent, drawn.value), part, threshold=own_threshold(agent)),
        embed_states(trajectory, mask(agent, trajectory.value), seen, settings, seed=seed, advance=advance),
        truncation_quality(agent, seen, thresholds=settings.thresholds),
    )


def write_latents(folder: Path, study: LatentStudy, components: Components, *, variant: str) -> None:
    """Write the files of all three; ``components`` are those of the observations, none where they are pixels."""
    write_retracing(folder, study.retracing, components)
    write_embeddings(folder, study.embeddings, variant=variant)
    write_truncation(folder, study.truncation)
