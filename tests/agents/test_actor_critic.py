"""How actor and critic learn in imagination."""

import torch
from tiny_learner import random_batch, reached, terms_of, tiny_learner
from torch.testing import assert_close

from ccwm.agents.actor_critic import Imagined
from ccwm.ops.gaussian import tanh_log_prob
from ccwm.ops.returns import discount_weights, generalised_advantage, lambda_return
from ccwm.structs import Gaussian


def test_the_actor_learns_through_the_dynamics_or_by_log_probabilities_alone():
    for gradient, through_model in (("dynamics", True), ("reinforce", False)):
        learner = tiny_learner(actor_critic={"gradient": gradient})
        actor_loss = terms_of(learner, random_batch()).losses["actor"]
        assert all(reached(actor_loss, learner.actor_critic.actor.parameters()))
        for part in (learner.world_model.rssm.cell, learner.world_model.reward, learner.actor_critic.critic):
            assert any(reached(actor_loss, part.parameters())) is through_model


def imagining_learner(**actor_critic):
    """A learner, three imagined steps of four rollouts, and what its heads say of them (γ = 0.5)."""
    learner = tiny_learner(
        actor_critic={"discount": 0.5, "return_lambda": 0.25} | actor_critic, model={"continues": True}
    )
    model, generator = learner.world_model, torch.Generator().manual_seed(0)
    feature = torch.randn(3, 4, model.rssm.feature, generator=generator)
    mean = torch.randn(3, 4, 2, generator=generator).requires_grad_()
    policy = Gaussian(mean, torch.ones(3, 4, 2))
    imagined = Imagined(feature, policy.sample(torch.randn(3, 4, 2, generator=generator)), policy)
    discount = 0.5 * model.continues(feature).mean
    return learner, imagined, (model.reward(feature).mean, discount, learner.actor_critic.critic(feature).mean)


def test_actor_and_critic_share_the_weighted_return():
    learner, imagined, (reward, discount, value) = imagining_learner()
    losses, _ = learner.actor_critic.loss(imagined, learner.world_model)
    target = lambda_return(reward, discount, value, lam=0.25)
    weight = discount_weights(discount)  # states 0 and 1 have a return; state 2 is what it is bootstrapped from
    assert_close(losses["actor"], -(weight[0] * target[0] + weight[1] * target[1]).mean() / 2)
    errors = 0.5 * (value[:2] - target).square()
    assert_close(losses["critic"], (weight[0] * errors[0] + weight[1] * errors[1]).mean() / 2)
    # Neither the return nor the weight moves for the critic's sake.
    assert not any(reached(losses["critic"], learner.world_model.parameters()))


def test_reinforce_credits_the_action_taken_at_a_state_with_its_advantage():
    learner, imagined, (reward, discount, value) = imagining_learner(gradient="reinforce")
    loss = learner.actor_critic.loss(imagined, learner.world_model).losses["actor"]
    advantage, weight = generalised_advantage(reward, discount, value, lam=0.25), discount_weights(discount)
    log_prob = tanh_log_prob(imagined.policy, imagined.raw)
    # The action at state t is the one that led to t + 1: rows 1 and 2 meet the advantages of states 0 and 1.
    assert_close(loss, -(weight[0] * advantage[0] * log_prob[1] + weight[1] * advantage[1] * log_prob[2]).mean() / 2)
    # With a spread of 1 the slope of log π is raw − mean; the mean is over 2 · 4 states.
    (slope,) = torch.autograd.grad(loss, imagined.policy.mean, retain_graph=True)
    credit = (weight[:2] * advantage).unsqueeze(-1) / 8
    assert_close(slope, torch.cat([torch.zeros(1, 4, 2), -credit * (imagined.raw - imagined.policy.mean)[1:]]))
    assert not any(reached(loss, [*learner.world_model.parameters(), *learner.actor_critic.critic.parameters()]))


def test_the_entropy_bonus_lowers_the_loss():
    with_bonus = tiny_learner(actor_critic={"entropy": 0.5})
    terms = terms_of(with_bonus, random_batch()).metrics
    plain = terms_of(tiny_learner(), random_batch()).metrics
    assert_close(terms["actor/loss"], plain["actor/loss"] - 0.5 * plain["actor/entropy"])


def test_an_imagining_actor_cannot_move_the_features_that_it_reads():
    learner = tiny_learner()
    state = learner.world_model.rssm.initial(torch.zeros(4, 1)).map(lambda part: part.clone().requires_grad_())
    imagined = learner.actor_critic.imagine(
        state, learner.world_model, noise=torch.zeros(1, 4, 3), action_noise=torch.zeros(1, 4, 2)
    )
    assert not any(reached(imagined.raw.sum(), state))
    assert all(reached(imagined.feature.sum(), state[:2]))
