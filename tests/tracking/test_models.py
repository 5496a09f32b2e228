from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import mlflow
import numpy as np
import pytest
import torch
from mlflow import MlflowClient
from tracking_helpers import INFO, StartRun

import ccwm
from ccwm.agents.export import AgentCard, load_agent, save_agent
from ccwm.agents.learner import Learner
from ccwm.errors import UserError
from ccwm.settings.agent import ActorCritic, Env, Model, Retrace, Truncation
from ccwm.settings.schema import Render
from ccwm.tracking import tracking_uri
from ccwm.tracking.models import model_name

Client = Callable[[], MlflowClient]
NAME = "ccwm-walker_walk-ccwm"


@pytest.fixture
def exported(project: Path) -> Path:
    """A tiny untrained agent with two actions and 32 × 32 images."""
    model = Model(depth=2, deter=8, stoch=4, hidden=8, reward_units=8)
    card = AgentCard(
        task=INFO.task,
        variant=INFO.variant,
        seed=0,
        actions=2,
        env_steps=0,
        updates=0,
        env=Env(size=32),
        render=Render(),
        model=model,
        retrace=Retrace(weight=0),
        truncation=Truncation(),
        actor_critic=ActorCritic(units=8),
    )
    torch.manual_seed(0)
    learner = Learner(
        model=model,
        retrace=card.retrace,
        truncation=card.truncation,
        actor_critic=card.actor_critic,
        size=32,
        actions=2,
    )
    directory = project / "agent"
    directory.mkdir()
    save_agent(directory, learner, card)
    return directory


def test_a_logged_agent_is_registered_and_acts_as_before(
    exported: Path, start_run: StartRun, client: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_run() as run:
        run.log_agent(exported, image_size=32, actions=2)
    (registered,) = client().search_model_versions(f"name = '{NAME}'")
    assert registered.run_id == run.run_id
    outputs = client().get_run(run.run_id).outputs
    assert len(outputs.model_outputs) == 1

    files = {path.name for path in (project / "mlartifacts" / "models").rglob("*") if path.is_file()}
    assert files >= {"MLmodel", "agent_model.py", "agent.safetensors", "agent.json"}
    assert not any(name.endswith((".pkl", ".pickle", ".pt", ".pth")) for name in files)

    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri())
    model = mlflow.pyfunc.load_model(f"models:/{NAME}/1")
    direct = load_agent(exported)
    direct.reset(3)
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32, 3), dtype=np.uint8)
    first, second = direct.act(frames[0]), direct.act(frames[1])
    np.testing.assert_array_equal(model.predict(frames[0]), first)
    np.testing.assert_array_equal(model.predict(frames[1]), second)  # it remembers the first frame
    np.testing.assert_array_equal(model.predict(frames[0], params={"reset": True}), first)
    assert first.dtype == np.float32
    assert first.shape == (3, 2)
    with pytest.raises(mlflow.exceptions.MlflowException, match="shape"):
        model.predict(frames[0][:, :16])


def test_a_registered_agent_is_loaded_without_running_its_code(
    exported: Path, start_run: StartRun, project: Path
) -> None:
    with start_run() as run:
        run.log_agent(exported, image_size=32, actions=2)
    (code,) = (project / "mlartifacts" / "models").rglob("agent_model.py")
    code.write_text("raise SystemExit('this code must not run')")
    frame = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    direct, found = load_agent(exported), ccwm.load_agent(f"models:/{NAME}/1")
    for agent in (direct, found):
        agent.reset()
    np.testing.assert_array_equal(found.act(frame), direct.act(frame))
    with pytest.raises(UserError, match=rf"models:/nobody/1 is no agent .*; known: {NAME}"):
        ccwm.load_agent("models:/nobody/1")


def test_a_registered_agent_that_is_another_than_its_signature_says_is_refused(
    exported: Path, start_run: StartRun, project: Path
) -> None:
    with start_run() as run:
        run.log_agent(exported, image_size=64, actions=2)  # it sees 32 × 32
    with pytest.raises(UserError, match="another signature than its agent"):
        ccwm.load_agent(f"models:/{NAME}/1")


@pytest.mark.slow
def test_mlflows_own_client_acts(
    exported: Path, start_run: StartRun, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mlflow models predict`, a process that knows the store and nothing else."""
    with start_run() as run:
        run.log_agent(exported, image_size=32, actions=2)
    frames = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    (project / "images.json").write_text(json.dumps({"inputs": frames.tolist()}))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    command = [sys.executable, "-m", "mlflow", "models", "predict", "--env-manager", "local", "--content-type", "json"]
    places = ["--model-uri", f"models:/{NAME}/1", "--input-path", "images.json", "--output-path", "actions.json"]
    done = subprocess.run([*command, *places], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    actions = json.loads((project / "actions.json").read_text())["predictions"]
    direct = load_agent(exported)
    direct.reset(3)
    np.testing.assert_allclose(np.array(actions, np.float32), direct.act(frames), rtol=1e-6)


def test_the_same_agent_logged_again_by_a_resumed_run_is_one_version(
    exported: Path, start_run: StartRun, client: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")  # whose default store, for MLflow itself, is not the project's
    with suppress(KeyboardInterrupt), start_run() as run:
        run.log_agent(exported, image_size=32, actions=2)
        raise KeyboardInterrupt
    with start_run(run_id=run.run_id) as resumed:
        resumed.log_agent(exported, image_size=32, actions=2)
    assert len(client().search_model_versions(f"name = '{NAME}'")) == 1
    assert len(client().search_logged_models(["1"])) == 1


def test_task_names_become_model_names_that_mlflow_allows() -> None:
    assert model_name("gym:Pendulum-v1", "ccwm-l2") == "ccwm-gym-Pendulum-v1-ccwm-l2"
    assert model_name("my.module:MyEnv", "ccwm") == "ccwm-my-module-MyEnv-ccwm"
