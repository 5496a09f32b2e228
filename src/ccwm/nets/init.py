"""How weights begin: as in TensorFlow, which the paper's networks are written in, or as torch draws them."""

from __future__ import annotations

from typing import Literal, TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def begin(module: Module, weights: Literal["glorot", "torch"]) -> Module:
    """The module with its first weights, as ``model.init`` names them."""
    return glorot(module) if weights == "glorot" else module


def glorot(module: Module) -> Module:
    """Redraw every layer below ``module``: Glorot's uniform weights, orthogonal recurrent ones, no biases.

    torch's default weights have a third of that variance and less; over the layers between an image, the posterior and
    the decoder a small object all but vanishes, and the latent stays empty for hundreds of updates. A larger RSSM
    reacts more to actions that it has not seen, too: where rewards are rare at first, dreams promise too much.
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
