"""Every kind of file that we read, damaged at random: the outcome is the right value or a user error, nothing else.

Bytes are flipped, cut, doubled, swapped and replaced; numbers of text and JSON become others and other types; headers
of safetensors name other dtypes, shapes and places. FUZZ_SECONDS and FUZZ_SEED choose another run: `make fuzz` takes an
hour. Settings and claims are written by hand, so that another valid value there is what someone wrote, and a run's
record that is shown on the page of runs has no checksum (``unchecked``).
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import re
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from report.results_tree import study, sums, write_tree
from report.search_files import write_study
from synthetic_episodes import VECTOR, synthetic_episode
from tiny_learner import ACTIONS, tiny_learner

from ccwm.agents.export import AgentCard, load_agent, save_agent
from ccwm.cells import cells
from ccwm.errors import UserError
from ccwm.files import md5, write_json
from ccwm.replay.sampling import WindowSampler
from ccwm.replay.store import EpisodeStore
from ccwm.report.claims import load_claims
from ccwm.report.results import MEASURED, READERS, Results, check_sums
from ccwm.report.runs import read_run
from ccwm.report.sources import read_source
from ccwm.settings.loading import load_settings
from ccwm.studies.search import read_search
from ccwm.tracking.spool import Identity, Spool
from ccwm.training.checkpoints import Checkpoints
from ccwm.training.collect import check_collected
from ccwm.tuning.storage import _open_journal

ROOT = Path(__file__).parents[1]
SECONDS, SEED = float(os.environ.get("FUZZ_SECONDS", "20")), int(os.environ.get("FUZZ_SEED", "0"))
EPISODES, FRAME = 5, np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3), dtype=np.uint8)
ODD = [
    "nan",
    "NaN",
    "-inf",
    "1e999",
    "-1",
    "0",
    "9" * 5000,
    "true",
    "null",
    '""',
    "[]",
    "{}",
    "0.5",
    "\x00",
    "é",
    "1_0",
]
STRUCTURES: list[Any] = [None, True, -1, 0, 10**12, 1.5, "", "x", [], {}, [[]], float("nan")]


class Target(NamedTuple):
    """A folder with files of one kind, and what reading them gives."""

    folder: Path
    read: Callable[[Path], object]
    unchecked: bool = False
    """Whether another valid value is no fault: it is written by hand, or has no checksum."""
    damaged: str = "*"
    """The names of the files to damage."""
    earlier: bool = False
    """Whether a log without its end is right: what is lost is done again."""


def digest(value: object) -> object:
    """Something that can be compared, whatever a reader gives."""
    match value:
        case torch.Tensor():
            return digest(value.numpy())
        case np.ndarray():
            return value.dtype.name, value.shape, hashlib.sha256(np.ascontiguousarray(value)).hexdigest()
        case pd.DataFrame():
            return value.to_csv()
        case dict():
            return {key: digest(of) for key, of in value.items()}
        case tuple() | list():
            return [digest(of) for of in value]
    return repr(value)


# What is read


def read_episodes(folder: Path) -> object:
    check_collected(folder, EPISODES)
    store = EpisodeStore(folder, damaged_share=1.0, read_only=True)
    if store.damaged:
        raise UserError("quarantined, counted and not drawn")
    whole = [store.episode(index) for index in store.eligible()]
    return [*whole, store.entries, WindowSampler(store, batch=4, length=3, seed=0).draw(1)]


def read_checkpoint(folder: Path) -> object:
    found = Checkpoints(folder, {"a.b": 1}).latest()
    if found is None:
        raise UserError("none, so that training starts again")
    return found


def read_agent(folder: Path) -> object:
    agent = load_agent(folder)
    agent.reset()
    return agent.card, agent.act(FRAME)


def read_results(folder: Path) -> object:
    found = Results(folder, study(variants=("dreamer",)))
    broken = [of for stage in MEASURED for of in (*found.damaged(stage).values(), *found.missing(stage))]
    if broken:
        raise UserError(broken[0])
    return {
        (str(cell), reader.__module__, reader.__name__): reader(folder / cell.results)
        for stage in MEASURED
        for cell in found.cells(stage)
        for reader in READERS[stage]
        if (stage, reader.__name__) != ("rollout-viz", "read_frames")  # pixels have none
    }


def read_tuned(folder: Path) -> object:
    check_sums(folder, folder / "results" / "tune" / "truncation")
    found = read_search(folder / "results" / "tune" / "truncation")
    return found.summary, found.trials, found.candidates


def read_journal(folder: Path) -> object:
    storage = _open_journal(folder / "journal.jsonl")
    if optuna.get_all_study_names(storage) != ["s"]:
        raise UserError("no study, so that the search starts again")
    finished = optuna.load_study(study_name="s", storage=storage).get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    return [(trial.number, trial.params, trial.values) for trial in finished]


def read_spool(folder: Path) -> object:
    spool = Spool(folder)
    try:
        return [record for record, _ in spool.records()]
    finally:
        spool.close()


def make_targets(root: Path) -> dict[str, Target]:
    def folder(name: str) -> Path:
        (root / name).mkdir()
        return root / name

    found = {}
    found["settings"] = Target(folder("settings"), lambda of: load_settings(of / "params.yaml"), unchecked=True)
    shutil.copy(ROOT / "presets" / "smoke.yaml", found["settings"].folder / "params.yaml")
    found["settings of evidence"] = Target(folder("evidence"), lambda of: read_source(of)[2:], unchecked=True)
    shutil.copy(ROOT / "presets" / "smoke.yaml", found["settings of evidence"].folder / "params.yaml")
    found["claims"] = Target(folder("claims"), lambda of: load_claims(of / "claims.yaml"), unchecked=True)
    shutil.copy(ROOT / "claims.yaml", found["claims"].folder / "claims.yaml")
    found["episodes"] = Target(folder("episodes"), read_episodes, damaged="*.safetensors")
    found["manifest"] = Target(folder("manifest"), read_episodes, damaged="*.jsonl")
    for name in ("episodes", "manifest"):
        store = EpisodeStore(found[name].folder)
        for number in range(EPISODES):
            store.append(synthetic_episode(number, 4 + number, shape=VECTOR))
    found["checkpoints"] = Target(folder("checkpoints"), read_checkpoint)
    checkpoints = Checkpoints(found["checkpoints"].folder, {"a.b": 1})
    checkpoints.save({"updater": {"weights": torch.arange(20.0)}, "history": {"curve": [{"return_mean": 1.5}]}})
    found["agents"] = Target(folder("agents"), read_agent)
    learner = tiny_learner()
    card = {"task": "maze_open", "variant": "ccwm", "seed": 0, "observation_shape": (32, 32, 3), "action_size": ACTIONS}
    counts = {"observation_dtype": "uint8", "env_steps": 480, "updates": 20, "config": learner.config}
    save_agent(found["agents"].folder, learner, AgentCard(**card, **counts))
    found["results"] = Target(folder("results"), read_results)
    write_tree(found["results"].folder, study(variants=("dreamer",)))
    found["results of a clone"] = Target(folder("clone"), read_results)
    shutil.copytree(found["results"].folder, found["results of a clone"].folder, dirs_exist_ok=True)
    stages = {}
    for cell in cells(study(variants=("dreamer",)))[:-1]:
        record = found["results of a clone"].folder / cell.record
        stages[str(cell)] = {"outs": [{"path": path, "md5": of} for path, of in sums(record.parent, cell).items()]}
        record.unlink()
    (found["results of a clone"].folder / "dvc.lock").write_text(json.dumps({"stages": stages}))
    for target in (found["results"], found["results of a clone"]):
        for path in [*target.folder.rglob("*.png"), *target.folder.rglob("*.mp4"), *target.folder.rglob("*.gif")]:
            path.unlink()  # the report reads none of them
    found["searches"] = Target(folder("searches"), read_tuned)
    search = write_study(found["searches"].folder)
    for name in ("history.svg", "run.json"):
        (search / name).unlink()
    files = {path.relative_to(found["searches"].folder).as_posix(): md5(path) for path in search.glob("*.*")}
    write_json(search / "run.json", {"run_id": "ab" * 16, "files": files})
    found["run records"] = Target(
        folder("records"), lambda of: read_run(of / "run.json", "n", cells(study())[0]), unchecked=True
    )
    shutil.copy(search / "run.json", found["run records"].folder / "run.json")
    found["tuning journal"] = Target(folder("journal"), read_journal, damaged="*.jsonl", earlier=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    searched = optuna.create_study(
        storage=_open_journal(found["tuning journal"].folder / "journal.jsonl"), study_name="s"
    )
    searched.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=3)
    found["spools"] = Target(folder("spools") / "run", read_spool, damaged="*.json*")
    spool = Spool(found["spools"].folder, Identity(id="run", experiment="e", name="n"))
    spool.append("metrics", env_steps=5, values={"loss": 0.5})
    spool.set_status("FINISHED")
    spool.append("tags", values={"a": "b"})
    spool.close()
    return found


# How it is damaged


def flip(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]


def replace_byte(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return (
        data[:place] + chance.choice([b"\x00", b"\xff", b"9", b"-", b"e", b"\n", b",", b'"', b"{"]) + data[place + 1 :]
    )


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def cut_inside(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:]


def double(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:last] + data[last:]


def swap(data: bytes, chance: random.Random) -> bytes:
    a, b, c = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def zero(data: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + bytes(last - first) + data[last:]


def swap_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    a, b = (chance.randrange(len(lines)) for _ in range(2))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def drop_line(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def other_number(data: bytes, chance: random.Random) -> bytes:
    places = [found.span() for found in re.finditer(rb"-?\d[\d.e+-]*", data[:100_000])]
    if not places:
        return data
    first, last = chance.choice(places)
    return data[:first] + chance.choice([*ODD, str(chance.randrange(10**6))]).encode() + data[last:]


def retype(data: bytes, chance: random.Random) -> bytes:
    """JSON, a line of it, or the header of safetensors, with another value somewhere."""
    size, head, tail = int.from_bytes(data[:8], "little"), b"", b""
    body = data
    if 0 < size < len(data) - 8 and data[8:9] == b"{":
        head, body, tail = data[:8], data[8 : 8 + size], data[8 + size :]
    elif body.count(b"\n") > 1 and body[:1] == b"{" and body[1:2] != b"\n":
        lines = body.splitlines(keepends=True)
        place = chance.randrange(len(lines))
        return b"".join([*lines[:place], retype(lines[place].rstrip(b"\n"), chance) + b"\n", *lines[place + 1 :]])
    try:
        content = json.loads(body)
    except ValueError:
        return data
    spots: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            spots.append((node, key))
            walk(node[key])

    walk(content)
    if not spots:
        return data
    node, key = chance.choice(spots)
    dtypes = ["F32", "I32", "F64", "I64", "BOOL", "U8", "BF16", "F8_E4M3"] if key == "dtype" else []
    node[key] = chance.choice(dtypes or [*STRUCTURES, copy.deepcopy(chance.choice(spots)[0])])
    try:
        written = json.dumps(content, separators=(",", ":")).encode()
    except ValueError:  # it now holds itself
        return data
    return len(written).to_bytes(8, "little") + written + tail if head else written


def empty(data: bytes, chance: random.Random) -> bytes:
    return b""


MUTATIONS = (flip, flip, replace_byte, cut, cut_inside, double, swap, zero, swap_lines, drop_line, other_number,
             other_number, retype, retype, empty)  # fmt: skip


# The run


def outcome(target: Target, right: Any) -> tuple[str, str]:
    try:
        value: Any = digest(target.read(target.folder))
    except UserError as error:
        return "refused", str(error)
    except BaseException:
        return "traceback", traceback.format_exc(limit=-4)
    if value == right or (target.earlier and value == right[: len(value)]):
        return "right", ""
    return ("another valid value" if target.unchecked else "silent"), str(value)[:300]


def damage(target: Target, files: dict[Path, bytes], chance: random.Random) -> str:
    """Change one file, or swap or remove some; returns what was done."""
    path = chance.choice(sorted(path for path in files if path.match(target.damaged)))
    kind = chance.random()
    if kind < 0.02:
        path.unlink()
        return f"{path.name} removed"
    if kind < 0.04:
        other = chance.choice(sorted(files))
        path.write_bytes(files[other])
        return f"{path.name} is {other.name}"
    mutation = chance.choice(MUTATIONS)
    path.write_bytes(mutation(files[path], chance) if files[path] else b"x")
    return f"{mutation.__name__} of {path.name}"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restore(target: Target, files: dict[Path, bytes]) -> None:
    for path in target.folder.rglob("*"):
        if path.is_file() and path not in files:
            path.unlink()
    for path, data in files.items():
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


@pytest.mark.timeout(2 * SECONDS + 300)
def test_a_damaged_file_gives_the_right_value_or_a_user_error(tmp_path: Path) -> None:
    chance, counts, bad, slowest = random.Random(SEED), dict[str, Counter[str]](), list[str](), (0.0, "")
    targets = make_targets(tmp_path)
    kept = {name: contents(target.folder) for name, target in targets.items()}
    rights = {name: digest(target.read(target.folder)) for name, target in targets.items()}
    for name, target in targets.items():
        restore(target, kept[name])
        counts[name] = Counter()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for name, target in targets.items():
            done = damage(target, kept[name], chance)
            if all(path.is_file() and path.read_bytes() == data for path, data in kept[name].items()):
                continue  # it changed nothing
            began = time.process_time()
            found, told = outcome(target, rights[name])
            slowest = max(slowest, (time.process_time() - began, f"{name}: {done}"))
            counts[name][found] += 1
            if found in ("traceback", "silent"):
                bad.append(f"{name}, input {counts[name].total()}, {done}: {found}\n{told}")
            restore(target, kept[name])
    columns = ("refused", "right", "another valid value", "silent", "traceback")
    print(f"\nseed {SEED}, {SECONDS:g} s; slowest {slowest[0]:.2f} s of CPU ({slowest[1]})")
    print("| kind | tried |", " | ".join(columns), "|")
    for name, of in {**counts, "all": sum(counts.values(), Counter[str]())}.items():
        print(f"| {name} | {of.total()} |", " | ".join(str(of[column]) for column in columns), "|")
    assert not bad, f"{len(bad)} of them\n" + "\n\n".join(bad[:12])
    assert all(of.total() for of in counts.values())
