"""Every retrace loss by hand, on a line where all distances are functions of d = |z̃ − ž|.

The latent is N(place, 1), the reward is the place, and the next place is the same: ‖·‖₁ = d, the reward's KL is ½ d²,
W₂ = d² and, with γ = ½, the paper's gap is d − ½ d² − ½ d² = d − d².
"""

import pytest
import torch
from line_world import Back, Line, Stay, line_loss, observed_on, on_the_line, retracing, still
from tiny_learner import noise_of, random_batch, tiny_learner
from torch.testing import assert_close

PLACES = (0.0, 1.0, 3.0)  # who stays is at 1 instead of 0, d = 1, and at 3 instead of 1, d = 2


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        ("bisimulation", 2.0),  # gaps 1 − 1 and 2 − 4, squared: (0 + 4) / 2
        ("released", 1.0),  # their mean, −1, squared
        ("metric", 4.0),  # d + d²: (2 + 6) / 2
        ("kl", 1.25),  # ½ d²: (0.5 + 2) / 2
        ("l2", 2.5),  # d²: (1 + 4) / 2
        ("reconstruction", 1.25),  # ½ d²: what is seen is the place
        ("released-l2", 0.0),  # compares with the state after: who stays is right
        ("released-reconstruction", 0.0),
    ],
)
def test_every_loss_of_staying_and_of_walking_back(loss, wanted):
    assert_close(line_loss(on_the_line(*PLACES), still(1, 3), loss=loss).losses["loss"], torch.tensor(wanted))
    if not loss.startswith("released-"):  # the others are 0 where the walk back is right
        back = line_loss(on_the_line(*PLACES), still(1, 3), loss=loss, reverse=Back()).losses["loss"]
        assert_close(back, torch.tensor(0.0))


def test_the_papers_loss_is_satisfied_without_retracing():
    """At d = 1 the gap d − d² is 0: a model that stays where it is pays nothing, and learns nothing."""
    posterior = on_the_line(0.0, 1.0, 2.0, 3.0)
    losses = {
        loss: line_loss(posterior, still(1, 4), loss=loss).losses["loss"]
        for loss in ("bisimulation", "metric", "kl", "l2")
    }
    assert_close(losses, {name: torch.tensor(value) for name, value in
                          {"bisimulation": 0.0, "metric": 2.0, "kl": 0.5, "l2": 1.0}.items()})  # fmt: skip
    (slope,) = torch.autograd.grad(losses["bisimulation"], posterior.stoch)
    assert_close(slope, torch.zeros_like(slope))
    with torch.no_grad():
        skill = retracing(Stay()).skill(observed_on(posterior), Line())
    assert skill == {"retrace_skill_latent": 0.0, "retrace_skill_observation": 0.0}


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        ("bisimulation", [-12.0, 12.0]),  # (d − d²)² at 2: 2 (−2) (1 − 4) = 12, either way
        ("metric", [0.0, 5.0]),  # d + d² with a stop-gradient on the original: 1 + 2 · 2
        ("kl", [-2.0, 2.0]),  # ½ d²: d
        ("l2", [-4.0, 4.0]),
        ("reconstruction", [0.0, 2.0]),  # what was seen is no state
    ],
)
def test_where_each_loss_sends_its_gradient(loss, wanted):
    posterior = on_the_line(5.0, 7.0)  # d = 2; the retraced state moves with the second
    line_loss(posterior, still(1, 2), loss=loss).losses["loss"].backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor(wanted))


@pytest.mark.parametrize(("dynamics", "representation"), [(1.0, 1.0), (0.5, 0.1), (1.0, 0.0)])
def test_kl_teaches_as_the_forward_kl_does(dynamics, representation):
    """The gradient d = 2 into the retraced prior is scaled by one weight, into the posterior by the other."""
    posterior, model = on_the_line(5.0, 7.0), Line(kl_dynamics=dynamics, kl_representation=representation)
    loss = line_loss(posterior, still(1, 2), loss="kl", model=model).losses["loss"]
    assert_close(loss, torch.tensor(2.0))
    loss.backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor([-2 * representation, 2 * dynamics]))


@pytest.mark.parametrize(("free", "wanted", "slope"), [(1.5, 2.0, 2.0), (3.0, 3.0, 0.0)])
def test_kl_has_the_models_free_nats_before_its_weight(free, wanted, slope):
    posterior = on_the_line(5.0, 7.0)
    loss = line_loss(posterior, still(1, 2), loss="kl", model=Line(free_nats=free), weight=10.0).losses["loss"]
    assert_close(loss, torch.tensor(10 * wanted))
    loss.backward()
    assert_close(posterior.stoch.grad.flatten(), torch.tensor([-10 * slope, 10 * slope]))


def test_the_released_losses_compare_with_the_step_after():
    target = (10.0, 20.0, 40.0)
    # Back at 0 and at 1, where 1 and 3 are compared with: (1 + 4) / 2.
    walked = {"reverse": Back(), "target": target}
    assert_close(line_loss(on_the_line(*PLACES), still(1, 3), loss="released-l2", **walked).losses["loss"],
                 torch.tensor(2.5))  # fmt: skip
    # −½ (0 − 20)² and −½ (1 − 40)²: it falls as the picture gets worse.
    got = line_loss(on_the_line(*PLACES), still(1, 3), loss="released-reconstruction", **walked).losses["loss"]
    assert_close(got, torch.tensor(-(200 + 760.5) / 2))
    # The paper's: ½ (0 − 10)² and ½ (1 − 20)².
    got = line_loss(on_the_line(*PLACES), still(1, 3), loss="reconstruction", **walked).losses["loss"]
    assert_close(got, torch.tensor((50 + 180.5) / 2))


def test_the_released_code_hands_the_prior_of_the_earlier_step_to_the_reverse_action():
    prior = (0.5, 1.5, 9.0)
    observed = observed_on(on_the_line(*PLACES), prior=prior)
    for loss, ends in (("released", [0.5, 1.5]), ("l2", [0.0, 1.0])):
        walked = retracing(Back(), loss=loss).walk(observed, Line(), still(1, 3))
        assert_close(walked.stoch.flatten(), torch.tensor(ends))


@pytest.mark.parametrize(
    ("loss", "bounded"), [("released", False), ("released-l2", False), ("bisimulation", True), ("kl", True)]
)
def test_the_released_codes_reverse_actions_have_no_bound(loss, bounded):
    learner = tiny_learner(retrace={"loss": loss})
    assert learner.retracing.reverse.bounded is bounded
    far = 1000 * torch.randn(4, 9)
    assert (learner.retracing.reverse(far, far).abs().max() <= 1) == bounded


@pytest.mark.parametrize("loss", ["bisimulation", "metric", "kl", "released", "released-l2"])
def test_an_empty_mask_costs_nothing(loss):
    posterior = on_the_line(*PLACES)
    got = line_loss(posterior, still(1, 3), loss=loss, kept="000").losses["loss"]
    got.backward()
    assert_close(got.detach(), torch.tensor(0.0))
    assert not posterior.stoch.grad.any()


@pytest.mark.parametrize(
    ("share", "latent", "observation"),
    [
        (1.0, 1.0, 1.0),  # back where it was
        (0.0, 0.0, 0.0),  # the later state, copied
        (0.5, 0.5, 0.75),  # half the way: half the distance, a quarter of its square
        (-1.0, -1.0, -3.0),  # the wrong way: twice as far
    ],
)
@pytest.mark.parametrize("horizon", [1, 2])
def test_retrace_skill_by_construction(share, latent, observation, horizon):
    with torch.no_grad():
        observed = observed_on(on_the_line(0.0, 1.0, 4.0, 9.0))
        got = retracing(Back(share), horizon=horizon).skill(observed, Line())
    assert got == pytest.approx({"retrace_skill_latent": latent, "retrace_skill_observation": observation})


def test_retrace_skill_is_a_ratio_of_sums():
    """A small step copied and a large one walked back: 1 − 1 / (1 + 9), and 1 − 1² / (1² + 9²)."""

    class Some(Back):
        def forward(self, later, earlier):
            step = super().forward(later, earlier)
            return torch.where(step.abs() > 5, step, 0.0)

    with torch.no_grad():
        got = retracing(Some()).skill(observed_on(on_the_line(0.0, 1.0, 10.0)), Line())
    wanted = {"retrace_skill_latent": 1 - 1 / 10, "retrace_skill_observation": 1 - 1 / 82}
    assert got == pytest.approx(wanted)


@pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])
def test_the_skill_of_a_learner(robust):
    batch = random_batch(robust=robust)
    learner = tiny_learner(robust=robust)
    skill = learner.retrace_skill(batch)
    assert skill.keys() == {"retrace_skill_latent", "retrace_skill_observation"}
    assert all(value < 1 for value in skill.values())
    assert learner.retrace_skill(batch) == skill  # nothing is drawn
    assert tiny_learner(robust=robust, retrace={"weight": 0.0}).retrace_skill(batch) == {}


LENGTH, STRETCH = 7, 4


def observed_leaves(learner, batch, noise):
    """What a learner observes, its posteriors cut off so that a gradient stops there."""
    observed, _ = learner.observe(batch, noise)
    return observed._replace(posterior=observed.posterior.map(lambda part: part.detach().requires_grad_()))


@pytest.mark.parametrize("loss", ["kl", "bisimulation", "released-reconstruction"])
@pytest.mark.parametrize("begin", [0, 2, 3])
def test_a_stretch_of_a_window_is_retraced_as_if_there_were_no_more_of_it(loss, begin):
    learner = tiny_learner(
        robust=True, retrace={"loss": loss, "horizon": 2, "length": STRETCH}, train={"length": LENGTH}
    )
    batch = random_batch(LENGTH, 3, robust=True)
    batch.is_first[begin + 1, 0] = True
    noise = noise_of(learner, batch)._replace(stretch=begin)
    observed = observed_leaves(learner, batch, noise)
    terms = learner.retrace(batch, observed, noise, 0)
    steps = slice(begin, begin + STRETCH)
    short = type(batch)(*(part[steps] for part in batch))
    alone = learner.retrace(short, observed.rows(steps), noise._replace(stretch=0), 0)
    assert_close(terms.losses, alone.losses)
    parts = [observed.posterior.stoch, observed.posterior.mean, observed.posterior.deter]
    slopes = torch.autograd.grad(terms.losses["model"], parts, materialize_grads=True)
    moved = sum(slope.abs().flatten(1).sum(1) for slope in slopes) > 0
    inside = torch.zeros(LENGTH, dtype=torch.bool)
    inside[steps] = True
    assert moved.tolist() == inside.tolist()  # no gradient beyond the stretch


def test_truncation_sees_the_whole_window():
    """Its mask is made of all steps, and of these the stretch is taken."""
    settings = {
        "retrace": {"length": 2},
        "truncation": {"mode": "scheduled", "final_share": 0.8, "final_share_steps": 1},
    }
    learner, batch = tiny_learner(**settings), random_batch(5, 3)
    # Episodes of 15 steps and a share of 0.8: from step 3 on, so that of steps 10 … 14 none is left.
    noise = noise_of(learner, batch)
    terms = learner.retrace(batch, observed_leaves(learner, batch, noise), noise, 0)
    assert_close(terms.metrics["retrace/truncated_share"], torch.tensor(1.0))
    assert_close(terms.losses["model"].detach(), torch.tensor(0.0))
    early = batch._replace(position=batch.position - 8)  # steps 2 … 6: only the first is left
    terms = learner.retrace(early, observed_leaves(learner, early, noise), noise, 0)
    assert_close(terms.metrics["retrace/truncated_share"], torch.tensor(0.8))
