"""A fleet on several Ray nodes of this machine: a head without CPUs, and two further raylets."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_project import TASK, FleetProject
from project import DVC, assert_ended
from test_faults import LONG, RESUMED, TRAIN, assert_whole, family, training, wait_until

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]
RAY = str(Path(sys.executable).parent / "ray")


class Cluster:
    """Ray nodes as processes; all end with the test."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.environment = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
        }
        self.nodes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """`ray start …`; returns when the node takes part."""
        command = [
            RAY,
            "start",
            "--block",
            "--node-ip-address=127.0.0.1",
            "--object-store-memory=100000000",
            *arguments,
        ]
        merged = {**os.environ, **self.environment, **environment}
        merged.pop("MLFLOW_TRACKING_URI", None)
        node = subprocess.Popen(command, env=merged, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert node.stdout is not None
        for line in node.stdout:
            if b"Ray runtime started" in line:
                break
        self.nodes.append(node)
        return node

    def start_head(self) -> subprocess.Popen[bytes]:
        return self.start("--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false")

    def add_node(self, **environment: str) -> subprocess.Popen[bytes]:
        return self.start(f"--address={self.address}", "--num-cpus=1", **environment)

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """As if its power went: every process of the node but the cells, with -9."""
        for pid in [*family(node.pid)][::-1]:
            os.kill(pid, signal.SIGKILL)
        node.wait()
        self.nodes.remove(node)

    def stop(self) -> None:
        for node in list(self.nodes):
            self.kill(node)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    try:
        yield found
    finally:
        found.stop()


def test_a_raylet_and_then_the_head_killed_with_9(
    cluster: Cluster, project: FleetProject, sequential: FleetProject
) -> None:
    head = cluster.start_head()
    told = {"FAKE_JOURNAL": str(project.journal), **LONG}  # a cell's environment is its node's
    nodes = [cluster.add_node(**told), cluster.add_node(**told)]
    remote = ("--address", cluster.address, *TRAIN)
    running = project.open_fleet(*remote, **cluster.environment)
    wait_until(lambda: training(project), running)
    before = set(project.pids())
    cluster.kill(nodes[0])  # one of the two trainings is on it
    wait_until(lambda: len(set(project.pids()) - before) > 0, running)  # and resumes on the other node
    cells = set(project.pids())
    cluster.kill(head)
    said, _ = running.communicate(timeout=600)
    assert running.returncode != 0, said
    cluster.kill(nodes[1])
    assert_ended(list(cells), seconds=60)

    cluster.start_head()
    cluster.add_node(**{**told, **RESUMED})
    project.fleet(*remote, **cluster.environment)
    assert_whole(project, sequential)


def test_a_host_without_homes_files_sends_its_objects_through_the_remote(
    cluster: Cluster, project: FleetProject, sequential: FleetProject, tmp_path: Path
) -> None:
    cluster.start_head()
    cluster.add_node(CCWM_FLEET_DIR=str(tmp_path / "other"))
    address = ("--address", cluster.address)
    said = project.fleet(*address, "--cells", "collect@*", code=1, **cluster.environment)
    assert "DVC remote" in said
    project.command(*DVC, "remote", "add", "--default", "store", str(tmp_path / "store"))
    project.fleet(*address, *TRAIN, **cluster.environment)
    project.assert_like(sequential, "collect", "train")
    assert not [cell for cell in project.stale() if cell.startswith(("collect", "train"))]
    assert (project.root / "models" / TASK / "ccwm" / "0" / "content.txt").is_file()
    assert not (project.root / ".work" / "fleet" / "slots").exists()


@pytest.mark.parametrize("token", ["", "f" * 64])
def test_a_client_without_the_token_is_refused(cluster: Cluster, project: FleetProject, token: str) -> None:
    cluster.start_head()
    wrong = {**cluster.environment, "RAY_AUTH_TOKEN": token, "HOME": str(project.root.parent)}
    start = time.monotonic()
    said = project.fleet("--address", cluster.address, *TRAIN, code=2, **wrong)
    assert "token" in said
    assert time.monotonic() - start < 300
    assert project.steps() == {}
