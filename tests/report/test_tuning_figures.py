from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from ccwm.report.tuning_figures import label, search_figures, setting
from ccwm.studies.search import read_search

from .search_files import write_study


def test_settings_have_the_papers_letters() -> None:
    assert [label("truncation.threshold"), label("model.deter")] == ["η (threshold)", "model.deter"]
    assert [setting(0.123456), setting(float("nan")), setting("l2")] == ["0.1235", "–", "l2"]


def test_few_trials_and_choices_draw_what_they_can(tmp_path: Path) -> None:
    folder = write_study(tmp_path)
    assert list(search_figures(read_search(folder))) == ["history", "slice", "contour", "importance", "parallel"]
    trials = pd.read_csv(folder / "trials.csv")
    trials["retrace.loss"] = "l2"
    trials[trials["trial"].isin([0, 3])].to_csv(folder / "trials.csv", index=False)
    summary = json.loads((folder / "study.json").read_text())
    summary["space"]["retrace.loss"] = {"kind": "choice", "choices": ["l2", "bisimulation"]}
    (folder / "study.json").write_text(json.dumps({**summary, "importance": {}, "winner": None}))
    assert list(search_figures(read_search(folder))) == ["history", "slice", "parallel"]
