from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ccwm.errors import UserError
from ccwm.report.results import MEASURED, READERS, Results
from ccwm.studies.returns import read_metrics
from ccwm.studies.without_model import write_without_model

from .results_tree import results, study, sums, write_returns, write_tree


def test_the_stages_are_those_with_results() -> None:
    assert MEASURED == ("collect", "train", "evaluate", "rollout-viz", "transfer")


def test_cells_that_are_there_and_those_that_are_not(tmp_path: Path) -> None:
    found = results(tmp_path, seeds=2)
    there = found.expected("evaluate", variant="ccwm")[1]
    folder = tmp_path / there.results
    folder.mkdir(parents=True)
    write_returns(folder, [1.0, 2.0])
    assert found.cells("evaluate") == [there]
    assert found.cells("evaluate", files=["nothing.csv"]) == []
    assert found.missing("evaluate") == [
        f"evaluate@walker_walk-{name}" for name in ("dreamer-0", "ccwm-0", "dreamer-1")
    ]
    assert found.missing_files("evaluate", ["returns.csv", "nothing.csv"]) == [f"{there}/nothing.csv"]
    loaded = found.load("evaluate", "walker_walk", read_metrics)
    assert {variant: [cell.seed for cell in of] for variant, of in loaded.items()} == {"ccwm": [1]}
    assert loaded["ccwm"][there].return_mean == 1.5


def test_an_agent_without_a_world_model_is_expected_in_no_study_of_one(tmp_path: Path) -> None:
    found = results(tmp_path, seeds=1)
    first, second = found.expected("rollout-viz")
    (tmp_path / second.results).mkdir(parents=True)
    write_without_model(tmp_path / second.results)
    assert found.expected("rollout-viz") == [first]
    assert found.missing("rollout-viz") == [str(first)]
    assert found.damaged("rollout-viz") == {}
    assert found.expected("evaluate") == [first.of("evaluate"), second.of("evaluate")]


def test_a_broken_file_is_named_with_the_cell_to_run_again(tmp_path: Path) -> None:
    found = results(tmp_path)
    cell = found.expected("evaluate")[0]
    path = tmp_path / cell.results / "metrics.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(UserError, match=rf"{path} lacks the key 'episodes': .*dvc repro --force {cell}"):
        found.read(cell, read_metrics)


DAMAGE: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "a curve cut in a row": ("train", "curve.csv", lambda text: text[:-30]),
    "NaN in a curve": ("train", "curve.csv", lambda text: text.replace("10000,", "10000,nan,", 1)),
    "NaN in a loss": ("train", "losses.csv", lambda text: text.rpartition(",")[0] + ",nan\n"),
    "NaN in the returns": ("evaluate", "returns.csv", lambda text: text.replace("agent,", "agent,nan", 1)),
    "text in the returns": ("transfer", "returns.csv", lambda text: text.rpartition(",")[0] + ",high\n"),
    "NaN in metrics": ("evaluate", "metrics.json", lambda text: text.replace('_mean": ', '_mean": NaN, "x": ', 1)),
    "text in metrics": ("train", "metrics.json", lambda text: text.replace('"updates": 2000', '"updates": "2000"')),
    "no JSON": ("collect", "metrics.json", lambda text: text[:-3]),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_cell_is_named_and_in_no_list(tmp_path: Path, kind: str) -> None:
    stage, name, damage = DAMAGE[kind]
    found = results(write_tree(tmp_path, study(seeds=2)), seeds=2)
    cell, *whole = found.expected(stage)
    path = tmp_path / cell.results / name
    path.write_text(damage(path.read_text()))
    assert found.cells(stage) == whole
    assert [*found.damaged(stage)] == [str(cell)]
    assert str(path) in found.damaged(stage)[str(cell)]
    assert not any(found.damaged(other) for other in MEASURED if other != stage)


@pytest.mark.parametrize("told_by", ["run.json", "dvc.lock"])
def test_another_number_than_the_run_wrote_is_damage(tmp_path: Path, told_by: str) -> None:
    write_tree(tmp_path, study())
    cell = results(tmp_path).expected("train")[0]
    path, record = tmp_path / cell.results / "curve.csv", tmp_path / cell.record
    if told_by == "dvc.lock":
        record.unlink()
        outs = [{"path": name, "md5": of} for name, of in sums(path.parent, cell).items()]
        YAML(typ="safe").dump({"stages": {str(cell): {"outs": outs}}}, tmp_path / "dvc.lock")
    assert Results(tmp_path, study()).damaged("train") == {}
    path.write_text(path.read_text().replace("3", "8", 1))
    damaged = {str(cell): f"{path} is not the file that its run has written"}
    assert Results(tmp_path, study()).damaged("train") == damaged


@pytest.mark.parametrize("record", [None, "{", "{}", '{"files": {}}', '{"files": []}'])
def test_files_that_nothing_vouches_for_are_damage(tmp_path: Path, record: str | None) -> None:
    write_tree(tmp_path, study())
    cell, *whole = Results(tmp_path, study()).expected("train")
    (tmp_path / cell.record).unlink()
    if record is not None:
        (tmp_path / cell.record).write_text(record)
    found = Results(tmp_path, study())
    assert found.cells("train") == whole
    assert "says what its run has written" in found.damaged("train")[str(cell)]


def test_every_stage_has_its_readers() -> None:
    assert tuple(READERS) == MEASURED
