"""Means in chunks against the plain mean: values, gradients, and how much is alive at once."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ccwm.ops.chunks import mean_in_chunks

ROWS = 7


def parts(rows=ROWS):
    """A network, features, and targets with an axis more than the features."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 10)).double()
    feature = torch.randn(rows, 3, dtype=torch.float64, requires_grad=True)
    return network, feature, torch.randn(rows, 2, 5, dtype=torch.float64)


def loss_of(network, seen):
    """Half the squared error of each row; ``seen`` hears how many rows came at once."""

    def loss(feature, target):
        seen.append(len(feature))
        return 0.5 * (network(feature).reshape(-1, 2, 5) - target).square().sum((1, 2))

    return loss


@pytest.mark.parametrize(("rows", "chunks"), [(1, [1] * 7), (3, [3, 3, 1]), (5, [5, 2]), (7, [7]), (20, [7])])
def test_a_mean_in_chunks_has_the_value_and_the_gradients_of_the_plain_one(rows, chunks):
    network, feature, target = parts()
    seen, weights = [], list(network.parameters())
    loss = loss_of(network, seen)
    plain = loss(feature, target).mean()
    seen.clear()
    mean = mean_in_chunks(loss, feature, target, weights=weights, rows=rows)
    assert seen == chunks
    assert_close(mean, plain)
    asked = [feature, *weights]
    # As a term among others, with a weight of its own, and asked more than once.
    for _ in range(2):
        got, wanted = (torch.autograd.grad(3.0 * term, asked, retain_graph=True) for term in (mean, plain))
        assert_close(got, wanted)
    assert_close(torch.autograd.grad(mean, weights[1])[0], torch.autograd.grad(plain, weights[1])[0])
    assert seen == chunks  # nothing is computed twice


def test_a_mean_in_chunks_adds_to_what_its_weights_learn_elsewhere():
    network, feature, target = parts()
    weights, loss = list(network.parameters()), loss_of(network, [])
    hooked = []
    for weight in weights:
        weight.register_post_accumulate_grad_hook(lambda weight: hooked.append(weight.shape))
    hidden = feature.tanh()  # the gradient goes on behind the feature
    whole = mean_in_chunks(loss, hidden, target, weights=weights, rows=3) + network(hidden).sum()
    assert hooked == []  # DistributedDataParallel waits for each weight's hook, once
    whole.backward(inputs=[feature, *weights])
    assert sorted(hooked) == sorted(weight.shape for weight in weights)
    wanted = torch.autograd.grad(
        loss(hidden := feature.tanh(), target).mean() + network(hidden).sum(), [feature, *weights]
    )
    assert_close(tuple(part.grad for part in (feature, *weights)), wanted)


def test_a_chunk_is_gone_before_the_next_one_comes():
    network, feature, target = parts(1000)
    alive, most = [0], [0]

    class Held:
        """What autograd keeps of one tensor."""

        def __init__(self, tensor):
            self.tensor, self.size = tensor, tensor.numel() if tensor.grad_fn is not None else 0
            alive[0] += self.size
            most[0] = max(most[0], alive[0])

        def __del__(self):
            alive[0] -= self.size

    def peak(mean):
        alive[0] = most[0] = 0
        with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor):
            mean()
        return most[0]

    loss, weights = loss_of(network, []), list(network.parameters())
    whole = peak(lambda: loss(feature, target).mean())
    assert 0 < 50 * peak(lambda: mean_in_chunks(loss, feature, target, weights=weights, rows=10)) < whole
