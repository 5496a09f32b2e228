import torch

from ccwm.ops.shift import shift


def test_each_window_is_moved_and_its_edges_are_repeated():
    image = torch.arange(9.0).reshape(1, 1, 1, 3, 3).repeat(2, 2, 1, 1, 1)  # 0 1 2 / 3 4 5 / 6 7 8
    image[1] += 10  # another step of the same windows moves alike
    moved = shift(image, torch.tensor([[1, 1], [2, 0]]), most=1)
    assert moved.shape == image.shape
    assert torch.equal(moved[:, 0], image[:, 0])  # an offset of `most` stays
    down_and_left = torch.tensor([[1.0, 2.0, 2.0], [1.0, 2.0, 2.0], [4.0, 5.0, 5.0]])
    assert torch.equal(moved[0, 1, 0], down_and_left)
    assert torch.equal(moved[1, 1, 0], down_and_left + 10)
