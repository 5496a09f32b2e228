"""A trained agent as an MLflow model: code and safetensors, nothing pickled, with a signature, and registered."""

from __future__ import annotations

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
from mlflow.entities import LoggedModelOutput
from mlflow.exceptions import MlflowException
from mlflow.models import Model, ModelSignature
from mlflow.types import ParamSchema, ParamSpec, Schema, TensorSpec

from ccwm.errors import UserError
from ccwm.tracking.store import connect, suppress_existing, tracking_uri

CODE = Path(__file__).with_name("agent_model.py")
PACKAGES = ("mlflow", "numpy", "safetensors", "torch")


def model_name(task: str, variant: str) -> str:
    """The registered model's name; MLflow allows no `:`, `/` or `.` in it, which task names may have."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", f"ccwm-{task}-{variant}")


def agent_signature(directory: Path) -> ModelSignature:
    """observation [-1, …] → action float32 [-1, A], as the agent's card says; ``reset`` starts new episodes."""
    card = json.loads((directory / "agent.json").read_text())
    return ModelSignature(
        # Without names, since MLflow wraps a named array into a dictionary.
        inputs=Schema([TensorSpec(np.dtype(card["observation_dtype"]), (-1, *card["observation_shape"]))]),
        outputs=Schema([TensorSpec(np.dtype(np.float32), (-1, card["action_size"]))]),
        params=ParamSchema([ParamSpec("reset", "boolean", False)]),
    )


def log_agent_model(
    client: MlflowClient, directory: Path, experiment: str, run_id: str, *, name: str, progress: Callable[[int], None]
) -> None:
    """Log and register the exported agent as the run's only one; repeating a call that was cut short completes it."""
    warnings.filterwarnings("ignore", message="(?s).*An input example was not provided")  # the signature is explicit
    found = client.search_logged_models([experiment], f"source_run_id = '{run_id}'", max_results=1)
    model = found[0] if found else client.create_logged_model(experiment, name, run_id)
    outputs = client.get_run(run_id).outputs
    if not outputs or not outputs.model_outputs:
        client.log_outputs(run_id, [LoggedModelOutput(model.model_id, step=0)])
    with tempfile.TemporaryDirectory() as staging:
        mlflow.pyfunc.save_model(
            f"{staging}/model",
            python_model=str(CODE),
            artifacts={"agent": str(directory)},
            signature=agent_signature(directory),
            pip_requirements=[f"{package}=={version(package)}" for package in PACKAGES],
            mlflow_model=Model(model.artifact_location, run_id, model_uuid=model.model_id, model_id=model.model_id),
            metadata={"ccwm_version": version("ccwm")},
        )
        progress(1)
        client.log_model_artifacts(model.model_id, f"{staging}/model")
    progress(2)
    client.finalize_logged_model(model.model_id, "READY")
    with suppress_existing():
        client.create_registered_model(name)
    if not client.search_model_versions(f"run_id = '{run_id}'"):
        # By place, not as models:/<id>, which MLflow would look up in the process's default store instead of ours.
        source = model.artifact_location
        client.create_model_version(name, source, run_id, model_id=model.model_id, await_creation_for=0)


def fetch_agent(uri: str, folder: Path) -> Path:
    """Copy the files behind `models:/NAME/VERSION` to ``folder`` and return the agent's own; no code of them is run."""
    client, store = connect(), tracking_uri()
    try:
        local = mlflow.artifacts.download_artifacts(uri, dst_path=str(folder), tracking_uri=store, registry_uri=store)
        # The outermost card: the agent of the last update, not that of the best evaluation, which lies below it.
        return min(Path(local).rglob("agent.json"), key=lambda path: len(path.parts)).parent
    except (MlflowException, OSError, ValueError) as error:
        known = ", ".join(sorted(found.name for found in client.search_registered_models()))
        hint = f"known: {known}" if known else f"{store} holds no agent yet; `make repro` trains some"
        raise UserError(f"{uri} is no agent ({str(error).splitlines()[0]})", hint=hint) from None
