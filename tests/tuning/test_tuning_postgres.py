"""A search in a real PostgreSQL, shared by two processes, one of which is killed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tuning_project import Project


def find(name: str) -> str | None:
    """A program of PostgreSQL, which Debian keeps off the path."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(places[-1]) if places else None)


INITDB, POSTGRES, CREATEDB = (find(name) for name in ("initdb", "postgres", "createdb"))
pytestmark = pytest.mark.skipif(
    not (INITDB and POSTGRES and CREATEDB), reason="no PostgreSQL here: `apt-get install postgresql` brings one"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own, without a password, on a free port of 127.0.0.1."""
    folder = Path("/tmp") / f"ccwm-postgres-{os.getpid()}"
    folder.mkdir()
    user: str | None = None
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = next((name for name in ("postgres", "nobody") if _exists(name)), None)
        assert user is not None
        shutil.chown(folder, user)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    assert INITDB
    assert POSTGRES
    assert CREATEDB
    options = ["--username", "ccwm", "--auth", "trust", "--no-sync", "--locale", "C", "--encoding", "UTF8"]
    subprocess.run([INITDB, "-D", data, *options], check=True, user=user, cwd=folder, capture_output=True)
    server = subprocess.Popen(
        [POSTGRES, "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", str(folder), "-F"],
        user=user,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        command = [CREATEDB, "-h", "127.0.0.1", "-p", str(port), "-U", "ccwm", "studies"]
        while subprocess.run(command, capture_output=True, check=False).returncode != 0:
            assert server.poll() is None
        yield f"postgresql://ccwm@127.0.0.1:{port}/studies"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def _exists(user: str) -> bool:
    return any(entry.pw_name == user for entry in pwd.getpwall())


def test_processes_that_start_at_once_share_a_study_and_a_killed_one_s_trial_is_begun_again(
    project: Project, database: str
) -> None:
    first, second = (project.start("--storage", database, name=name) for name in ("first", "second"))
    first.wait_until(lambda: len(project.training()) >= 2)
    first.kill()
    assert second.end() == 0, second.said
    assert "its process is gone; it is begun again" in second.said
    trials = project.trials()
    assert 3 <= len(trials) <= 4  # hosts do not wait for each other: one more than asked is possible
    assert (trials["trial"] != trials["first_number"]).sum() == 1
    assert sorted(trials["first_number"]) == sorted(set(trials["first_number"]))
    assert list(trials.sort_values("first_number")["anchor"][:2]) == ["default", "paper"]
    assert project.summary()["winner"] is not None

    more = project.run("--storage", database, "--trials", str(len(trials) + 1))
    assert more.end() == 0, more.said
    assert len(project.trials()) == len(trials) + 1
