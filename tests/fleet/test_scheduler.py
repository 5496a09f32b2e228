"""What goes to Ray, and what goes again: without Ray's processes, which test_faults.py and test_cluster.py end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_ray import InlineRay
from project import write_params
from ray.exceptions import NodeDiedError, RayError

from ccwm.cells import Cell, cells
from ccwm.errors import UserError
from ccwm.fleet import scheduler, worker
from ccwm.fleet.code import Code
from ccwm.fleet.progress import Progress
from ccwm.fleet.run import share_of
from ccwm.fleet.scheduler import PINNED, WITH_ACTORS, actors_by_variant, pinned_environment
from ccwm.training.signals import Interrupted, StopRequest

COLLECT = Cell("collect", "maze_two_rooms", seed=0)
DREAMER, CCWM = (Cell("train", "maze_two_rooms", variant, 0) for variant in ("dreamer", "ccwm"))
DIED = NodeDiedError("the node died")


class FakeHome:
    """Notes what came home."""

    marker, is_due = "marker", False

    def __init__(self, root: Path) -> None:
        self.root, self.received, self.settled = root, list[Cell](), 0

    def dvc_places(self) -> tuple[str, bool]:
        return "cache", False

    def inputs(self, cell: Cell) -> bytes:
        return b""

    def is_unchanged(self, cell: Cell) -> bool:
        return False

    def receive(self, cell: Cell, parcel: bytes, key: str) -> None:
        assert parcel == b"a parcel"
        self.received.append(cell)

    def settle(self, **_: object) -> None:
        self.settled = len(self.received)


Made = tuple[scheduler.Scheduler, FakeHome]
STUDY = {"study": {"variants": ["dreamer", "ccwm"], "seeds": [0]}}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[InlineRay], Made]:
    """A scheduler of all cells of two variants, at a Ray of this process."""
    settings = write_params(tmp_path / "params.yaml", STUDY)
    code = Code("0" * 40, b"", b"", (tmp_path / "params.yaml").read_text())

    def make(ray: InlineRay) -> Made:
        monkeypatch.setattr(scheduler, "ray", ray)
        monkeypatch.setattr(worker, "run_cell", lambda *_: b"a parcel")
        home: Any = FakeHome(tmp_path)
        todo = cells(settings.study)[:-1]
        return scheduler.Scheduler(home, code, settings, todo, share=(1.0, 0.0), uri="sqlite:///mlflow.db"), home

    return make


def run(made: Made, *, signum: int | None = None) -> None:
    fleet, home = made
    stop = StopRequest()
    stop.signum = signum
    with Progress(home.root, list(fleet._todo), {}) as progress:
        fleet.run(progress, stop)


def test_a_cell_goes_to_ray_after_what_it_needs(made: Callable[[InlineRay], Made]) -> None:
    ray = InlineRay()
    fleet, home = made(ray)
    run((fleet, home))
    assert fleet.failed == {}
    assert len(ray.submitted) == len(set(ray.submitted)) == len(home.received) == home.settled == 9
    for cell in home.received:
        assert all(ray.submitted.index(str(need)) < ray.submitted.index(str(cell)) for need in cell.needs)


def test_the_cells_of_a_dead_node_go_again_and_no_other(
    made: Callable[[InlineRay], Made], capsys: pytest.CaptureFixture[str]
) -> None:
    ray = InlineRay(lost={str(DREAMER): [DIED]})
    fleet, home = made(ray)
    run((fleet, home))
    assert fleet.failed == {}
    assert len(home.received) == 9
    assert [ray.submitted.count(str(cell)) for cell in (COLLECT, DREAMER, CCWM)] == [1, 2, 1]
    assert f"{DREAMER}: the node died; it is run again" in capsys.readouterr().err


def test_a_cell_that_is_lost_every_time_fails_with_what_needs_it(made: Callable[[InlineRay], Made]) -> None:
    ray = InlineRay(lost={str(DREAMER): [DIED] * scheduler.TRIES})
    fleet, home = made(ray)
    run((fleet, home))
    assert ray.submitted.count(str(DREAMER)) == scheduler.TRIES
    assert {cell.variant for cell in fleet.failed} == {"dreamer"}
    assert fleet.failed[DREAMER] == "the node died"
    assert fleet.failed[DREAMER.of("evaluate")] == f"needs {DREAMER}"
    assert len(home.received) == 5


def test_without_a_head_the_fleet_ends_and_keeps_what_has_come_home(made: Callable[[InlineRay], Made]) -> None:
    fleet, home = made(InlineRay(waits=2))
    with pytest.raises(RayError, match="the head is gone"):
        run((fleet, home))
    assert home.settled == len(home.received) == 2


def test_a_signal_ends_it_and_what_has_finished_meanwhile_comes_home(made: Callable[[InlineRay], Made]) -> None:
    fleet, home = made(InlineRay())
    with pytest.raises(Interrupted):
        run((fleet, home), signum=2)
    assert home.received == [COLLECT]
    assert home.settled == 1


def test_a_cell_with_actors_gets_a_room_with_a_cpu_for_each(
    made: Callable[[InlineRay], Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms, left = dict[str, list[dict[str, float]]](), list[str]()

    def open_room(bundles: list[dict[str, float]], strategy: str, name: str) -> str:
        assert strategy == "PACK"
        rooms[name] = bundles
        return name

    monkeypatch.setattr(scheduler, "placement_group", open_room)
    monkeypatch.setattr(scheduler, "remove_placement_group", left.append)
    monkeypatch.setattr(scheduler, "PlacementGroupSchedulingStrategy", lambda room, bundle: (room, bundle))
    ray = InlineRay(lost={str(DREAMER): [DIED]})
    fleet, home = made(ray)
    fleet._actors = actors_by_variant(write_params(tmp_path / "two.yaml", {**STUDY, "train": {"actors": 2}}))
    run((fleet, home))
    assert fleet.failed == {}
    assert left == [*rooms]
    placed = [cell for cell in cells(write_params(tmp_path / "params.yaml", STUDY).study) if cell.stage in WITH_ACTORS]
    assert set(rooms) == {f"marker-{cell}-1" for cell in placed} | {f"marker-{DREAMER}-2"}  # a try, a room
    assert all(bundles == [{"CPU": 1.0}, {"CPU": 1.0}, {"CPU": 1.0}] for bundles in rooms.values())  # its own, and two
    assert ray.placed[str(CCWM)] == (f"marker-{CCWM}-1", 0)


def test_a_cell_must_fit_with_its_actors(tmp_path: Path) -> None:
    settings = write_params(tmp_path / "params.yaml", {"trainer": {"threads": 2}})
    assert share_of(settings, {"CPU": 4.0}, actors=2) == (2.0, 0.0)
    assert share_of(settings, {"CPU": 4.0, "GPU": 1.0}, cpus=1.5, gpus=0.5, actors=2) == (1.5, 0.5)
    with pytest.raises(UserError, match="a cell needs 4 CPUs, the whole cluster has 3"):
        share_of(settings, {"CPU": 3.0}, actors=2)
    with pytest.raises(UserError, match="2 processes need 6 CPUs, the whole cluster has 4"):
        share_of(settings, {"CPU": 4.0}, actors=1, times=2)


def test_what_changes_bits_is_that_of_the_host_where_the_fleet_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = write_params(tmp_path / "params.yaml", {"trainer": {"threads": 2}}).trainer
    for name in PINNED:
        monkeypatch.delenv(name, raising=False)
    assert pinned_environment(trainer) == {"OMP_NUM_THREADS": "2"}
    here = {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "avx2", "MUJOCO_GL": "egl"}
    for name, value in here.items():
        monkeypatch.setenv(name, value)
    assert pinned_environment(trainer) == here
