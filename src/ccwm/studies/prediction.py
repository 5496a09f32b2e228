"""Open-loop prediction: a few observations of context, then actions alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.files import write_json
from ccwm.ops.statistics import bootstrap, bootstrap_median
from ccwm.readers import NUMBER, BadResult, read_arrays, read_record, read_table
from ccwm.seeds import named_seed
from ccwm.structs import Batch, LatentState, stack
from ccwm.studies.components import Components, Curves, write_components, write_curves
from ccwm.studies.errors import is_pixels, targets
from ccwm.studies.images import PICTURES
from ccwm.studies.similarity import ssim
from ccwm.studies.strips import Strip, write_strip
from ccwm.studies.tables import write_arrays, write_columns
from ccwm.studies.trajectories import episode_batch

ERRORS = ("error", "baseline_error", "constant_error")
"""Those of the prediction, of the last seen observation, repeated, and of the mean of all that are to be predicted."""
OBSERVATIONS, FRAMES = f"{PICTURES}/observations.safetensors", f"{PICTURES}/frames.safetensors"


class Prediction(NamedTuple):
    """True and predicted observations of N windows; the first ``context`` predicted ones are reconstructions."""

    context: int
    truth: np.ndarray  # [N, T, *observation]
    predicted: np.ndarray  # [N, T, *observation]
    errors: dict[str, np.ndarray]  # by ERRORS, [N, horizon, C], squared: components of a state, or 1, a mean of pixels


class Metrics(NamedTuple):
    """What ``metrics.json`` holds; intervals are 95 % bootstrap intervals over episodes.

    `useful` steps are better than the last observation, repeated, `informed` ones than the mean observation: of the
    mean error over episodes, and in the median episode. States have no structural similarity (SSIM).
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
    constant_error_mean: float
    ssim_mean: float | None = None
    baseline_ssim_mean: float | None = None


@torch.no_grad()
def predict_open_loop(agent: Agent, episodes: list[Episode], *, context: int, horizon: int, seed: int) -> Prediction:
    """Predict a window of each episode; where it starts is a function of the seed, the same for every variant."""
    length, model = context + horizon, agent.modelled.world_model
    short = min(len(episode.reward) for episode in episodes)
    if short < length:
        raise UserError(
            f"rollout.context + rollout.horizon is {length}, but a held-out episode has only {short} steps",
            hint="lower rollout.horizon or raise env.time_limit",
        )
    windows = []
    for index, episode in enumerate(episodes):
        window = Episode(*(of[window_of(episode, length, seed=seed, index=index)] for of in episode))
        # What led to the window's first observation is unseen: it is treated as an episode's start.
        windows.append(episode_batch(window._replace(is_first=np.arange(length) == 0), model))
    batch = Batch(*(torch.cat(parts, 1) for parts in zip(*windows, strict=True)))
    decoded = model.to_observation(model.decode(roll(agent, batch, context=context).feature))
    truth, predicted = (of.transpose(0, 1).cpu().numpy() for of in (batch.observation, decoded))
    found = errors(targets(model, truth), targets(model, predicted), context=context)
    if is_pixels(truth):
        found = {name: of.mean(-1, keepdims=True) for name, of in found.items()}
    return Prediction(context, truth, predicted, found)


def window_of(episode: Episode, length: int, *, seed: int, index: int) -> slice:
    """Which steps of the held-out episode of this number are predicted."""
    start = named_seed("window", seed, index) % (len(episode.reward) - length + 1)
    return slice(start, start + length)


def errors(truth: np.ndarray, predicted: np.ndarray, *, context: int) -> dict[str, np.ndarray]:
    """Squared errors of the predicted steps by their name in ERRORS.   [N, T, n] each → [N, horizon, n] each."""
    later = truth[:, context:]
    guesses = predicted[:, context:], truth[:, context - 1 : context], later.mean((0, 1), keepdims=True)
    return {name: (guess - later) ** 2 for name, guess in zip(ERRORS, guesses, strict=True)}


def roll(agent: Agent, batch: Batch, *, context: int) -> LatentState:
    """Posterior means over the context, prior means from actions alone after it.   [T, N, …] → [T, N, ·]."""
    model = agent.modelled.world_model
    mean: Tensor = batch.action.new_zeros(context, batch.action.shape[1], model.rssm.stoch)
    seen = model.observe(Batch(*(of[:context] for of in batch)), mean).posterior
    states = [seen.map(lambda part, t=t: part[t]) for t in range(context)]  # type: ignore[misc]
    for action in batch.action[context:]:
        states.append(model.predict(states[-1], action, mean[0]))
    return stack(states)


def step_measures(prediction: Prediction) -> dict[str, np.ndarray]:
    """Errors averaged over components or pixels and, of pictures alone, similarities.   → [N, horizon] each."""
    found = {name: of.mean(-1) for name, of in prediction.errors.items()}
    if is_pixels(prediction.truth):
        truth, last = prediction.truth[:, prediction.context :], prediction.truth[:, prediction.context - 1, None]
        found["ssim"] = ssim(prediction.predicted[:, prediction.context :], truth)
        found["baseline_ssim"] = ssim(np.broadcast_to(last, truth.shape), truth)
    return found


def component_errors(prediction: Prediction, names: Sequence[str]) -> Components:
    """Errors averaged over episodes and steps, of each component by name; pixels have no names."""
    parts = (of.mean((0, 1))[: len(names)] for of in prediction.errors.values())
    return Components(np.array(names, str), *parts)


def useful_steps(error: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """How many steps each prediction stays better than a baseline.   [N, T] each → int [N]."""
    worse = error >= baseline
    return np.asarray(np.where(worse.any(1), worse.argmax(1), worse.shape[1]))


def summarise(prediction: Prediction) -> Metrics:
    """The study's metrics."""
    measured = step_measures(prediction)
    useful = _horizon("useful_steps", measured["error"], measured["baseline_error"])
    informed = _horizon("informed_steps", measured["error"], measured["constant_error"])
    means: dict[str, Any] = {f"{name}_mean": float(of.mean()) for name, of in measured.items()}
    episodes, horizon = measured["error"].shape
    return Metrics(episodes=episodes, context=prediction.context, horizon=horizon, **useful, **informed, **means)


def _horizon(name: str, error: np.ndarray, baseline: np.ndarray) -> dict[str, Any]:
    """How long the mean error stays below the baseline's, and how long the median episode's does.   [N, T] each."""
    gap, steps = error - baseline, useful_steps(error, baseline).astype(np.float64)

    def below(means: np.ndarray) -> np.ndarray:
        return useful_steps(means, np.zeros_like(means))

    of_mean, of_median = bootstrap(gap, below, seed=0), bootstrap_median(steps, seed=0)
    return {
        f"{name}_of_mean": int(below(gap.mean(0, keepdims=True))[0]),
        f"{name}_of_mean_low": of_mean.low,
        f"{name}_of_mean_high": of_mean.high,
        f"{name}_median": float(np.median(steps)),
        f"{name}_low": of_median.low,
        f"{name}_high": of_median.high,
    }


def write_prediction(
    folder: Path,
    prediction: Prediction,
    metrics: Metrics,
    components: Components,
    *,
    variant: str,
    shown: int,
    frames: np.ndarray | None = None,
) -> None:
    """Write all numbers, and the observations of the first ``shown`` episodes with pictures of the first.

    ``frames`` are pictures of these episodes [shown, T, size, size, 3] where states were predicted.
    """
    steps = step_measures(prediction)
    last, constant = (useful_steps(steps["error"], steps[of]) for of in ERRORS[1:])
    write_json(folder / "metrics.json", metrics._asdict())
    means = {name: of.mean(0) for name, of in steps.items()}
    write_columns(folder / "errors.csv", {"step": np.arange(1, metrics.horizon + 1), **means})
    write_columns(folder / "horizons.csv", {"episode": np.arange(len(last)), "last": last, "constant": constant})
    write_components(folder, components)
    (folder / PICTURES).mkdir(exist_ok=True)
    truth, predicted = prediction.truth[:shown], prediction.predicted[:shown]
    write_arrays(folder / OBSERVATIONS, {"truth": truth, "prediction": predicted})
    if is_pixels(truth):
        write_strip(folder / PICTURES, Strip(metrics.context, truth[0], {variant: predicted[0]}))
        return
    if frames is not None:
        write_arrays(folder / FRAMES, {"frames": frames})
    curves = Curves.of(components, metrics.context, truth[0], {variant: predicted[0]})
    write_curves(folder / PICTURES, curves, None if frames is None else frames[0])


def read_metrics(folder: Path) -> Metrics:
    """The metrics of a finished study."""
    return read_record(folder / "metrics.json", Metrics)


def read_errors(folder: Path) -> pd.DataFrame:
    """Means over episodes for each predicted step; of pictures also their similarities."""
    return read_table(folder / "errors.csv", dict.fromkeys(("step", *ERRORS), NUMBER), others=NUMBER)


def read_horizons(folder: Path) -> pd.DataFrame:
    """How many steps each episode's prediction beats the last observation, repeated, and the constant mean."""
    return read_table(folder / "horizons.csv", dict.fromkeys(("episode", "last", "constant"), NUMBER))


def read_observations(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """True and predicted observations of the shown episodes.   → [shown, T, *observation] each."""
    arrays = read_arrays(folder / OBSERVATIONS, ("truth", "prediction"))
    if arrays["truth"].shape != arrays["prediction"].shape or arrays["truth"].dtype != arrays["prediction"].dtype:
        raise BadResult(f"{folder / OBSERVATIONS}: 'truth' and 'prediction' differ in shape or dtype")
    return arrays["truth"], arrays["prediction"]


def read_frames(folder: Path) -> np.ndarray:
    """Pictures of the shown episodes of states.   → uint8 [shown, T, size, size, 3]."""
    return read_arrays(folder / FRAMES, ("frames",))["frames"]
