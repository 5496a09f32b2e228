"""Open-loop prediction: a few frames of context, then actions alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.episode import Episode
from ccwm.ops.statistics import bootstrap, bootstrap_median
from ccwm.seeds import named_seed
from ccwm.structs import LatentState, stack
from ccwm.studies.similarity import ssim


class Prediction(NamedTuple):
    """True and predicted frames of N windows; the first ``context`` predicted ones are reconstructions."""

    truth: np.ndarray  # [N, T, size, size, 3] uint8
    predicted: np.ndarray  # [N, T, size, size, 3] uint8
    error: np.ndarray  # [N, horizon], mean squared error of pixels in [0, 1]
    baseline: np.ndarray  # [N, horizon], the error of repeating the last context frame


@torch.no_grad()
def predict_open_loop(agent: Agent, episodes: list[Episode], *, context: int, horizon: int, seed: int) -> Prediction:
    """Predict a window of each episode; where it starts is a function of the seed, the same for every variant."""
    length = context + horizon
    short = min(len(episode.reward) for episode in episodes)
    if short < length:
        raise ValueError(
            f"rollout.context + rollout.horizon is {length}, but a held-out episode has only {short} steps: "
            f"lower rollout.horizon or raise env.time_limit"
        )
    windows = []
    for index, episode in enumerate(episodes):
        start = named_seed("window", seed, index) % (len(episode.reward) - length + 1)
        windows.append((episode.observation[start : start + length], episode.action[start : start + length]))
    truth = np.stack([image for image, _ in windows])
    weight = agent.world_model.rssm.prior_out.weight
    action = torch.from_numpy(np.stack([action for _, action in windows], 1)).to(weight)
    decoded = agent.world_model.decoder(
        _roll(agent, torch.from_numpy(truth).to(weight.device), action, context).feature
    )
    predicted = to_pixels(decoded.transpose(0, 1))
    last = np.repeat(truth[:, context - 1 : context], horizon, axis=1)
    return Prediction(
        truth,
        predicted,
        error=pixel_error(predicted[:, context:], truth[:, context:]),
        baseline=pixel_error(last, truth[:, context:]),
    )


def _roll(agent: Agent, image: Tensor, action: Tensor, context: int) -> LatentState:
    """Posterior means over the context, prior means after it.   [N, T, size, size, 3], [T, N, A] → [T, N, ·]."""
    model = agent.world_model
    embed = model.embed(model.centre(image.movedim(-1, -3)[:, :context]))  # [N, context, hidden]
    state = model.rssm.initial(embed[:, 0])
    still = torch.zeros_like(state.stoch)
    states = []
    for t in range(len(action)):
        if t < context:
            led = action[t] if t else torch.zeros_like(action[t])  # what led to the window's first frame is unseen
            state = model.rssm.correct(state, led, embed[:, t], still)
        else:
            state = model.rssm.predict(state, action[t], still)
        states.append(state)
    return stack(states)


def to_pixels(decoded: Tensor) -> np.ndarray:
    """What the decoder writes, as bytes.   [..., 3, size, size] around 0 → uint8 [..., size, size, 3]."""
    bytes_ = ((decoded.movedim(-3, -1) + 0.5).clamp(0, 1) * 255).round()
    return bytes_.to(torch.uint8).cpu().numpy()


def pixel_error(frames: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean squared error of pixels in [0, 1].   uint8 [..., size, size, 3] each → [...]."""
    squared: np.ndarray = ((frames.astype(np.float64) - truth) / 255) ** 2
    return np.asarray(squared.mean((-3, -2, -1)))


def mean_frame_error(prediction: Prediction) -> np.ndarray:
    """Error of the best constant guess: the mean of all true frames that are to be predicted.   → [N, horizon]."""
    truth = prediction.truth[:, -prediction.error.shape[1] :]
    return pixel_error(truth.mean((0, 1), keepdims=True), truth)


def similarities(prediction: Prediction) -> tuple[np.ndarray, np.ndarray]:
    """Structural similarity with the truth of the prediction, and of the last seen frame.   → [N, horizon] each."""
    horizon = prediction.error.shape[1]
    truth, last = prediction.truth[:, -horizon:], prediction.truth[:, -horizon - 1, None]
    return ssim(prediction.predicted[:, -horizon:], truth), ssim(np.broadcast_to(last, truth.shape), truth)


def step_rows(prediction: Prediction) -> list[dict[str, float]]:
    """The lines of ``errors.csv``: means over episodes for each predicted step."""
    similarity, last_similarity = similarities(prediction)
    columns = {
        "error": prediction.error,
        "baseline_error": prediction.baseline,
        "mean_frame_error": mean_frame_error(prediction),
        "ssim": similarity,
        "baseline_ssim": last_similarity,
    }
    means = {name: of.mean(0) for name, of in columns.items()}
    return [
        {"step": step + 1, **{name: float(of[step]) for name, of in means.items()}}
        for step in range(prediction.error.shape[1])
    ]


def horizon_rows(prediction: Prediction) -> list[dict[str, int]]:
    """The lines of ``horizons.csv``: how long each episode's prediction stays better than either baseline."""
    last = useful_steps(prediction.error, prediction.baseline)
    mean = useful_steps(prediction.error, mean_frame_error(prediction))
    return [
        {"episode": episode, "last_frame": int(steps), "mean_frame": int(mean[episode])}
        for episode, steps in enumerate(last)
    ]


def useful_steps(error: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """How many steps each prediction stays better than a baseline.   [N, T] each → int [N]."""
    worse = error >= baseline
    return np.asarray(np.where(worse.any(1), worse.argmax(1), worse.shape[1]))


def summarise(prediction: Prediction, *, context: int) -> dict[str, float]:
    """The study's metrics; intervals are 95 % bootstrap intervals over episodes."""
    constant = mean_frame_error(prediction)
    similarity, last_similarity = similarities(prediction)
    return {
        "episodes": len(prediction.error),
        "context": context,
        "horizon": prediction.error.shape[1],
        **_horizon("useful_steps", prediction.error, prediction.baseline),
        **_horizon("informed_steps", prediction.error, constant),
        "error_mean": float(prediction.error.mean()),
        "baseline_error_mean": float(prediction.baseline.mean()),
        "mean_frame_error_mean": float(constant.mean()),
        "ssim_mean": float(similarity.mean()),
        "baseline_ssim_mean": float(last_similarity.mean()),
    }


def _horizon(name: str, error: np.ndarray, baseline: np.ndarray) -> dict[str, float]:
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
