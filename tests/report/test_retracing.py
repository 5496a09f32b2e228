from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ccwm.cells import Cell
from ccwm.report.blocks import Picture, Table
from ccwm.report.retracing import FILES, SECTION, measure, skill_figure
from ccwm.report.section import Report
from ccwm.studies.retracing import read_retracing

from .results_tree import one, results, texts


def test_a_row_by_hand(tree: Path) -> None:
    found = results(tree).load("rollout-viz", "walker_walk", read_retracing, FILES)
    row, other = (measure(next(iter(found[variant].values()))) for variant in ("ccwm", "dreamer"))
    assert round(row["forward_error"], 9) == 0.0017  # the mean of 0.001 + 0.0001 t over t = 0 … 14
    assert round(row["retraced_error"], 9) == 0.0027
    assert (round(row["truncated"], 9), row["events"]) == (0.2, 1)  # 3 of 15
    assert other["retraced_error"] is None


def test_a_picture_for_each_variant_and_a_dash_for_who_does_not_retrace(report: Report) -> None:
    blocks = SECTION.build(report)
    pictures = [block.file for block in blocks if isinstance(block, Picture)]
    assert pictures == ["skill-walker_walk", "retracing-walker_walk-dreamer", "retracing-walker_walk-ccwm"]
    table = one(blocks, Table)
    # 20,000 steps / 40,000 is the last skill
    assert texts(table, "ccwm") == [["ccwm", "0.500", "−0.250", "0.0017", "0.0027", "0.200", "1"]]
    assert texts(table, "dreamer") == [["dreamer", "–", "–", "0.0017", "–", "0.200", "1"]]
    written = pd.read_csv(report.folder / "tables" / "retracing.csv").set_index("variant")
    assert written["retrace_skill_latent"]["ccwm"] == 0.5
    assert len(written["cells"]["ccwm"].split()) == 2  # of train and of rollout-viz


def test_states_are_drawn_too(state_tree: Path, make_report: Callable[..., Report]) -> None:
    pictures = [block for block in SECTION.build(make_report(state_tree)) if isinstance(block, Picture)]
    assert len(pictures) == 3


def test_the_skill_is_drawn_for_who_retraces_and_cut_off_far_below_zero() -> None:
    steps = {"env_steps": [0, 100], "retrace_skill_latent": [-30.0, 0.5], "retrace_skill_observation": [-0.5, 0.25]}
    cell = Cell("train", "walker_walk", "ccwm", 0)
    frames = {"ccwm": {cell: pd.DataFrame(steps)}, "dreamer": {cell: pd.DataFrame({"env_steps": [0, 100]})}}
    figure = skill_figure("walker_walk", frames, {"ccwm": "#222222"})
    assert figure is not None
    latent, _ = figure.axes
    assert latent.get_lines()[0].get_ydata().tolist() == [-30.0, 0.5]
    assert latent.get_ylim() == (-1.0, 1.03)
    frames["ccwm"][cell]["retrace_skill_latent"] = [0.25, 0.5]
    low, _ = skill_figure("walker_walk", frames, {"ccwm": "#222222"}).axes[0].get_ylim()
    assert low == -0.53  # both panels show the lowest of both
    assert skill_figure("walker_walk", {"dreamer": frames["dreamer"]}, {}) is None
