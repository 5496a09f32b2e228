"""Pixels to an embedding and a feature back to pixels: Dreamer's convolutions, one layer fewer at 32 × 32.

Layout and scaling of images live here: observations are uint8 [size, size, 3], networks see [3, size, size] around 0.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

KERNELS = {32: (5, 6, 6), 64: (5, 5, 6, 6)}
"""Kernels of the decoder: with stride 2, 1 → 5 → 14 → 32 and 1 → 5 → 13 → 30 → 64 pixels."""

IMAGES = 1250
"""So many go through a network at a time, since what its way back needs for a moment grows with them."""


def normalise(observation: Tensor, dtype: torch.dtype) -> Tensor:
    """Bytes as numbers for encoder and decoder: uint8 [..., size, size, 3] → [..., 3, size, size].

    Values are in [−0.5, 0.5]; memory stays channels-last, which the kernels of CPU and GPU prefer.
    """
    return (observation.to(dtype) / 255 - 0.5).movedim(-1, -3)


def to_pixels(decoded: Tensor) -> Tensor:
    """The decoder's output as bytes: [..., 3, size, size] around 0 → uint8 [..., size, size, 3]."""
    return ((decoded.movedim(-3, -1) + 0.5).clamp(0, 1) * 255).round().to(torch.uint8)


class PixelEncoder(nn.Module):
    """e = q_φ(O): convolutions of kernel 4 and stride 2 whose channels double."""

    def __init__(self, *, size: int, depth: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels, pixels = 3, size
        for index in range(len(KERNELS[size])):
            layers += [nn.Conv2d(channels, depth * 2**index, kernel_size=4, stride=2), nn.ReLU(inplace=True)]
            channels, pixels = depth * 2**index, (pixels - 4) // 2 + 1
        self.layers = nn.Sequential(*layers)
        self.outputs = channels * pixels * pixels

    def target(self, observation: Tensor, dtype: torch.dtype) -> Tensor:
        """What is encoded and what the decoder is to predict: uint8 [..., size, size, 3] → [..., 3, size, size]."""
        return normalise(observation, dtype)

    def to_observation(self, decoded: Tensor) -> Tensor:
        """The inverse of ``target``: [..., 3, size, size] → uint8 [..., size, size, 3]."""
        return to_pixels(decoded)

    def forward(self, image: Tensor) -> Tensor:
        """[..., 3, size, size] → [..., embed]."""
        images = image.flatten(0, -4).contiguous(memory_format=torch.channels_last)
        embed = torch.cat([self.layers(some) for some in torch.split(images, IMAGES)])
        return embed.reshape(*image.shape[:-3], -1)


class Upsample(nn.ConvTranspose2d):
    """A transposed convolution of stride 2, computed as its four phases: a plain convolution and a pixel shuffle.

    The same weights give the same image; on a CPU it takes about half the time, for lack of a fast transposed kernel.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel_size=kernel, stride=2)

    def forward(self, image: Tensor, output_size: list[int] | None = None) -> Tensor:
        """[N, inputs, h, h] → [N, outputs, 2h − 2 + kernel, 2h − 2 + kernel]."""
        odd = self.kernel_size[0] % 2
        half = (self.kernel_size[0] + odd) // 2
        # y[2i + a] = Σ_m x[i − m] w[2m + a]: phase a sees the weights 2m + a, back to front.
        weight = functional.pad(self.weight, (0, odd, 0, odd))
        split = weight.reshape(self.in_channels, self.out_channels, half, 2, half, 2)
        phases = split.permute(1, 3, 5, 0, 2, 4).flatten(0, 2).flip(-1, -2)
        bias = None if self.bias is None else self.bias.repeat_interleave(4)
        shuffled = functional.pixel_shuffle(functional.conv2d(image, phases, bias, padding=half - 1), 2)
        return shuffled[..., : shuffled.shape[-2] - odd, : shuffled.shape[-1] - odd]


class PixelDecoder(nn.Module):
    """The mean of p_θ(O|z): a dense layer, then transposed convolutions of stride 2."""

    def __init__(self, *, feature: int, size: int, depth: int) -> None:
        super().__init__()
        kernels = KERNELS[size]
        widths = [depth * 2**index for index in reversed(range(len(kernels) - 1))]
        self.dense = nn.Linear(feature, 32 * depth)
        # On a 1 × 1 input a transposed convolution is a dense layer; as one it is several times faster on a CPU.
        self.first = nn.Linear(32 * depth, widths[0] * kernels[0] ** 2, bias=False)
        self.first_bias = nn.Parameter(torch.zeros(widths[0]))  # one a channel, as a convolution has
        self.shape = (kernels[0], kernels[0], widths[0])
        layers: list[nn.Module] = [nn.ReLU()]
        for inputs, outputs, kernel in zip(widths, [*widths[1:], 3], kernels[1:], strict=True):
            layers += [Upsample(inputs, outputs, kernel), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, feature: Tensor) -> Tensor:
        """[..., F] → [..., 3, size, size]."""
        hidden = self.first(self.dense(feature.flatten(0, -2))).reshape(-1, *self.shape) + self.first_bias
        image: Tensor = self.layers(hidden.permute(0, 3, 1, 2))
        return image.reshape(*feature.shape[:-1], *image.shape[1:])
