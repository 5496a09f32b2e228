from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ccwm.cells import Cell
from ccwm.errors import UserError
from ccwm.report.blocks import Words
from ccwm.report.rollouts import curve_blocks, load_shown
from ccwm.report.section import Report
from ccwm.studies.components import Curves
from ccwm.studies.prediction import FRAMES, OBSERVATIONS
from ccwm.studies.strips import Strip

from .results_tree import CONTEXT, HORIZON, one, place, results

TASK = "walker_walk"


def test_strips_are_of_the_first_seed_with_frames_and_of_one_episode(tree: Path, tmp_path: Path) -> None:
    seed, (strip,) = load_shown(results(tree), TASK) or (None, [None])
    assert seed == 0
    assert isinstance(strip, Strip)
    assert list(strip.predictions) == ["dreamer", "ccwm"]
    assert len(strip.truth) == CONTEXT + HORIZON
    shutil.copytree(tree / "results", tmp_path / "results")
    cell = Cell("rollout-viz", TASK, "ccwm", 0)
    path = tmp_path / cell.results / OBSERVATIONS
    (tmp_path / cell.record).unlink()
    frames = np.zeros((1, CONTEXT + HORIZON, 32, 32, 3), np.uint8)
    save_file({"truth": frames, "prediction": frames}, path)
    with pytest.raises(UserError, match=rf"{path} shows another episode"):
        load_shown(results(tmp_path), TASK)


def test_states_are_shown_by_their_components(state_tree: Path) -> None:
    _, (curves,) = load_shown(results(state_tree), TASK) or (None, [None])
    assert isinstance(curves, Curves)
    assert (curves.context, curves.names, list(curves.predictions)) == (CONTEXT, ["x", "y"], ["dreamer", "ccwm"])
    assert np.array_equal(curves.truth[4], place(4))


def test_states_that_were_not_rendered_have_a_note_in_place_of_the_video(
    state_tree: Path, tmp_path: Path, make_report: Callable[..., Report]
) -> None:
    shutil.copytree(state_tree / "results", tmp_path / "results")
    for path in (tmp_path / "results").rglob(Path(FRAMES).name):
        path.unlink()
    found = load_shown(results(tmp_path), TASK)
    assert found is not None
    blocks = curve_blocks(make_report(tmp_path), TASK, *found)
    assert len(blocks) == 2
    assert one(blocks, Words).style == "missing"
