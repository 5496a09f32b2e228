from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.episode import Episode
from ccwm.settings.schema import Latents
from ccwm.studies.latents import advances, study_latents, write_latents

from .trained_agent import NO_COMPONENTS, random_episode, small_agent


@pytest.fixture(scope="module")
def episode() -> Episode:
    """A random episode of 31 steps behind one-way doors, with one crossing put into it."""
    played = random_episode(small_agent(task="maze_one_way"), 3)
    return played._replace(irreversible=np.arange(31) == 20)


def test_the_whole_study_tells_how_far_it_is_and_names_its_numbers(episode: Episode, tmp_path: Path):
    told: list[int] = []
    settings = Latents(episodes=2, mapped=60, trajectory=500, late=10, perplexity=5.0, neighbours=3, thresholds=[0.1])
    study = study_latents(small_agent(), [episode], settings, shown=20, seed=0, advance=lambda: told.append(1))
    assert len(told) == advances(1, settings) == 1 + 2 * 2 + 1 + 3
    assert len(study.embeddings.values.points) == 60
    assert study.truncation[0].episodes == 3  # the held-out one and two new ones
    metrics = study.metrics()
    assert {"trajectory/overlap", "late/trustworthiness", "values/value_smoothness"} < metrics.keys()
    assert metrics["truncation/event_recall"] in (0.0, 1.0)  # one event
    assert all(isinstance(value, float) for value in metrics.values())
    write_latents(tmp_path, study, NO_COMPONENTS, variant="ccwm")
    drawn = {f"pictures/{name}.{kind}" for name in ("retracing", "embeddings") for kind in ("png", "safetensors")}
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert files == drawn | {"retracing.csv", "embeddings.csv", "truncation.csv"}


def test_states_are_studied_as_pixels_are():
    agent = small_agent(observation="state")
    settings = Latents(episodes=1, mapped=40, trajectory=20, late=10, perplexity=5.0, neighbours=3, thresholds=[0.1])
    study = study_latents(agent, [random_episode(agent, 3)], settings, shown=20, seed=0, advance=lambda: None)
    assert study.retracing.truth.shape == study.retracing.retraced.shape == (20, 2)
    assert {"trajectory/overlap", "truncation/truncated_share"} < study.metrics().keys()
