"""Half precision ends at the networks' outputs.

Under autocast networks compute in half precision. Squares, ratios and long sums may not: a square overflows float16
from 256 on, and bfloat16 has three digits. So every network's output is cast back, and all maths is in full precision.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

HALF = (torch.float16, torch.bfloat16)


def cast_outputs(*networks: nn.Module) -> None:
    """Make each network return float32 where it computed in half precision, and its output as it is elsewhere."""
    for network in networks:
        network.register_forward_hook(_cast)


def gradients_are_scaled(device: torch.device) -> bool:
    """Whether networks compute in float16, where a gradient vanishes unless the loss was scaled before the way back."""
    kind = device.type
    return torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.float16


def _cast(network: nn.Module, inputs: Any, output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.float() if output.dtype in HALF else output
    return type(output)(*(part.float() if part.dtype in HALF else part for part in output))  # a named tuple of tensors
