"""A trained agent as an MLflow model: code and safetensors, nothing pickled, with a signature, and registered."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import mlflow.artifacts
import mlflow.pyfunc
import numpy as np
from mlflow import MlflowClient
from mlflow.entities import LoggedModel, LoggedModelOutput
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.types import ParamSchema, ParamSpec, Schema, TensorSpec

from ccwm.errors import UserError
from ccwm.tracking.store import connect, tracking_uri

CODE = Path(__file__).with_name("agent_model.py")
LOG_TAG = "ccwm.log_id"
"""Run and content of a model, so that an agent that is sent or logged again after a crash makes no second one."""


class UnknownAgent(UserError, ValueError):
    """MLflow has no agent under this name."""


def model_name(task: str, variant: str) -> str:
    """The registered model's name; MLflow allows no `:`, `/` or `.` in it, which task names may have."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"ccwm-{task}-{variant}")


def digest(directory: Path) -> str:
    """SHA-256 over the names and bytes of all files."""
    total = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        total.update(f"{path.relative_to(directory)}\0{path.stat().st_size}\0".encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def agent_signature(image_size: int, actions: int) -> ModelSignature:
    """image uint8 [-1, size, size, 3] → action float32 [-1, A]; ``reset`` starts new episodes."""
    return ModelSignature(
        # Without names, since MLflow wraps a named array into a dictionary.
        inputs=Schema([TensorSpec(np.dtype(np.uint8), (-1, image_size, image_size, 3))]),
        outputs=Schema([TensorSpec(np.dtype(np.float32), (-1, actions))]),
        params=ParamSchema([ParamSpec("reset", "boolean", False)]),
    )


def log_agent_model(
    client: MlflowClient,
    directory: Path,
    *,
    experiment: str,
    run_id: str,
    name: str,
    image_size: int,
    actions: int,
    log_id: str,
    progress: Callable[[int], None],
) -> None:
    """Log and register the exported agent in ``directory``; repeating a call that was cut short completes it."""
    warnings.filterwarnings("ignore", message="(?s).*An input example was not provided")  # the signature is explicit
    model = _logged_model(client, experiment, run_id, name, log_id)
    with tempfile.TemporaryDirectory() as staging:
        mlflow.pyfunc.save_model(
            f"{staging}/model",
            python_model=str(CODE),
            artifacts={"agent": str(directory)},
            signature=agent_signature(image_size, actions),
            pip_requirements=[
                f"{package}=={version(package)}" for package in ("mlflow", "numpy", "safetensors", "torch")
            ],
            mlflow_model=Model(
                artifact_path=model.artifact_location,
                model_uuid=model.model_id,
                run_id=run_id,
                model_id=model.model_id,
                metadata={"ccwm_version": version("ccwm")},
            ),
        )
        progress(1)
        client.log_model_artifacts(model.model_id, f"{staging}/model")
    progress(2)
    client.finalize_logged_model(model.model_id, "READY")
    _register(client, name, model, run_id, log_id)


def fetch_agent(uri: str, folder: Path) -> Path:
    """Copy the files behind `models:/NAME/VERSION` to ``folder`` and return the agent's own; no code of them is run."""
    client = connect()
    try:
        store = tracking_uri()
        local = Path(
            mlflow.artifacts.download_artifacts(uri, dst_path=str(folder), tracking_uri=store, registry_uri=store)
        )
        model = Model.load(str(local))
        agent = local / str(model.flavors["python_function"]["artifacts"]["agent"]["path"])
    except (MlflowException, OSError, KeyError) as error:
        known = sorted(found.name for found in client.search_registered_models())
        listed = (
            f"known: {', '.join(known)}" if known else f"{tracking_uri()} holds no agent yet: `make repro` trains some"
        )
        raise UnknownAgent(f"{uri} is no agent ({str(error).splitlines()[0]}); {listed}") from None
    if not agent.resolve().is_relative_to(local.resolve()):
        raise UnknownAgent(f"{uri} names files outside of itself ({agent}); nothing of it is read")
    card = json.loads((agent / "agent.json").read_text())
    if model.signature != agent_signature(card["env"]["size"], card["actions"]):
        raise UnknownAgent(f"{uri} has another signature than its agent: log it again with this version of ccwm")
    return agent


def _logged_model(client: MlflowClient, experiment: str, run_id: str, name: str, log_id: str) -> LoggedModel:
    """The model with this ``log_id``, made if need be and listed among the run's outputs."""
    found = client.search_logged_models([experiment], f"tags.`{LOG_TAG}` = '{log_id}'", max_results=1)
    model = found[0] if found else client.create_logged_model(experiment, name, run_id, tags={LOG_TAG: log_id})
    outputs = client.get_run(run_id).outputs
    if model.model_id not in {output.model_id for output in (outputs.model_outputs if outputs else [])}:
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    return model


def _register(client: MlflowClient, name: str, model: LoggedModel, run_id: str, log_id: str) -> None:
    try:
        client.create_registered_model(name)
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    versions = client.search_model_versions(f"name = '{name}'")
    if not any(registered.tags.get(LOG_TAG) == log_id for registered in versions):
        # By place, not as models:/<id>, which MLflow would look up in the process's default store instead of ours.
        source = model.artifact_location
        client.create_model_version(
            name, source, run_id, tags={LOG_TAG: log_id}, model_id=model.model_id, await_creation_for=0
        )
