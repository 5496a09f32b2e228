import math

import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.rssm import RSSM
from ccwm.structs import LatentState


def rssm_of(*, activation="relu", norm=False):
    return RSSM(embed=4, actions=2, deter=6, stoch=3, hidden=5, min_std=0.1, activation=activation, norm=norm)


def test_a_step_of_the_rssm():
    rssm = rssm_of()
    state = rssm.initial(torch.zeros(2, 1))
    assert not torch.cat(list(state), -1).any()
    noise = torch.randn(2, 3)
    prior = rssm.predict(state, torch.ones(2, 2), noise)
    posterior = rssm.correct(state, torch.ones(2, 2), rssm.embed(torch.ones(2, 4)), noise)
    assert torch.equal(prior.deter, posterior.deter)  # the image corrects the Gaussian, not the GRU
    assert not torch.equal(prior.mean, posterior.mean)
    for part in (prior, posterior):
        assert_close(part.stoch, part.mean + part.std * noise)
    assert_close(rssm.prior(prior.deter).mean, prior.mean)
    for out in (rssm.prior_out, rssm.posterior_out):
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)
    spread = torch.full((2, 3), math.log(2) + 0.1)  # softplus(0) = log 2, and the least spread on top
    assert_close(rssm.prior(prior.deter).std, spread)
    assert_close(rssm.correct(state, torch.ones(2, 2), torch.zeros(2, 5), noise).std, spread)


def stepped(rssm):
    """What a step from a state makes: the GRU's state, the prior's and the posterior's mean."""
    generator = torch.Generator().manual_seed(0)
    deter, stoch, action, embed = (torch.randn(2, width, generator=generator) for width in (6, 3, 2, 4))
    state = LatentState(deter, stoch, stoch, torch.ones_like(stoch))
    noise = torch.zeros(2, 3)
    prior, posterior = rssm.predict(state, action, noise), rssm.correct(state, action, rssm.embed(embed), noise)
    return prior.deter, prior.mean, posterior.mean


def test_the_rssm_has_the_activation_that_it_is_given():
    sigmoid = 1 / (1 + math.e)
    for name, expected in (("relu", 0.0), ("elu", math.expm1(-1.0)), ("silu", -sigmoid)):  # SiLU(−1) = −σ(−1)
        rssm = rssm_of(activation=name)
        nn.init.zeros_(rssm.prior_hidden.weight)
        nn.init.constant_(rssm.prior_hidden.bias, -1.0)
        nn.init.ones_(rssm.prior_out.weight)
        nn.init.zeros_(rssm.prior_out.bias)
        assert_close(rssm.prior(torch.randn(1, 6)).mean, torch.full((1, 3), 5 * expected))  # five hidden units


def test_a_normalised_rssm_does_not_see_the_scale_of_its_hidden_layers():
    """Three layers are normalised before their activation: of what enters the GRU, of the prior, of the posterior."""
    for norm in (True, False):
        for names, at in ((["enter"], 0), (["prior_hidden"], 1), (["embed", "posterior_hidden"], 2)):
            torch.manual_seed(0)
            rssm = rssm_of(activation="silu", norm=norm)
            before = stepped(rssm)
            for name in names:
                for parameter in getattr(rssm, name).parameters():
                    parameter.data *= 50
            after = stepped(rssm)
            same = torch.allclose(before[at], after[at], atol=0.05)
            assert same is norm, (norm, names)


def test_a_normalised_prior_by_hand():
    rssm = RSSM(embed=1, actions=1, deter=1, stoch=1, hidden=2, min_std=0.1, activation="relu", norm=True)
    rssm.prior_hidden.weight.data.copy_(torch.tensor([[1.0], [3.0]]))
    nn.init.zeros_(rssm.prior_hidden.bias)
    rssm.prior_out.weight.data.copy_(torch.tensor([[10.0, 100.0], [0.0, 0.0]]))
    nn.init.zeros_(rssm.prior_out.bias)
    # 2 → (2, 6): mean 4, variance 4 → ∓ 2 / √(4 + 0.001); ReLU keeps the second.
    assert_close(rssm.prior(torch.tensor([[2.0]])).mean, torch.tensor([[200 / math.sqrt(4.001)]]))
