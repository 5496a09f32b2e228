"""Dense heads on a feature."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


def dense(inputs: int, units: int, outputs: int, layers: int, activation: Callable[[], nn.Module]) -> nn.Sequential:
    """``layers`` hidden layers of ``units``, then a linear one of ``outputs``."""
    modules: list[nn.Module] = []
    for _ in range(layers):
        modules += [nn.Linear(inputs, units), activation()]
        inputs = units
    return nn.Sequential(*modules, nn.Linear(inputs, outputs))


class ScalarHead(nn.Module):
    """One number a state: the mean of a unit-variance Gaussian, or the logit of a Bernoulli."""

    def __init__(self, *, feature: int, units: int, layers: int) -> None:
        super().__init__()
        self.layers = dense(feature, units, 1, layers, nn.ReLU)

    def forward(self, feature: Tensor) -> Tensor:
        """[..., F] → [...]."""
        out: Tensor = self.layers(feature)
        return out.squeeze(-1)
