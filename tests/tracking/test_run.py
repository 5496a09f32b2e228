from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from mlflow import MlflowClient
from project import Process
from tracking_helpers import CELL, StartRun

from ccwm.settings.schema import Tracking
from ccwm.tracking import stage_run, sync
from ccwm.tracking.run import flat_params
from ccwm.tracking.spool import Identity, Spool

Client = Callable[[], MlflowClient]


def log_and_wait() -> None:
    """In a process: a trainer that logs steps 10, 20 and 30, names its run and waits for a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with stage_run(CELL, Tracking(timeout=20), settings={}, tags={}, run_id="killed", spool=Path("spool")) as run:
        for step in range(10, 40, 10):
            run.log_metrics({"loss": 1 / step}, env_steps=step)
        print(run.run_id, flush=True)
        time.sleep(60)


def signalled_trainer(root: Path, signum: signal.Signals) -> tuple[str, int]:
    """The id and the exit code of a trainer that logged steps 10, 20, 30 and was then sent a signal."""
    trainer = Process(log_and_wait, root=root, log=root / "trainer.log")
    trainer.wait_until(lambda: trainer.said.endswith("\n"))
    return trainer.said.strip(), trainer.signal(signum)


def history(client: MlflowClient, run_id: str, key: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in client.get_metric_history(run_id, key)]


def test_a_run_says_what_it_was(project: Path, start_run: StartRun, client: Client) -> None:
    (project / "curves").mkdir()
    (project / "curves" / "curve.csv").write_text("1,2\n")
    (project / "videos").mkdir()
    (project / "videos" / "a.mp4").write_bytes(b"video")
    settings = {"model": {"depth": 32, "continues": False}, "study": {"seeds": [0, 1]}, "title": "x" * 7000}
    with start_run(settings=settings) as run:
        run.log_metrics({"loss": 2.0, "return": 10.0}, env_steps=1000)
        run.log_metrics({"loss": 1.5}, env_steps=2000)
        run.log_artifact(project / "curves")
        run.log_artifact(project / "videos")
        (project / "curves" / "curve.csv").write_text("changed after it was logged")
    stored = client().get_run(run.run_id)
    assert (stored.info.run_name, stored.info.status) == ("ccwm · walker_walk · seed 0", "FINISHED")
    tags = {"stage": "train", "task": "walker_walk", "variant": "ccwm", "seed": "0", "settings_hash": "abc123"}
    assert stored.data.tags.items() >= tags.items()
    params = {"model.depth": "32", "model.continues": "false", "study.seeds": "[0, 1]", "title": "x" * 6000}
    assert stored.data.params == params
    assert history(client(), run.run_id, "loss") == [(1000, 2.0), (2000, 1.5)]
    files = project / "mlartifacts" / run.run_id / "artifacts"
    assert sorted(str(path.relative_to(files)) for path in files.rglob("*.*")) == [
        "curves/curve.csv",
        "settings.json",
        "videos/a.mp4",
    ]
    assert (files / "curves" / "curve.csv").read_text() == "1,2\n"
    assert list((project / "spool").iterdir()) == []  # the store has it all


def test_git_commit_and_dirty_flag(project: Path, start_run: StartRun, client: Client) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    (project / "params.yaml").write_text("a: 1\n")
    git("add", "params.yaml", "dvc.yaml")
    git("commit", "-m", "first")
    with start_run() as clean:  # mlflow.db and other results are no sources
        pass
    (project / "params.yaml").write_text("a: 2\n")
    with start_run() as dirty:
        pass
    tags = [client().get_run(run.run_id).data.tags for run in (clean, dirty)]
    assert [tag["git_dirty"] for tag in tags] == ["false", "true"]
    assert {tag["git_commit"] for tag in tags} == {git("rev-parse", "HEAD")}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("NaN"), "FAILED"),
        (SystemExit(1), "FAILED"),
        (SystemExit(143), "KILLED"),
        (KeyboardInterrupt(), "KILLED"),
        (SystemExit(0), "FINISHED"),
    ],
)
def test_how_a_run_ends(error: BaseException, status: str, project: Path, start_run: StartRun, client: Client) -> None:
    with pytest.raises(type(error)), start_run() as run:
        raise error
    assert client().get_run(run.run_id).info.status == status


def test_sigterm_ends_as_killed(project: Path, client: Client) -> None:
    run_id, code = signalled_trainer(project, signal.SIGTERM)
    assert code == 143
    assert client().get_run(run_id).info.status == "KILLED"


def test_a_run_killed_with_9_resumes_as_one_run_with_no_point_twice(
    project: Path, start_run: StartRun, client: Client
) -> None:
    run_id, _ = signalled_trainer(project, signal.SIGKILL)
    assert client().get_run(run_id).info.status == "RUNNING"
    with start_run(run_id="killed") as run:  # the checkpoint was written at step 20
        assert run.run_id == run_id
        for step in (20, 30, 40):
            run.log_metrics({"loss": 1 / step}, env_steps=step)
    assert history(client(), run_id, "loss") == [(step, 1 / step) for step in (10, 20, 30, 40)]
    runs = client().search_runs(["1"])
    assert [(found.info.run_id, found.info.status) for found in runs] == [(run_id, "FINISHED")]


def test_sync_ends_a_run_whose_process_is_gone(project: Path, client: Client) -> None:
    spool = Spool(project / "spool" / "gone", Identity(id="gone", experiment="ccwm", name="train"))
    spool.append("status", value="RUNNING")
    spool.append("metrics", env_steps=10, values={"loss": 0.1})
    spool.close()  # no status after RUNNING: as kill -9 leaves it
    (run_id,) = sync(project).sent
    assert client().get_run(run_id).info.status == "KILLED"
    assert history(client(), run_id, "loss") == [(10, 0.1)]
    assert sync(project).sent == []


def test_a_finished_run_can_be_resumed(project: Path, start_run: StartRun, client: Client) -> None:
    with start_run(settings={"a": 1}) as first:
        pass
    with start_run(settings={"a": 2, "b": 3}, run_id=first.run_id) as second:
        deadline = time.monotonic() + 10
        while client().get_run(first.run_id).info.status != "RUNNING":
            assert time.monotonic() < deadline
    assert second.run_id == first.run_id
    stored = client().get_run(first.run_id)
    assert (stored.info.status, stored.data.params) == ("FINISHED", {"a": "1", "b": "3"})


def test_a_store_that_does_not_know_the_run_gets_a_new_one(project: Path, start_run: StartRun, client: Client) -> None:
    with start_run(run_id="0123abcd") as first:
        first.log_metrics({"loss": 1.0}, env_steps=1)
    with start_run(run_id="0123abcd") as second:
        pass
    assert first.run_id == second.run_id != "0123abcd"
    assert len(client().search_runs(["1"])) == 1


def test_a_resumed_run_brings_its_history_to_a_new_store(
    project: Path, start_run: StartRun, client: Client, monkeypatch: pytest.MonkeyPatch, empty_store: Path
) -> None:
    with suppress(KeyboardInterrupt), start_run(run_id="moved") as first:
        first.log_metrics({"loss": 1.0}, env_steps=1)
        raise KeyboardInterrupt
    (project / "new.db").write_bytes(empty_store.read_bytes())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///new.db")
    with start_run(run_id="moved") as second:
        second.log_metrics({"loss": 0.5}, env_steps=2)
    assert history(client(), second.run_id, "loss") == [(1, 1.0), (2, 0.5)]


def test_studies_nest_under_their_training_run(project: Path, start_run: StartRun, client: Client) -> None:
    with start_run() as parent:
        pass
    with start_run(replace(CELL, stage="evaluate"), parent_run_id=parent.run_id) as child:
        pass
    with start_run(replace(CELL, stage="transfer"), parent_run_id="feedbeef") as orphan:
        pass
    assert client().get_run(child.run_id).data.tags["mlflow.parentRunId"] == parent.run_id
    assert "mlflow.parentRunId" not in client().get_run(orphan.run_id).data.tags


def test_a_point_that_the_store_refuses_is_kept_and_holds_up_nothing(
    project: Path, start_run: StartRun, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    with start_run() as run:
        run.log_metrics({"good": 1.0}, env_steps=1)
        run.log_metrics({"bad\nname": 1.0}, env_steps=1)
        run.log_metrics({"good": 2.0}, env_steps=2)
    assert history(client(), run.run_id, "good") == [(1, 1.0), (2, 2.0)]
    (kept,) = (project / "spool").rglob("rejected.jsonl")
    assert "bad" in kept.read_text()
    assert str(kept) in capsys.readouterr().err


def test_logging_does_not_slow_training_down(project: Path, start_run: StartRun) -> None:
    with start_run() as run:
        took = []
        for step in range(500):
            start = time.perf_counter()
            run.log_metrics(dict.fromkeys("abcdefghij", 0.5), env_steps=step)
            took.append(time.perf_counter() - start)
    assert sorted(took)[len(took) // 2] < 1e-3


def test_settings_become_flat_params() -> None:
    settings = {"a": {"b": {"c": 1e-4}}, "d": None, "e": {}, "f": "text"}
    assert dict(flat_params(settings)) == {"a.b.c": "0.0001", "d": "null", "e": "{}", "f": "text"}
