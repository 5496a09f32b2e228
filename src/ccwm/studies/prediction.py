"""Open-loop prediction: a few observations of context, then actions alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch
from safetensors.numpy import save_file
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.files import write_csv, write_json
from ccwm.ops.statistics import bootstrap, bootstrap_median
from ccwm.readers import NUMBER, read_arrays, read_record, read_table
from ccwm.seeds import named_seed
from ccwm.structs import Batch, LatentState, stack
from ccwm.studies.images import PRINT, pixel_error, write_figure, write_mp4
from ccwm.studies.similarity import ssim
from ccwm.studies.strips import Strip, strip_figure, video
from ccwm.studies.trajectories import episode_batch

STEP_COLUMNS = ("error", "baseline_error", "mean_frame_error", "ssim", "baseline_ssim")


class Prediction(NamedTuple):
    """True and predicted observations of N windows; the first ``context`` predicted ones are reconstructions."""

    truth: np.ndarray  # [N, T, size, size, 3] uint8
    predicted: np.ndarray  # [N, T, size, size, 3] uint8
    error: np.ndarray  # [N, horizon], mean squared error of pixels in [0, 1]
    baseline: np.ndarray  # [N, horizon], the error of repeating the last context frame


class Metrics(NamedTuple):
    """What ``metrics.json`` holds; intervals are 95 % bootstrap intervals over episodes.

    `useful` steps are better than the last frame, repeated, `informed` ones than the mean frame: of the mean error over
    episodes, and in the median episode.
    """

    episodes: int
    context: int
    horizon: int
    useful_steps_of_mean: int
    useful_steps_of_mean_low: float
    useful_steps_of_mean_high: float
    useful_steps_median: float
    useful_steps_low: float
    useful_steps_high: float
    informed_steps_of_mean: int
    informed_steps_of_mean_low: float
    informed_steps_of_mean_high: float
    informed_steps_median: float
    informed_steps_low: float
    informed_steps_high: float
    error_mean: float
    baseline_error_mean: float
    mean_frame_error_mean: float
    ssim_mean: float
    baseline_ssim_mean: float


@torch.no_grad()
def predict_open_loop(agent: Agent, episodes: list[Episode], *, context: int, horizon: int, seed: int) -> Prediction:
    """Predict a window of each episode; where it starts is a function of the seed, the same for every variant."""
    length, model = context + horizon, agent.world_model
    short = min(len(episode.reward) for episode in episodes)
    if short < length:
        raise UserError(
            f"rollout.context + rollout.horizon is {length}, but a held-out episode has only {short} steps",
            hint="lower rollout.horizon or raise env.time_limit",
        )
    windows = []
    for index, episode in enumerate(episodes):
        start = named_seed("window", seed, index) % (len(episode.reward) - length + 1)
        window = Episode(*(of[start : start + length] for of in episode))
        # What led to the window's first observation is unseen: it is treated as an episode's start.
        windows.append(episode_batch(window._replace(is_first=np.arange(length) == 0), model))
    batch = Batch(*(torch.cat(parts, 1) for parts in zip(*windows, strict=True)))
    decoded = model.to_observation(model.decode(roll(agent, batch, context=context).feature))
    truth, predicted = (of.transpose(0, 1).cpu().numpy() for of in (batch.observation, decoded))
    last = np.repeat(truth[:, context - 1 : context], horizon, axis=1)
    return Prediction(
        truth,
        predicted,
        error=pixel_error(predicted[:, context:], truth[:, context:]),
        baseline=pixel_error(last, truth[:, context:]),
    )


def roll(agent: Agent, batch: Batch, *, context: int) -> LatentState:
    """Posterior means over the context, prior means from actions alone after it.   [T, N, …] → [T, N, ·]."""
    model = agent.world_model
    mean: Tensor = batch.action.new_zeros(context, batch.action.shape[1], model.rssm.stoch)
    seen = model.observe(Batch(*(of[:context] for of in batch)), mean).posterior
    states = [seen.map(lambda part, t=t: part[t]) for t in range(context)]  # type: ignore[misc]
    for action in batch.action[context:]:
        states.append(model.predict(states[-1], action, mean[0]))
    return stack(states)


def mean_frame_error(prediction: Prediction) -> np.ndarray:
    """Error of the best constant guess: the mean of all true frames that are to be predicted.   → [N, horizon]."""
    truth = prediction.truth[:, -prediction.error.shape[1] :]
    return pixel_error(truth.mean((0, 1), keepdims=True), truth)


def step_errors(prediction: Prediction) -> dict[str, np.ndarray]:
    """Error and structural similarity of the prediction and of its baselines.   → [N, horizon] each."""
    horizon = prediction.error.shape[1]
    truth, last = prediction.truth[:, -horizon:], prediction.truth[:, -horizon - 1, None]
    measured = (
        prediction.error,
        prediction.baseline,
        mean_frame_error(prediction),
        ssim(prediction.predicted[:, -horizon:], truth),
        ssim(np.broadcast_to(last, truth.shape), truth),
    )
    return dict(zip(STEP_COLUMNS, measured, strict=True))


def useful_steps(error: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """How many steps each prediction stays better than a baseline.   [N, T] each → int [N]."""
    worse = error >= baseline
    return np.asarray(np.where(worse.any(1), worse.argmax(1), worse.shape[1]))


def summarise(prediction: Prediction, *, context: int) -> Metrics:
    """The study's metrics."""
    errors = step_errors(prediction)
    useful = _horizon("useful_steps", prediction.error, prediction.baseline)
    informed = _horizon("informed_steps", prediction.error, errors["mean_frame_error"])
    means: dict[str, Any] = {f"{name}_mean": float(of.mean()) for name, of in errors.items()}
    episodes, horizon = prediction.error.shape
    return Metrics(episodes=episodes, context=context, horizon=horizon, **useful, **informed, **means)


def _horizon(name: str, error: np.ndarray, baseline: np.ndarray) -> dict[str, Any]:
    """How long the mean error stays below the baseline's, and how long the median episode's does.   [N, T] each."""
    gap, steps = error - baseline, useful_steps(error, baseline)

    def below(means: np.ndarray) -> np.ndarray:
        return useful_steps(means, np.zeros_like(means))

    of_mean = bootstrap(gap, below, seed=0)
    of_median = bootstrap_median(steps.astype(np.float64), seed=0)
    return {
        f"{name}_of_mean": int(below(gap.mean(0, keepdims=True))[0]),
        f"{name}_of_mean_low": of_mean.low,
        f"{name}_of_mean_high": of_mean.high,
        f"{name}_median": float(np.median(steps)),
        f"{name}_low": of_median.low,
        f"{name}_high": of_median.high,
    }


@mpl.rc_context(PRINT)
def write_prediction(folder: Path, prediction: Prediction, metrics: Metrics, *, variant: str, shown: int) -> None:
    """Write all numbers, and the frames of the first ``shown`` episodes with a strip and a video of the first."""
    errors = step_errors(prediction)
    last = useful_steps(prediction.error, prediction.baseline)
    mean = useful_steps(prediction.error, errors["mean_frame_error"])
    write_json(folder / "metrics.json", metrics._asdict())
    means = {name: of.mean(0) for name, of in errors.items()}
    steps = range(prediction.error.shape[1])
    write_csv(
        folder / "errors.csv",
        ({"step": step + 1, **{name: float(of[step]) for name, of in means.items()}} for step in steps),
    )
    write_csv(
        folder / "horizons.csv",
        ({"episode": i, "last_frame": int(last[i]), "mean_frame": int(mean[i])} for i in range(len(last))),
    )
    frames = {"truth": prediction.truth[:shown], "prediction": prediction.predicted[:shown]}
    save_file({name: np.ascontiguousarray(of) for name, of in frames.items()}, folder / "frames.safetensors")
    strip = Strip(metrics.context, prediction.truth[0], {variant: prediction.predicted[0]})
    write_figure(folder / "strip.png", strip_figure(strip))
    write_mp4(folder / "rollout.mp4", video(strip))


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished study."""
    return read_record(folder / "metrics.json", Metrics)


def read_errors(folder: Path) -> pd.DataFrame:
    """Means over episodes for each predicted step."""
    return read_table(folder / "errors.csv", dict.fromkeys(("step", *STEP_COLUMNS), NUMBER))


def read_horizons(folder: Path) -> pd.DataFrame:
    """How many steps each episode's prediction stays better than the last frame, repeated, and than the mean frame."""
    return read_table(folder / "horizons.csv", dict.fromkeys(("episode", "last_frame", "mean_frame"), NUMBER))


def read_frames(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """True and predicted frames of the shown episodes.   → uint8 [shown, T, size, size, 3] each."""
    arrays = read_arrays(folder / "frames.safetensors", ("truth", "prediction"))
    return arrays["truth"], arrays["prediction"]
