"""Which states stay in the retrace loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ccwm.agents.control import Control
from ccwm.agents.distributed import all_gather_columns
from ccwm.agents.running import RunningMean
from ccwm.agents.world_model import WorldModel
from ccwm.ops.truncation import (
    adaptive_mask,
    algorithm1_mask,
    annealed_share,
    outlier_threshold,
    relative_changes,
    scheduled_mask,
)
from ccwm.settings.agent import Truncation as TruncationSettings
from ccwm.structs import Batch, LatentState


class Truncation(nn.Module):
    """The mask of the paper's Section 3.3 (`adaptive`, `auto`) or of its Appendix C (`scheduled`)."""

    def __init__(self, settings: TruncationSettings, *, discount: float) -> None:
        super().__init__()
        self.settings, self.discount = settings, discount
        self.running_median = RunningMean() if settings.mode == "auto" else None  # of Δ

    @property
    def threshold(self) -> float | Tensor:
        """η: the setting, or with `auto` the fence of outliers of all changes so far."""
        if self.running_median is None:
            return self.settings.threshold
        return outlier_threshold(self.running_median.mean)

    def forward(
        self, batch: Batch, posterior: LatentState, model: WorldModel, control: Control, env_steps: int
    ) -> Tensor:
        """True for each posterior that stays: bool [T, B]."""
        settings = self.settings
        if settings.mode == "scheduled":
            share = annealed_share(env_steps, initial=settings.final_share, steps=settings.final_share_steps)
            return scheduled_mask(batch.position, batch.episode_length, final_share=share)
        if settings.mode == "none" or env_steps < settings.start:
            return torch.ones_like(batch.is_first)
        value = self.signal(posterior, model, control)
        if self.running_median is not None and self.training:
            changes = all_gather_columns(relative_changes(value, window=settings.window))
            self.running_median.follow(changes.float().quantile(0.5))
        return self.mask(value)

    def mask(self, value: Tensor) -> Tensor:
        """What the rule keeps of states with these values: [T, B] → bool [T, B]."""
        settings = self.settings
        if settings.rule == "algorithm1":
            return algorithm1_mask(value, threshold=self.threshold, window=settings.window)
        lookback = settings.window if settings.lookback is None else settings.lookback
        return adaptive_mask(value, threshold=self.threshold, window=settings.window, lookback=lookback)

    @torch.no_grad()
    def signal(self, posterior: LatentState, model: WorldModel, control: Control) -> Tensor:
        """V, or Q = r̂(z) + γV(ẑ') one model step ahead under the greedy action: [T, B, ·] → [T, B]."""
        if self.settings.signal == "value":
            return control.value(posterior.feature)
        flat = posterior.flatten()
        action = control.greedy(flat.feature)
        ahead = model.predict(flat, action, torch.zeros_like(flat.stoch)).feature
        discount = model.discount(flat.feature, self.discount)
        value: Tensor = model.reward(flat.feature).mean + discount * control.value(ahead)
        return value.reshape(posterior.stoch.shape[:2])
