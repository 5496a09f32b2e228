"""Observing, predicting, and the forward losses."""

import pytest
import torch
from tiny_learner import random_batch, terms_of, tiny_learner
from torch.testing import assert_close

from ccwm.nets.pixels import normalise


def test_a_reset_within_a_window_is_a_fresh_start():
    model = tiny_learner().double().world_model
    batch = random_batch(5, 2, dtype=torch.float64)
    batch.is_first[2] = True
    noise = torch.randn(5, 2, 3, dtype=torch.float64)
    whole = model.observe(batch, noise)
    fresh = type(batch)(*(part[2:].clone() for part in batch))
    fresh.is_first[0] = False  # a window starts from the zero state by itself …
    fresh.action[0] = 0.0  # … and an episode with no action
    alone = model.observe(fresh, noise[2:])
    assert_close(tuple(whole.posterior.map(lambda part: part[2:])), tuple(alone.posterior))
    assert_close(whole.prior.mean[2:], alone.prior.mean)


def test_a_reset_clears_its_own_row_alone():
    model = tiny_learner().double().world_model
    batch = random_batch(5, 2, dtype=torch.float64)
    noise = torch.randn(5, 2, 3, dtype=torch.float64)
    before = model.observe(batch, noise).posterior.feature
    batch.is_first[2, 0] = True
    after = model.observe(batch, noise).posterior.feature
    assert_close(after[:, 1], before[:, 1])
    assert_close(after[:2], before[:2])
    assert (after[2:, 0] - before[2:, 0]).abs().amax(-1).gt(1e-3).all()


def test_the_prior_of_a_step_does_not_see_its_observation():
    model = tiny_learner().world_model
    batch = random_batch(4, 1)
    noise = torch.randn(4, 1, 3)
    before = model.observe(batch, noise)
    batch.observation[2] = 0
    after = model.observe(batch, noise)
    assert torch.equal(after.prior.mean[:3], before.prior.mean[:3])
    assert not torch.equal(after.prior.mean[3], before.prior.mean[3])
    assert not torch.equal(after.posterior.mean[2], before.posterior.mean[2])


def test_one_window_does_not_see_another():
    model = tiny_learner().world_model
    batch = random_batch(4, 3)
    noise = torch.randn(4, 3, 3)
    before = model.observe(batch, noise).posterior.feature
    batch.observation[:, 1] = 0
    after = model.observe(batch, noise).posterior.feature
    assert_close(after[:, [0, 2]], before[:, [0, 2]])
    assert not torch.allclose(after[:, 1], before[:, 1])


def test_every_term_compares_a_step_with_itself():
    model = tiny_learner(model={"continues": True}).world_model
    batch = random_batch(4, 2)
    batch.continues[1, 0] = 0.0
    observed = model.observe(batch, torch.randn(4, 2, 3))
    losses, metrics = model.loss(batch, observed)
    observation, reward, alive, nats = [], [], [], []
    for t in range(4):
        feature = observed.posterior.feature[t]
        target = batch.observation[t].permute(0, 3, 1, 2) / 255 - 0.5
        observation.append(0.5 * (model.decoder(feature) - target).square().sum((1, 2, 3)))
        reward.append(0.5 * (model.reward(feature) - batch.reward[t]).square())
        probability = torch.sigmoid(model.continues(feature))
        alive.append(-torch.where(batch.continues[t] == 1, probability, 1 - probability).log())
        normals = [torch.distributions.Normal(g.mean[t], g.std[t]) for g in (observed.posterior, observed.prior)]
        nats.append(torch.distributions.kl_divergence(*normals).sum(-1))
    wanted = {"observation": observation, "reward": reward, "kl": nats, "continues": alive}
    assert_close(losses, {name: torch.stack(steps).mean() for name, steps in wanted.items()})
    assert_close(metrics, {"nats": torch.stack(nats).mean().detach()})


@pytest.mark.parametrize("free", [0.01, 100.0])
def test_the_kl_term_has_its_free_nats(free):
    learner = tiny_learner(model={"free_nats": free, "kl_scale": 3.0})
    metrics = terms_of(learner, random_batch()).metrics
    assert metrics["model/nats"] > 0.02
    assert_close(metrics["model/kl"], 3 * metrics["model/nats"].clamp_min(free))


def test_observations_are_normalised_on_their_way_in_and_bytes_on_their_way_out():
    model = tiny_learner().world_model
    observation = random_batch(2, 3).observation
    target = model.target(observation)
    assert torch.equal(target, normalise(observation, torch.float32))
    assert torch.equal(model.to_observation(target), observation)
    feature = torch.randn(2, 3, model.rssm.feature)
    assert_close(model.decode(feature), model.decoder(feature))
    wanted = 0.5 * (model.decoder(feature) - target).square().sum((2, 3, 4))
    assert_close(model.reconstruction(feature, target), wanted)


def test_the_discount_is_gamma_times_the_probability_to_continue():
    feature = torch.randn(4, 9)
    assert_close(tiny_learner().world_model.discount(feature, 0.9), torch.full((4,), 0.9))
    model = tiny_learner(model={"continues": True}).world_model
    for parameter in model.continues.parameters():
        parameter.data.zero_()
    assert_close(model.discount(feature, 0.9), torch.full((4,), 0.45))  # σ(0) = ½
