"""When episodes are played, updates made, losses reported and curves measured: by hand arithmetic.

An episode is 40 frames; training begins with two random ones, at 80 frames.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from training_project import TASK, Project, learning_of, write_params

from ccwm.agents.export import load_agent
from ccwm.replay.store import EpisodeStore
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.cycle import Cycles
from ccwm.training.history import History, Log
from ccwm.training.loop import Trained, train
from ccwm.training.publish import publish_agent
from ccwm.training.signals import Interrupted, StopRequest

TWO_UPDATES = {"updates": 2, "evaluate_every": 80, "log_every": 3}


@pytest.mark.parametrize(
    ("env_steps", "update_every", "cycles"),
    [
        (200, 40, 4),  # the first, and 120 / 40
        (200, 50, 4),  # the first, and 120 / 50 rounded up
        (81, 1000, 2),
        (80, 40, 1),  # the random episodes are all of the budget
        (50, 40, 1),
    ],
)
def test_number_of_cycles(env_steps: int, update_every: int, cycles: int, tmp_path: Path) -> None:
    write_params(tmp_path / "params.yaml")
    train_settings = learning_of(tmp_path / "params.yaml").train
    schedule = Cycles(
        train_settings.model_copy(update={"env_steps": env_steps, "update_every": update_every}),
        envs=[],
        store=EpisodeStore(tmp_path / "replay"),
        first_env_steps=80,
        history=History(),
        checkpoints=Checkpoints(tmp_path / "checkpoints"),
        stop=StopRequest(),
        exploration=0.0,
        seed=0,
    )
    assert schedule.total == cycles


@pytest.fixture
def data(collected: Project) -> Path:
    """Two random episodes."""
    return collected.root / "data" / TASK / "0" / "train"


def run(data: Path, tmp_path: Path, settings: Mapping[str, Any], log: Log = lambda *_: None) -> Trained:
    write_params(tmp_path / "params.yaml", {"train": {**TWO_UPDATES, **settings}})
    return train(
        learning_of(tmp_path / "params.yaml"),
        task=TASK,
        seed=0,
        data=data,
        work=tmp_path / "work",
        log=log,
        label="",
    )


def columns(rows: list[dict[str, float]], *names: str) -> list[tuple[float, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def test_one_episode_a_cycle(data: Path, tmp_path: Path) -> None:
    trained = run(data, tmp_path, {"env_steps": 200, "update_every": 40})
    history, counters = trained.history, trained.module.counters
    assert columns(history.episodes, "env_steps", "length") == [(120, 20), (160, 20), (200, 20)]
    # At the start; where 160 has been reached, before cycle 3 (three cycles of two updates); with the final weights.
    assert columns(history.curve, "env_steps", "updates") == [(80, 0), (160, 6), (200, 8)]
    # Every third update: the third is the first of cycle 1, the sixth the last of cycle 2.
    assert columns(history.losses, "env_steps", "updates") == [(120, 3), (160, 6)]
    assert (counters.cycle, counters.updates, counters.env_steps, counters.episodes) == (4, 8, 200, 5)


def test_whole_episodes_overshoot_and_the_overshoot_counts(data: Path, tmp_path: Path) -> None:
    """Goals 140, 200 and 260: cycle 1 plays two episodes, to 160; cycle 2 one, to 200; cycle 3 two, to 280."""
    trained = run(data, tmp_path, {"env_steps": 260, "update_every": 60})
    assert columns(trained.history.episodes, "env_steps") == [(120,), (160,), (200,), (240,), (280,)]
    assert columns(trained.history.curve, "env_steps", "updates") == [(80, 0), (160, 4), (280, 8)]
    assert trained.module.counters.episodes == 7


def test_the_final_weights_are_measured_even_without_a_new_episode(data: Path, tmp_path: Path) -> None:
    trained = run(data, tmp_path, {"env_steps": 80})
    assert columns(trained.history.curve, "env_steps", "updates") == [(80, 0), (80, 2)]


def test_the_best_agent_is_that_of_the_highest_point_of_the_curve(data: Path, tmp_path: Path) -> None:
    """Published beside the last one, which every study is about."""
    trained = run(data, tmp_path, {"env_steps": 200, "update_every": 40})
    highest = max(trained.history.curve, key=lambda row: row["return_mean"])  # the first of equals
    assert trained.best["counters"]["updates"] == highest["updates"]
    learning = learning_of(tmp_path / "params.yaml")
    publish_agent(tmp_path / "agent", trained, learning, task=TASK, variant="ccwm", seed=0)
    best, last = load_agent(tmp_path / "agent" / "best"), load_agent(tmp_path / "agent")
    assert (best.card.updates, last.card.updates) == (highest["updates"], 8)
    torch.testing.assert_close(best.state_dict(), trained.best["learner"], rtol=0, atol=0)
    torch.testing.assert_close(last.state_dict(), trained.module.learner.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("metric", "env_steps", "cycle", "updates", "episodes"),
    [
        ("episode/return", 120, 1, 2, 3),  # after the first of the two episodes of cycle 1
        ("model/image", 160, 1, 3, 4),  # after the first of the two updates of cycle 1, at the third update
    ],
)
def test_an_interrupted_cycle_goes_on_where_it_was(
    metric: str, env_steps: int, cycle: int, updates: int, episodes: int, data: Path, tmp_path: Path
) -> None:
    settings = {"env_steps": 240, "update_every": 80}  # the evaluation of 160 is due before cycle 2

    def interrupt(metrics: Mapping[str, float], at: int) -> None:
        if metric in metrics and at == env_steps:
            os.kill(os.getpid(), signal.SIGTERM)

    for folder in ("clean", "stopped"):
        (tmp_path / folder).mkdir()
    clean = run(data, tmp_path / "clean", settings)
    with pytest.raises(Interrupted):
        run(data, tmp_path / "stopped", settings, log=interrupt)
    saved = Checkpoints(tmp_path / "stopped" / "work" / "checkpoints").latest()
    assert saved is not None
    counters = saved["module"]["counters"]
    assert (counters["cycle"], counters["updates"], counters["episodes"]) == (cycle, updates, episodes)
    resumed = run(data, tmp_path / "stopped", settings)
    assert resumed.history.state() == clean.history.state()
    torch.testing.assert_close(resumed.module.snapshot(), clean.module.snapshot(), rtol=0, atol=0)
    torch.testing.assert_close(resumed.best, clean.best, rtol=0, atol=0)


def test_a_damaged_random_episode_is_left_out(data: Path, tmp_path: Path) -> None:
    """One of twenty, which is a share that a result may be built on; its frames were played all the same."""
    store = EpisodeStore(tmp_path / "data")
    for _ in range(20):
        store.adopt(data / "000000.safetensors")
    store.path(3).write_bytes(b"")
    counters = run(tmp_path / "data", tmp_path, {"env_steps": 80}).module.counters
    assert (counters.episodes, counters.env_steps, counters.updates) == (19, 800, 2)


def test_a_signal_behind_the_last_check_still_ends_the_run(data: Path, tmp_path: Path) -> None:
    """The final evaluation is the last that is heard of."""

    def interrupt(metrics: Mapping[str, float], at: int) -> None:
        if "evaluation/return_mean" in metrics and metrics["evaluation/updates"] == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        run(data, tmp_path, {"env_steps": 80}, log=interrupt)
    assert len(run(data, tmp_path, {"env_steps": 80}).history.curve) == 2
