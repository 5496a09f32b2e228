"""One update of the whole agent: what reaches what, and what must not matter."""

import pytest
import torch
from tiny_learner import backward, losses_of, random_batch, reached, tiny_learner
from torch.testing import assert_close

RETRACE_LOSSES = ["bisimulation", "l2", "reconstruction"]
ADAPTIVE = {"mode": "adaptive", "window": 2, "threshold": 0.5}


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


def test_the_prior_of_a_step_does_not_see_its_image():
    model = tiny_learner().world_model
    batch = random_batch(4, 1)
    noise = torch.randn(4, 1, 3)
    before = model.observe(batch, noise)
    batch.observation[2] = 0
    after = model.observe(batch, noise)
    assert torch.equal(after.prior.mean[:3], before.prior.mean[:3])
    assert not torch.equal(after.prior.mean[3], before.prior.mean[3])
    assert not torch.equal(after.posterior.mean[2], before.posterior.mean[2])


def test_every_term_compares_a_step_with_itself():
    learner = tiny_learner(model={"continues": True})
    batch = random_batch(4, 2)
    batch.continues[1, 0] = 0.0
    model, noise = learner.world_model, torch.randn(4, 2, 3)
    observed = model.observe(batch, noise)
    terms = model.losses(batch, observed)
    image, reward, alive = [], [], []
    for t in range(4):
        feature = observed.posterior.feature[t]
        image.append(0.5 * (model.decoder(feature) - batch.observation[t] / 255 + 0.5).square().sum((1, 2, 3)))
        reward.append(0.5 * (model.reward(feature) - batch.reward[t]).square())
        probability = torch.sigmoid(model.continues(feature))
        alive.append(-torch.where(batch.continues[t] == 1, probability, 1 - probability).log())
    for name, steps in (("image", image), ("reward", reward), ("continues", alive)):
        assert_close(terms[name], torch.stack(steps).mean())


def updated(learner, batch):
    """Every weight after one step of Adam on every part."""
    backward(learner, losses_of(learner, batch))
    for group in learner.parts().values():
        torch.optim.Adam(group, lr=1e-3).step()
    return learner.state_dict()


def test_dreamer_is_the_learner_without_retracing_to_the_bit():
    dreamer, stripped, ccwm = (tiny_learner(retrace={"weight": weight}) for weight in (0.0, 1.0, 1.0))
    assert dreamer.retracing is None
    stripped.retracing = None  # built as CCWM is: the other weights must not have moved for it
    batch = random_batch()
    noise = dreamer.noise(0, 0, batch)
    assert noise.retraced.numel() == 0
    for one, other in zip(noise[:-1], ccwm.noise(0, 0, batch)[:-1], strict=True):
        assert torch.equal(one, other)
    mine, theirs = losses_of(dreamer, batch), losses_of(ccwm, batch)
    assert not any(name.startswith("retrace/") for name in mine.terms)
    assert all(torch.equal(value, theirs.terms[name]) for name, value in mine.terms.items())
    first = {name: value.clone() for name, value in dreamer.state_dict().items()}
    assert all(torch.equal(value, ccwm.state_dict()[name]) for name, value in first.items())
    after, again, with_retracing = updated(dreamer, batch), updated(stripped, batch), updated(ccwm, batch)
    assert list(after) == list(again)
    for name, value in after.items():
        assert torch.equal(value, again[name]), name
        assert not torch.equal(value, first[name]), name
        if name.startswith("actor_critic."):  # within one update retracing does not move actor or critic
            assert torch.equal(value, with_retracing[name]), name
    assert not torch.equal(after["world_model.rssm.cell.weight_hh"], with_retracing["world_model.rssm.cell.weight_hh"])


@pytest.mark.parametrize("loss", RETRACE_LOSSES)
@pytest.mark.parametrize("way", ["joint", "separate"])
def test_every_parameter_learns_from_the_loss_of_its_part_alone(loss, way):
    learner = tiny_learner(retrace={"loss": loss, "reverse_action": way}, model={"continues": True})
    groups = learner.parts()
    assert ("reverse" in groups) == (way == "separate")
    losses = losses_of(learner, random_batch())
    assert losses.parts.keys() == groups.keys()
    name_of = {id(parameter): name for name, parameter in learner.named_parameters()}
    taught = []
    for part, part_loss in losses.parts.items():
        learner.zero_grad()
        part_loss.backward(inputs=groups[part], retain_graph=True)
        moved = [name for name, p in learner.named_parameters() if p.grad is not None and p.grad.any()]
        assert sorted(moved) == sorted(name_of[id(parameter)] for parameter in groups[part])
        taught += moved
    assert sorted(taught) == sorted(name_of.values())  # each parameter has one optimiser, and none is forgotten


@pytest.mark.parametrize("loss", RETRACE_LOSSES)
@pytest.mark.parametrize("signal", ["value", "q"])
def test_the_model_and_retrace_losses_have_no_path_to_actor_or_critic(loss, signal):
    learner = tiny_learner(retrace={"loss": loss}, truncation=ADAPTIVE | {"signal": signal})
    losses = losses_of(learner, random_batch())
    assert not any(reached(losses.parts["model"], learner.actor_critic.parameters()))
    assert all(reached(losses.parts["model"], learner.retracing.parameters()))


@pytest.mark.parametrize("gradient", ["dynamics", "reinforce"])
def test_dreams_have_no_path_to_what_was_observed(gradient):
    learner = tiny_learner(actor_critic={"gradient": gradient})
    losses = losses_of(learner, random_batch())
    for part in ("actor", "critic"):
        assert not any(reached(losses.parts[part], learner.world_model.encoder.parameters()))
        assert not any(reached(losses.parts[part], learner.retracing.parameters()))


def test_the_order_of_a_batch_does_not_matter():
    learner = tiny_learner(
        retrace={"horizon": 2, "samples": 2}, truncation=ADAPTIVE, model={"continues": True}
    ).double()
    batch = random_batch(5, 4, dtype=torch.float64)
    batch.is_first[2, 1] = True
    batch.continues[3, 2] = 0.0
    noise = learner.noise(0, 0, batch)
    order = torch.tensor([2, 0, 3, 1])

    def dreams(value):
        """Dreams start from every [T, B] posterior: put their B into the new order."""
        return value.unflatten(1, (5, 4))[:, :, order].flatten(1, 2)

    moved = type(batch)(*(part[:, order] for part in batch))
    moved_noise = noise._replace(
        posterior=noise.posterior[:, order],
        dream=dreams(noise.dream),
        action=dreams(noise.action),
        retraced=noise.retraced[:, :, :, order],
    )
    first, second = learner(batch, noise, 0), learner(moved, moved_noise, 0)
    assert 0 < first.terms["retrace/truncated_share"] < 1
    assert_close(second.terms, first.terms)
    for losses in (first, second):
        backward(learner, losses)
        losses.terms["gradients"] = torch.cat([p.grad.flatten() for p in learner.parameters()])
    assert_close(second.terms["gradients"], first.terms["gradients"])


def test_one_window_does_not_see_another():
    learner = tiny_learner()
    batch = random_batch(4, 3)
    noise = torch.randn(4, 3, 3)
    before = learner.world_model.observe(batch, noise).posterior.feature
    batch.observation[:, 1] = 0
    after = learner.world_model.observe(batch, noise).posterior.feature
    assert_close(after[:, [0, 2]], before[:, [0, 2]])
    assert not torch.allclose(after[:, 1], before[:, 1])


def test_noise_is_a_function_of_seed_and_update():
    learner, batch = tiny_learner(actor_critic={"starts": 6}), random_batch()
    first = learner.noise(0, 0, batch)
    torch.rand(3)  # the global stream has no part in it
    for one, other in zip(first, learner.noise(0, 0, batch), strict=True):
        assert torch.equal(one, other)
    for other in (learner.noise(1, 0, batch), learner.noise(0, 1, batch)):
        assert not torch.equal(first.posterior, other.posterior)
        assert not torch.equal(first.retraced, other.retraced)
    assert len(set(first.start.tolist())) == 6 == len(first.start)
    assert first.dream.shape == (3, 6, 3)


def test_weights_scale_their_terms_once():
    plain = losses_of(tiny_learner(), random_batch()).terms
    scales = {"observation_scale": 2.0, "reward_scale": 3.0, "kl_scale": 5.0}
    scaled = losses_of(tiny_learner(model=scales, retrace={"weight": 7.0}), random_batch())
    for name, scale in (
        ("model/image", 2),
        ("model/reward", 3),
        ("model/kl", 5),
        ("model/nats", 1),
        ("retrace/loss", 7),
    ):
        assert_close(scaled.terms[name], scale * plain[name])
    parts = ("model/image", "model/reward", "model/kl", "retrace/loss")
    assert_close(scaled.parts["model"].detach(), sum(scaled.terms[name] for name in parts))


def test_a_chain_as_long_as_the_window_is_refused():
    with pytest.raises(ValueError, match=r"retrace\.horizon = 5 finds no chain in windows of 5 steps.*train\.length"):
        losses_of(tiny_learner(retrace={"horizon": 5}), random_batch(5))
