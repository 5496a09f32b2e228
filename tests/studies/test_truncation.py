from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.studies.trajectories import Seen
from ccwm.studies.truncation import (
    Counts,
    count,
    harmonic_mean,
    mask,
    own_threshold,
    quality,
    read_truncation,
    truncation_quality,
    write_truncation,
)

from .trained_agent import small_agent


def flags(text: str) -> np.ndarray:
    """'0010' as booleans."""
    return np.array([letter == "1" for letter in text])


def kept_from(text: str) -> np.ndarray:
    """A mask as drawn: x left out, . kept."""
    return np.array([letter == "." for letter in text])


def test_counts_by_hand():
    # The transition 3 → 4 cannot be undone: states 3 and 4 are true. The mask takes out 1–3 and 7: it hits state 3,
    # and the event's transition leaves with it; of two detections the first is right.
    got = count(kept_from(".xxx...x."), flags("000010000"))
    assert got == Counts(states=9, truncated=4, true=2, hit=1, events=1, found=1, detections=2, right=1)


@pytest.mark.parametrize(
    ("mask", "hit", "found", "right"),
    [
        ("....x....", 1, 1, 1),  # its later end
        ("...x.....", 1, 1, 1),  # its earlier end
        ("...xx....", 2, 1, 1),
        ("..x......", 0, 0, 0),  # one state too early
        (".....x...", 0, 0, 0),  # one too late
        (".........", 0, 0, 0),
        ("xxxxxxxxx", 2, 1, 1),
    ],
)
def test_an_event_is_found_by_either_end_and_by_no_neighbour(mask: str, hit: int, found: int, right: int):
    got = count(kept_from(mask), flags("000010000"))
    assert (got.hit, got.found, got.right) == (hit, found, right)


def test_events_in_a_row_share_states_and_one_detection_may_find_both():
    got = count(kept_from(".xx.."), flags("00110"))  # 1 → 2 and 2 → 3: states 1, 2 and 3 are true
    assert got == Counts(states=5, truncated=2, true=3, hit=2, events=2, found=2, detections=1, right=1)


def test_runs_at_both_ends_of_an_episode():
    assert count(kept_from("x...x"), flags("01001")).detections == 2


def test_ratios_by_hand():
    got = quality(Counts(100, 10, 4, 3, 2, 1, 5, 2), rule="prose", threshold=0.1, own=True, episodes=3)
    assert (got.truncated_share, got.true_share) == (0.1, 0.04)
    assert (got.precision, got.recall, got.f1) == (0.3, 0.75, pytest.approx(2 * 0.3 * 0.75 / 1.05))
    assert (got.event_precision, got.event_recall, got.event_f1) == (0.4, 0.5, pytest.approx(0.4 / 0.9))


def test_without_an_event_only_the_share_is_said():
    got = quality(Counts(100, 10, 0, 0, 0, 0, 5, 0), rule="prose", threshold=0.1, own=True, episodes=3)
    assert got.truncated_share == 0.1
    assert got[8:] == (None,) * 7


def test_a_mask_that_takes_nothing_out_has_no_precision_and_finds_nothing():
    got = quality(Counts(100, 0, 4, 0, 2, 0, 0, 0), rule="prose", threshold=9.0, own=True, episodes=3)
    assert (got.precision, got.recall, got.f1, got.event_f1) == (None, 0.0, 0.0, 0.0)
    assert harmonic_mean(0.0, 0.0) == 0.0


def seen(value: list[float], irreversible: str) -> Seen:
    length = len(value)
    episode = Episode(*(np.zeros(length) for _ in range(5)), irreversible=flags(irreversible))
    return Seen(episode, torch.zeros(length, 1), None, torch.tensor(value, dtype=torch.float64))


def test_a_sweep_by_hand():
    agent = small_agent(window=2, lookback=1)
    # Means of two: 1, 1, 1, 2, 3, 3, 3; Δ = 0, 0, 1, ½, 0, 0 at t = 2 … 7. With η = 0.4 the changes at t = 4 and 5 take
    # out 3–5, with 0.6 only 3–4, with 1.0 nothing (Δ is not above it). The event is 3 → 4.
    rows = truncation_quality(agent, [seen([1, 1, 1, 1, 3, 3, 3, 3], "00001000")], thresholds=[0.6, 0.4, 1.0])
    prose = {row.threshold: row for row in rows if row.rule == "prose"}
    assert list(prose) == [0.1, 0.4, 0.6, 1.0]  # the agent's own η is among them
    assert [row.own for row in prose.values()] == [True, False, False, False]
    assert [row.truncated_share for row in prose.values()] == [3 / 8, 3 / 8, 2 / 8, 0]
    assert [row.precision for row in prose.values()] == [pytest.approx(2 / 3), pytest.approx(2 / 3), 1.0, None]
    assert [row.recall for row in prose.values()] == [1.0, 1.0, 1.0, 0.0]
    assert [row.event_recall for row in prose.values()] == [1.0, 1.0, 1.0, 0.0]
    # To the letter a state stays where any of Δ_{k−2} … Δ_k is below η: with 0.4 every state has a calm one
    letter = {row.threshold: row for row in rows if row.rule == "algorithm1"}
    assert [row.truncated_share for row in letter.values()] == [0.0] * 4
    assert not any(row.own for row in letter.values())


def test_the_own_mask_is_that_of_the_settings():
    agent = small_agent(window=2, lookback=None, threshold=0.6)
    value = torch.tensor([1.0, 1, 1, 1, 3, 3, 3, 3])
    assert mask(agent, value).tolist() == kept_from("..xxx...").tolist()  # t = 4, and τ = S = 2 before it
    assert mask(agent, value, threshold=1.0).all()
    assert mask(small_agent(window=2, threshold=0.6, retrace_weight=0.0), value).tolist() == mask(agent, value).tolist()


def test_auto_has_the_threshold_that_it_ended_with():
    agent = small_agent(mode="auto")
    agent.learner.truncation.running_median.mean.fill_(0.05)
    assert own_threshold(agent) == pytest.approx(0.2)  # four medians
    assert own_threshold(small_agent(threshold=0.3, retrace_weight=0.0)) == 0.3


def test_episodes_are_added_up():
    agent = small_agent(window=2, lookback=0)
    calm, sudden = seen([1] * 8, "01000000"), seen([1, 1, 1, 1, 3, 3, 3, 3], "00001000")
    (row,) = [r for r in truncation_quality(agent, [calm, sudden], thresholds=[0.1]) if r.rule == "prose"]
    assert (row.episodes, row.states, row.events, row.detections) == (2, 16, 2, 1)
    assert row.event_recall == 0.5  # one of two; means of the episodes' own ratios would be undefined
    assert row.precision == 0.5  # 4 and 5 left, of which 4 is true


def test_a_file_holds_the_rows(tmp_path: Path):
    rows = truncation_quality(small_agent(), [seen([1, 1, 1, 1, 3, 3, 3, 3], "00001000")], thresholds=[0.1])
    write_truncation(tmp_path, rows)
    frame = read_truncation(tmp_path)
    assert frame["own"].tolist() == [row.own for row in rows]
    assert frame["truncated_share"].tolist() == [row.truncated_share for row in rows]
    assert frame["precision"].isna().tolist() == [row.precision is None for row in rows]
    frame.assign(threshold="high").to_csv(tmp_path / "truncation.csv", index=False)
    with pytest.raises(UserError, match=r"truncation.csv: 'threshold' is 'high' in line 2"):
        read_truncation(tmp_path)
