"""A trained agent, wherever it lies."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ccwm.agents import export
from ccwm.agents.export import Agent

REGISTERED = "models:/"


def load_agent(source: str | Path, *, task: str = "") -> Agent:
    """An agent from its directory, or from MLflow by `models:/NAME/VERSION`; nothing in either is executed.

    The agent's ``reset(batch=1)`` starts episodes and ``act(observation)`` takes observations [B, …] as its card
    describes them, or a single one, to actions [B, A] in [−1, 1]. ``task`` names another task than the card's to play.
    """
    if not str(source).startswith(REGISTERED):
        return export.load_agent(source, task=task)
    from ccwm.tracking.models import fetch_agent  # a directory needs no MLflow

    with tempfile.TemporaryDirectory() as folder:
        return export.load_agent(fetch_agent(str(source), Path(folder)), task=task)
