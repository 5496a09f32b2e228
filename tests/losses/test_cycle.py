import torch
from torch.testing import assert_close

from ccwm.losses.cycle import cosine_distance


def test_the_cosine_distance_by_hand():
    one = torch.tensor([[1.0, 0.0], [3.0, 4.0], [2.0, 0.0], [1.0, 1.0]])
    other = torch.tensor([[5.0, 0.0], [4.0, 3.0], [-1.0, 0.0], [1.0, -1.0]])
    # 1 − 1; 1 − (12 + 12) / (5 · 5); 1 + 1; 1 − 0
    assert_close(cosine_distance(one, other), torch.tensor([0.0, 0.04, 2.0, 1.0]))
