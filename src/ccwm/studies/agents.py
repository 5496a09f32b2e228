"""An exported agent, on the device that the settings give."""

from __future__ import annotations

from pathlib import Path

import lightning as L
import torch

from ccwm.agents.export import Agent, load_agent
from ccwm.settings.agent import Trainer


def ready_agent(directory: Path, trainer: Trainer) -> Agent:
    """Load an agent and put it where the settings say, with their number of CPU threads."""
    torch.set_num_threads(trainer.threads)
    agent = load_agent(directory)
    device = L.Fabric(accelerator=trainer.accelerator, devices=1).device
    return agent.to(device)
