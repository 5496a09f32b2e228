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
from project import TASK, TRAIN, UPDATES, Project, write_params

from ccwm.agents.model_based import ModelBasedLearner
from ccwm.cells import Cell
from ccwm.replay.store import EpisodeStore
from ccwm.settings.agent import AgentConfig, Train
from ccwm.training import kinds
from ccwm.training.checkpoints import Checkpoints, OtherCheckpoint
from ccwm.training.collect import collect_random
from ccwm.training.finite import NotFinite
from ccwm.training.history import Log
from ccwm.training.kinds import build_module
from ccwm.training.loop import Trained, number_of_cycles, train, updates_after
from ccwm.training.progress import TrainingProgress, hidden_progress
from ccwm.training.signals import Interrupted

TWO_UPDATES = {"updates": 2, "evaluate_every": 80, "log_every": 3}
TRAIN_SETTINGS = Train()


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
def test_number_of_cycles(env_steps: int, update_every: int, cycles: int) -> None:
    settings = TRAIN_SETTINGS.model_copy(update={"env_steps": env_steps, "update_every": update_every})
    assert number_of_cycles(settings, first_env_steps=80) == cycles


@pytest.mark.parametrize(
    ("pretrain", "cycles", "updates"),
    [
        (None, 0, 0),
        (None, 1, 3),
        (None, 4, 12),
        (10, 0, 0),
        (10, 1, 10),  # the first cycle, which learns from the random episodes alone
        (10, 4, 19),  # 10 + 3 · 3
        (1, 2, 4),
    ],
)
def test_updates_after_cycles(pretrain: int | None, cycles: int, updates: int) -> None:
    assert updates_after(TRAIN_SETTINGS.model_copy(update={"pretrain": pretrain, "updates": 3}), cycles) == updates


def test_variants_of_a_seed_share_the_weights_that_they_have_in_common(tmp_path: Path) -> None:
    ccwm = write_params(tmp_path / "params.yaml").agent_config
    dreamer = write_params(tmp_path / "params.yaml", {"retrace": {"weight": 0.0}}).agent_config
    one, other, next_seed = (
        build_module(config, seed=seed, observation_shape=(32, 32, 3), actions=2).learner.state_dict()
        for config, seed in ((ccwm, 0), (dreamer, 0), (ccwm, 1))
    )
    assert other.keys() < one.keys()
    assert all(torch.equal(weight, one[name]) for name, weight in other.items())
    assert any(not torch.equal(weight, one[name]) for name, weight in next_seed.items())


@pytest.fixture
def data(collected: Project) -> Path:
    """Two random episodes."""
    return collected.root / "data" / TASK / "0" / "train"


def run(
    data: Path, folder: Path, settings: Mapping[str, Any], log: Log = lambda *_: None, **changes: Mapping[str, Any]
) -> Trained:
    config: AgentConfig = write_params(
        folder / "params.yaml", {"train": {**TWO_UPDATES, **settings}, **changes}
    ).agent_config
    with hidden_progress():
        return train(config, TRAIN, data=data, work=folder / "work", log=log, label="")


def columns(rows: list[dict[str, float]], *names: str) -> list[tuple[float, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def saved_counters(folder: Path) -> dict[str, int]:
    saved = Checkpoints(folder / "work" / "checkpoints").latest()
    assert saved is not None
    counters: dict[str, int] = saved["updater"]["module"]["_extra_state"]
    return counters


def assert_equal(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_one_episode_a_cycle(data: Path, tmp_path: Path) -> None:
    trained = run(data, tmp_path, {"env_steps": 200, "update_every": 40})
    history, counters = trained.history, trained.module.counters
    assert columns(history.episodes, "env_steps", "length") == [(120, 20), (160, 20), (200, 20)]
    # At the start; where 160 has been reached, before cycle 3 (three cycles of two updates); with the final weights.
    assert columns(history.curve, "env_steps", "updates") == [(80, 0), (160, 6), (200, 8)]
    # Every third update: the third is the first of cycle 1, the sixth the last of cycle 2.
    assert columns(history.losses, "env_steps", "updates") == [(120, 3), (160, 6)]
    assert (counters.cycle, counters.updates, counters.env_steps, counters.episodes) == (4, 8, 200, 5)
    highest = max(history.curve, key=lambda row: row["return_mean"])  # the first of equals
    assert trained.best["_extra_state"]["updates"] == highest["updates"]


def test_the_first_cycle_may_have_other_updates(data: Path, tmp_path: Path) -> None:
    trained = run(data, tmp_path, {"env_steps": 160, "update_every": 40, "pretrain": 5})
    # Five updates, then two in each of two cycles; the curve at 160 is measured with the final weights.
    assert trained.module.counters.updates == 9
    assert columns(trained.history.curve, "env_steps", "updates") == [(80, 0), (160, 9)]
    assert columns(trained.history.losses, "env_steps", "updates") == [(80, 3), (120, 6), (160, 9)]


def test_every_point_of_the_curve_says_whether_the_model_retraces(data: Path, tmp_path: Path) -> None:
    curves = {}
    for name, weight in (("ccwm", 1.0), ("dreamer", 0.0)):
        (tmp_path / name).mkdir()
        curves[name] = run(data, tmp_path / name, {"env_steps": 80}, retrace={"weight": weight}).history.curve
    skills = {"retrace_skill_latent", "retrace_skill_observation"}
    assert all(row.keys() >= skills and row["retrace_skill_latent"] < 1 for row in curves["ccwm"])
    assert curves["ccwm"][0]["retrace_skill_latent"] != curves["ccwm"][1]["retrace_skill_latent"]
    assert not any(row.keys() & skills for row in curves["dreamer"])


def test_skill_is_measured_on_all_windows_of_a_batch(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where this rank has only some of them: a curve does not depend on the number of devices."""
    seen = []
    monkeypatch.setattr(
        ModelBasedLearner, "retrace_skill", lambda learner, batch: seen.append(batch.reward.shape[1]) or {}
    )
    monkeypatch.setattr(kinds, "own_rows", lambda batch: slice(1))
    run(data, tmp_path, {"env_steps": 80})
    assert seen == [2, 2]  # at the beginning and at the end


def test_whole_episodes_overshoot_and_the_overshoot_counts(data: Path, tmp_path: Path) -> None:
    """Goals 140, 200 and 260: cycle 1 plays two episodes, to 160; cycle 2 one, to 200; cycle 3 two, to 280."""
    trained = run(data, tmp_path, {"env_steps": 260, "update_every": 60})
    assert columns(trained.history.episodes, "env_steps") == [(120,), (160,), (200,), (240,), (280,)]
    assert columns(trained.history.curve, "env_steps", "updates") == [(80, 0), (160, 4), (280, 8)]
    assert trained.module.counters.episodes == 7


def test_the_final_weights_are_measured_even_without_a_new_episode(data: Path, tmp_path: Path) -> None:
    trained = run(data, tmp_path, {"env_steps": 80})
    assert columns(trained.history.curve, "env_steps", "updates") == [(80, 0), (80, 2)]


@pytest.mark.parametrize(
    ("metric", "env_steps", "cycle", "updates", "episodes"),
    [
        ("episode/return", 120, 1, 2, 3),  # after the first of the two episodes of cycle 1
        ("model/observation", 160, 1, 3, 4),  # after the first of the two updates of cycle 1, at the third update
    ],
)
def test_an_interrupted_cycle_resumes_where_it_was(
    metric: str, env_steps: int, cycle: int, updates: int, episodes: int, data: Path, tmp_path: Path
) -> None:
    settings = {"env_steps": 240, "update_every": 80}  # the evaluation of 160 is due before cycle 2

    def interrupt(metrics: Mapping[str, float], at: int) -> None:
        if metric in metrics and at == env_steps:
            os.kill(os.getpid(), signal.SIGTERM)

    for folder in ("clean", "stopped"):
        (tmp_path / folder).mkdir()
    clean = run(data, tmp_path / "clean", settings)
    with pytest.raises(Interrupted) as caught:
        run(data, tmp_path / "stopped", settings, log=interrupt)
    assert caught.value.code == 143
    saved = saved_counters(tmp_path / "stopped")
    assert (saved["cycle"], saved["updates"], saved["episodes"]) == (cycle, updates, episodes)
    resumed = run(data, tmp_path / "stopped", settings)
    assert resumed.history.state_dict() == clean.history.state_dict()
    assert_equal(resumed.module.state_dict(), clean.module.state_dict())
    assert_equal(resumed.best, clean.best)


ROBUST_STATES: dict[str, dict[str, Any]] = {
    "env": {"observation": "state"},
    "model": {"symlog": True, "vector_units": 8, "layer_norm": True, "activation": "silu", "reward_head": "two_hot",
              "zero_heads": True, "kl_dynamics": 0.5, "kl_representation": 0.1},
    "actor_critic": {"critic_head": "two_hot", "slow_critic": 0.05, "normalise_returns": True, "layer_norm": True},
    "retrace": {"loss": "kl", "length": 4},
    "truncation": {"mode": "auto", "window": 2},
}  # fmt: skip


def test_a_robust_agent_of_states_resumes_to_the_bit(tmp_path: Path) -> None:
    """Slow critic, range of returns and running median included, stopped in the middle of a cycle."""
    env = write_params(tmp_path / "params.yaml", ROBUST_STATES).agent_config.env
    collect_random(TASK, tmp_path, parts={"train": 2}, env=env, seed=0, advance=lambda: None)
    settings = {"env_steps": 160, "update_every": 80, "pretrain": 4}

    def interrupt(metrics: Mapping[str, float], at: int) -> None:
        if "model/observation" in metrics and at == 80:  # after the third of four updates
            os.kill(os.getpid(), signal.SIGTERM)

    for folder in ("clean", "stopped"):
        (tmp_path / folder).mkdir()
    clean = run(tmp_path / "train", tmp_path / "clean", settings, **ROBUST_STATES)
    with pytest.raises(Interrupted):
        run(tmp_path / "train", tmp_path / "stopped", settings, log=interrupt, **ROBUST_STATES)
    assert saved_counters(tmp_path / "stopped")["updates"] == 3
    resumed = run(tmp_path / "train", tmp_path / "stopped", settings, **ROBUST_STATES)
    assert resumed.history.state_dict() == clean.history.state_dict()
    assert_equal(resumed.module.state_dict(), clean.module.state_dict())
    names = set(clean.module.state_dict())
    assert {name for name in names if name.endswith(("return_range.mean", "running_median.mean"))}
    assert any("slow_critic" in name for name in names)


def test_a_signal_within_an_update_saves_that_very_update(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainingProgress, "show", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Interrupted):
        run(data, tmp_path, {"env_steps": 80})
    assert saved_counters(tmp_path)["updates"] == 1


def test_a_signal_behind_the_last_check_still_ends_the_run(data: Path, tmp_path: Path) -> None:
    """The final evaluation is the last that is heard of."""

    def interrupt(metrics: Mapping[str, float], at: int) -> None:
        if metrics.get("evaluation/updates") == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        run(data, tmp_path, {"env_steps": 80}, log=interrupt)
    assert len(run(data, tmp_path, {"env_steps": 80}).history.curve) == 2


def test_a_damaged_random_episode_is_left_out(data: Path, tmp_path: Path) -> None:
    """One of twenty, which is a share that a result may be built on; its frames were played all the same."""
    store = EpisodeStore(tmp_path / "data")
    for _ in range(20):
        store.adopt(data / "000000.safetensors")
    store.path(3).write_bytes(b"")
    counters = run(tmp_path / "data", tmp_path, {"env_steps": 80}).module.counters
    assert (counters.episodes, counters.env_steps, counters.updates) == (19, 800, 2)


def test_a_checkpoint_of_other_settings_is_refused_by_name(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path, {"env_steps": 80})
    with pytest.raises(OtherCheckpoint, match=r"optimiser\.model_lr \(0\.001 there, 0\.002 here\)"):
        run(data, tmp_path, {"env_steps": 80}, optimiser={"model_lr": 0.002})


def test_nan_ends_training_by_name_and_keeps_the_checkpoints_before_it(tmp_path: Path) -> None:
    """The world's third episode, played in cycle 2, breaks the reward's loss."""
    task = "unbounded_world:Unbounded"
    config = write_params(tmp_path / "params.yaml").agent_config
    collect_random(task, tmp_path, parts={"train": 2}, env=config.env, seed=0, advance=lambda: None)
    logged: list[int] = []
    with hidden_progress(), pytest.raises(NotFinite, match=r"update 1[2-7]: model/reward"):
        train(
            config,
            Cell("train", task, "ccwm", 0),
            data=tmp_path / "train",
            work=tmp_path / "work",
            log=lambda metrics, env_steps: logged.append(env_steps),
            label="",
        )
    assert logged[-1] == 160
    assert saved_counters(tmp_path)["updates"] == 2 * UPDATES
    saved = Checkpoints(tmp_path / "work" / "checkpoints").latest()
    assert saved is not None
    weights = [value for value in saved["updater"]["module"].values() if isinstance(value, torch.Tensor)]
    assert weights
    assert all(weight.isfinite().all() for weight in weights)
