"""The sections on retracing, maps of states and truncation."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from results_tree import write_tree
from states_files import EVENT, THRESHOLDS

from ccwm.report import build_report
from ccwm.report.embeddings import embeddings_section, load_maps
from ccwm.report.results import Results
from ccwm.report.retracing import load_retracing, retracing_section
from ccwm.report.truncation import truncation_section

TASK, VARIANTS = "walker_walk", ["dreamer", "ccwm"]
COLOURS = {"dreamer": "#111111", "ccwm": "#222222"}


def saved(figure: object, name: str) -> dict[str, str]:
    return {"file": name, "svg": ""}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    return tmp_path


def study(tree: Path, seeds: list[int] | None = None) -> Results:
    return Results(tree, [TASK], VARIANTS, seeds or [0])


def texts(table, variant: str) -> list[list[str]]:
    return [[entry.text for entry in row] for row in table.rows if row[0].text == variant]


def test_retracing_is_read_as_it_was_written(tree: Path):
    shown = load_retracing(study(tree).cell("rollout-viz", TASK, "ccwm", 0))
    assert shown.first == 20
    assert np.flatnonzero(shown.irreversible).tolist() == [EVENT]
    assert np.flatnonzero(~shown.kept).tolist() == [EVENT - 1, EVENT, EVENT + 1]
    assert np.isnan(shown.change[:2]).all()
    assert len(shown.retraced) == len(shown.retraced_error) == len(shown.truth)
    plain = load_retracing(study(tree).cell("rollout-viz", TASK, "dreamer", 0))
    assert len(plain.retraced) == len(plain.retraced_error) == 0


def test_retracing_names_the_errors_of_both_and_a_dash_for_who_does_not_retrace(tree: Path):
    (of,) = retracing_section(study(tree), saved)
    assert list(of["pictures"]) == VARIANTS
    # means over 15 steps: 0.001 + 7 · 0.0001 and 0.002 + 7 · 0.0001; 3 of 15 are not kept
    assert texts(of["table"], "ccwm") == [["ccwm", "0.0017", "0.0027", "0.200", "1", "0"]]
    assert texts(of["table"], "dreamer") == [["dreamer", "0.0017", "–", "0.200", "1", "0"]]


def test_maps_have_their_numbers_beside_them(tree: Path, folder: Path):
    (of,) = embeddings_section(study(tree), folder, saved)
    assert (of["agents"]["ccwm"]["steps"], of["agents"]["ccwm"]["late_steps"]) == (40, 12)
    assert texts(of["table"], "ccwm") == [
        ["ccwm", "trajectory", "80", "0.975", "0.625", "0.500", "0.250", "–", "–", "0"],
        ["ccwm", "its end", "24", "0.975", "0.625", "0.500", "0.250", "–", "–", "0"],
        ["ccwm", "many states", "150", "0.975", "–", "–", "–", "0.875", "0.750", "0"],
    ]
    written = pd.read_csv(folder / "tables" / "embeddings.csv")
    assert len(written) == 6
    assert set(written["cells"]) == {f"rollout-viz@{TASK}-{variant}-0" for variant in VARIANTS}
    assert len(load_maps(study(tree).cell("rollout-viz", TASK, "dreamer", 0))[0].retraced) == 0


def test_truncation_says_the_own_threshold_and_the_best_one(tree: Path, folder: Path):
    (of,) = truncation_section(study(tree), folder, COLOURS, saved)
    assert of["truth"]
    assert len(of["figures"]) == 5
    own, best = texts(of["table"], "ccwm")
    assert own[:5] == ["ccwm", "own", "prose", "0.100", "0.200"]
    # best F1 of events by the prose is at the largest η: 0.4 + 0.2; that of Algorithm 1 (0.4 + 9 · 0.2) is no matter
    assert best[:5] == ["ccwm", "best", "prose", "0.200", "0.1000"]
    assert best[-3:] == ["0.600", "3", "0"]
    assert len(pd.read_csv(folder / "tables" / "truncation.csv")) == 2 * 2 * len(THRESHOLDS)


def test_without_truth_only_the_share_is_shown(tree: Path, folder: Path, tmp_path: Path):
    results = tmp_path / "results"
    shutil.copytree(tree, results)
    for path in results.rglob("truncation.csv"):
        frame = pd.read_csv(path)
        frame["events"] = 0
        frame[["true_share", "precision", "recall", "f1", "event_precision", "event_recall", "event_f1"]] = np.nan
        frame.to_csv(path, index=False)
    (of,) = truncation_section(study(results), folder, COLOURS, saved)
    assert not of["truth"]
    assert list(of["figures"]) == ["truncated_share"]
    assert of["table"].headings == ["Variant", "η of", "Rule", "η", "Truncated", "Events", "Runs"]
    assert texts(of["table"], "ccwm") == [["ccwm", "own", "prose", "0.100", "0.200", "0", "0"]]


def test_seeds_are_averaged(folder: Path, tmp_path: Path):
    results = write_tree(tmp_path / "results", [TASK], VARIANTS, [0, 1])
    path = results / "rollout-viz" / TASK / "ccwm" / "1" / "truncation.csv"
    frame = pd.read_csv(path)
    frame.loc[frame["own"], ["threshold", "truncated_share"]] = 0.3, 0.4  # the η that `auto` ended with differs by seed
    frame.to_csv(path, index=False)
    (of,) = truncation_section(study(results, [0, 1]), folder, COLOURS, saved)
    own, _ = texts(of["table"], "ccwm")
    assert own[3:5] == ["0.200", "0.300"]  # means of 0.1 and 0.3, of 0.2 and 0.4
    assert own[-2:] == ["6", "0, 1"]


def test_missing_files_are_said_and_the_rest_is_shown(tree: Path, tmp_path: Path):
    results, gone = tmp_path / "results", ["retracing.safetensors", "embeddings.safetensors", "truncation.csv"]
    shutil.copytree(tree, results, ignore=lambda _, names: {"losses.csv", "curve.csv"} & {*names})
    for file in gone:
        (results / "rollout-viz" / TASK / "ccwm" / "0" / file).unlink()
    report = tmp_path / "report"
    page = build_report(results, report, tasks=[TASK], variants=VARIANTS, seeds=[0], title="T", colours={}).read_text()
    for file in gone:
        assert f"<code>rollout-viz@{TASK}-ccwm-0/{file}</code>" in page
        assert f"<code>rollout-viz@{TASK}-dreamer-0/{file}</code>" not in page
    assert (report / "figures" / f"retracing-{TASK}-dreamer.svg").is_file()
    assert not (report / "figures" / f"retracing-{TASK}-ccwm.svg").exists()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("retracing.safetensors", b"no", r"retracing.safetensors holds no frames.*dvc repro --force rollout-viz@"),
        ("embeddings.safetensors", b"no", r"embeddings.safetensors holds no maps.*dvc repro --force rollout-viz@"),
        ("embeddings.csv", b"map\nlate\n", r"embeddings.csv lacks the column 'perplexity'"),
        ("truncation.csv", b"a\n1\n", r"truncation.csv lacks the column 'rule'"),
    ],
)
def test_a_broken_file_is_named(tree: Path, folder: Path, file: str, content: bytes, message: str):
    results = folder / "results"
    shutil.copytree(tree, results)
    (results / "rollout-viz" / TASK / "ccwm" / "0" / file).write_bytes(content)
    sections = {
        "retracing": lambda of: retracing_section(of, saved),
        "embeddings": lambda of: embeddings_section(of, folder, saved),
        "truncation": lambda of: truncation_section(of, folder, COLOURS, saved),
    }
    with pytest.raises(ValueError, match=message):
        sections[file.partition(".")[0]](study(results))
