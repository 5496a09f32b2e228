"""Which state is retraced to which, on a line where a step back is exact: any shift by one is seen."""

import pytest
import torch
from line_world import Back, Line, line_loss, observed_on, on_the_line, retracing, still
from tiny_learner import DRAWN_HEADS, noise_of, random_batch, reached, tiny_learner
from torch.testing import assert_close

SQUARES = (0.0, 1.0, 4.0, 9.0, 16.0, 25.0)  # no two steps are of one length
both_backbones = pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_the_right_reverse_actions_lead_to_the_right_states(horizon):
    places = torch.tensor(SQUARES)
    posterior = on_the_line(*SQUARES)
    retraced = retracing(Back(), horizon=horizon).walk(observed_on(posterior), Line(), still(horizon, len(SQUARES)))
    assert retraced.stoch.shape == (horizon, 1, len(SQUARES) - horizon, 1, 1)
    for j in range(1, horizon + 1):
        for end in range(horizon, len(SQUARES)):
            assert_close(retraced.stoch[j - 1, 0, end - horizon].squeeze(), places[end - j])
    loss = line_loss(posterior, still(horizon, len(SQUARES)), reverse=Back()).losses["loss"]
    assert_close(loss, torch.tensor(0.0))


@both_backbones
@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_a_walk_is_the_papers_loop(horizon, robust):
    learner = tiny_learner(robust=robust, retrace={"horizon": horizon, "samples": 2}).double()
    batch = random_batch(6, 2, robust=robust, dtype=torch.float64)
    noise = noise_of(learner, batch)
    model, reverse = learner.world_model, learner.retracing.reverse
    observed = model.observe(batch, noise.posterior)
    posterior = observed.posterior
    retraced = learner.retracing.walk(observed, model, noise.retraced)
    for sample in range(2):
        for end in range(horizon, 6):
            state = posterior.map(lambda part, end=end: part[end])
            for j in range(1, horizon + 1):
                later, earlier = posterior.feature[end - j + 1], posterior.feature[end - j]
                state = model.rssm.predict(state, reverse(later, earlier), noise.retraced[j - 1, sample, end - horizon])
                got = retraced.map(lambda part, at=(j - 1, sample, end - horizon): part[at])
                assert_close(tuple(got), tuple(state))


def observed_learner(*, robust=False, **retrace):
    """A learner, what it observes, its retraced states [T − 1, B, ·], their loss and metrics."""
    learner = tiny_learner(robust=robust, retrace=retrace, **DRAWN_HEADS).double()
    batch = random_batch(4, 2, robust=robust, dtype=torch.float64)
    noise = noise_of(learner, batch)
    observed = learner.world_model.observe(batch, noise.posterior)
    retraced = learner.retracing.walk(observed, learner.world_model, noise.retraced)
    losses, metrics = learner.retracing.loss(
        batch.is_first, observed, ~batch.is_first, learner.world_model, learner.actor_critic.actor, noise.retraced
    )
    return learner, observed, retraced.map(lambda part: part[0, 0]), losses["loss"], metrics


def reward_kl_of(one, other):
    """KL of two rewards, written for each kind of head."""
    if hasattr(one, "logits"):
        p, q = (torch.distributions.Categorical(logits=each.logits) for each in (one, other))
        return torch.distributions.kl_divergence(p, q)
    return 0.5 * (one.mean - other.mean).square()


@both_backbones
@pytest.mark.parametrize("loss", ["bisimulation", "metric", "released"])
def test_bisimulation_is_equation_5_state_by_state(loss, robust):
    learner, observed, retraced, got, metrics = observed_learner(robust=robust, loss=loss)
    model, actor = learner.world_model, learner.actor_critic.actor
    wanted, parts = [], {"l1": [], "reward_kl": [], "w2": []}
    for t in range(3):
        ends = [states.map(lambda part, t=t: part[t]) for states in (observed.posterior, retraced)]
        reward, other_reward = (model.reward(end.feature) for end in ends)
        following, other_following = (
            model.rssm.predict(end, actor.greedy(end.feature), torch.zeros_like(end.stoch)) for end in ends
        )
        l1 = (ends[0].mean - ends[1].mean).abs().sum(-1)
        w2 = (following.mean - other_following.mean).square().sum(-1)
        w2 = w2 + (following.std - other_following.std).square().sum(-1)
        reward_kl = reward_kl_of(reward, other_reward)
        wanted.append(l1 + reward_kl + 0.99 * w2 if loss == "metric" else l1 - reward_kl - 0.99 * w2)
        for name, part in (("l1", l1), ("reward_kl", reward_kl), ("w2", w2)):
            parts[name].append(part)
    gaps = torch.stack(wanted)
    # The paper squares the gap of each state, the released code that of their mean, and a metric is not squared.
    means = {"bisimulation": gaps.square().mean(), "released": gaps.mean().square(), "metric": gaps.mean()}
    assert_close(got, means[loss])
    for name, values in parts.items():
        assert_close(metrics[name], torch.stack(values).mean().detach())


@both_backbones
def test_reconstruction_decodes_each_state_into_the_observation_of_its_own_time(robust):
    learner, observed, retraced, loss, _ = observed_learner(robust=robust, loss="reconstruction")
    decoded = learner.world_model.decoder(retraced.feature)
    wanted = [0.5 * (decoded[t] - observed.target[t]).square().flatten(1).sum(1) for t in range(3)]
    assert_close(loss, torch.stack(wanted).mean())


def test_each_retraced_state_is_compared_with_the_one_of_its_own_time():
    # From 1 one stays at 1, which should be 0; from 3 at 3, which should be 1: (1² + 2²) / 2.
    assert_close(line_loss(on_the_line(0.0, 1.0, 3.0), still(1, 3)).losses["loss"], torch.tensor(2.5))


PLACES = (0.0, 1.0, 3.0, 7.0)
# Chains of two steps that stay where they began: from 3 to 1 and 0 cost 2² and 3²; from 7 to 3 and 1 cost 4² and 6².


@pytest.mark.parametrize(
    ("kept", "reset", "wanted"),
    [
        ("1111", "0000", (4 + 9 + 16 + 36) / 4),
        ("0111", "0000", (4 + 16 + 36) / 3),  # the transition 0 → 1 is out
        ("1011", "0000", 16.0),  # only 2 → 3 is left
        ("1101", "0000", 0.0),  # every chain begins with a transition that is out: nothing is kept
        ("1111", "0001", (4 + 9) / 2),  # the chain from 7 is cut at once, though its second transition is kept
        ("1111", "0100", (4 + 16 + 36) / 3),
        ("1111", "1000", (4 + 9 + 16 + 36) / 4),
    ],
)
def test_a_chain_counts_as_far_back_as_all_its_transitions_are_kept(kept, reset, wanted):
    losses, _ = line_loss(on_the_line(*PLACES), still(2, 4), kept=kept, reset=reset)
    assert_close(losses["loss"], torch.tensor(wanted))


def test_several_samples_average_losses_not_states():
    noise = torch.tensor([1.0, -1.0]).reshape(1, 2, 1, 1, 1)
    loss = line_loss(on_the_line(0.0, 1.0), noise).losses["loss"]
    assert_close(loss, torch.tensor(2.0))  # at 2 and at 0 instead of 0: (2² + 0²) / 2; their mean would cost 1


def test_the_weight_scales_the_loss_once():
    assert_close(line_loss(on_the_line(0.0, 1.0, 3.0), still(1, 3), weight=4.0).losses["loss"], torch.tensor(10.0))


@pytest.mark.parametrize(("way", "wanted"), [("joint", [1.0, 0.0]), ("separate", [0.0, 1.0])])
def test_separately_learned_reverse_actions_pass_no_gradient_to_their_inputs(way, wanted):
    # ž_0 = z_1 + ρ(z_1, z_0) = z_1 + (z_0 − z_1). Through ρ it moves with z_0; with ρ's inputs detached, with z_1.
    posterior = on_the_line(5.0, 7.0)
    module = retracing(Back(), reverse_action=way)
    module.walk(observed_on(posterior), Line(), still(1, 2)).stoch.sum().backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor(wanted))


@pytest.mark.parametrize(("detach", "wanted"), [("none", [-4.0, 4.0]), ("original", [0.0, 4.0])])
def test_the_original_can_be_detached(detach, wanted):
    # (z_0 − z_1)² at 5 and 7: gradients 2 (z_0 − z_1) and its opposite.
    posterior = on_the_line(5.0, 7.0)
    line_loss(posterior, still(1, 2), detach=detach).losses["loss"].backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor(wanted))


def test_only_transitions_that_are_kept_enter_the_terms_of_bisimulation():
    learner = tiny_learner().double()
    batch = random_batch(4, 2, dtype=torch.float64)
    noise, model, actor = noise_of(learner, batch), learner.world_model, learner.actor_critic.actor
    observed = model.observe(batch, noise.posterior)
    kept = torch.ones_like(batch.is_first)
    kept[2:, 0] = kept[:3, 1] = False  # of column 0 the pair (0, 1) is left, of column 1 none
    got = learner.retracing.loss(batch.is_first, observed, kept, model, actor, noise.retraced)
    first = observed._replace(posterior=observed.posterior.map(lambda part: part[:2, :1]))
    all_kept = torch.ones(2, 1, dtype=torch.bool)
    wanted = learner.retracing.loss(~all_kept, first, all_kept, model, actor, noise.retraced[:, :, :1, :1])
    assert_close(got.losses, wanted.losses)
    for name in ("l1", "reward_kl", "w2"):
        assert_close(got.metrics[name], wanted.metrics[name])


def test_there_is_no_gradient_through_the_policy():
    learner, observed, *_ = observed_learner()
    actor, noise = learner.actor_critic.actor, torch.zeros(1, 1, 3, 2, 3, dtype=torch.float64)
    kept = torch.ones(4, 2, dtype=torch.bool)
    losses, _ = learner.retracing.loss(~kept, observed, kept, learner.world_model, actor, noise)
    assert not any(reached(losses["loss"], actor.parameters()))
    assert all(reached(losses["loss"], learner.retracing.parameters()))
    assert all(reached(losses["loss"], learner.world_model.reward.parameters()))
