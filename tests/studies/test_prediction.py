from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.studies.components import read_components
from ccwm.studies.prediction import (
    ERRORS,
    Prediction,
    component_errors,
    errors,
    predict_open_loop,
    read_errors,
    read_frames,
    read_horizons,
    read_metrics,
    read_observations,
    step_measures,
    summarise,
    useful_steps,
    write_prediction,
)

from .trained_agent import NO_COMPONENTS, random_episode, small_agent


def measured(error: np.ndarray, baseline: np.ndarray, *, context: int) -> Prediction:
    """Black frames with these errors [N, horizon]."""
    frames = np.zeros((len(error), context + error.shape[1], 11, 11, 3), np.uint8)
    found = (of[..., None] for of in (error, baseline, baseline))
    return Prediction(context, frames, frames, dict(zip(ERRORS, found, strict=True)))


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
    got = summarise(measured(error, np.full((3, 4), 0.5), context=5))
    assert (got.useful_steps_median, got.horizon, got.context) == (1.0, 4, 5)
    assert got.useful_steps_of_mean == 1  # mean errors 1/3, 2/3, 2/3, 2/3 against 0.5
    assert (got.useful_steps_low, got.useful_steps_high) == (0.0, 4.0)  # a median of three draws can be any
    assert (got.useful_steps_of_mean_low, got.useful_steps_of_mean_high) == (0, 4)  # so can their mean's


def test_the_interval_of_the_mean_error_is_over_episodes():
    """Nine windows lose 0.1 at step 2 and one wins 0.95 there: the mean wins by 0.005, but not in most resamples."""
    error, baseline = np.full((10, 3), 0.2), np.full((10, 3), 0.3)
    error[:, 1] = 0.4
    error[0, 1], baseline[0, 1] = 0.05, 1.0
    got = summarise(measured(error, baseline, context=5))
    assert got.useful_steps_of_mean == 3
    assert (got.useful_steps_of_mean_low, got.useful_steps_of_mean_high) == (1, 3)
    assert got.useful_steps_median == 1


def test_a_prediction_sees_its_context_and_nothing_more(episodes):
    agent = small_agent()
    first = predict_open_loop(agent, episodes, context=5, horizon=10, seed=0)
    assert first.truth.shape == first.predicted.shape == (3, 15, 32, 32, 3)
    assert {name: of.shape for name, of in step_measures(first).items()} == dict.fromkeys(
        (*ERRORS, "ssim", "baseline_ssim"), (3, 10)
    )

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
    steps = step_measures(got)
    assert steps["error"][0, 0] == pytest.approx(by_hand)
    assert steps["baseline_error"][0, 2] == pytest.approx(repeated)  # the last one seen against the third predicted


def test_an_episode_too_short_is_refused_with_the_keys(episodes):
    with pytest.raises(UserError, match=r"rollout.horizon is 32, but a held-out episode has only 31"):
        predict_open_loop(small_agent(), episodes, context=2, horizon=30, seed=0)


def grey(*levels: int) -> np.ndarray:
    """Frames of one grey each, [1, T, 32, 32, 3]."""
    return np.stack([np.full((32, 32, 3), level, np.uint8) for level in levels])[None]


def predicted_greys(truth: tuple[int, ...], predicted: tuple[int, ...], *, context: int) -> Prediction:
    levels = (np.array(of, float)[None, :, None] for of in (truth, predicted))  # [1, T, 1]
    found = {name: of / 255**2 for name, of in errors(*levels, context=context).items()}
    return Prediction(context, grey(*truth), grey(*predicted), found)


def test_the_constant_guess_is_the_mean_of_all_that_is_to_be_predicted():
    got = predicted_greys((0, 51, 102, 153), (0, 51, 102, 102), context=1)
    # of 51, 102 and 153 the mean is 102: off by 51, 0 and 51, and 51 / 255 = 0.2
    assert step_measures(got)["constant_error"][0].tolist() == pytest.approx([0.04, 0.0, 0.04])


def test_steps_and_horizons_by_hand(tmp_path: Path):
    got = predicted_greys((0, 51, 102, 153), (0, 51, 102, 102), context=1)
    metrics = summarise(got)
    write_prediction(tmp_path, got, metrics, NO_COMPONENTS, variant="ccwm", shown=1)
    rows = read_errors(tmp_path)
    assert rows["step"].tolist() == [1, 2, 3]
    assert rows["error"].tolist() == pytest.approx([0, 0, 0.04])
    assert rows["baseline_error"].tolist() == pytest.approx([0.04, 0.16, 0.36])  # black, repeated
    assert rows["ssim"][0] == pytest.approx(1.0)
    # greys alone: (2 · 102 · 153 + C1) / (102² + 153² + C1) with C1 = 2.55²
    assert rows["ssim"][2] == pytest.approx((2 * 102 * 153 + 6.5025) / (102**2 + 153**2 + 6.5025))
    assert rows["baseline_ssim"][2] == pytest.approx(6.5025 / (153**2 + 6.5025))
    # always better than the black frame; at its second step no better than the mean frame, which is the truth there
    assert read_horizons(tmp_path).to_dict("records") == [{"episode": 0, "last": 3, "constant": 1}]
    assert metrics.informed_steps_median == 1
    assert read_metrics(tmp_path) == metrics
    assert len(read_components(tmp_path).component) == 0
    truth, predicted = read_observations(tmp_path)
    assert np.array_equal(truth, got.truth)
    assert np.array_equal(predicted, got.predicted)
    drawn = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert drawn == {"observations.safetensors", "strip.png", "rollout.mp4"}


def test_the_errors_of_each_component_by_hand():
    truth = np.array([[[0, 1], [1, 2], [2, 2], [3, 5]]], float)  # [1, 4, 2]; the first two are seen
    predicted = np.array([[[9, 9], [9, 9], [2, 3], [5, 3]]], float)
    got = Prediction(2, truth.astype(np.float32), predicted.astype(np.float32), errors(truth, predicted, context=2))
    found = component_errors(got, ["x", "y"])
    assert found.component.tolist() == ["x", "y"]
    assert found.error.tolist() == [2.0, 2.5]  # (0 + 4) / 2 and (1 + 4) / 2
    assert found.baseline_error.tolist() == [2.5, 4.5]  # 1, 2 against 1 and 2, 5 against 2
    assert found.constant_error.tolist() == [0.25, 2.25]  # the means are 2.5 and 3.5
    assert {name: of.tolist() for name, of in step_measures(got).items()} == {
        "error": [[0.5, 4.0]],
        "baseline_error": [[0.5, 6.5]],
        "constant_error": [[1.25, 1.25]],
    }


def test_states_are_predicted_and_measured_on_the_decoders_scale(tmp_path: Path):
    agent = small_agent(observation="state")
    got = predict_open_loop(agent, [random_episode(agent, 0)], context=2, horizon=3, seed=0)
    assert got.truth.shape == got.predicted.shape == (1, 5, 2)
    assert got.truth.dtype == got.predicted.dtype == np.float32
    squashed = [np.sign(of) * np.log1p(np.abs(of)) for of in (got.predicted.astype(float), got.truth)]
    assert got.errors["error"] == pytest.approx((squashed[0] - squashed[1])[:, 2:] ** 2)
    metrics, components = summarise(got), component_errors(got, ["x", "y"])
    assert (metrics.ssim_mean, metrics.baseline_ssim_mean) == (None, None)
    frames = np.zeros((1, 5, 16, 16, 3), np.uint8)
    write_prediction(tmp_path, got, metrics, components, variant="ccwm", shown=1, frames=frames)
    assert read_metrics(tmp_path) == metrics
    assert list(read_errors(tmp_path).columns) == ["step", *ERRORS]
    assert np.array_equal(read_observations(tmp_path)[1], got.predicted)
    assert np.array_equal(read_frames(tmp_path), frames)
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        *("observations.safetensors", "frames.safetensors", "components.png", "rollout.mp4")
    }


def test_states_that_were_not_rendered_have_no_video(tmp_path: Path):
    states = np.zeros((1, 4, 1), np.float32)
    got = Prediction(2, states, states, errors(states, states, context=2))
    write_prediction(tmp_path, got, summarise(got), component_errors(got, ["x"]), variant="ccwm", shown=1)
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {"observations.safetensors", "components.png"}
