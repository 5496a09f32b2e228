from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.blocks import Picture, Table
from ccwm.report.claims import Paper
from ccwm.report.results import Results
from ccwm.report.section import Report
from ccwm.report.transfer import SECTION, check_words, reward_gaps, summarise, transfer_table

from .results_tree import one, results, write_rows

TASK = "cheetah_run"


def moved(root: Path, variant: str, rows: dict[str, list[float]], *, seed: int = 0) -> None:
    folder = root / "results" / "transfer" / TASK / variant / str(seed)
    folder.mkdir(parents=True)
    write_rows(folder, rows)


def found(root: Path, seeds: int = 1) -> Results:
    return results(root, tasks=(TASK,), seeds=seeds)


def test_one_seed_is_compared_over_draws(tmp_path: Path) -> None:
    same = {"unchanged": [9.0, 9.0], "R": [9.0, 9.0], "R+F": [1.0, 2.0, 3.0]}
    moved(tmp_path, "dreamer", {**same, "R+M": [1.0, 2.0, 3.0]})
    moved(tmp_path, "ccwm", {**same, "R+M": [4.0, 5.0, 6.0]})
    rows = {(row["row"], row["variant"]): row for row in summarise(found(tmp_path), TASK)}
    mass, friction = rows["R+M", "ccwm"], rows["R+F", "ccwm"]
    assert (mass["unit"], mass["n"], mass["mean"], mass["sd"], mass["difference"]) == ("draws", 3, 5.0, 1.0, 3.0)
    assert mass["hedges_g"] == pytest.approx(3 * 0.8)  # 3 sd apart, 1 − 3 / (4 · 4 − 1) = 0.8
    assert mass["p"] == pytest.approx(0.010656, abs=1e-6)  # t = 3 / √(2/3) with 4 degrees of freedom
    assert friction["p"] == pytest.approx(0.5)
    assert mass["p_holm"] == pytest.approx(2 * 0.010656, abs=2e-6)  # two rows in the family: R is no transfer
    assert friction["p_holm"] == pytest.approx(0.5)
    assert rows["R", "ccwm"]["p_holm"] is None
    assert rows["R+M", "dreamer"]["p"] is None
    assert mass["p_spread"] == pytest.approx(1.0)  # both spread alike


def test_several_seeds_are_compared_over_seeds(tmp_path: Path) -> None:
    for seed in range(3):
        moved(tmp_path, "dreamer", {"unchanged": [0.0], "R+M": [seed, seed + 2.0]}, seed=seed)
        moved(tmp_path, "ccwm", {"unchanged": [0.0], "R+M": [seed + 3.0, seed + 5.0]}, seed=seed)
    rows = {(row["row"], row["variant"]): row for row in summarise(found(tmp_path, 3), TASK)}
    mass = rows["R+M", "ccwm"]
    assert (mass["unit"], mass["n"], mass["mean"], mass["sd"]) == ("seeds", 3, 5.0, 1.0)  # 4, 5, 6
    assert mass["p"] == pytest.approx(0.010656, abs=1e-6)


def test_the_papers_numbers_stand_beside_ours(tmp_path: Path, paper: Paper) -> None:
    for variant in ("dreamer", "ccwm"):
        moved(tmp_path, variant, {"unchanged": [9.0, 8.0], "R+M+F": [1.0, 2.0, 3.0]})
    rows = summarise(found(tmp_path), TASK)
    table = transfer_table(TASK, rows, reference="dreamer", paper=paper.transfer)
    assert table.headings[-3:] == ["Paper: ccwm", "Paper: dreamer", "Paper: p"]
    assert [entry.text for entry in table.rows[1][-3:]] == ["628.07 ± 36.95", "468.82 ± 94.73", "7.27 × 10⁻⁶"]
    assert [entry.text for entry in table.rows[0][-3:]] == ["–", "–", "–"]  # the paper has no unchanged row
    assert [str(cell) for cell in table.cells] == [f"transfer@{TASK}-{name}-0" for name in ("dreamer", "ccwm")]
    other = transfer_table("walker_walk", rows, reference="dreamer", paper=paper.transfer)
    assert not any(heading.startswith("Paper") for heading in other.headings)


def test_a_rescaled_reward_alone_must_change_nothing(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        moved(tmp_path, variant, {"unchanged": [9.0, 8.0], "R": [9.0, 8.0]})
    assert reward_gaps(found(tmp_path), TASK) == {"dreamer": [0.0, 0.0], "ccwm": [0.0, 0.0]}
    moved(tmp_path / "other", "ccwm", {"unchanged": [10.0, 8.0], "R": [10.0, 9.0]})
    gaps = reward_gaps(found(tmp_path / "other"), TASK)
    assert gaps == {"ccwm": [0.0, 0.1]}  # 1 of 10
    assert [words.style for words in check_words(gaps)] == ["check failed"]
    moved(tmp_path / "none", "ccwm", {"unchanged": [10.0], "R+M": [10.0]})
    assert check_words(reward_gaps(found(tmp_path / "none"), TASK)) == []


def test_the_section_has_check_table_and_heat_map(report: Report) -> None:
    blocks = SECTION.build(report)
    assert blocks[0].style == "check passed"
    table = one(blocks, Table)
    assert [row[0].text for row in table.rows] == ["nothing", "R", "R+M", "R+M+F", "R+M+S+F"]
    assert one(blocks, Picture).file == "transfer-walker_walk"
    written = pd.read_csv(report.folder / "tables" / "transfer.csv")
    assert len(written) == 10
    assert written["p_holm"].notna().sum() == 3
