"""Initial weights: TensorFlow's, which the paper's networks are written in, or torch's."""

from __future__ import annotations

from typing import Literal, TypeVar

from torch import nn

from ccwm.nets.mlp import Head

Module = TypeVar("Module", bound=nn.Module)


def init_weights(module: Module, init: Literal["glorot", "torch"]) -> Module:
    """The module with the initial weights that ``model.init`` names, and zero where a head wants its output zero."""
    if init == "glorot":
        glorot(module)
    for head in module.modules():
        if isinstance(head, Head) and head.zero:
            for parameter in head.layers[-1].parameters():
                nn.init.zeros_(parameter)
    return module


def glorot(module: nn.Module) -> None:
    """Redraw every layer below ``module``: Glorot's uniform weights, orthogonal recurrent ones, no biases.

    torch's default weights have a third of that variance or less: the signal of a small object vanishes over the layers
    between the image, the posterior and the decoder, and the latent stays empty for hundreds of updates. Larger weights
    also make the RSSM react more to actions that it has not seen, so that imagined returns are too high at first.
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
