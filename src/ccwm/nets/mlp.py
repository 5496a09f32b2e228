"""Dense networks, and heads that predict one number for each state."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from ccwm.ops.scalars import Bernoulli, TwoHot, UnitGaussian
from ccwm.ops.symlog import symexp_bins

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}
NORM_EPS = 1e-3


class Dense(nn.Sequential):
    """Layers over the last axis whose ReLUs overwrite what they read; the first layer is none."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        for layer in self:
            if isinstance(layer, nn.ReLU):
                layer.inplace = True

    def forward(self, given: Tensor) -> Tensor:
        """[..., inputs] → [..., outputs]."""
        if given.ndim > 2:  # there a linear layer gives a view, and autograd copies what is overwritten in one
            return self.forward(given.flatten(0, -2)).reshape(*given.shape[:-1], -1)
        for layer in self:
            given = layer(given)
        return given


def dense_layer(inputs: int, units: int, *, activation: str, norm: bool) -> list[nn.Module]:
    """A linear layer, a layer norm where it is wanted (it takes the bias's place), and an activation."""
    linear = nn.Linear(inputs, units, bias=not norm)
    return [linear, *([nn.LayerNorm(units, eps=NORM_EPS)] if norm else []), ACTIVATIONS[activation]()]


def dense(inputs: int, units: int, outputs: int, layers: int, *, activation: str, norm: bool = False) -> Dense:
    """``layers`` hidden layers of ``units``, then a linear one of ``outputs``."""
    modules: list[nn.Module] = []
    for _ in range(layers):
        modules += dense_layer(inputs, units, activation=activation, norm=norm)
        inputs = units
    return Dense(*modules, nn.Linear(inputs, outputs))


class Head(nn.Module):
    """One number a state: a unit-variance Gaussian, or a categorical over bins that are evenly spaced in symlog."""

    def __init__(
        self,
        kind: Literal["gaussian", "two_hot"],
        *,
        feature: int,
        units: int,
        layers: int,
        activation: str,
        norm: bool = False,
        zero: bool = False,
        bins: int = 63,
        limit: float = 6.0,
    ) -> None:
        super().__init__()
        self.bins: Tensor | None
        self.zero = zero  # ``init_weights`` makes the last layer zero
        self.layers = dense(feature, units, bins if kind == "two_hot" else 1, layers, activation=activation, norm=norm)
        self.register_buffer("bins", symexp_bins(bins, limit) if kind == "two_hot" else None, persistent=False)

    def forward(self, feature: Tensor) -> UnitGaussian | TwoHot:
        """[..., F] → a distribution [...]."""
        out: Tensor = self.layers(feature)
        return UnitGaussian(out.squeeze(-1)) if self.bins is None else TwoHot(out, self.bins)


class ContinueHead(nn.Module):
    """The probability that an episode continues."""

    def __init__(self, *, feature: int, units: int, layers: int, activation: str, norm: bool = False) -> None:
        super().__init__()
        self.layers = dense(feature, units, 1, layers, activation=activation, norm=norm)

    def forward(self, feature: Tensor) -> Bernoulli:
        """[..., F] → a distribution [...]."""
        return Bernoulli(self.layers(feature).squeeze(-1))
