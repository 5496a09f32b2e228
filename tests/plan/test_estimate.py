"""What a study will take: the arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.cells import Cell
from ccwm.plan.estimate import disk, episode_steps, makespan, seconds, updates
from ccwm.plan.measure import AgentCost, TaskCost
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings

SMOKE = load_settings(Path(__file__).parents[2] / "presets" / "smoke.yaml")


def smoke(**sections: dict[str, object]) -> Settings:
    return SMOKE.model_copy(
        update={name: getattr(SMOKE, name).model_copy(update=fields) for name, fields in sections.items()}
    )


def test_updates_by_hand() -> None:
    """120 frames an episode, two of them first: (480 − 240) / 120 = 2 cycles and the first, five updates each."""
    settings = smoke(train={"env_steps": 480, "update_every": 120, "updates": 5}, collect={"episodes": 2})
    assert updates(settings) == 15
    assert episode_steps(settings) == 60  # 120 frames, two an action


def test_seconds_by_hand() -> None:
    settings = smoke(
        train={"env_steps": 480, "update_every": 120, "updates": 5, "evaluate_every": 240, "evaluate_episodes": 2},
        collect={"episodes": 2, "heldout": 1},
        evaluate={"episodes": 4},
        transfer={"rows": [["R"], ["L"]], "draws": 2},
    )
    task, agent = (
        TaskCost((32, 32, 3), 1, 2, step=0.1, reset=1.0),
        AgentCost(10, update=2.0, act=0.05, memory_mb=1.0, parts=(4,)),
    )
    found = seconds(settings, task, agent, start=3.0)
    # An episode of 60 steps: 6 s of environment, 3 s of acting, 1 s of reset.
    assert found["collect"] == pytest.approx(3 + 3 * 7)
    assert found["train"] == pytest.approx(3 + 15 * 2 + 2 * 10 + (1 + 2) * 2 * 10)  # two played, three evaluations
    assert found["evaluate"] == pytest.approx(3 + 4 * 10)
    assert found["transfer"] == pytest.approx(3 + 2 * 3 * 10)


def test_bytes_by_hand() -> None:
    settings = smoke(
        study={"tasks": ["t"], "variants": ["a", "b"], "seeds": [0, 1]},
        collect={"episodes": 1, "heldout": 1},
        rollout={"shown": 1, "context": 2, "horizon": 3},
        train={"env_steps": 200},
    )
    step = 3 * 32 * 32 + 4 * 2 + 10
    size = disk(settings, {"a": 1000, "b": 2000}, TaskCost((32, 32, 3), 1, 2, 0.1, 1.0))
    collected = 2 * (2 * 61) * step * 2  # two seeds, two episodes of 61 steps, two copies
    agents = 3 * 2 * (8 * 1000 + 8 * 2000 + 2 * (2 * 5 * 3 * 32 * 32))  # two seeds, three copies
    assert size.kept == collected + agents
    assert size.working == 100 * step + 4 * 3 * 4 * 2000


def test_a_fleet_takes_as_long_as_its_longest_way() -> None:
    collect = [Cell("collect", "maze", seed=seed) for seed in (0, 1)]
    train = [Cell("train", "maze", "ccwm", seed) for seed in (0, 1)]
    costs = {**dict.fromkeys(collect, 1.0), **dict.fromkeys(train, 10.0), Cell("report"): 2.0}
    assert makespan(costs, 1) == 24.0
    assert makespan(costs, 2) == 13.0  # 1 + 10 side by side, then 2
    assert makespan(costs, 8) == 13.0
    assert makespan({}, 2) == 0.0
