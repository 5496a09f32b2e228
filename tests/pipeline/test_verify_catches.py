"""What `ccwm verify` would catch, with real trainings: a changed seed, a changed loss weight, a changed number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from project import TASK, TRAIN, Project, write_params

from ccwm.files import md5
from ccwm.training.history import summarise, write_history
from ccwm.training.loop import train
from ccwm.training.progress import hidden_progress
from ccwm.training.publish import publish_agent
from ccwm.verify.compare import Row, Verdict, compare
from ccwm.verify.record import Record, StageRecord, read_numbers

NAME = str(TRAIN)
HERE, ELSEWHERE = {"processor": "here"}, {"processor": "elsewhere"}
Trained = Callable[..., Record]


@pytest.fixture(scope="module")
def trained(collected: Project, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Train and record what was published."""

    def run(name: str, changes: Mapping[str, Any] = {}, seed: int = 0) -> Record:
        root = tmp_path_factory.mktemp(name)
        config = write_params(root / "params.yaml", changes).agent_config
        data, cell = collected.root / "data" / TASK / "0" / "train", replace(TRAIN, seed=seed)
        with hidden_progress():
            done = train(config, cell, data=data, work=root / "work", log=lambda *_: None, label="")
        publish_agent(root / "models", done, TRAIN)
        write_history(root / "results", done.history, summarise(done.history, done.module.counters))
        paths = [path for folder in ("models", "results") for path in (root / folder).rglob("*") if path.is_file()]
        files = {path.relative_to(root).as_posix(): md5(path) for path in paths}
        numbers = {name: read_numbers(root / name) for name in files if name.startswith("results")}
        return Record(stages={NAME: StageRecord(machine=HERE, files=files, numbers=numbers)})

    return run


@pytest.fixture(scope="module")
def committed(trained: Trained) -> Record:
    return trained("committed")


def on(machine: dict[str, str], record: Record) -> Record:
    return Record(stages={name: stage.model_copy(update={"machine": machine}) for name, stage in record.stages.items()})


def edited(record: Record, file: str, key: str, factor: float) -> Record:
    """One number of a committed file, multiplied."""
    stage = record.stages[NAME]
    columns = dict(stage.numbers[file])
    last = columns[key][-1]
    assert isinstance(last, float)
    columns[key] = [*columns[key][:-1], last * factor]
    return Record(stages={NAME: stage.model_copy(update={"numbers": {**stage.numbers, file: columns}})})


def verdicts(rows: list[Row]) -> dict[str, Verdict]:
    return {row.what: row.verdict for row in rows}


def test_training_again_agrees_in_every_bit_and_a_seed_or_a_weight_is_caught_anywhere(
    trained: Trained, committed: Record
) -> None:
    assert {row.verdict for row in compare(committed, trained("again"))} == {Verdict.EQUAL}
    for name, changes, seed in (("seed", {}, 1), ("weight", {"retrace": {"weight": 0.9}}, 0)):
        changed = trained(name, changes, seed)
        here = verdicts(compare(committed, changed))
        assert here["models/agent.safetensors"] == here["results/losses.csv"] == Verdict.DIFFERS, name
        elsewhere = verdicts(compare(on(ELSEWHERE, committed), changed))
        assert elsewhere["models/agent.safetensors"] == Verdict.SKIPPED  # nobody promises bits there
        assert elsewhere["results/losses.csv"] == Verdict.DIFFERS, name


def test_a_changed_number_is_caught_beyond_what_its_machine_allows(committed: Record) -> None:
    for factor, elsewhere in ((1 + 1e-9, Verdict.WITHIN), (1.01, Verdict.DIFFERS)):
        for file, key in (("results/metrics.json", "return_final"), ("results/losses.csv", "model/observation")):
            changed = edited(committed, file, key, factor)
            (row,) = [row for row in compare(changed, committed) if row.what == file]
            assert row.verdict == Verdict.DIFFERS
            assert key in row.detail
            assert verdicts(compare(on(ELSEWHERE, changed), committed))[file] == elsewhere
