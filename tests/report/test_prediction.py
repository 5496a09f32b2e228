from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.blocks import Details, Panels, Picture, Table, Video
from ccwm.report.prediction import SECTION, still_better, summarise
from ccwm.report.section import Report
from ccwm.studies.prediction import read_metrics

from .results_tree import CONTEXT, HORIZON, one, results, texts

TASK = "walker_walk"


def test_share_of_episodes_still_better() -> None:
    frames = [pd.DataFrame({"last": [0, 2]}), pd.DataFrame({"last": [2, 3]})]
    assert still_better(frames, "last", 3).tolist() == [1.0, 0.75, 0.75, 0.25]


def test_rows_hold_the_studys_metrics(tree: Path) -> None:
    row = summarise(results(tree), TASK)[1]
    metrics = read_metrics(tree / "results" / "rollout-viz" / TASK / "ccwm" / "0")
    assert (row["variant"], row["context"], row["horizon"]) == ("ccwm", CONTEXT, HORIZON)
    assert {name: row[name] for name in metrics._fields} == metrics._asdict()


def test_the_section_has_strip_video_figures_and_table(report: Report) -> None:
    blocks = SECTION.build(report)
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


def test_states_have_curves_a_video_and_a_line_for_each_component(
    state_tree: Path, make_report: Callable[..., Report]
) -> None:
    report = make_report(state_tree)
    blocks = SECTION.build(report)
    assert (one(blocks, Picture).file, one(blocks, Video).file) == (f"components-{TASK}", f"rollout-{TASK}.mp4")
    assert [shown.file for shown in one(blocks, Panels).shown] == [f"error-{TASK}", f"horizons-{TASK}"]
    assert "SSIM" not in one(blocks, Table).headings
    table = one(one(blocks, Details).blocks, Table)
    assert table.headings == ["Component", "dreamer", "ccwm", "Last state repeated", "Mean state"]
    (row,) = texts(table, "x")
    assert float(row[4]) == pytest.approx(0.05**2 * (12**2 - 1) / 12, rel=0.01)  # the variance of 12 even steps
    assert (report.folder / "figures" / f"components-{TASK}.png").is_file()
    written = pd.read_csv(report.folder / "tables" / "components.csv")
    assert written["component"].tolist() == ["x", "y", "x", "y"]
    # x moves by 0.05 a step: late by 0.16 and 0.08 of a step more each time, for 0 … 11 steps
    squares = sum(t * t for t in range(12)) / 12
    dreamer, ccwm = written.loc[written["component"] == "x", "error"]
    assert dreamer == pytest.approx(squares * (0.05 * 0.16) ** 2, rel=1e-5)
    assert ccwm == pytest.approx(squares * (0.05 * 0.08) ** 2, rel=1e-5)
