import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.dynamics import Dynamics


def test_the_change_is_added_to_the_state():
    dynamics = Dynamics(feature=1, actions=1, units=2, activation="relu")
    for layer in dynamics.layers[::2]:
        nn.init.zeros_(layer.bias)
    dynamics.layers[0].weight.data.copy_(torch.eye(2))  # hidden = relu(state, action)
    dynamics.layers[2].weight.data.copy_(torch.eye(2))
    dynamics.layers[4].weight.data.copy_(torch.tensor([[1.0, -10.0]]))
    found = dynamics(torch.tensor([[2.0], [-3.0]]), torch.tensor([[0.1], [0.5]]))
    assert_close(found, torch.tensor([[3.0], [-8.0]]))  # 2 + (2 − 10 · 0.1); −3 + (0 − 10 · 0.5)


def test_reversed_dynamics_learn_the_inverse_of_a_linear_system():
    """z' = A z + B a: from z' and a, the error of ž is less than a hundredth of that of staying at z'."""
    torch.manual_seed(0)
    forward, push = torch.tensor([[0.9, -0.4], [0.3, 0.8]]), torch.tensor([[0.5, 0.0], [0.2, -0.7]])
    dynamics = Dynamics(feature=2, actions=2, units=64, activation="elu")
    optimiser = torch.optim.Adam(dynamics.parameters(), lr=3e-3)

    def errors():
        earlier, action = torch.randn(256, 2), torch.rand(256, 2) * 2 - 1
        later = earlier @ forward.T + action @ push.T
        return (dynamics(later, action) - earlier).square().mean(), (later - earlier).square().mean()

    assert torch.stack(errors())[0] > 0.1
    for _ in range(400):
        optimiser.zero_grad()
        errors()[0].backward()
        optimiser.step()
    retraced, stayed = errors()
    assert retraced < 0.01 * stayed
