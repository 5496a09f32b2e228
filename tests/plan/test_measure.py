"""Real steps and updates at small sizes, and the extrapolation by hand."""

from __future__ import annotations

from pathlib import Path

from ccwm.plan.measure import TaskCost, measure_agent, measure_task, random_batch, whole_update
from ccwm.settings.loading import load_settings
from ccwm.settings.variants import resolve

SMOKE = load_settings(Path(__file__).parents[2] / "presets" / "smoke.yaml")


def test_a_slow_update_is_extrapolated_from_parts_of_its_batch() -> None:
    """t(B) = 1 + 0.5 B seconds and 100 + B megabytes: a batch of 64 takes 33 s and 164 MB."""
    asked: list[int] = []

    def timed(windows: int, updates: int) -> tuple[float, float]:
        asked.append(windows)
        return 1 + 0.5 * windows, 100.0 + windows

    assert whole_update(timed, 64) == (33.0, 164.0, (4, 8))
    assert asked == [4, 8]


def test_a_fast_update_is_measured_whole() -> None:
    asked: list[int] = []

    def timed(windows: int, updates: int) -> tuple[float, float]:
        asked.append(windows)
        return 0.01 * windows, 100.0

    assert whole_update(timed, 64) == (0.64, 100.0, (64,))
    assert asked == [4, 64]


def test_a_real_measurement() -> None:
    task = measure_task("maze_two_rooms", SMOKE.env, seconds=0.05)
    assert (task.observation_shape, task.observation_bytes, task.action_size) == ((32, 32, 3), 1, 2)
    found = {name: measure_agent(resolve(SMOKE, name).agent_config, task) for name in ("dreamer", "ccwm")}
    assert all(0 < each.update < 60 and each.act > 0 and each.memory_mb > 50 for each in found.values())
    assert found["ccwm"].parameters > found["dreamer"].parameters  # the reverse-action network
    assert found["ccwm"].parts in ((4,), (1, 2))  # the whole batch, or on a very busy machine parts of it


def test_a_batch_of_vectors_is_made_of_floats() -> None:
    batch = random_batch(5, 3, TaskCost((7,), 4, 2, 0.0, 0.0))
    assert (batch.observation.shape, batch.observation.is_floating_point()) == ((5, 3, 7), True)
    assert (batch.action.shape, batch.is_first[:, 0].tolist()) == ((5, 3, 2), [True, False, False, False, False])
