"""Convolutions in their fast forms, and the layout of images."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.pixels import PixelDecoder, PixelEncoder, Upsample, normalise, to_pixels


def test_pixels_are_normalised_with_their_channels_first():
    image = torch.zeros(4, 5, 6, 3, dtype=torch.uint8)
    image[1, 2, 3] = torch.tensor([0, 51, 255])
    got = normalise(image, torch.float64)
    assert got.shape == (4, 3, 5, 6)
    assert_close(got[1, :, 2, 3], torch.tensor([-0.5, -0.3, 0.5], dtype=torch.float64))


def test_every_byte_survives_the_way_there_and_back():
    image = torch.randint(0, 256, (2, 3, 8, 8, 3), dtype=torch.uint8)
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(to_pixels(normalise(image, dtype)), image)


def test_what_lies_beyond_the_bytes_is_clipped():
    decoded = torch.tensor([-7.0, 0.0, 7.0]).reshape(3, 1, 1)
    assert to_pixels(decoded).flatten().tolist() == [0, 128, 255]  # 127.5 is rounded to the even number


@pytest.mark.parametrize("kernel", [5, 6])
@pytest.mark.parametrize("pixels", [1, 5, 14])
def test_upsample_is_a_transposed_convolution(kernel, pixels):
    fast, plain = Upsample(3, 2, kernel).double(), nn.ConvTranspose2d(3, 2, kernel, stride=2).double()
    plain.load_state_dict(fast.state_dict())
    image = torch.randn(2, 3, pixels, pixels, dtype=torch.float64)
    assert_close(fast(image), plain(image))
    for module in (fast, plain):
        module(image).square().sum().backward()
    assert_close([p.grad for p in fast.parameters()], [p.grad for p in plain.parameters()])


def test_the_decoders_first_layer_is_a_transposed_convolution_on_one_pixel():
    decoder = PixelDecoder(feature=4, size=32, depth=2).double()
    nn.init.normal_(decoder.first_bias)
    kernel, _, channels = decoder.shape
    plain = nn.ConvTranspose2d(64, channels, kernel, stride=2).double()
    with torch.no_grad():
        plain.weight.copy_(decoder.first.weight.reshape(kernel, kernel, channels, 64).permute(3, 2, 0, 1))
        plain.bias.copy_(decoder.first_bias)
    feature = torch.randn(3, 4, dtype=torch.float64)
    wanted = decoder.layers(plain(decoder.dense(feature).reshape(3, 64, 1, 1)))
    assert_close(decoder(feature), wanted)


@pytest.mark.parametrize(("size", "embed"), [(32, 8 * 2 * 2), (64, 16 * 2 * 2)])
def test_pixels_become_an_embedding_and_a_feature_becomes_pixels(size, embed):
    encoder, decoder = PixelEncoder(size=size, depth=2), PixelDecoder(feature=5, size=size, depth=2)
    assert encoder.outputs == embed
    assert encoder(torch.zeros(4, 3, 3, size, size)).shape == (4, 3, embed)
    assert decoder(torch.zeros(4, 3, 5)).shape == (4, 3, 3, size, size)
    assert decoder(torch.zeros(7, 5)).shape == (7, 3, size, size)


def test_leading_axes_are_only_folded():
    encoder, decoder = PixelEncoder(size=32, depth=2).double(), PixelDecoder(feature=5, size=32, depth=2).double()
    image, feature = torch.randn(2, 3, 3, 32, 32).double(), torch.randn(2, 3, 5).double()
    assert_close(encoder(image)[1, 2], encoder(image[1, 2:3])[0])
    assert_close(decoder(feature)[1, 2], decoder(feature[1, 2:3])[0])
