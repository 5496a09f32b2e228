import math

import torch
from torch import nn
from torch.testing import assert_close

from ccwm.nets.rssm import RSSM


def test_a_step_of_the_rssm():
    rssm = RSSM(embed=4, actions=2, deter=6, stoch=3, hidden=5, min_std=0.1, activation="relu")
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


def test_the_rssm_has_the_activation_that_it_is_given():
    negative = torch.full((1, 8), -1.0)
    for name, expected in (("relu", 0.0), ("elu", math.expm1(-1.0))):  # ELU(−1) = e⁻¹ − 1
        rssm = RSSM(embed=4, actions=2, deter=6, stoch=3, hidden=5, min_std=0.1, activation=name)
        assert_close(rssm.activation(negative), torch.full((1, 8), expected))
