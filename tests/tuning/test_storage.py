"""Storages: a journal that kills cannot break, a database that is unreachable."""

from __future__ import annotations

import multiprocessing
import socket
import time
from pathlib import Path

import optuna
import pytest
from project import SERVER
from tuning_project import make_settings

from ccwm.settings.tune import Tune
from ccwm.tuning import storage as storages
from ccwm.tuning.storage import StorageUnreachable, journal_path, open_storage, shown_storage, study_lock


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    monkeypatch.chdir(tmp_path)
    return make_settings().tune


def squared(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1) ** 2


def test_a_torn_last_line_is_removed(tune: Tune) -> None:
    study = optuna.create_study(storage=open_storage(tune), study_name="s")
    study.optimize(squared, n_trials=2)
    journal = journal_path(tune.study)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":4,"wor')  # killed while writing

    again = optuna.load_study(study_name="s", storage=open_storage(tune))
    assert journal.read_bytes() == whole
    with journal.open("ab") as file:  # and once more, while others have the study open
        file.write(b'{"op_code":4')
    study.optimize(squared, n_trials=1)
    third = optuna.load_study(study_name="s", storage=open_storage(tune))
    assert [len(each.trials) for each in (study, again, third)] == [3, 3, 3]


def test_a_journal_that_is_one_torn_line_becomes_empty(tune: Tune) -> None:
    journal = journal_path(tune.study)
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b'{"op_code":0,"wor')
    assert optuna.get_all_study_names(open_storage(tune)) == []
    assert journal.read_bytes() == b""


@pytest.mark.parametrize("damage", ["a digit", "a lost line", "two lines swapped", "the last line"])
def test_a_journal_whose_lines_were_changed_is_refused(tune: Tune, damage: str) -> None:
    optuna.create_study(storage=open_storage(tune), study_name="s").optimize(squared, n_trials=2)
    journal = journal_path(tune.study)
    first, *middle, last = journal.read_text().splitlines(keepends=True)
    if damage == "a digit":
        digit = next(character for line in middle for character in line[::-1] if character.isdigit())
        middle = [line.replace(digit, str((int(digit) + 1) % 10)) for line in middle]
    changed = {"a lost line": [first, *middle[1:], last], "two lines swapped": [first, *middle[::-1], last]}
    lines = changed.get(damage, [first, *middle, last[:-5] + "\n" if damage == "the last line" else last])
    journal.write_text("".join(lines))
    with pytest.raises(StorageUnreachable, match=r"journal\.jsonl .*damaged"):
        open_storage(tune)


def test_a_damaged_journal_is_refused(tune: Tune) -> None:
    journal_path(tune.study).parent.mkdir(parents=True)
    journal_path(tune.study).write_text("no journal\n{}\n")
    with pytest.raises(StorageUnreachable, match=r"journal\.jsonl .*damaged"):
        open_storage(tune)


def test_an_unreachable_database_is_reported_at_once_without_its_password() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    tune = make_settings(storage=f"postgresql://me:secret@127.0.0.1:{port}/studies").tune
    with pytest.raises(StorageUnreachable) as refused:
        open_storage(tune)
    assert "tune.storage: postgresql://me:***@127.0.0.1" in str(refused.value)
    assert "secret" not in str(refused.value) + shown_storage(tune)


def test_a_database_that_never_answers_is_waited_for_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "CONNECT_SECONDS", 2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        tune = make_settings(storage=f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/s").tune
        start = time.monotonic()
        with pytest.raises(StorageUnreachable):
            open_storage(tune)
    assert time.monotonic() - start < 20


def count_alone(tune: Tune, counter: Path, times: int) -> None:
    """In a process: open the storage, and add 1 to a file as often as asked, reading and writing it under the lock."""
    open_storage(tune)
    lock = study_lock(tune)
    for _ in range(times):
        with lock:
            number = int(counter.read_text())
            time.sleep(0.005)
            counter.write_text(str(number + 1))
            lock.release()  # early, as when a trial has begun


@pytest.mark.parametrize("several_hosts", [False, True])
def test_processes_open_a_new_storage_at_once_and_exclude_each_other(
    tune: Tune, tmp_path: Path, several_hosts: bool, request: pytest.FixtureRequest
) -> None:
    if several_hosts:
        tune = make_settings(storage=request.getfixturevalue("database")).tune
    counter = tmp_path / "counter"
    counter.write_text("0")
    absolute = tune.model_copy(update={"study": str(tmp_path / "study")})  # processes start in another directory
    processes = [SERVER.Process(target=count_alone, args=(absolute, counter, 10)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.read_text() == "30"


def hold(tune: Tune, held: multiprocessing.synchronize.Event) -> None:
    """In a process: take the lock and keep it."""
    with study_lock(tune):
        held.set()
        time.sleep(600)


@pytest.mark.parametrize("several_hosts", [False, True])
def test_the_lock_of_a_killed_process_is_free(
    tune: Tune, tmp_path: Path, several_hosts: bool, request: pytest.FixtureRequest
) -> None:
    storage = request.getfixturevalue("database") if several_hosts else None
    tune = make_settings(storage=storage).tune.model_copy(update={"study": str(tmp_path / "study")})
    (tmp_path / "study").mkdir()
    held = SERVER.Event()
    process = SERVER.Process(target=hold, args=(tune, held))
    process.start()
    assert held.wait(60)
    process.kill()
    process.join()
    with study_lock(tune):
        pass
