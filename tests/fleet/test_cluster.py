"""A fleet on several Ray nodes of this machine: a head without CPUs, and further raylets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fleet_project import ENDLESS, TASK, TRAIN, FleetProject
from project import DVC, Process, assert_ended
from ray_cluster import Cluster

from ccwm.errors import run_main
from ccwm.fleet.cluster import connected

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]


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
    nodes.append(cluster.add_node())
    before = set(project.pids())
    cluster.kill(nodes[0])  # one of the two trainings is on it
    running.wait_until(lambda: set(project.pids()) - before)  # and resumes on the third node
    cells = set(project.pids())
    cluster.kill(head)
    assert running.end() != 0, running.said
    for node in nodes[1:]:
        cluster.kill(node)
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
