"""Actors as Ray tasks: on several nodes, one of them killed, they give the bits of processes of one host."""

from __future__ import annotations

import json
import os
from concurrent.futures import Future
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import pytest
import torch
from far_world import FOLDER
from fleet_project import FleetProject
from project import DVC, Process, make_project, write_params
from ray.exceptions import WorkerCrashedError
from ray_cluster import Cluster

from ccwm.cells import Cell
from ccwm.errors import UserError, run_main
from ccwm.fleet.actors import ROOM, RayWorkers, Room, _hand_over, play, start_workers
from ccwm.fleet.cluster import configure
from ccwm.fleet.parcel import pack, unpack
from ccwm.machine import machine
from ccwm.replay.episodes import DamagedEpisode
from ccwm.settings.agent import AgentConfig
from ccwm.training.collect import collect_random
from ccwm.training.loop import train
from ccwm.training.progress import hidden_progress
from ccwm.training.rollouts import EpisodeWorkers, Pending

pytestmark = [pytest.mark.xdist_group("fleet"), pytest.mark.timeout(1800)]
CELL = Cell("train", "far_world:Far", "ccwm", 0)
NAMESPACE, GROUP = "actors", "room"


def reserve(address: str) -> None:
    """In a process: keep a CPU on each of two nodes, until the cluster ends."""
    configure()
    import ray
    from ray.util.placement_group import placement_group

    ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
    group = placement_group([{"CPU": 1}, {"CPU": 1}], strategy="STRICT_SPREAD", name=GROUP, lifetime="detached")
    ray.get(group.ready())


def learn(name: str, config: AgentConfig) -> None:
    """Train with actors, and keep what came of it; the second episode is played by one that dies."""

    def die(metrics: Any, env_steps: int) -> None:
        if FOLDER in os.environ and "episode/return" in metrics and not Path("died").exists():
            Path("died").touch()
            Path("die").touch()

    def run() -> None:
        with hidden_progress():
            made = train(
                config, CELL, data=Path("train"), work=Path(name), log=die, label="", start_workers=start_workers
            )
        torch.save({"history": made.history.state_dict(), "weights": {**made.module.state_dict()}}, f"{name}.pt")

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run_main(run)
    finally:
        torch.set_num_threads(threads)


def test_actors_on_two_nodes_one_of_them_killed_change_no_bit(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"env_steps": 800, "update_every": 100, "updates": 2, "evaluate_every": 200, "actors": 2}
    changes = {"env": {"observation": "state"}, "train": {**settings, "evaluate_episodes": 3}}
    config = write_params(tmp_path / "params.yaml", changes).agent_config
    with chdir(tmp_path):
        collect_random(CELL.task, tmp_path, parts={"train": 3}, env=config.env, seed=0, advance=lambda: None)

    cluster.start_head()
    for _ in range(2):
        cluster.add_node(**{FOLDER: str(tmp_path)})
    keeper = Process(
        reserve, (cluster.address,), root=tmp_path, log=tmp_path / "reserve.log", environment=cluster.environment
    )
    assert keeper.end() == 0, keeper.said
    room = Room(address=cluster.address, namespace=NAMESPACE, group=GROUP)
    places = {ROOM: room.model_dump_json(), FOLDER: str(tmp_path)}
    trainer = Process(
        learn,
        ("far", config),
        root=tmp_path,
        log=tmp_path / "far.log",
        environment={**cluster.environment, **places},
    )
    assert trainer.end() == 0, trainer.said
    with chdir(tmp_path):
        learn("here", config)
    far, here = (torch.load(tmp_path / f"{name}.pt") for name in ("far", "here"))
    assert far["history"] == here["history"]
    torch.testing.assert_close(far["weights"], here["weights"], rtol=0, atol=0)
    assert len(far["history"]["episodes"]) > 5
    assert (tmp_path / "died").exists()
    assert not (tmp_path / "die").exists()
    played = [path.name.split("-")[1:] for path in tmp_path.glob("played-*")]
    assert len({parent for parent, _, _ in played}) == 2  # Ray's two nodes
    assert len(played) >= 3  # and one process in the place of the dead one
    assert {threads for _, _, threads in played} == {"1"}


def test_a_host_that_would_change_the_bits_is_refused(tmp_path: Path) -> None:
    config = write_params(tmp_path / "params.yaml").agent_config
    trainer = {**machine(1), "torch": "1.0"}
    about = {"task": CELL.task, "env": config.env.model_dump(mode="json"), "machine": trainer}
    answer = unpack(play(json.dumps(about), pack({}), "", lambda *_: pytest.fail("played"), 0, 0))
    message, hint = json.loads(answer["error"])
    assert message == f"an actor's host would change the last bits: it has torch {torch.__version__} and not 1.0"
    assert "train.actors: 0" in hint


def test_an_episode_that_is_lost_for_good_or_comes_home_damaged_is_a_user_error() -> None:
    workers, lost, damaged = object.__new__(RayWorkers), Pending(), Pending()  # no cluster need end for it
    workers._task, workers._hint, workers._kept = CELL.task, "lower train.actors", {lost: None, damaged: None}
    lost.future.set_exception(WorkerCrashedError())
    with pytest.raises(UserError, match=r"an episode of far_world:Far was lost 3 times .*: lower train.actors"):
        workers.result(lost)
    answer: Future[bytes] = Future()
    answer.set_result(pack({"episode": b"not one", "about": b'{"frames": 2, "success": null}'}))
    _hand_over(damaged.future, answer)
    with pytest.raises(DamagedEpisode, match="an actor's episode"):
        workers.result(damaged)
    assert workers._kept == {}


def test_without_a_room_actors_are_processes_of_this_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOM, raising=False)
    config = write_params(tmp_path / "params.yaml", {"env": {"observation": "state"}}).agent_config
    with closing(start_workers(CELL.task, config.env, 1, hint="")) as workers:
        assert isinstance(workers, EpisodeWorkers)


@pytest.mark.slow
def test_a_fleet_with_actors_on_other_hosts_gives_the_results_of_dvc_repro(cluster: Cluster, tmp_path: Path) -> None:
    """Each of three nodes has one CPU: a cell is on one of them, and its two actors are on the others."""
    made = make_project(tmp_path / "project", {"study": {"seeds": [0]}, "train": {"actors": 2}})
    project = FleetProject(made.root)
    project.init_dvc()
    alone = project.copy(tmp_path / "alone")
    alone.command(*DVC, "repro", "evaluate")
    cluster.start_head()
    for _ in range(3):
        cluster.add_node()
    fleet = ("fleet", "run", "--address", cluster.address, "--cells", "evaluate@*")
    said = project.said(*fleet, **cluster.environment)
    assert "evaluate@maze_two_rooms-ccwm-0: done" in said
    assert project.files("results", "models") == alone.files("results", "models")
