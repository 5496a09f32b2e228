from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import optuna
import pytest
from tuning_project import Project, make_project

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def project(tmp_path: Path, empty_store: Path) -> Project:
    """A tiny project to search in."""
    made = make_project(tmp_path / "project")
    shutil.copyfile(empty_store, made.root / "mlflow.db")
    return made


@pytest.fixture(scope="session")
def searched(empty_store: Path, shared_folder: Callable[..., Path]) -> Project:
    """A project whose search has finished twice, the first time with two trials (two.csv); read only."""

    def fill(folder: Path) -> None:
        project = make_project(folder / "project")
        shutil.copyfile(empty_store, project.root / "mlflow.db")
        project.run("--trials", "2")
        shutil.copyfile(project.results / "trials.csv", project.root / "two.csv")
        project.run()

    return Project(shared_folder("searched", fill) / "project")


def find(name: str) -> str:
    """A program of PostgreSQL, which Debian keeps off the path; the test is skipped where there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(places[-1]) if places else None)
    if found is None:
        pytest.skip("no PostgreSQL here: `apt-get install postgresql` brings one")
    return found


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    """The address of a PostgreSQL server of its own, without a password, on a free port of 127.0.0.1."""
    initdb, postgres, createdb = (find(name) for name in ("initdb", "postgres", "createdb"))
    folder = Path("/tmp") / f"ccwm-postgres-{os.getpid()}"
    folder.mkdir()
    user: str | None = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = next(name for name in ("postgres", "nobody") if name in known)
        shutil.chown(folder, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    data = str(folder / "data")
    options = ["--username", "ccwm", "--auth", "trust", "--no-sync", "--locale", "C", "--encoding", "UTF8"]
    subprocess.run([initdb, "-D", data, *options], check=True, user=user, cwd=folder, capture_output=True)
    server = subprocess.Popen(
        [postgres, "-D", data, "-h", "127.0.0.1", "-p", port, "-k", str(folder), "-F"],
        user=user,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        command = [createdb, "-h", "127.0.0.1", "-p", port, "-U", "ccwm", "studies"]
        while subprocess.run(command, capture_output=True, check=False).returncode != 0:
            assert server.poll() is None
        yield f"postgresql://ccwm@127.0.0.1:{port}/studies"
    finally:
        server.send_signal(signal.SIGINT)  # at once; SIGTERM would wait for connections that are still open
        server.wait()
        shutil.rmtree(folder)
