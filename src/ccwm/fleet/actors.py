"""Actors as Ray tasks: episodes of a cell are played in the room that the cluster keeps for it, on whatever hosts."""

from __future__ import annotations

import importlib.util
import json
import os
import sysconfig
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ccwm.agents.policy import Policy
from ccwm.envs.env import TaskEnv
from ccwm.envs.factory import make_env
from ccwm.errors import UserError
from ccwm.fleet.cluster import configure
from ccwm.fleet.parcel import pack, unpack
from ccwm.machine import machine
from ccwm.replay.episodes import parse_episode, serialise_episode
from ccwm.settings.agent import Env
from ccwm.settings.section import Section
from ccwm.training.rollouts import (
    ONE_THREAD,
    PERIOD,
    RESTARTS,
    EpisodeWorkers,
    FromFiles,
    Pending,
    Rollout,
    Workers,
    play_episode,
)

ROOM = "CCWM_ACTORS"
"""Tells a cell's process where its actors play."""
GL = ("MUJOCO_GL", "PYOPENGL_PLATFORM")
POLICIES = 2
"""How many an actor remembers: the exploring one and the greedy one."""


class Room(Section):
    """The placement group of a cell; its first bundle is the cell's, every other one an actor's."""

    address: str
    namespace: str
    group: str

    @classmethod
    def of_this_task(cls, group: str) -> Room:
        """For a process that a Ray task starts."""
        import ray

        context = ray.get_runtime_context()
        return cls(address=context.gcs_address, namespace=context.namespace, group=group)


def start_workers(task: str, config: Env, workers: int, *, hint: str) -> Workers:
    """Ray tasks in a cell for which a fleet has made room, processes of this host everywhere else."""
    room = os.environ.get(ROOM)
    if room is None:
        return EpisodeWorkers(task, config, workers, hint=hint)
    return RayWorkers(Room.model_validate_json(room), task, config, hint=hint)


class RayWorkers:
    """Play episodes as Ray tasks, as many at once as the room has bundles for.

    Every host gets this process's code. Ray replays an episode whose worker or host died.
    """

    def __init__(self, room: Room, task: str, config: Env, *, hint: str) -> None:
        configure()
        import ray
        from ray.util.placement_group import get_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        variables = {**ONE_THREAD, **{name: os.environ[name] for name in GL if name in os.environ}}
        ray.init(
            address=room.address,
            namespace=room.namespace,
            log_to_driver=False,
            runtime_env={"py_modules": _own_code(task), "env_vars": variables},
        )
        strategy = PlacementGroupSchedulingStrategy(get_placement_group(room.group))
        self._play = ray.remote(num_cpus=1, max_retries=RESTARTS)(play).options(scheduling_strategy=strategy)
        self._task, self._hint = task, hint
        self._about = json.dumps({"task": task, "env": config.model_dump(mode="json"), "machine": _facts()})
        self._shipped: tuple[FromFiles, Any] | None = None
        self._policies = 0
        self._kept: dict[Pending, Any] = {}
        """What Ray would forget otherwise."""

    def submit(self, make_policy: FromFiles, seed: int) -> Pending:
        """Have an episode played; what the policy is made of travels once."""
        import ray

        if self._shipped is None or self._shipped[0] is not make_policy:
            self._policies += 1
            self._shipped = make_policy, ray.put(_pack_files(make_policy.path))
        name = make_policy.path.name if make_policy.path.is_file() else ""
        pending = Pending()
        ref = self._play.remote(self._about, self._shipped[1], name, make_policy.load, self._policies, seed)
        ref.future().add_done_callback(partial(_hand_over, pending.future))
        self._kept[pending] = ref
        return pending

    def result(self, pending: Pending, *, between: Callable[[], None] = lambda: None) -> Rollout:
        """Wait for an episode; ``between`` is called all the while, and what it raises ends the wait."""
        from ray.exceptions import RayError, RayTaskError

        while not wait([pending.future], timeout=PERIOD).done:
            between()
        del self._kept[pending]
        try:
            return pending.future.result()
        except RayTaskError:
            raise
        except RayError as error:
            lost = f"an episode of {self._task} was lost {RESTARTS + 1} times ({str(error).strip().splitlines()[0]})"
            raise UserError(lost, hint=self._hint) from error

    def replace_dead(self) -> None:
        """Nothing: Ray does."""

    def close(self) -> None:
        """Leave the cluster, which ends what is still played."""
        import ray

        ray.shutdown()


def play(about: str, files: bytes, name: str, load: Callable[[Path, int], Policy], key: int, seed: int) -> bytes:
    """In a Ray task: an episode as bytes, or why there is none; Ray pickles neither."""
    told = json.loads(about)
    try:
        if unlike := [name for name, value in _facts().items() if told["machine"][name] != value]:
            there = ", ".join(f"{name} {_facts()[name]} and not {told['machine'][name]}" for name in unlike)
            hint = "keep the actors to hosts of one kind, or set train.actors: 0"
            raise UserError(f"an actor's host would change the last bits: it has {there}", hint=hint)
        env = _env(told["task"], json.dumps(told["env"]))
        rollout = play_episode(env, _policy(files, name, load, key, env.action_size), seed)
    except UserError as error:
        return pack({"error": json.dumps([error.message, error.hint]).encode()})
    about_it = {"frames": rollout.frames, "success": rollout.success}
    return pack({"episode": serialise_episode(rollout.episode), "about": json.dumps(about_it).encode()})


@cache
def _facts() -> dict[str, str]:
    """What decides an actor's bits on its host; it computes on the CPU and on one thread, whatever else is there."""
    return {name: value for name, value in machine(1).items() if name != "accelerator"}


@cache
def _env(task: str, config: str) -> TaskEnv:
    return make_env(task, Env.model_validate_json(config))


_remembered: dict[int, Policy] = {}


def _policy(files: bytes, name: str, load: Callable[[Path, int], Policy], key: int, actions: int) -> Policy:
    if key not in _remembered:
        with TemporaryDirectory() as folder:
            for member, content in unpack(files).items():
                Path(folder, member).write_bytes(content)
            policy = load(Path(folder, name), actions)
        while len(_remembered) >= POLICIES:
            del _remembered[next(iter(_remembered))]
        _remembered[key] = policy
    return _remembered[key]


def _pack_files(path: Path) -> bytes:
    """A file, or the files of a folder."""
    found = [path] if path.is_file() else [each for each in sorted(path.iterdir()) if each.is_file()]
    return pack({each.name: each.read_bytes() for each in found})


def _hand_over(future: Future[Rollout], done: Future[bytes]) -> None:
    """Ray's answer becomes the episode that was asked for, or what went wrong."""
    try:
        found = unpack(done.result())
        if "error" in found:
            message, hint = json.loads(found["error"])
            raise UserError(message, hint=hint)
        about = json.loads(found["about"])
        episode = parse_episode(found["episode"], Path("an actor's episode"))
        future.set_result(Rollout(episode, about["frames"], about["success"]))
    except BaseException as error:
        future.set_exception(error)


def _own_code(task: str) -> list[str]:
    """This package, and the module of a task that is code of the project and not an installed library."""
    found = [str(Path(__file__).parents[1])]
    module, colon, _ = task.partition(":")
    spec = importlib.util.find_spec(module.partition(".")[0]) if colon and module != "gym" else None
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin)
        path = path.parent if path.name == "__init__.py" else path
        if not path.is_relative_to(sysconfig.get_path("purelib")):
            found.append(str(path))
    return found
