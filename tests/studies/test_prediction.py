from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.studies.prediction import (
    Prediction,
    mean_frame_error,
    predict_open_loop,
    read_errors,
    read_frames,
    read_horizons,
    read_metrics,
    step_errors,
    summarise,
    useful_steps,
    write_prediction,
)

from .trained_agent import random_episode, small_agent


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return [random_episode(small_agent(), seed) for seed in range(3)]


def test_useful_steps_end_where_the_prediction_is_no_better():
    error = np.array([[0.1, 0.2, 0.5, 0.1], [0.1, 0.1, 0.1, 0.1], [0.3, 0.1, 0.1, 0.1]])
    baseline = np.array([[0.2, 0.3, 0.5, 0.9], [0.2, 0.2, 0.2, 0.2], [0.2, 0.2, 0.2, 0.2]])
    assert useful_steps(error, baseline).tolist() == [2, 4, 0]  # equal counts as no better; the whole horizon; never


def test_the_summary_is_of_the_mean_error_and_of_the_median_episode():
    steps = np.array([0, 1, 4])
    error = (np.arange(4) >= steps[:, None]).astype(float)  # worse from step 0, 1 and never
    frames = np.zeros((3, 9, 11, 11, 3), np.uint8)
    got = summarise(Prediction(frames, frames, error, np.full((3, 4), 0.5)), context=5)
    assert (got.useful_steps_median, got.horizon, got.context) == (1.0, 4, 5)
    assert got.useful_steps_of_mean == 1  # mean errors 1/3, 2/3, 2/3, 2/3 against 0.5
    assert (got.useful_steps_low, got.useful_steps_high) == (0.0, 4.0)  # a median of three draws can be any
    assert (got.useful_steps_of_mean_low, got.useful_steps_of_mean_high) == (0, 4)  # so can their mean's


def test_the_interval_of_the_mean_error_is_over_episodes():
    """Nine windows lose 0.1 at step 2 and one wins 0.95 there: the mean wins by 0.005, but not in most resamples."""
    error, baseline = np.full((10, 3), 0.2), np.full((10, 3), 0.3)
    error[:, 1] = 0.4
    error[0, 1], baseline[0, 1] = 0.05, 1.0
    frames = np.zeros((10, 8, 11, 11, 3), np.uint8)
    got = summarise(Prediction(frames, frames, error, baseline), context=5)
    assert got.useful_steps_of_mean == 3
    assert (got.useful_steps_of_mean_low, got.useful_steps_of_mean_high) == (1, 3)
    assert got.useful_steps_median == 1


def test_a_prediction_sees_its_context_and_nothing_more(episodes):
    agent = small_agent()
    first = predict_open_loop(agent, episodes, context=5, horizon=10, seed=0)
    assert first.truth.shape == first.predicted.shape == (3, 15, 32, 32, 3)
    assert first.error.shape == first.baseline.shape == (3, 10)

    def with_images(function) -> Prediction:
        changed = [episode._replace(observation=function(episode.observation)) for episode in episodes]
        return predict_open_loop(agent, changed, context=5, horizon=10, seed=0)

    starts = [
        next(s for s in range(17) if np.array_equal(episode.observation[s : s + 15], truth))
        for episode, truth in zip(episodes, first.truth, strict=True)
    ]
    assert len(set(starts)) > 1  # windows begin where the seed says, not all at the start

    def blank_after_context(image: np.ndarray) -> np.ndarray:
        index = next(i for i, e in enumerate(episodes) if e.observation is image)
        blank = image.copy()
        blank[starts[index] + 5 :] = 0
        return blank

    assert np.array_equal(with_images(blank_after_context).predicted, first.predicted)
    assert not np.array_equal(with_images(np.zeros_like).predicted, first.predicted)


def test_the_action_into_the_first_frame_is_unseen_and_every_later_one_counts(episodes):
    agent, episode = small_agent(), episodes[0]
    length = len(episode.reward)  # the window is the whole episode, so that it starts at 0

    def predicted(**actions: float) -> np.ndarray:
        action = episode.action.copy()
        for index, value in actions.items():
            action[int(index.removeprefix("at_"))] = value
        changed = [episode._replace(action=action)]
        return predict_open_loop(agent, changed, context=5, horizon=length - 5, seed=0).predicted

    first = predicted()
    assert np.array_equal(predicted(at_0=1.0), first)
    assert not np.array_equal(predicted(at_1=1.0), first)
    late = predicted(at_20=1.0)
    assert np.array_equal(late[:, :20], first[:, :20])
    assert not np.array_equal(late[:, 20:], first[:, 20:])


def test_errors_are_of_pixels_between_0_and_1(episodes):
    got = predict_open_loop(small_agent(), episodes[:1], context=2, horizon=3, seed=0)
    by_hand = np.mean(((got.predicted[0, 2].astype(float) - got.truth[0, 2]) / 255) ** 2)
    repeated = np.mean(((got.truth[0, 1].astype(float) - got.truth[0, 4]) / 255) ** 2)
    assert got.error[0, 0] == pytest.approx(by_hand)
    assert got.baseline[0, 2] == pytest.approx(repeated)  # the last context frame against the third predicted one


def test_an_episode_too_short_is_refused_with_the_keys(episodes):
    with pytest.raises(UserError, match=r"rollout.horizon is 32, but a held-out episode has only 31"):
        predict_open_loop(small_agent(), episodes, context=2, horizon=30, seed=0)


def grey(*levels: int) -> np.ndarray:
    """Frames of one grey each, [1, T, 32, 32, 3]."""
    return np.stack([np.full((32, 32, 3), level, np.uint8) for level in levels])[None]


def predicted_greys(truth: tuple[int, ...], predicted: tuple[int, ...], *, context: int) -> Prediction:
    true, guess = grey(*truth), grey(*predicted)
    error = ((guess[:, context:].astype(float) - true[:, context:]) / 255).mean((2, 3, 4)) ** 2
    last = ((true[:, context - 1, None].astype(float) - true[:, context:]) / 255).mean((2, 3, 4)) ** 2
    return Prediction(true, guess, error, last)


def test_the_mean_frame_is_that_of_all_frames_to_predict():
    got = predicted_greys((0, 51, 102, 153), (0, 51, 102, 102), context=1)
    # of 51, 102 and 153 the mean is 102: off by 51, 0 and 51, and 51 / 255 = 0.2
    assert mean_frame_error(got)[0].tolist() == pytest.approx([0.04, 0.0, 0.04])


def test_steps_and_horizons_by_hand(tmp_path: Path):
    got = predicted_greys((0, 51, 102, 153), (0, 51, 102, 102), context=1)
    metrics = summarise(got, context=1)
    write_prediction(tmp_path, got, metrics, variant="ccwm", shown=1)
    rows = read_errors(tmp_path)
    assert rows["step"].tolist() == [1, 2, 3]
    assert rows["error"].tolist() == pytest.approx([0, 0, 0.04])
    assert rows["baseline_error"].tolist() == pytest.approx([0.04, 0.16, 0.36])  # black, repeated
    assert rows["ssim"][0] == pytest.approx(1.0)
    # greys alone: (2 · 102 · 153 + C1) / (102² + 153² + C1) with C1 = 2.55²
    assert rows["ssim"][2] == pytest.approx((2 * 102 * 153 + 6.5025) / (102**2 + 153**2 + 6.5025))
    assert rows["baseline_ssim"][2] == pytest.approx(6.5025 / (153**2 + 6.5025))
    assert step_errors(got)["error"].shape == (1, 3)
    # always better than the black frame; at its second step no better than the mean frame, which is the truth there
    assert read_horizons(tmp_path).to_dict("records") == [{"episode": 0, "last_frame": 3, "mean_frame": 1}]
    assert metrics.informed_steps_median == 1
    assert read_metrics(tmp_path) == metrics
    truth, predicted = read_frames(tmp_path)
    assert np.array_equal(truth, got.truth)
    assert np.array_equal(predicted, got.predicted)
    assert {"strip.png", "rollout.mp4"} < {path.name for path in tmp_path.iterdir()}
