"""What a study will take: the arithmetic by hand, and a real measurement at small sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.cells import Entry, entries
from ccwm.cli.plan import duration, gigabytes
from ccwm.plan.estimate import disk, episode_steps, seconds, updates
from ccwm.plan.measure import Agent, World, _whole_update, learning_of, measure_agent, measure_world
from ccwm.settings.loading import load_settings

SMOKE = load_settings(Path(__file__).parents[2] / "presets" / "smoke.yaml").model_copy()
ENTRY = Entry("train", "t", "v", 0)


def smoke(**sections: dict[str, object]):  # type: ignore[no-untyped-def]
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
    world, agent = World(actions=2, step=0.1, reset=1.0), Agent(10, update=2.0, act=0.05, memory_mb=1.0, parts=(4,))
    found = seconds(settings, world, agent, start=3.0)
    # An episode of 60 steps: 6 s of world, 3 s of acting, 1 s of reset.
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
    size = disk(settings, {"a": 1000, "b": 2000}, actions=2)
    collected = 2 * (2 * 61) * step * 2  # two seeds, two episodes of 61 steps, two copies
    agents = 3 * 2 * (8 * 1000 + 8 * 2000 + 2 * (2 * 5 * 3 * 32 * 32))  # two seeds, three copies
    assert size.kept == collected + agents
    assert size.working == 100 * step + 4 * 3 * 4 * 2000


def test_a_slow_update_is_extrapolated_from_parts_of_its_batch() -> None:
    """t(B) = 1 + 0.5 B seconds and 100 + B megabytes: a batch of 64 takes 33 s and 164 MB."""
    asked: list[int] = []

    def timed(windows: int, updates: int) -> tuple[float, float]:
        asked.append(windows)
        return 1 + 0.5 * windows, 100.0 + windows

    assert _whole_update(timed, 64) == (33.0, 164.0, (4, 8))
    assert asked == [4, 8]


def test_a_fast_update_is_measured_whole() -> None:
    asked: list[int] = []

    def timed(windows: int, updates: int) -> tuple[float, float]:
        asked.append(windows)
        return 0.01 * windows, 100.0

    assert _whole_update(timed, 64) == (0.64, 100.0, (64,))
    assert asked == [4, 64]


def test_a_real_measurement() -> None:
    world, episode = measure_world("maze_two_rooms", SMOKE, seconds=0.05)
    assert world.actions == 2
    assert len(episode.reward) == SMOKE.train.length + 1
    assert episode.observation.shape[1:] == (32, 32, 3)
    found = {name: measure_agent(learning_of(SMOKE, name), world, episode) for name in ("dreamer", "ccwm")}
    assert all(0 < each.update < 60 and each.act > 0 and each.memory_mb > 50 for each in found.values())
    assert found["ccwm"].parameters > found["dreamer"].parameters  # the reverse-action network
    assert found["ccwm"].parts in ((4,), (1, 2))  # the whole batch, or on a very busy machine parts of it


def test_the_matrix_is_named_as_dvc_names_it() -> None:
    names = [entry.name for entry in entries(SMOKE.study)]
    assert names[0] == "collect@maze_two_rooms-0"
    assert "train@maze_two_rooms-ccwm-0" in names
    assert names[-1] == "report"
    assert len(names) == 1 + 4 * 2 + 1


@pytest.mark.parametrize(
    ("entry", "follows"),
    [
        (Entry("evaluate", "t", "v", 0), True),
        (Entry("evaluate", "t", "w", 0), False),
        (Entry("transfer", "t", "v", 1), False),
        (Entry("report"), True),
        (Entry("collect", "t", seed=0), False),
        (ENTRY, False),
    ],
)
def test_what_follows_a_training(entry: Entry, follows: bool) -> None:
    assert entry.follows(ENTRY) is follows


def test_a_training_follows_its_data() -> None:
    assert ENTRY.follows(Entry("collect", "t", seed=0))
    assert not ENTRY.follows(Entry("collect", "t", seed=1))
    assert not ENTRY.follows(Entry("evaluate", "t", "v", 0))


@pytest.mark.parametrize(
    ("value", "told"), [(14.2, "14 s"), (720, "12 min"), (12600, "3.5 h"), (86400 * 12, "12 days")]
)
def test_durations(value: float, told: str) -> None:
    assert duration(value) == told


def test_sizes() -> None:
    assert gigabytes(3.44e9) == "3.4 GB"
    assert gigabytes(2.5e7) == "25 MB"
