"""Observing, predicting, and the forward losses."""

import pytest
import torch
from tiny_learner import DRAWN_HEADS, noise_of, random_batch, reached, terms_of, tiny_learner
from torch.testing import assert_close

from ccwm.agents.model_based import ModelBasedLearner
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
        reward.append(0.5 * (model.reward(feature).mean - batch.reward[t]).square())
        probability = model.continues(feature).mean
        alive.append(-torch.where(batch.continues[t] == 1, probability, 1 - probability).log())
        normals = [torch.distributions.Normal(g.mean[t], g.std[t]) for g in (observed.posterior, observed.prior)]
        nats.append(torch.distributions.kl_divergence(*normals).sum(-1))
    wanted = {"observation": observation, "reward": reward, "kl": nats, "continues": alive}
    assert_close(losses, {name: torch.stack(steps).mean() for name, steps in wanted.items()})
    assert_close(metrics, {"nats": torch.stack(nats).mean().detach()})


def test_every_term_of_the_robust_backbone_compares_a_step_with_itself():
    """Vectors in symlog, the reward's cross entropy with its two bins, and a KL whose value shows no weights."""
    model = tiny_learner(robust=True, **DRAWN_HEADS).world_model
    batch = random_batch(4, 2, robust=True)
    observed = model.observe(batch, torch.randn(4, 2, 3))
    losses, metrics = model.loss(batch, observed)
    observation, reward, nats = [], [], []
    for t in range(4):
        feature, seen = observed.posterior.feature[t], batch.observation[t]
        target = seen.sign() * (1 + seen.abs()).log()
        observation.append(0.5 * (model.decoder(feature) - target).square().sum(-1))
        chances = model.reward(feature).logits.log_softmax(-1)
        for row in range(2):
            below = int((model.reward.bins <= batch.reward[t, row]).sum()) - 1
            low, high = model.reward.bins[below : below + 2]
            share = (batch.reward[t, row] - low) / (high - low)
            reward.append(-(1 - share) * chances[row, below] - share * chances[row, below + 1])
        normals = [torch.distributions.Normal(g.mean[t], g.std[t]) for g in (observed.posterior, observed.prior)]
        nats.append(torch.distributions.kl_divergence(*normals).sum(-1))
    wanted = {"observation": observation, "reward": reward, "kl": nats}
    assert_close(losses, {name: torch.stack(steps).mean() for name, steps in wanted.items()})
    assert_close(metrics, {"nats": torch.stack(nats).mean().detach()})


def observing(learner, batch):
    """The losses of observing, and the gradient of their sum for every parameter of the world model."""
    _, terms = learner.observe(batch, noise_of(learner, batch))
    return terms.metrics, torch.autograd.grad(terms.losses["model"], list(learner.world_model.parameters()))


@pytest.mark.parametrize("rows", [1, 4, 5, 14])
def test_images_in_chunks_give_the_losses_and_the_gradients_of_all_at_once(rows, monkeypatch):
    learner, batch = tiny_learner(model={"observation_scale": 3.0}).double(), random_batch(5, 3, dtype=torch.float64)
    plain, seen = observing(learner, batch), []
    for module in ("agents.world_model", "nets.pixels"):
        monkeypatch.setattr(f"ccwm.{module}.IMAGES", rows)
    for network in (learner.world_model.encoder.layers, learner.world_model.decoder.layers):
        network.register_forward_hook(lambda network, given, made: seen.append(len(made)))
    assert_close(observing(learner, batch), plain)
    assert sum(seen) == 2 * 15
    assert max(seen) == rows


def test_vectors_are_never_cut_into_chunks(monkeypatch):
    monkeypatch.setattr("ccwm.agents.world_model.IMAGES", 4)
    monkeypatch.setattr("ccwm.agents.world_model.mean_in_chunks", None)
    assert observing(tiny_learner(robust=True), random_batch(5, 3, robust=True))


def test_chunks_are_made_in_half_precision_but_not_where_a_gradient_must_be_scaled_first(monkeypatch):
    """Without its scale the gradient of a mean over many images is 0 in float16."""
    learner, batch = tiny_learner(), random_batch(5, 3)

    def slopes(dtype, rows):
        monkeypatch.setattr("ccwm.agents.world_model.IMAGES", rows)
        with torch.autocast("cpu", dtype):
            _, terms = learner.observe(batch, noise_of(learner, batch))
        return torch.autograd.grad(terms.losses["model"], list(learner.world_model.decoder.parameters()))

    in_one = slopes(torch.bfloat16, 15)
    in_chunks = slopes(torch.bfloat16, 4)
    assert all(part.dtype == torch.float32 for part in in_chunks)
    for got, wanted in zip(in_chunks, in_one, strict=True):
        assert (got - wanted).norm() < 0.02 * wanted.norm()
    in_one = slopes(torch.float16, 15)
    monkeypatch.setattr("ccwm.agents.world_model.mean_in_chunks", None)
    assert_close(slopes(torch.float16, 4), in_one, rtol=0, atol=0)


@pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
@pytest.mark.parametrize("free", [0.01, 100.0])
def test_the_kl_term_has_its_free_nats(free, robust):
    learner = tiny_learner(robust=robust, model={"free_nats": free})
    batch = random_batch(robust=robust)
    metrics = terms_of(learner, batch).metrics
    assert metrics["model/nats"] > 0.02
    assert_close(metrics["model/kl"], metrics["model/nats"].clamp_min(free))
    model = learner.world_model
    kl = model.loss(batch, model.observe(batch, torch.zeros(5, 3, 3))).losses["kl"]
    assert kl.requires_grad  # also below, where the gradient is 0
    assert any(g.any() for g in torch.autograd.grad(kl, list(model.rssm.parameters()))) is (free < 1)


def test_the_weights_of_the_kl_are_those_of_its_two_directions():
    """Into the prior alone, into the posterior alone, and both at 1 and 1."""
    batch, noise = random_batch(), torch.zeros(5, 3, 3)

    def slopes(**weights):
        model = tiny_learner(model=weights).world_model
        observed = model.observe(batch, noise)
        kl = model.loss(batch, observed).losses["kl"]
        return torch.autograd.grad(kl, [*observed.posterior.gaussian, *observed.prior], allow_unused=True)

    whole = slopes()
    for prior, posterior in ((1.0, 0.5), (0.25, 1.0), (0.0, 0.1)):
        got = slopes(kl_dynamics=prior, kl_representation=posterior)
        assert_close(got[:2], tuple(posterior * slope for slope in whole[:2]))
        assert_close(got[2:], tuple(prior * slope for slope in whole[2:]))


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


def test_state_vectors_are_squashed_on_their_way_in_and_stretched_on_their_way_out():
    model = tiny_learner(robust=True).world_model
    observation = random_batch(2, 3, robust=True).observation
    target = model.target(observation)
    assert_close(target, observation.sign() * (1 + observation.abs()).log())
    assert_close(model.to_observation(target), observation)
    feature = torch.randn(2, 3, model.rssm.feature)
    wanted = 0.5 * (model.decoder(feature) - target).square().sum(-1)
    assert_close(model.reconstruction(feature, target), wanted)
    plain = tiny_learner(robust=True, model={"symlog": False}).world_model
    assert torch.equal(plain.target(observation), observation)


@pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
@pytest.mark.parametrize("shape", [(32, 32, 3), (7,)], ids=["pixels", "vectors"])
def test_each_backbone_sees_pixels_and_vectors(shape, robust):
    config = tiny_learner(robust=robust).config
    model = ModelBasedLearner(config, observation_shape=shape, actions=2).world_model
    batch = random_batch(4, 2)
    observation = batch.observation if len(shape) == 3 else torch.randn(4, 2, *shape)
    batch = batch._replace(observation=observation)
    losses, _ = model.loss(batch, model.observe(batch, torch.zeros(4, 2, 3)))
    assert losses["observation"] > 0
    assert all(reached(losses["observation"], [*model.encoder.parameters(), *model.decoder.parameters()]))
    with torch.no_grad():
        seen = model.to_observation(model.decode(torch.randn(4, 2, model.rssm.feature)))
    assert (seen.shape, seen.dtype) == (observation.shape, observation.dtype)


def test_the_discount_is_gamma_times_the_probability_to_continue():
    feature = torch.randn(4, 9)
    assert_close(tiny_learner().world_model.discount(feature, 0.9), torch.full((4,), 0.9))
    model = tiny_learner(model={"continues": True}).world_model
    for parameter in model.continues.parameters():
        parameter.data.zero_()
    assert_close(model.discount(feature, 0.9), torch.full((4,), 0.45))  # σ(0) = ½
