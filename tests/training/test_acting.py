"""Actors that are one cycle ahead: the lag by its definition, and the same bits whoever plays, dies or resumes."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from project import write_params
from safetensors.torch import save_file
from tiny_learner import ACTIONS, NUMBERS
from tiny_model_free import tiny_model_free
from tiny_playvirtual import tiny_playvirtual
from tiny_sac import tiny_sac

from ccwm.cells import Cell
from ccwm.envs.factory import make_env
from ccwm.replay.store import EpisodeStore
from ccwm.seeds import episode_seed
from ccwm.training.acting import ActingAhead, ActingHere, acting_weights, goal_of_cycle, load_policy
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.collect import collect_random
from ccwm.training.history import Log
from ccwm.training.loop import Trained, train
from ccwm.training.module import CCWM
from ccwm.training.progress import hidden_progress
from ccwm.training.rollouts import play_episode
from ccwm.training.signals import Interrupted

CELL = Cell("train", "rollout_envs:Fading", "ccwm", 0)
FIRST = 4
"""Random episodes; how many frames they have is their seeds' affair."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with random episodes in `train`; the actors inherit it."""
    folder = tmp_path_factory.mktemp("acting")
    config = write_params(folder / "params.yaml", {"env": {"observation": "state"}}).agent_config
    collect_random(CELL.task, folder, parts={"train": FIRST}, env=config.env, seed=0, advance=lambda: None)
    with chdir(folder):
        yield folder


@pytest.fixture(scope="module")
def clean(folder: Path) -> Trained:
    """A run with one actor, in `clean`."""
    return run("clean", actors=1)


def first_env_steps() -> int:
    store = EpisodeStore(Path("train"), read_only=True)
    return 2 * (store.steps - len(store))


def run(name: str, *, actors: int, log: Log = lambda *_: None) -> Trained:
    """Train in a directory of that name: four cycles of four updates, and evaluations of three episodes on the way."""
    settings = {
        "env_steps": first_env_steps() + 180,
        "update_every": 60,
        "updates": 4,
        "evaluate_every": 80,
        "evaluate_episodes": 3,
        "log_every": 3,
        "actors": actors,
    }
    config = write_params(Path("params.yaml"), {"env": {"observation": "state"}, "train": settings}).agent_config
    with hidden_progress():
        return train(config, CELL, data=Path("train"), work=Path(name), log=log, label="")


def assert_same(one: Trained, other: Trained, name: str) -> None:
    """Weights, curves and losses, the best agent, and every stored episode; the first run is that in `clean`."""
    assert one.history.state_dict() == other.history.state_dict()
    torch.testing.assert_close(one.module.state_dict(), other.module.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(one.best, other.best, rtol=0, atol=0)
    stored, again = ({path.name: path.read_bytes() for path in Path(n, "replay").glob("*.s*")} for n in ("clean", name))
    assert stored == again
    assert len(stored) > FIRST + 3


def test_the_number_of_actors_and_their_deaths_change_no_bit(clean: Trained, caplog: pytest.LogCaptureFixture) -> None:
    assert_same(clean, run("2", actors=2), "2")

    def kill(metrics: Mapping[str, float], env_steps: int) -> None:
        if "episode/return" in metrics and not caplog.text:
            Path("die").touch()

    assert_same(clean, run("4", actors=4, log=kill), "4")
    assert "SIGKILL: restart 1" in caplog.text
    Path("die").unlink(missing_ok=True)


@pytest.mark.parametrize(("acting", "lag"), [(ActingHere, 0), (ActingAhead, 1)])
def test_a_cycle_is_played_with_the_weights_of_the_cycle_before(
    acting: type[ActingHere | ActingAhead], lag: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that its updates began with; without actors a cycle is played with its own."""
    began_with: list[CCWM] = []
    begin = acting.begin_updates

    def remember(self: ActingHere | ActingAhead) -> None:
        began_with.append(copy.deepcopy(self.module))
        begin(self)  # type: ignore[arg-type]

    monkeypatch.setattr(acting, "begin_updates", remember)
    trained = run(f"lag-{lag}", actors=lag)
    store = EpisodeStore(Path(f"lag-{lag}/replay"), read_only=True)
    settings, first, cycle, frames = trained.module.learner.config.train, first_env_steps(), 0, first_env_steps()
    told_apart: set[int] = set()
    for index, row in enumerate(trained.history.episodes, FIRST):
        while frames >= goal_of_cycle(settings, cycle, first):
            cycle += 1
        played = [np.array_equal(actions(module, index), store.episode(index).action) for module in began_with]
        assert played[cycle - lag]
        told_apart |= {cycle} if sum(played) == 1 else set()  # the actions of a short episode may all be clipped
        frames = row["env_steps"]
    assert told_apart == {1, 2, 3}
    assert len(began_with) == 4


def actions(module: CCWM, index: int) -> np.ndarray:
    """Those of an episode with the weights of a module."""
    policy, env = module.learner.policy(explore=True), make_env(CELL.task, module.learner.config.env)
    return play_episode(env, policy, episode_seed("episode", 0, index)).episode.action


@pytest.mark.parametrize(("metric", "ahead"), [("episode/return", 0), ("model/observation", 1)])
def test_a_run_that_was_interrupted_while_actors_played_resumes_to_the_bit(
    metric: str, ahead: int, clean: Trained
) -> None:
    """Between two episodes of a cycle, and between two of its updates, when the next cycle is played."""

    def interrupt(metrics: Mapping[str, float], env_steps: int) -> None:
        if metric in metrics and env_steps > first_env_steps():
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        run(f"stopped-{ahead}", actors=1, log=interrupt)
    saved = Checkpoints(Path(f"stopped-{ahead}/checkpoints")).latest()
    assert saved is not None
    assert saved["acting"]["cycle"] - saved["updater"]["module"]["_extra_state"]["cycle"] == ahead
    assert_same(clean, run(f"stopped-{ahead}", actors=1), f"stopped-{ahead}")


KILLED = """
import os, signal
from test_acting import run

def kill(metrics, env_steps):
    if metrics.get("updates", 0) >= 9:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run("killed", actors=1, log=kill)
"""


def test_a_trainer_that_was_killed_resumes_to_the_bit(folder: Path, clean: Trained) -> None:
    (folder / "killed.py").write_text(KILLED)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    ended = subprocess.run([sys.executable, "killed.py"], env={**os.environ, "PYTHONPATH": path})
    assert ended.returncode == -signal.SIGKILL
    saved = Checkpoints(Path("killed/checkpoints")).latest()
    assert saved is not None
    assert saved["updater"]["module"]["_extra_state"]["updates"] == 8
    assert_same(clean, run("killed", actors=1), "killed")


@pytest.mark.parametrize("tiny", [tiny_sac, tiny_model_free, tiny_playvirtual])
def test_the_policy_of_any_kind_is_loaded_from_its_acting_weights(tiny: Any, tmp_path: Path) -> None:
    """The weights that a worker gets, without those of the critics."""
    learner, path = tiny(seed=4), tmp_path / "weights.safetensors"
    about = {"config": learner.config.model_dump_json(), "observation_shape": str(NUMBERS)}
    save_file(acting_weights(learner), path, metadata=about)
    assert not any("critic" in name for name in acting_weights(learner))
    state = np.random.default_rng(0).standard_normal(NUMBERS, dtype=np.float32)
    for explore in (False, True):
        policies = [load_policy(path, ACTIONS, explore=explore), learner.policy(explore=explore)]
        for policy in policies:
            policy.reset(3)
        one, other = (policy.act(state) for policy in policies)
        assert np.array_equal(one, other)
