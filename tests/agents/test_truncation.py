"""Which states stay in the retrace loss, on a line where the value of a state is its place."""

from types import SimpleNamespace

import pytest
import torch
from tiny_learner import DRAWN_HEADS, random_batch, terms_of, tiny_learner
from torch.testing import assert_close

from ccwm.agents import running
from ccwm.agents.truncation import Truncation
from ccwm.ops.scalars import UnitGaussian
from ccwm.settings.agent import Truncation as TruncationSettings
from ccwm.structs import LatentState

both_backbones = pytest.mark.parametrize("robust", [False, True], ids=["paper", "robust"])


def value_of_place(feature):
    return feature[..., 0]


def on_the_line(*places):
    """Posteriors [T, 1, 1] at these places."""
    stoch = torch.tensor(places).reshape(-1, 1, 1)
    return LatentState(torch.zeros_like(stoch), stoch, stoch, torch.ones_like(stoch))


def truncation(**settings):
    return Truncation(TruncationSettings(**settings), discount=0.5)


def kept(module, *places, env_steps=0, batch=None):
    """What truncation keeps, as 1s and 0s."""
    batch = batch or SimpleNamespace(is_first=torch.zeros(len(places), 1, dtype=torch.bool))
    control = SimpleNamespace(value=value_of_place)
    mask = module(batch, on_the_line(*places), None, control, env_steps)
    return "".join(str(int(flag)) for flag in mask.squeeze(1))


JUMP = (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0)  # single values: sudden at 5; means of two: sudden at 5 and 6
ADAPTIVE = {"mode": "adaptive", "threshold": 0.4, "window": 2, "lookback": 1}


def test_truncation_by_settings():
    assert kept(truncation(**{"mode": "none"}), *JUMP) == "11111111"
    assert kept(truncation(**ADAPTIVE), *JUMP) == "11110001"
    assert kept(truncation(**ADAPTIVE | {"lookback": 0}), *JUMP) == "11111001"
    assert kept(truncation(**ADAPTIVE | {"lookback": None}), *JUMP) == "11100001"  # S = 2
    assert kept(truncation(**ADAPTIVE | {"threshold": 0.6}), *JUMP) == "11110011"
    assert kept(truncation(**ADAPTIVE | {"rule": "algorithm1"}), *JUMP) == "11111111"


def test_nothing_is_truncated_before_the_start():
    assert kept(truncation(**ADAPTIVE | {"start": 100}), *JUMP, env_steps=99) == "11111111"
    assert kept(truncation(**ADAPTIVE | {"start": 100}), *JUMP, env_steps=100) == "11110001"


def test_the_schedule_follows_environment_steps():
    batch = SimpleNamespace(position=torch.arange(8).unsqueeze(1), episode_length=torch.full((8, 1), 8))
    settings = {"mode": "scheduled", "final_share": 0.5, "final_share_steps": 1000}
    assert kept(truncation(**settings), *JUMP, batch=batch) == "11110000"
    assert kept(truncation(**settings), *JUMP, batch=batch, env_steps=500) == "11111100"
    assert kept(truncation(**settings), *JUMP, batch=batch, env_steps=1000) == "11111111"


def test_the_q_signal_looks_one_model_step_ahead():
    # A step of the policy adds 1: Q = 2 + 0.5 · (place + 1), with a reward that is 2 everywhere.
    model = SimpleNamespace(
        predict=lambda state, action, noise: state._replace(stoch=state.stoch + action + noise),
        reward=lambda feature: UnitGaussian(torch.full_like(feature[..., 0], 2.0)),
        discount=lambda feature, gamma: torch.full_like(feature[..., 0], gamma),
    )
    control = SimpleNamespace(greedy=lambda feature: torch.ones_like(feature[..., :1]), value=value_of_place)
    got = truncation(signal="q").signal(on_the_line(0.0, 3.0), model, control)
    assert_close(got, torch.tensor([[2.5], [4.0]]))


def auto():
    return truncation(mode="auto", window=1, lookback=0)


def test_auto_truncates_what_is_unusual():
    # Δ = 1/8, 1/9, 1/10, 1/11, 1/12, 48/13. The median is halfway between 1/10 and 1/9, so that η = 4 · 0.1056 = 0.42.
    assert kept(auto(), 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 61.0) == "1111110"


def test_auto_truncates_nothing_where_all_changes_are_alike():
    assert kept(auto(), 1.0, 2.0, 4.0, 8.0, 16.0, 8.0) == "111111"  # Δ = 1, 1, 1, 1, 1/2


def test_auto_averages_its_median_over_updates():
    module = auto()
    kept(module, 1.0, 2.0)  # Δ = 1
    kept(module, 1.0, 5.0)  # Δ = 4
    assert_close(module.running_median.mean, torch.tensor(2.5))
    assert_close(module.threshold, torch.tensor(10.0))


def test_auto_follows_nothing_in_evaluation():
    module = auto().eval()
    kept(module, 1.0, 5.0)
    assert module.running_median.num_updates == 0


def test_the_running_median_is_saved_with_the_agent():
    module, other = auto(), auto()
    kept(module, 1.0, 5.0)
    other.load_state_dict(module.state_dict())
    assert_close(other.threshold, torch.tensor(16.0))  # 4 · 4


def test_auto_follows_a_moving_average_after_its_memory(monkeypatch):
    monkeypatch.setattr(running, "MEMORY", 2)
    module = auto()
    for change in (1.0, 2.0, 8.0):
        kept(module, 1.0, 1.0 + change)
    # 1, then (1 + 2) / 2, then 1.5 + (8 − 1.5) / 2
    assert_close(module.running_median.mean, torch.tensor(4.75))


def test_auto_does_not_count_updates_before_the_start():
    module = truncation(mode="auto", window=1, start=100)
    kept(module, 1.0, 5.0, env_steps=99)
    assert (module.running_median.num_updates, module.running_median.mean) == (0, 0)
    kept(module, 1.0, 5.0, env_steps=100)
    assert (module.running_median.num_updates, module.running_median.mean) == (1, 4)


def test_only_auto_has_a_running_median_to_save():
    assert truncation(mode="auto").state_dict().keys() == {"running_median.num_updates", "running_median.mean"}
    assert not truncation(mode="adaptive").state_dict()


@both_backbones
def test_auto_resumes_at_its_running_median(robust):
    """Updates of a whole run are those of one that was saved and loaded within it."""
    settings = {"truncation": {"mode": "auto", "window": 2, "lookback": 1}, "robust": robust, **DRAWN_HEADS}
    whole, first, resumed = (tiny_learner(**settings) for _ in range(3))
    batches = [random_batch(seed=seed, robust=robust) for seed in range(4)]
    thresholds = [terms_of(whole, batch, update=update).metrics for update, batch in enumerate(batches)]
    for update in range(2):
        terms_of(first, batches[update], update=update)
    resumed.load_state_dict(first.state_dict())
    for update in (2, 3):
        metrics = terms_of(resumed, batches[update], update=update).metrics
        assert metrics["retrace/threshold"] == thresholds[update]["retrace/threshold"]
    assert resumed.truncation.running_median.num_updates == 4
    assert len({float(metrics["retrace/threshold"]) for metrics in thresholds}) == 4


@both_backbones
@pytest.mark.parametrize("rule", ["prose", "algorithm1"])
@pytest.mark.parametrize("signal", ["value", "q"])
@pytest.mark.parametrize("mode", ["adaptive", "auto"])
def test_a_mask_of_a_learner_is_that_of_its_signal(mode, signal, rule, robust):
    truncation = {"mode": mode, "window": 2, "threshold": 0.3, "signal": signal, "rule": rule}
    learner, batch = (
        tiny_learner(robust=robust, truncation=truncation, **DRAWN_HEADS),
        random_batch(5, 4, robust=robust),
    )
    posterior = learner.world_model.observe(batch, torch.zeros(5, 4, 3)).posterior
    module = learner.truncation
    mask = module(batch, posterior, learner.world_model, learner.actor_critic, 0)
    value = module.signal(posterior, learner.world_model, learner.actor_critic)
    assert not value.requires_grad  # truncation trains nothing
    assert value.shape == (5, 4)
    assert torch.equal(mask, module.mask(value))
    if (mode, rule) == ("adaptive", "prose"):
        assert 0 < mask.sum() < 20
