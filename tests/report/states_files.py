"""What rollout-viz writes of latent states, small and made up: a spiral, a value, a mask and a few events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

STEPS, LATE, MANY = 40, 12, 150
THRESHOLDS = (0.05, 0.1, 0.2)
EVENT = 6
"""The step of the one event that the shown window has."""


def state_figures(task: str) -> list[str]:
    """Names of the figures that the report makes of these files, for dreamer and ccwm."""
    of_agents = [f"{name}-{task}" for name in ("retracing", "trajectory", "late", "truncated")]
    measures = ("truncated-share", "precision", "recall", "event-precision", "event-recall")
    return [
        *(f"{name}-{variant}" for name in of_agents for variant in ("dreamer", "ccwm")),
        f"values-{task}",
        *(f"truncation-{measure}-{task}" for measure in measures),
    ]


def write_states(folder: Path, truth: np.ndarray, decoded: np.ndarray, *, retraces: bool) -> None:
    """All files of retracing, maps and truncation; an agent that does not retrace leaves its columns empty."""
    _write_retracing(folder, truth, decoded, retraces)
    _write_embeddings(folder, retraces)
    rows = [
        {
            "rule": rule,
            "threshold": threshold,
            "own": rule == "prose" and threshold == 0.1,
            "episodes": 4,
            "states": 2000,
            "events": 3,
            "detections": 5,
            "truncated_share": 0.3 - threshold,
            "true_share": 0.003,
            "precision": 0.01 + threshold,
            "recall": 0.9 - threshold,
            "f1": 0.02,
            "event_precision": 0.2 + threshold,
            "event_recall": 1 - threshold,
            "event_f1": 0.4 + threshold * (1 if rule == "prose" else 9),
        }
        for rule in ("prose", "algorithm1")
        for threshold in THRESHOLDS
    ]
    pd.DataFrame(rows).to_csv(folder / "truncation.csv", index=False)


def _write_retracing(folder: Path, truth: np.ndarray, decoded: np.ndarray, retraces: bool) -> None:
    steps = np.arange(len(truth))
    frame = pd.DataFrame(
        {
            "step": 20 + steps,
            "value": 5 + np.sin(steps / 2),
            "change": np.where(steps < 2, np.nan, 0.1 * np.abs(np.cos(steps))),
            "threshold": 0.08,
            "kept": (steps < EVENT - 1) | (steps > EVENT + 1),
            "irreversible": steps == EVENT,
            "forward_error": 0.001 + steps * 0.0001,
            "retraced_error": 0.002 + steps * 0.0001 if retraces else np.nan,
        }
    )
    frame.to_csv(folder / "retracing.csv", index=False)
    back = decoded[::-1].copy() if retraces else decoded[:0].copy()
    save_file({"truth": truth, "forward": decoded, "retraced": back}, folder / "retracing.safetensors")


def _write_embeddings(folder: Path, retraces: bool) -> None:
    def spiral(count: int) -> np.ndarray:
        turn = np.linspace(0, 9, count)
        return np.stack([turn * np.cos(turn), turn * np.sin(turn)], 1).astype(np.float32)

    arrays = {"values.points": spiral(MANY), "values.value": np.linspace(0, 50, MANY, dtype=np.float32)}
    for name, count in (("trajectory", STEPS), ("late", LATE)):
        arrays |= {
            f"{name}.true": spiral(count),
            f"{name}.retraced": spiral(count) + np.float32(0.3) if retraces else np.zeros((0, 2), np.float32),
            f"{name}.kept": np.arange(count) % 10 > 2,
            f"{name}.irreversible": np.arange(count) == 5,
        }
    save_file(arrays, folder / "embeddings.safetensors")
    shared = {"perplexity": 12.0, "neighbours": 10, "trustworthiness": 0.975}
    rows = [
        {
            **shared,
            "map": name,
            "states": count,
            "overlap": 0.625 if retraces and name != "values" else None,
            "overlap_not_retraced": None if name == "values" else 0.5,
            "overlap_chance": None if name == "values" else 0.25,
            "value_smoothness": 0.875 if name == "values" else None,
            "value_smoothness_map": 0.75 if name == "values" else None,
            "truncated_share": None if name == "values" else 0.3,
        }
        for name, count in (("trajectory", 2 * STEPS), ("late", 2 * LATE), ("values", MANY))
    ]
    pd.DataFrame(rows).to_csv(folder / "embeddings.csv", index=False)
