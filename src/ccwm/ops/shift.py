"""Random shifts of images, the augmentation of PlayVirtual."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def shift(image: Tensor, offset: Tensor, *, most: int) -> Tensor:
    """Move each window's images by ``offset − most`` pixels down and right; edges repeat where nothing was.

    Pixel (y, x) of the result is pixel (y + most − offset₀, x + most − offset₁) of the image, the nearest where there
    is none.   [T, B, C, h, w], int [B, 2] in [0, 2 · most] → [T, B, C, h, w].
    """
    time, batch, channels, height, width = image.shape
    padded = functional.pad(image.flatten(0, 1), (most,) * 4, mode="replicate")
    padded = padded.reshape(time, batch, channels, height + 2 * most, width + 2 * most)
    start = (2 * most - offset).unsqueeze(-1)
    rows = start[:, 0] + torch.arange(height, device=image.device)  # [B, h]
    columns = start[:, 1] + torch.arange(width, device=image.device)  # [B, w]
    window = torch.arange(batch, device=image.device)[:, None, None]
    moved = padded[:, window, :, rows[:, :, None], columns[:, None, :]]  # [B, h, w, T, C]
    return moved.permute(3, 0, 4, 1, 2)
