"""The slow critic, which gives the targets, and the scale of returns: what the robust backbone adds."""

import pytest
import torch
from tiny_learner import DRAWN_HEADS, noise_of, random_batch, reached, terms_of, tiny_learner, tiny_updater, updated
from torch.testing import assert_close

from ccwm.agents.actor_critic import ActorCritic
from ccwm.losses.actor_critic import critic_loss
from ccwm.ops.returns import discount_weights, lambda_return
from ccwm.settings.agent import ActorCritic as ActorCriticSettings
from ccwm.settings.agent import Model


def robust(**changes):
    return tiny_learner(robust=True, **{**DRAWN_HEADS, **changes})


def test_it_begins_as_a_copy_of_the_drawn_critic_that_shares_no_weight():
    actor_critic = robust().actor_critic
    slow, fast = actor_critic.slow_critic.state_dict(), actor_critic.critic.state_dict()
    assert slow.keys() == fast.keys()
    for name, value in slow.items():
        assert torch.equal(value, fast[name])
        assert value.data_ptr() != fast[name].data_ptr()
    assert any(value.any() for value in fast.values())


def test_without_the_setting_there_is_none():
    assert robust(actor_critic={"slow_critic": None}).actor_critic.slow_critic is None
    assert tiny_learner().actor_critic.slow_critic is None


def test_it_takes_over_a_share_of_the_critic():
    """Of 2 and 10 with a share of 0.25: 0.75 · 2 + 0.25 · 10 = 4; then 0.75 · 4 + 0.25 · 10 = 5.5."""
    settings = ActorCriticSettings(slow_critic=0.25, units=2, critic_layers=1, actor_layers=1)
    actor_critic = ActorCritic(settings, Model(), feature=3, actions=1)
    actor_critic.copy_critic()
    for part, value in ((actor_critic.slow_critic, 2.0), (actor_critic.critic, 10.0)):
        for parameter in part.parameters():
            parameter.data.fill_(value)
    for wanted in (4.0, 5.5):
        actor_critic.follow_critic()
        for slow, fast in zip(actor_critic.slow_critic.parameters(), actor_critic.critic.parameters(), strict=True):
            assert_close(slow, torch.full_like(slow, wanted))
            assert_close(fast.detach(), torch.full_like(fast, 10.0))


def test_it_has_no_optimiser_and_no_gradient_and_is_saved():
    updater = updated(tiny_updater(robust=True, **DRAWN_HEADS), [random_batch(robust=True)])
    learner = updater.module.learner
    slow = {id(parameter) for parameter in learner.actor_critic.slow_critic.parameters()}
    assert slow
    assert not any(parameter.requires_grad for parameter in learner.actor_critic.slow_critic.parameters())
    assert not slow & {id(parameter) for group in learner.parts().values() for parameter in group}
    assert not slow & {id(parameter) for group in updater.adam.param_groups for parameter in group["params"]}
    names = {name for name in learner.state_dict() if name.startswith("actor_critic.slow_critic.")}
    assert len(names) == len(slow)
    other = robust(seed=9)
    other.load_state_dict(learner.state_dict())
    feature = torch.randn(4, 9)
    assert_close(other.actor_critic.slow_critic(feature).mean, learner.actor_critic.slow_critic(feature).mean)


def imagined_of(learner, batch):
    """What an update of this learner imagines."""
    noise = noise_of(learner, batch)
    observed, _ = learner.observe(batch, noise)
    start = observed.posterior.map(lambda part: part.detach().flatten(0, 1))
    actor_critic = learner.actor_critic
    return actor_critic.imagine(start, learner.world_model, noise=noise.imagined, action_noise=noise.action)


@pytest.mark.parametrize("slow", [0.25, None])
def test_targets_come_from_it_and_predictions_from_the_critic(slow):
    learner = robust(actor_critic={"slow_critic": slow, "normalise_returns": False, "discount": 0.5})
    actor_critic, model = learner.actor_critic, learner.world_model
    for parameter in actor_critic.critic.parameters():  # by now the two differ
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
    imagined = imagined_of(learner, random_batch(robust=True))
    losses, metrics = actor_critic.loss(imagined, model)
    teacher = actor_critic.critic if slow is None else actor_critic.slow_critic
    value, reward = teacher(imagined.feature).mean, model.reward(imagined.feature).mean
    discount = torch.full_like(reward, 0.5)
    target, weight = lambda_return(reward, discount, value, lam=0.95), discount_weights(discount)[:-1]
    assert_close(losses["critic"], critic_loss(actor_critic.critic(imagined.feature[:-1]), target, weight))
    assert_close(losses["actor"], -(weight * target).mean())
    assert_close(metrics["critic/value"], value.mean().detach())
    assert all(reached(losses["critic"], actor_critic.critic.parameters()))
    if slow is not None:  # from features alone
        assert not any(reached(losses["critic"], [*model.parameters(), *actor_critic.actor.parameters()]))
    # The actor learns through the values of the one that gives the targets.
    assert any(reached(losses["actor"], actor_critic.critic.parameters())) is (slow is None)


def test_returns_are_not_scaled_without_the_setting():
    assert tiny_learner().actor_critic.return_scale(torch.randn(3, 4)) == 1.0
    assert "actor/return_range" not in terms_of(tiny_learner(), random_batch()).metrics


def fresh():
    return ActorCritic(ActorCriticSettings(normalise_returns=True, units=2), Model(), feature=3, actions=1)


def returns(*values):
    """Two imagined steps with these values."""
    return torch.tensor(values).reshape(2, -1)


def test_the_range_is_from_the_5th_to_the_95th_percentile():
    # Of 42 numbers, two of each of 0, 1, …, 20, the 5th percentile stands at 0.05 · 41 = 2.05 and the 95th at 38.95:
    # behind the pairs of 0 and before those of 20, between 1 and 1 and between 19 and 19. So the range is 18.
    target = returns(*(float(value) for value in range(21)), *(float(value) for value in range(21)))
    assert_close(fresh().return_scale(target), torch.tensor(18.0))
    target[0, 0] = -1000.0  # one return that is far out does not move it
    assert_close(fresh().return_scale(target), torch.tensor(18.0))


def test_the_range_by_hand_is_a_running_mean_and_never_below_one():
    # Twenty-two returns, all 0 but for the upper half, which is the range: both percentiles lie within their half.
    def halves(high):
        return returns(*[0.0] * 11, *[high] * 11)

    actor_critic = fresh()
    assert_close(actor_critic.return_scale(halves(0.5)), torch.tensor(1.0))  # max(1, 0.5)
    assert_close(actor_critic.return_range.mean, torch.tensor(0.5))
    assert_close(actor_critic.return_scale(halves(7.5)), torch.tensor(4.0))  # (0.5 + 7.5) / 2, the first included
    assert_close(actor_critic.return_scale(halves(10.0)), torch.tensor(6.0))  # (0.5 + 7.5 + 10) / 3
    actor_critic.eval()
    assert_close(actor_critic.return_scale(halves(99.0)), torch.tensor(6.0))  # nothing is followed in evaluation
    assert actor_critic.state_dict().keys() >= {"return_range.mean", "return_range.num_updates"}


@pytest.mark.parametrize("gradient", ["dynamics", "reinforce"])
def test_the_actors_returns_are_divided_and_the_critics_are_not(gradient):
    losses, ranges = [], []
    for normalise in (False, True):
        learner = robust(
            actor_critic={"normalise_returns": normalise, "gradient": gradient, "entropy": 0.0},
            model=DRAWN_HEADS["model"] | {"bin_limit": 6.0},
        )
        learner.world_model.reward.layers[-1].weight.data *= 20  # returns that spread over more than 1
        terms = terms_of(learner, random_batch(robust=True))
        losses.append(terms.losses)
        ranges.append(terms.metrics.get("actor/return_range"))
    assert ranges[0] is None
    assert ranges[1] > 1.5
    assert_close(losses[0]["actor"], ranges[1] * losses[1]["actor"])
    assert_close(losses[0]["critic"], losses[1]["critic"])


def test_the_range_is_that_of_all_ranks(monkeypatch):
    """Each rank sees the columns of all: two halves of other heights have one range."""
    whole = torch.cat([returns(*[0.0] * 12), returns(*[8.0] * 12)], 1)
    monkeypatch.setattr("ccwm.agents.actor_critic.all_gather_columns", lambda part: whole)
    assert_close(fresh().return_scale(whole[:, :6]), torch.tensor(8.0))
