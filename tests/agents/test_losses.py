import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from ccwm.losses.actor_critic import critic_loss, dynamics_actor_loss, reinforce_actor_loss
from ccwm.losses.model import centred, continue_loss, image_loss, kl_with_free_nats
from ccwm.losses.retrace import bisimulation, l2, reconstruction
from ccwm.structs import Gaussian, LatentState


def number(value, *, grad=False):
    return torch.tensor(value, dtype=torch.float64, requires_grad=grad)


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape)))


def state(mean, *, stoch=None, deter=None):
    mean = torch.as_tensor(mean, dtype=torch.float64)
    part = mean if stoch is None else number(stoch)
    return LatentState(torch.zeros_like(mean) if deter is None else number(deter), part, mean, torch.ones_like(mean))


def test_pixels_are_centred():
    got = centred(torch.tensor([0, 51, 255], dtype=torch.uint8), torch.float64)
    assert_close(got, number([-0.5, -0.3, 0.5]))


def test_image_loss_is_summed_over_pixels_and_nothing_else():
    decoded, image = torch.zeros(2, 3, 2, 2), torch.zeros(2, 3, 2, 2)
    image[0] += 1.0  # 12 entries, each ½·1²
    image[1, 0, 0, 0] = 4.0  # one entry, ½·4²
    assert_close(image_loss(decoded, image), torch.tensor([6.0, 8.0]))


def test_reconstruction_is_the_negative_log_likelihood():
    image = torch.full((1, 3, 1, 1), 2.0)
    worse, better = reconstruction(torch.zeros(1, 3, 1, 1), image), reconstruction(torch.ones(1, 3, 1, 1), image)
    assert_close(worse, torch.tensor([6.0]))  # 3 · ½·2²
    assert_close(better, torch.tensor([1.5]))  # nearer costs less


def shifted_posterior(distance):
    """Two unit Gaussians at ± ``distance`` and a unit prior at 0: KL ½·distance² each."""
    mean = number([[distance], [-distance]], grad=True)
    return mean, Gaussian(mean, torch.ones_like(mean)), Gaussian(torch.zeros_like(mean), torch.ones_like(mean))


def test_below_the_free_nats_the_kl_is_constant():
    mean, posterior, prior = shifted_posterior(2.0)
    loss, nats = kl_with_free_nats(posterior, prior, free_nats=3.0)
    loss.backward()
    assert_close((loss.detach(), nats.detach()), (number(3.0), number(2.0)))
    assert_close(mean.grad, torch.zeros_like(mean))


def test_above_the_free_nats_the_kl_counts_in_full():
    mean, posterior, prior = shifted_posterior(4.0)
    loss, nats = kl_with_free_nats(posterior, prior, free_nats=3.0)
    loss.backward()
    assert_close((loss.detach(), nats.detach()), (number(8.0), number(8.0)))
    assert_close(mean.grad, number([[2.0], [-2.0]]))  # distance / 2 states


def test_the_kl_is_averaged_before_it_is_clamped():
    # KL 0 and 8 average to 4; clamped first they would give (3 + 8) / 2.
    posterior = Gaussian(number([[0.0], [4.0]]), torch.ones(2, 1, dtype=torch.float64))
    prior = Gaussian(torch.zeros_like(posterior.mean), torch.ones_like(posterior.std))
    assert_close(kl_with_free_nats(posterior, prior, free_nats=3.0)[0], number(4.0))


def test_continue_loss_is_low_for_the_right_answer():
    logit = number([math.log(3), math.log(3)])  # σ = ¾
    assert_close(continue_loss(logit, number([1.0, 1.0])), number(-math.log(0.75)))
    assert_close(continue_loss(logit, number([1.0, 0.0])), number(-(math.log(0.75) + math.log(0.25)) / 2))


def test_bisimulation_of_a_two_dimensional_latent():
    # ‖(1, 2) − (4, −2)‖₁ = 3 + 4 = 7;  ½ (1 − 3)² = 2;  W₂ = (0 − 1)² + (1 − 3)² + (1 − 2)² = 6
    # (7 − 2 − 0.5·6)² = 4
    result = bisimulation(
        state([1.0, 2.0], stoch=[90.0, 90.0]),  # the distance is between means, not samples
        state([4.0, -2.0], stoch=[-90.0, 0.0]),
        reward_original=number(1.0),
        reward_retraced=number(3.0),
        next_original=Gaussian(number([0.0, 1.0]), number([1.0, 1.0])),
        next_retraced=Gaussian(number([1.0, 3.0]), number([1.0, 2.0])),
        discount=0.5,
    )
    assert_close(tuple(result), (number(4.0), number(7.0), number(2.0), number(6.0)))


def test_bisimulation_is_squared_per_state():
    # ‖·‖₁ = 2 and ½ (r − ř)² = 4, the other way round in the second state: (−2)² and 2², where the mean is 0.
    nowhere = Gaussian(torch.zeros(2, 1, dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64))
    result = bisimulation(
        state([[0.0], [0.0]]),
        state([[2.0], [4.0]]),
        reward_original=number([0.0, 0.0]),
        reward_retraced=number([math.sqrt(8), 2.0]),
        next_original=nowhere,
        next_retraced=nowhere,
        discount=0.99,
    )
    assert_close(result.loss, number([4.0, 4.0]))


def test_l2_is_over_the_whole_feature():
    # stoch (1 − 3)² + (2 − 2)², deter (0 − 1)² + (5 − 2)²
    got = l2(
        state([0.0, 0.0], stoch=[1.0, 2.0], deter=[0.0, 5.0]), state([9.0, 9.0], stoch=[3.0, 2.0], deter=[1.0, 2.0])
    )
    assert_close(got, number(14.0))


def test_the_actor_climbs_the_weighted_return():
    target, weight = number([[2.0], [6.0]], grad=True), number([[1.0], [0.5]])
    loss = dynamics_actor_loss(target, weight)
    loss.backward()
    assert_close(loss.detach(), number(-2.5))  # −(2 + 3) / 2
    assert_close(target.grad, number([[-0.5], [-0.25]]))


def test_reinforce_makes_a_good_action_likelier_and_holds_the_advantage_still():
    log_prob, advantage = number([[-1.0], [-2.0]], grad=True), number([[3.0], [-4.0]], grad=True)
    loss = reinforce_actor_loss(log_prob, advantage, number([[1.0], [0.5]]))
    loss.backward()
    assert_close(loss.detach(), number(-0.5))  # −(3·−1 + 0.5·−4·−2) / 2
    assert_close(log_prob.grad, number([[-1.5], [1.0]]))  # −w A / 2
    assert advantage.grad is None


def test_the_critic_regresses_on_a_return_held_still():
    value, target = number([[1.0], [2.0]], grad=True), number([[4.0], [0.0]], grad=True)
    loss = critic_loss(value, target, number([[1.0], [0.5]]))
    loss.backward()
    assert_close(loss.detach(), number(2.75))  # (½·3² + 0.5·½·2²) / 2
    assert_close(value.grad, number([[-1.5], [0.5]]))  # w (v − G) / 2
    assert target.grad is None


def bisimulation_of(mean, other, reward, other_reward, following, following_std, other_following, other_std):
    return bisimulation(
        state(mean),
        state(other),
        reward_original=reward,
        reward_retraced=other_reward,
        next_original=Gaussian(following, following_std.exp()),
        next_retraced=Gaussian(other_following, other_std.exp()),
        discount=0.9,
    ).loss


def kl_of(mean, std, other, other_std):
    return kl_with_free_nats(Gaussian(mean, std.exp()), Gaussian(other, other_std.exp()), free_nats=0.01)[0]


def l2_of(mean, other):
    return l2(state(mean), state(other))


@pytest.mark.parametrize(
    ("loss", "shapes"),
    [
        (image_loss, [(2, 3, 2, 2)] * 2),
        (reconstruction, [(2, 3, 2, 2)] * 2),
        (kl_of, [(2, 3, 2)] * 4),
        (lambda logit: continue_loss(logit, number([[1.0, 0.0], [1.0, 1.0]])), [(2, 2)]),
        (l2_of, [(3, 2)] * 2),
        (bisimulation_of, [(3, 2)] * 2 + [(3,)] * 2 + [(3, 2)] * 4),
        (dynamics_actor_loss, [(2, 3)] * 2),
        (lambda log_prob: reinforce_actor_loss(log_prob, random(2, 3), torch.ones(2, 3)), [(2, 3)]),
        (lambda value: critic_loss(value, random(2, 3), torch.ones(2, 3)), [(2, 3)]),
    ],
)
def test_gradients_agree_with_finite_differences(loss, shapes):
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert gradcheck(loss, inputs)
