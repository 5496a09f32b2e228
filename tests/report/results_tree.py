"""A results tree of real files, as the stages would write it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import imageio.v2 as imageio
import numpy as np
import pandas as pd
from safetensors.numpy import save_file
from states_files import write_states

SIZE, CONTEXT, HORIZON = 32, 3, 12


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def write_run(folder: Path, stage: str) -> None:
    digest = hashlib.sha256(str(folder.relative_to(folder.parents[3])).encode()).hexdigest()
    rates = stage in ("collect", "train")
    write_json(
        folder / "run.json",
        {
            "stage": stage,
            "run_id": digest[:32],
            "tracking_uri": "sqlite:////home/someone/project/mlflow.db",
            "experiment": "ccwm",
            "commit": "c0ffee" * 6 + "abcd",
            "dirty": "false",
            "settings_hash": digest[32:48],
            "seconds": 431.5,
            "env_steps_per_second": 97.25 if rates else None,
            "updates_per_second": 8.125 if stage == "train" else None,
            "peak_memory_mb": 812.5,
            "device": "cpu",
        },
    )


def disc(step: float, size: int = SIZE) -> np.ndarray:
    """A ball on its way across a room, [size, size, 3]."""
    y, x = np.mgrid[:size, :size] / size
    ball = (x - 0.15 - 0.05 * step) ** 2 + (y - 0.5 - 0.3 * np.sin(step / 2)) ** 2 < 0.02
    room = np.stack([0.25 + 0.2 * y, 0.35 + 0.2 * y, 0.5 + 0.2 * x], -1)
    room[ball] = (0.95, 0.7, 0.2)
    return (room * 255).astype(np.uint8)


def write_tree(root: Path, tasks: list[str], variants: list[str], seeds: list[int]) -> Path:
    """Every file of every stage; better variants come later in the list."""
    for task in tasks:
        for seed in seeds:
            folder = root / "collect" / task / str(seed)
            metrics = {"episodes": 5, "heldout": 5, "steps": 2500, "env_steps": 5000}
            write_json(folder / "metrics.json", {**metrics, "return_mean": 31.25 + seed, "return_sd": 6.5})
            write_run(folder, "collect")
            for rank, variant in enumerate(variants):
                where = Path(task) / variant / str(seed)
                random = np.random.default_rng([seed, rank])
                write_train(root / "train" / where, rank, random)
                write_evaluate(root / "evaluate" / where, rank, seed, random)
                write_rollout(root / "rollout-viz" / where, rank)
                write_transfer(root / "transfer" / where, rank, random)
    return root


def write_train(folder: Path, rank: int, random: np.random.Generator) -> None:
    write_json(
        folder / "metrics.json",
        {"env_steps": 20000, "updates": 2000, "episodes": 20, "return_final": 301.5, "return_best": 322.0}
        | {"return_auc": 188.25},
    )
    steps = np.arange(5000, 20001, 1000)
    mean = (300 + 90 * rank) * (1 - np.exp(-(steps - 4000) / 7000)) + random.normal(0, 12, len(steps))
    curve = {"env_steps": steps, "updates": steps // 10, "return_mean": mean, "return_sd": 20.0, "episodes": 3}
    pd.DataFrame(curve).to_csv(folder / "curve.csv", index=False)
    steps = np.arange(5000, 20001, 250)
    fall = np.exp(-(steps - 5000) / 5000)
    terms = ["model/image", "actor/loss", *(["retrace/loss"] if rank else [])]
    losses = {term: (i + 1) * fall + random.normal(0, 0.05, len(steps)) for i, term in enumerate(terms)}
    pd.DataFrame({"env_steps": steps, "updates": steps // 10, **losses}).to_csv(folder / "losses.csv", index=False)
    write_run(folder, "train")


def write_evaluate(folder: Path, rank: int, seed: int, random: np.random.Generator) -> None:
    folder.mkdir(parents=True)
    agent, chance = random.normal(280 + 90 * rank, 25, 10), np.random.default_rng(9).normal(30, 6, 10)
    rows = [
        {"episode": i, "seed": 1000 + i, "policy": policy, "return": value, "length": 500}
        for policy, values in (("agent", agent), ("random", chance))
        for i, value in enumerate(values)
    ]
    pd.DataFrame(rows).to_csv(folder / "returns.csv", index=False)
    mean, level = float(agent.mean()), float(chance.mean())
    write_json(
        folder / "metrics.json",
        {
            "episodes": 10,
            "return_mean": mean,
            "return_sd": float(agent.std(ddof=1)),
            "return_iqm": float(np.sort(agent)[2:8].mean()),
            "return_low": mean - 15.5,
            "return_high": mean + 15.5,
            "random_mean": level,
            "random_sd": float(chance.std(ddof=1)),
            "random_low": level - 4.5,
            "random_high": level + 4.5,
            "best_possible": 1000.0,
            "score": (mean - level) / (1000 - level),
            "success_rate": None,
        },
    )
    write_run(folder, "evaluate")


def write_rollout(folder: Path, rank: int) -> None:
    folder.mkdir(parents=True)
    length = CONTEXT + HORIZON
    truth = np.stack([disc(t) for t in range(length)])
    drift = [max(t - CONTEXT, 0) * 0.08 * (2 - min(rank, 1)) for t in range(length)]
    prediction = np.stack([disc(t - late) for t, late in enumerate(drift)])
    save_file({"truth": truth[None], "prediction": prediction[None]}, folder / "frames.safetensors")
    gap = (truth.astype(np.float64) - prediction) / 255
    frozen = (truth.astype(np.float64) - truth[CONTEXT - 1]) / 255
    error, baseline = ((of[CONTEXT:] ** 2).mean((1, 2, 3)) for of in (gap, frozen))
    steps = {"step": np.arange(1, HORIZON + 1), "error": error, "baseline_error": baseline, "mean_frame_error": 0.02}
    alike = {"ssim": 1 - 8 * error, "baseline_ssim": 1 - 8 * baseline}
    pd.DataFrame({**steps, **alike}).to_csv(folder / "errors.csv", index=False)
    horizons = {"episode": range(5), "last_frame": [5 + rank, 6, 6 + rank, 8, 12], "mean_frame": [8, 9, 12, 12, 12]}
    pd.DataFrame(horizons).to_csv(folder / "horizons.csv", index=False)
    both = (
        np.concatenate([truth, prediction, np.abs(truth.astype(int) - prediction).astype(np.uint8)], 2)
        .repeat(2, 1)
        .repeat(2, 2)
    )
    imageio.mimsave(folder / "rollout.mp4", list(both), fps=10, macro_block_size=16)
    write_json(
        folder / "metrics.json",
        {
            "episodes": 5,
            "context": CONTEXT,
            "horizon": HORIZON,
            "useful_steps_of_mean": 8 + 3 * rank,
            "useful_steps_of_mean_low": 6.25,
            "useful_steps_of_mean_high": 12.0,
            "useful_steps_median": 6.5 + 3 * rank,
            "useful_steps_low": 5.25,
            "useful_steps_high": 11.75,
            "error_mean": float(error.mean()),
            "baseline_error_mean": float(baseline.mean()),
            "informed_steps_of_mean": 12,
            "informed_steps_of_mean_low": 8.0,
            "informed_steps_of_mean_high": 12.0,
            "informed_steps_median": 11.5,
            "informed_steps_low": 8.0,
            "informed_steps_high": 12.0,
            "ssim_mean": float((1 - 8 * error).mean()),
            "baseline_ssim_mean": float((1 - 8 * baseline).mean()),
        },
    )
    write_states(folder, truth, prediction, retraces=rank > 0)
    write_run(folder, "rollout-viz")


WORLDS = {  # what the draws of a row change
    "unchanged": ["nothing"],
    "R": ["reward 2"],
    "R+M": ["reward 2 · mass 6", "reward 2 · mass 20"],
    "R+M+F": ["reward 2 · mass 6 · friction 0.6/0.4/0.3", "reward 2 · mass 20 · friction 0.8/0.4/0.3"],
    "R+M+S+F": ["reward 2 · mass 6 · friction 0.6/0.4/0.3 · stiffness 2"],
}


def write_transfer(folder: Path, rank: int, random: np.random.Generator) -> None:
    """Six worlds a row; a rescaled reward changes nothing, each further change costs the first variant more."""
    returns = {name: random.normal(270 + 90 * rank - 40 * i / (1 + rank), 20, 6) for i, name in enumerate(WORLDS)}
    returns["R"] = returns["unchanged"]

    def group(values: np.ndarray) -> dict[str, float]:
        return {"mean": float(values.mean()), "sd": float(values.std(ddof=1)), "n": len(values)}

    groups = {name: group(of) for name, of in returns.items()}
    write_json(folder / "metrics.json", {"unchanged": groups.pop("unchanged"), "rows": groups})
    rows = [
        {"row": name, "draw": i, "seed": 50 + i, "change": WORLDS[name][i % len(WORLDS[name])], "return": value}
        for name, of in returns.items()
        for i, value in enumerate(of)
    ]
    pd.DataFrame(rows).to_csv(folder / "returns.csv", index=False)
    write_run(folder, "transfer")
