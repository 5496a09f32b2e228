"""A fleet on several Ray nodes of this machine: a head without CPUs, and further raylets."""

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
from fleet_project import ENDLESS, TASK, TRAIN, FleetProject, family
from project import DVC, Process, assert_ended

from ccwm.errors import run_main
from ccwm.fleet.cluster import connected

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
        command = [RAY, "start", "--block", "--node-ip-address=127.0.0.1", "--object-store-memory=100000000"]
        merged = {**os.environ, **self.environment, **environment}
        merged.pop("MLFLOW_TRACKING_URI", None)
        node = subprocess.Popen([*command, *arguments], env=merged, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.nodes.append(node)
        assert node.stdout is not None
        said = []
        for line in node.stdout:
            said.append(line)
            if b"Ray runtime started" in line:
                return node
        raise AssertionError(b"".join(said).decode())

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


@pytest.mark.slow
def test_a_raylet_and_then_the_head_killed_with_9(
    cluster: Cluster, project: FleetProject, sequential: FleetProject
) -> None:
    head = cluster.start_head()
    nodes = [cluster.add_node(), cluster.add_node()]
    project.tell(**ENDLESS)
    remote = ("--address", cluster.address)
    running = project.open_fleet(*remote, *TRAIN, **cluster.environment)
    running.wait_until(project.is_training)
    before = set(project.pids())
    cluster.kill(nodes[0])  # one of the two trainings is on it
    running.wait_until(lambda: set(project.pids()) - before)  # and resumes on the other node
    cells = set(project.pids())
    cluster.kill(head)
    assert running.end() != 0, running.said
    cluster.kill(nodes[1])
    assert_ended(list(cells), seconds=60)

    cluster.start_head()
    cluster.add_node()
    project.assert_whole(sequential, *remote, **cluster.environment)


@pytest.mark.slow
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


def join(address: str) -> None:
    """In a process: be a client of the cluster, and say how many CPUs it has."""

    def connect() -> None:
        with connected(address) as resources:
            print("CPUs:", resources.get("CPU", 0))

    run_main(connect)


def test_a_client_without_the_token_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_head()
    tokens = {"ours": cluster.environment["RAY_AUTH_TOKEN"], "none": "", "another": "f" * 64}
    clients = {
        name: Process(
            join,
            (cluster.address,),
            root=tmp_path,
            log=tmp_path / f"{name}.log",
            environment={**cluster.environment, "RAY_AUTH_TOKEN": token, "HOME": str(tmp_path)},
        )
        for name, token in tokens.items()
    }
    start = time.monotonic()
    codes = {name: client.end() for name, client in clients.items()}
    assert time.monotonic() - start < 300
    assert codes == {"ours": 0, "none": 2, "another": 2}, [client.said for client in clients.values()]
    assert "CPUs: 0" in clients["ours"].said
    for name in ("none", "another"):
        assert "token" in clients[name].said.splitlines()[-1]
        assert "CPUs" not in clients[name].said
