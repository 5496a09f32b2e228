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
from mlflow import MlflowClient
from tracking_helpers import CELL, StartRun

import ccwm
from ccwm.agents.export import AgentCard, load_agent, save_agent
from ccwm.errors import UserError
from ccwm.settings.loading import load_settings
from ccwm.settings.presets import load_preset
from ccwm.settings.variants import resolve
from ccwm.tracking import tracking_uri
from ccwm.tracking.models import agent_signature, model_name
from ccwm.training.kinds import build_module

Client = Callable[[], MlflowClient]
NAME = "ccwm-walker_walk-ccwm"
ROOT = Path(__file__).parents[2]
CONFIG = load_settings(ROOT / "presets" / "smoke.yaml").agent_config


@pytest.fixture
def exported(project: Path) -> Path:
    """A tiny untrained agent with two actions and 32 × 32 pixels."""
    shape = (32, 32, 3)
    card = AgentCard(
        task=CELL.task, variant=CELL.variant, seed=0, observation_shape=shape, observation_dtype="uint8", action_size=2,
        env_steps=0, updates=0, config=CONFIG,
    )  # fmt: skip
    (project / "agent" / "best").mkdir(parents=True)
    learner = build_module(CONFIG, seed=0, observation_shape=shape, actions=2).learner
    save_agent(project / "agent", learner, card)
    save_agent(project / "agent" / "best", learner, card.model_copy(update={"updates": 7}))
    return project / "agent"


def test_a_logged_agent_is_registered_and_acts_as_before(
    exported: Path, start_run: StartRun, client: Client, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_run() as run:
        run.log_agent(exported)
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


def test_a_signature_takes_pixels_or_states_as_the_card_says(exported: Path) -> None:
    assert agent_signature(exported).inputs.to_dict()[0]["tensor-spec"] == {"dtype": "uint8", "shape": (-1, 32, 32, 3)}
    card = json.loads((exported / "agent.json").read_text())
    (exported / "agent.json").write_text(json.dumps(card | {"observation_shape": [24], "observation_dtype": "float32"}))
    assert agent_signature(exported).inputs.to_dict()[0]["tensor-spec"] == {"dtype": "float32", "shape": (-1, 24)}


def test_a_registered_agent_is_loaded_without_running_its_code(
    exported: Path, start_run: StartRun, project: Path
) -> None:
    with start_run() as run:
        run.log_agent(exported)
    (code,) = (project / "mlartifacts" / "models").rglob("agent_model.py")
    code.write_text("raise SystemExit('this code must not run')")
    frame = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    direct, found = load_agent(exported), ccwm.load_agent(f"models:/{NAME}/1")
    for agent in (direct, found):
        agent.reset()
    np.testing.assert_array_equal(found.act(frame), direct.act(frame))
    assert found.card.updates == 0  # the agent of the last update, not of the best evaluation
    with pytest.raises(UserError, match="models:/nobody/1 is no agent") as caught:
        ccwm.load_agent("models:/nobody/1")
    assert NAME in caught.value.hint


@pytest.mark.parametrize(
    ("shape", "dtype"), [((32, 32, 3), "uint8"), ((24,), "float32")], ids=["pixels", "state vector"]
)
def test_the_signature_is_what_the_card_says(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    card = {"observation_shape": shape, "observation_dtype": dtype, "action_size": 6}
    (tmp_path / "agent.json").write_text(json.dumps(card))
    signature = agent_signature(tmp_path)
    (seen,), (acted,) = signature.inputs.inputs, signature.outputs.inputs
    assert (seen.shape, seen.type, acted.shape, acted.type) == ((-1, *shape), dtype, (-1, 6), "float32")


@pytest.mark.slow
def test_mlflows_own_client_acts(
    exported: Path, start_run: StartRun, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mlflow models predict`, a process that knows the store and nothing else."""
    with start_run() as run:
        run.log_agent(exported)
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
    with suppress(KeyboardInterrupt), start_run(run_id="one") as run:
        run.log_agent(exported)
        raise KeyboardInterrupt
    with start_run(run_id="one") as resumed:
        resumed.log_agent(exported)
    assert len(client().search_model_versions(f"name = '{NAME}'")) == 1
    assert len(client().search_logged_models(["1"])) == 1


def test_task_names_become_model_names_that_mlflow_allows() -> None:
    assert model_name("gym:Pendulum-v1", "ccwm-l2") == "ccwm-gym-Pendulum-v1-ccwm-l2"
    assert model_name("my.module:MyEnv", "ccwm") == "ccwm-my-module-MyEnv-ccwm"


def test_a_sac_agent_is_a_model_too(start_run: StartRun, client: Client, project: Path) -> None:
    config = resolve(load_preset("states-sac", ROOT / "presets"), "sac").agent_config
    learner = build_module(config, seed=0, observation_shape=(24,), actions=6).learner
    card = AgentCard(
        task=CELL.task, variant=CELL.variant, seed=0, observation_shape=(24,), observation_dtype="float32",
        action_size=6, env_steps=0, updates=0, config=config,
    )  # fmt: skip
    (project / "agent").mkdir()
    save_agent(project / "agent", learner, card)
    with start_run() as run:
        run.log_agent(project / "agent")
    loaded = ccwm.load_agent(f"models:/{NAME}/1")
    loaded.reset(2)
    states = np.random.default_rng(0).standard_normal((2, 24), dtype=np.float32)
    assert np.array_equal(loaded.act(states), np.stack([learner.policy().act(row) for row in states]))
