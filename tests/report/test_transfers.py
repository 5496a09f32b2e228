from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from ccwm.report.claims import PaperTransfer, load_claims
from ccwm.report.heatmap import grid, heatmap_figure, parts
from ccwm.report.results import Results
from ccwm.report.transfers import reward_check, transfer_table, transfers

TASK = "cheetah_run"
PRINTED: PaperTransfer = load_claims(Path(__file__).parents[2] / "claims.yaml").transfer
Rows = dict[str, list[float]]


def write(root: Path, variant: str, rows: Rows, *, seed: int = 0, changes: dict[str, str] | None = None) -> None:
    folder = root / "transfer" / TASK / variant / str(seed)
    folder.mkdir(parents=True)
    means = {name: {"mean": sum(of) / len(of), "sd": 1.0, "n": len(of)} for name, of in rows.items()}
    (folder / "metrics.json").write_text(json.dumps({"unchanged": means.pop("unchanged"), "rows": means}))
    lines = [
        {"row": name, "draw": i, "seed": i, "change": (changes or {}).get(name, "nothing"), "return": value}
        for name, of in rows.items()
        for i, value in enumerate(of)
    ]
    pd.DataFrame(lines).to_csv(folder / "returns.csv", index=False)


def study(root: Path, seeds: int = 1) -> Results:
    return Results(root, [TASK], ["dreamer", "ccwm"], list(range(seeds)))


def test_one_seed_is_compared_over_worlds(tmp_path: Path) -> None:
    write(
        tmp_path, "dreamer", {"unchanged": [9.0, 9.0], "R": [9.0, 9.0], "R+M": [1.0, 2.0, 3.0], "R+F": [1.0, 2.0, 3.0]}
    )
    write(tmp_path, "ccwm", {"unchanged": [9.0, 9.0], "R": [9.0, 9.0], "R+M": [4.0, 5.0, 6.0], "R+F": [1.0, 2.0, 3.0]})
    found = {(row.row, row.variant): row for row in transfers(study(tmp_path), TASK)}
    moved, rubbed = found["R+M", "ccwm"], found["R+F", "ccwm"]
    assert (moved.unit, moved.n, moved.mean, moved.sd, moved.difference) == ("worlds", 3, 5.0, 1.0, 3.0)
    assert moved.hedges_g == pytest.approx(3 * 0.8)  # 3 sd apart, 1 − 3 / (4 · 4 − 1) = 0.8
    assert moved.p == pytest.approx(0.010656, abs=1e-6)  # t = 3 / √(2/3) with 4 degrees of freedom
    assert rubbed.p == pytest.approx(0.5)
    assert moved.p_holm == pytest.approx(2 * 0.010656, abs=2e-6)  # two rows in the family: R is no transfer
    assert rubbed.p_holm == pytest.approx(0.5)
    assert found["R", "ccwm"].p_holm is None
    assert found["R+M", "dreamer"].p is None
    assert moved.p_spread == pytest.approx(1.0)  # both spread alike


def test_several_seeds_are_compared_over_seeds(tmp_path: Path) -> None:
    for seed in range(3):
        write(tmp_path, "dreamer", {"unchanged": [0.0], "R+M": [seed, seed + 2.0]}, seed=seed)
        write(tmp_path, "ccwm", {"unchanged": [0.0], "R+M": [seed + 3.0, seed + 5.0]}, seed=seed)
    found = {(row.row, row.variant): row for row in transfers(study(tmp_path, 3), TASK)}
    moved = found["R+M", "ccwm"]
    assert (moved.unit, moved.n, moved.mean, moved.sd) == ("seeds", 3, 5.0, 1.0)  # 4, 5, 6
    assert moved.p == pytest.approx(0.010656, abs=1e-6)


def test_the_papers_numbers_stand_beside_ours(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        write(tmp_path, variant, {"unchanged": [9.0, 8.0], "R+M+F": [1.0, 2.0, 3.0]})
    rows = transfers(study(tmp_path), TASK)
    table = transfer_table(TASK, rows, variants=["dreamer", "ccwm"], paper=PRINTED)
    assert table.headings[-3:] == ["Paper: ccwm", "Paper: dreamer", "Paper: p"]
    assert [entry.text for entry in table.rows[1][-3:]] == ["628.07 ± 36.95", "468.82 ± 94.73", "7.27 × 10⁻⁶"]
    assert [entry.text for entry in table.rows[0][-3:]] == ["–", "–", "–"]  # the paper has no unchanged row
    other = transfer_table("walker_walk", rows, variants=["dreamer", "ccwm"], paper=PRINTED)
    assert not any(heading.startswith("Paper") for heading in other.headings)


def test_the_reward_alone_changes_nothing_and_says_so(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        write(tmp_path, variant, {"unchanged": [9.0, 8.0], "R": [9.0, 8.0]})
    said = reward_check(study(tmp_path), TASK)
    assert said is not None
    assert said.startswith("Sanity check passed")
    assert "dreamer and ccwm" in said
    assert "4 worlds" in said


def test_a_reward_that_changes_something_is_told(tmp_path: Path) -> None:
    write(tmp_path, "ccwm", {"unchanged": [10.0, 8.0], "R": [10.0, 9.0]})
    said = reward_check(study(tmp_path), TASK)
    assert said is not None
    assert said.startswith("Sanity check FAILED")
    assert "by up to 10.0%" in said  # 1 of 10
    write(tmp_path / "none", "ccwm", {"unchanged": [10.0], "R+M": [10.0]})
    assert reward_check(study(tmp_path / "none"), TASK) is None


def test_what_changes_a_world() -> None:
    assert parts("nothing") == parts("reward 2") == {}
    assert parts("reward 2 · mass 6 · friction 0.6/0.4/0.3") == {"mass": "6", "friction": "0.6/0.4/0.3"}
    assert parts("layout two_rooms") == {"layout": "two_rooms"}


def test_the_grid_by_hand(tmp_path: Path) -> None:
    changes = {"R+M": "reward 2 · mass 10", "R+F": "friction 0.6/0.4/0.3", "R+M+F": "mass 10 · friction 0.6/0.4/0.3"}
    rows = {"unchanged": [8.0], "R+M": [1.0, 3.0], "R+F": [5.0], "R+M+F": [7.0]}
    write(tmp_path, "dreamer", rows, changes=changes)
    write(tmp_path, "ccwm", {**rows, "R+F": [6.0]}, changes=changes)
    table = grid(study(tmp_path), TASK, "dreamer")
    assert table is not None
    assert table.to_dict() == {"own": {"own": 8.0, "mass 10": 2.0}, "0.6/0.4/0.3": {"own": 5.0, "mass 10": 7.0}}
    other = grid(study(tmp_path), TASK, "ccwm")
    assert other is not None
    figure = heatmap_figure(TASK, {"dreamer": table, "ccwm": other}, reference="dreamer")
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}
    assert list(panels) == ["dreamer", "ccwm", "ccwm − dreamer"]
    assert sorted(text.get_text() for text in panels["ccwm − dreamer"].texts) == ["0", "0", "0", "1"]
    assert grid(study(tmp_path), TASK, "nobody") is None


def test_masses_are_ordered_by_number(tmp_path: Path) -> None:
    changes = {"a": "mass 20", "b": "mass 6", "c": "mass 6 · stiffness 2", "d": "layout open"}
    write(tmp_path, "ccwm", {"unchanged": [1.0], "a": [1.0], "b": [1.0], "c": [1.0], "d": [1.0]}, changes=changes)
    table = grid(study(tmp_path), TASK, "ccwm")
    assert table is not None
    assert list(table.index) == ["own", "layout open", "mass 6", "mass 20", "mass 6 · stiffness 2"]
