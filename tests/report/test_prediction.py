from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from ccwm.errors import UserError
from ccwm.report.blocks import Panels, Picture, Table
from ccwm.report.prediction import build, load_strips, still_better, summarise
from ccwm.report.section import Report
from ccwm.studies.prediction import read_metrics

from .results_tree import CONTEXT, HORIZON, one, results, texts

TASK = "walker_walk"


def test_share_of_episodes_still_better() -> None:
    frames = [pd.DataFrame({"last_frame": [0, 2]}), pd.DataFrame({"last_frame": [2, 3]})]
    assert still_better(frames, "last_frame", 3).tolist() == [1.0, 0.75, 0.75, 0.25]


def test_rows_hold_the_studys_metrics(tree: Path) -> None:
    row = summarise(results(tree), TASK)[1]
    metrics = read_metrics(tree / "results" / "rollout-viz" / TASK / "ccwm" / "0")
    assert (row.variant, row.metrics.context, row.metrics.horizon) == ("ccwm", CONTEXT, HORIZON)
    assert row.metrics == metrics


def test_strips_are_of_the_first_seed_with_frames_and_of_one_episode(tree: Path, tmp_path: Path) -> None:
    seed, (strip,) = load_strips(results(tree), TASK) or (None, [None])
    assert seed == 0
    assert list(strip.predictions) == ["dreamer", "ccwm"]
    assert len(strip.truth) == CONTEXT + HORIZON
    shutil.copytree(tree / "results", tmp_path / "results")
    path = tmp_path / "results" / "rollout-viz" / TASK / "ccwm" / "0" / "frames.safetensors"
    frames = np.zeros((1, CONTEXT + HORIZON, 32, 32, 3), np.uint8)
    save_file({"truth": frames, "prediction": frames}, path)
    with pytest.raises(UserError, match=rf"{path} shows another episode"):
        load_strips(results(tmp_path), TASK)


def test_the_section_has_strip_video_figures_and_table(report: Report) -> None:
    blocks = build(report)
    assert one(blocks, Picture).file == f"strip-{TASK}"
    files = [shown.file for shown in one(blocks, Panels).shown]
    assert files == [f"rollout-{TASK}.mp4", f"error-{TASK}", f"ssim-{TASK}", f"horizons-{TASK}"]
    assert texts(one(blocks, Table), "ccwm")[0][1:4] == [
        "12",
        "12 to 12",
        "12",
    ]  # better than the last frame throughout
    assert (report.folder / "figures" / f"strip-{TASK}.png").is_file()
    assert len(pd.read_csv(report.folder / "tables" / "prediction.csv")) == 2
