"""How weights begin: as in TensorFlow, which the paper's networks are written in."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from ccwm.nets.actor import Actor
from ccwm.nets.mlp import ScalarHead

Module = TypeVar("Module", bound=nn.Module)


def glorot(module: Module) -> Module:
    """Redraw every layer below ``module``: Glorot's uniform weights, orthogonal recurrent ones, no biases.

    torch's default weights have a third of that variance and less; over the layers between an image, the posterior and
    the decoder a small object all but vanishes, and the latent stays empty for hundreds of updates.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.GRUCell):
            for entering, recurrent in zip(layer.weight_ih.chunk(3), layer.weight_hh.chunk(3), strict=True):
                nn.init.xavier_uniform_(entering)  # each gate is a layer of its own
                nn.init.orthogonal_(recurrent)
            nn.init.zeros_(layer.bias_ih)
            nn.init.zeros_(layer.bias_hh)
    return module


def soften(head: Actor | ScalarHead, scale: float) -> None:
    """Scale the last layer's first weights: a head that begins near 0 promises nothing that it has not seen."""
    output = head.layers[-1]
    assert isinstance(output, nn.Linear)
    output.weight.data *= scale
