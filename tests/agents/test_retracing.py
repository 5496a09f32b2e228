"""Which state is retraced to which, on a line where a step back is exact: any shift by one is seen."""

from types import SimpleNamespace

import pytest
import torch
from tiny_learner import random_batch, tiny_learner
from torch import nn
from torch.testing import assert_close

from ccwm.agents.retracing import Retracing
from ccwm.settings.agent import Retrace, Truncation
from ccwm.structs import LatentState

SQUARES = (0.0, 1.0, 4.0, 9.0, 16.0, 25.0)  # no two steps are of one length


class Line:
    """A world on a line: a step adds the action and the noise to where one is."""

    def __init__(self):
        self.rssm = self

    def predict(self, state, action, noise):
        place = state.stoch + action + noise
        return LatentState(state.deter, place, place, torch.ones_like(place))


class Back(nn.Module):
    """The action that leads exactly back."""

    def forward(self, later, earlier):
        return (earlier - later)[..., :1]


class Stay(nn.Module):
    """No action at all."""

    def forward(self, later, earlier):
        return torch.zeros_like(later[..., :1])


def on_the_line(*places):
    """Posteriors [T, 1, 1] at these places, which a gradient can reach."""
    stoch = torch.tensor(places).reshape(-1, 1, 1).requires_grad_()
    return LatentState(torch.zeros_like(stoch), stoch, stoch, torch.ones_like(stoch))


def retracing(reverse, **settings):
    module = Retracing(Retrace(**settings), Truncation(), feature=2, actions=1, discount=0.99)
    module.reverse = reverse
    return module


def still(horizon, length, *, samples=1):
    return torch.zeros(horizon, samples, length - horizon, 1, 1)


def l2_loss(posterior, noise, *, reverse=None, kept=None, reset=None, **settings):
    """The retrace loss on the line, with 1s and 0s for what is kept and where an episode begins."""
    length = len(posterior.stoch)
    flags = [torch.tensor([int(flag) for flag in text], dtype=torch.bool).unsqueeze(1)
             for text in (kept or "1" * length, reset or "0" * length)]  # fmt: skip
    observed = SimpleNamespace(posterior=posterior, image=None)
    module = retracing(reverse or Stay(), loss="l2", horizon=noise.shape[0], samples=noise.shape[1], **settings)
    return module.loss(SimpleNamespace(is_first=flags[1]), observed, flags[0], Line(), None, noise)


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_the_right_reverse_actions_lead_to_the_right_states(horizon):
    places = torch.tensor(SQUARES)
    posterior = on_the_line(*SQUARES)
    retraced = retracing(Back(), horizon=horizon).walk(posterior, Line(), still(horizon, len(SQUARES)))
    assert retraced.stoch.shape == (horizon, 1, len(SQUARES) - horizon, 1, 1)
    for j in range(1, horizon + 1):
        for end in range(horizon, len(SQUARES)):
            assert_close(retraced.stoch[j - 1, 0, end - horizon].squeeze(), places[end - j])
    loss = l2_loss(posterior, still(horizon, len(SQUARES)), reverse=Back())["loss"]
    assert_close(loss, torch.tensor(0.0))


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_a_walk_is_the_papers_loop(horizon):
    learner = tiny_learner(retrace={"horizon": horizon, "samples": 2}).double()
    batch = random_batch(6, 2, dtype=torch.float64)
    noise = learner.noise(0, 0, batch)
    model, reverse = learner.world_model, learner.retracing.reverse
    posterior = model.observe(batch, noise.posterior).posterior
    retraced = learner.retracing.walk(posterior, model, noise.retraced)
    for sample in range(2):
        for end in range(horizon, 6):
            state = posterior.map(lambda part, end=end: part[end])
            for j in range(1, horizon + 1):
                later, earlier = posterior.feature[end - j + 1], posterior.feature[end - j]
                state = model.rssm.predict(state, reverse(later, earlier), noise.retraced[j - 1, sample, end - horizon])
                got = retraced.map(lambda part, at=(j - 1, sample, end - horizon): part[at])
                assert_close(tuple(got), tuple(state))


def observed_learner(**retrace):
    """A learner, its batch, its noise, what it observes, and its retraced states [T − 1, B, ·]."""
    learner = tiny_learner(retrace=retrace).double()
    batch = random_batch(4, 2, dtype=torch.float64)
    noise = learner.noise(0, 0, batch)
    observed = learner.world_model.observe(batch, noise.posterior)
    retraced = learner.retracing.walk(observed.posterior, learner.world_model, noise.retraced)
    terms = learner.retracing.loss(
        batch, observed, ~batch.is_first, learner.world_model, learner.actor_critic.actor, noise.retraced
    )
    return learner, observed, retraced.map(lambda part: part[0, 0]), terms


def test_bisimulation_is_equation_5_state_by_state():
    learner, observed, retraced, terms = observed_learner()
    model, actor = learner.world_model, learner.actor_critic.actor
    wanted = []
    for t in range(3):
        ends = [states.map(lambda part, t=t: part[t]) for states in (observed.posterior, retraced)]
        reward, other_reward = (model.reward(end.feature) for end in ends)
        following, other_following = (
            model.rssm.predict(end, actor.greedy(end.feature), torch.zeros_like(end.stoch)) for end in ends
        )
        l1 = (ends[0].mean - ends[1].mean).abs().sum(-1)
        w2 = (following.mean - other_following.mean).square().sum(-1)
        w2 = w2 + (following.std - other_following.std).square().sum(-1)
        wanted.append((l1 - 0.5 * (reward - other_reward).square() - 0.99 * w2).square())
    assert_close(terms["loss"], torch.stack(wanted).mean())


def test_reconstruction_decodes_each_state_into_the_image_of_its_own_time():
    learner, observed, retraced, terms = observed_learner(loss="reconstruction")
    wanted = [0.5 * (learner.world_model.decoder(retraced.feature[t]) - observed.image[t]).square().sum((1, 2, 3))
              for t in range(3)]  # fmt: skip
    assert_close(terms["loss"], torch.stack(wanted).mean())


def test_each_retraced_state_is_compared_with_the_one_of_its_own_time():
    # From 1 one stays at 1, which should be 0; from 3 at 3, which should be 1: (1² + 2²) / 2.
    assert_close(l2_loss(on_the_line(0.0, 1.0, 3.0), still(1, 3))["loss"], torch.tensor(2.5))


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
    terms = l2_loss(on_the_line(*PLACES), still(2, 4), kept=kept, reset=reset)
    assert_close(terms["loss"], torch.tensor(wanted))
    assert_close(terms["truncated_share"], torch.tensor(kept.count("0") / 4))


def test_several_samples_average_losses_not_states():
    noise = torch.tensor([1.0, -1.0]).reshape(1, 2, 1, 1, 1)
    loss = l2_loss(on_the_line(0.0, 1.0), noise)["loss"]
    assert_close(loss, torch.tensor(2.0))  # at 2 and at 0 instead of 0: (2² + 0²) / 2; their mean would cost 1


def test_the_weight_scales_the_loss_once():
    assert_close(l2_loss(on_the_line(0.0, 1.0, 3.0), still(1, 3), weight=4.0)["loss"], torch.tensor(10.0))


@pytest.mark.parametrize(("way", "wanted"), [("joint", [1.0, 0.0]), ("separate", [0.0, 1.0])])
def test_separately_learned_reverse_actions_pass_no_gradient_to_their_inputs(way, wanted):
    # ž_0 = z_1 + ρ(z_1, z_0) = z_1 + (z_0 − z_1). Through ρ it moves with z_0; with ρ's inputs held still, with z_1.
    posterior = on_the_line(5.0, 7.0)
    retracing(Back(), reverse_action=way).walk(posterior, Line(), still(1, 2)).stoch.sum().backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor(wanted))


@pytest.mark.parametrize(("detach", "wanted"), [("none", [-4.0, 4.0]), ("original", [0.0, 4.0])])
def test_the_original_can_be_held_still(detach, wanted):
    # (z_0 − z_1)² at 5 and 7: gradients 2 (z_0 − z_1) and its opposite.
    posterior = on_the_line(5.0, 7.0)
    l2_loss(posterior, still(1, 2), detach=detach)["loss"].backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor(wanted))


def value_of_place(feature):
    return feature[..., 0]


def kept(truncation, *places, env_steps=0, batch=None, **parts):
    """What truncation keeps where the value of a state is its place, as 1s and 0s."""
    module = Retracing(Retrace(), Truncation(**truncation), feature=2, actions=1, discount=0.5)
    posterior = on_the_line(*places)
    batch = batch or SimpleNamespace(is_first=torch.zeros(len(places), 1, dtype=torch.bool))
    model, actor = parts.get("model"), parts.get("actor")
    mask = module.kept(batch, posterior, model, actor, value_of_place, env_steps)
    return "".join(str(int(flag)) for flag in mask.squeeze(1))


JUMP = (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0)  # single values: sudden at 5; means of two: sudden at 5 and 6
ADAPTIVE = {"mode": "adaptive", "threshold": 0.4, "window": 2, "lookback": 1}


def test_truncation_by_settings():
    assert kept({"mode": "none"}, *JUMP) == "11111111"
    assert kept(ADAPTIVE, *JUMP) == "11110001"
    assert kept(ADAPTIVE | {"lookback": 0}, *JUMP) == "11111001"
    assert kept(ADAPTIVE | {"lookback": None}, *JUMP) == "11100001"  # S = 2
    assert kept(ADAPTIVE | {"threshold": 0.6}, *JUMP) == "11110011"
    assert kept(ADAPTIVE | {"rule": "algorithm1"}, *JUMP) == "11111111"


def test_the_critic_is_trusted_from_the_start_step_on():
    assert kept(ADAPTIVE | {"start": 100}, *JUMP, env_steps=99) == "11111111"
    assert kept(ADAPTIVE | {"start": 100}, *JUMP, env_steps=100) == "11110001"


def test_the_schedule_follows_environment_steps():
    batch = SimpleNamespace(position=torch.arange(8).unsqueeze(1), episode_length=torch.full((8, 1), 8))
    settings = {"mode": "scheduled", "final_share": 0.5, "final_share_steps": 1000}
    assert kept(settings, *JUMP, batch=batch) == "11110000"
    assert kept(settings, *JUMP, batch=batch, env_steps=500) == "11111100"
    assert kept(settings, *JUMP, batch=batch, env_steps=1000) == "11111111"


def test_the_q_signal_looks_one_model_step_ahead():
    # A step of the policy adds 1: Q = 2 + 0.5 · (place + 1), with a reward that is 2 everywhere.
    model = Line()
    model.reward = lambda feature: torch.full_like(feature[..., 0], 2.0)
    model.discount = lambda feature, gamma: torch.full_like(feature[..., 0], gamma)
    actor = SimpleNamespace(greedy=lambda feature: torch.ones_like(feature[..., :1]))
    module = Retracing(Retrace(), Truncation(signal="q"), feature=2, actions=1, discount=0.5)
    got = module.signal(on_the_line(0.0, 3.0), model, actor, value_of_place)
    assert_close(got, torch.tensor([[2.5], [4.0]]))


def watcher():
    return Retracing(Retrace(), Truncation(mode="auto", window=1, lookback=0), feature=2, actions=1, discount=0.5)


def watched(module, *places):
    batch = SimpleNamespace(is_first=torch.zeros(len(places), 1, dtype=torch.bool))
    mask = module.kept(batch, on_the_line(*places), None, None, value_of_place, 0)
    return "".join(str(int(flag)) for flag in mask.squeeze(1))


def test_auto_truncates_what_is_unusual():
    # Δ = 1/8, 1/9, 1/10, 1/11, 1/12, 48/13. The median is halfway between 1/10 and 1/9, so that η = 4 · 0.1056 = 0.42.
    assert watched(watcher(), 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 61.0) == "1111110"


def test_auto_truncates_nothing_where_all_changes_are_alike():
    assert watched(watcher(), 1.0, 2.0, 4.0, 8.0, 16.0, 8.0) == "111111"  # Δ = 1, 1, 1, 1, 1/2


def test_auto_averages_its_median_over_updates():
    module = watcher()
    watched(module, 1.0, 2.0)  # Δ = 1
    watched(module, 1.0, 5.0)  # Δ = 4
    assert_close(module.usual, torch.tensor(2.5))
    assert_close(module.threshold, torch.tensor(10.0))


def test_auto_learns_nothing_from_an_agent_that_is_only_looked_at():
    module = watcher().eval()
    watched(module, 1.0, 5.0)
    assert module.watched == 0


def test_what_auto_has_watched_is_saved_with_the_agent():
    module, other = watcher(), watcher()
    watched(module, 1.0, 5.0)
    other.load_state_dict(module.state_dict())
    assert_close(other.threshold, torch.tensor(16.0))  # 4 · 4
