"""The distance that PlayVirtual predicts and closes its cycles in."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def cosine_distance(predicted: Tensor, target: Tensor) -> Tensor:
    """1 − x·y / (‖x‖ ‖y‖), from 0 to 2.   [..., D] each → [...]."""
    return 1 - functional.cosine_similarity(predicted, target, -1)
