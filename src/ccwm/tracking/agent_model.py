"""The code of the MLflow model ("models from code"): MLflow copies this file and runs it to load an agent."""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel


class AgentModel(PythonModel):
    """The greedy agent; it remembers each episode's past, until ``reset`` or another batch size starts new ones."""

    def load_context(self, context: Any) -> None:
        """Read the agent's safetensors and JSON."""
        from ccwm.agents.export import load_agent  # logging a model runs this file too, and needs no torch

        self._agent = load_agent(Path(context.artifacts["agent"]))
        self._batch: int | None = None

    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, Any] | None = None) -> np.ndarray:
        """Observations [B, …] → greedy actions [B, A] float32."""
        if len(model_input) != self._batch or (params or {}).get("reset", False):
            self._agent.reset(len(model_input))
            self._batch = len(model_input)
        return self._agent.act(model_input)


set_model(AgentModel())
