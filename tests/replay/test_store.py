"""A directory of episodes: what is kept, found damaged, forgotten and copied; what a kill and a full disk leave."""

import hashlib
import json
import logging
import multiprocessing
import os
import resource
import signal

import numpy as np
import pytest
from safetensors.numpy import save
from synthetic_episodes import VECTOR, synthetic_episode

from ccwm.errors import UserError
from ccwm.replay.episodes import SCHEMA, SCHEMA_KEY, DamagedEpisode, read_episode
from ccwm.replay.store import EpisodeStore

FORK = multiprocessing.get_context("fork")  # a child that need not import torch again
EPISODES = 4


@pytest.fixture
def directory(tmp_path):
    """A store of episodes 0 … 3 of 3, 4, 5 and 6 steps."""
    store = EpisodeStore(tmp_path / "replay")
    for number in range(4):
        store.append(synthetic_episode(number, 3 + number))
    return store.directory


def contents(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def names(directory):
    return sorted(contents(directory))


def rewards(store):
    return [float(store.episode(index).reward[0]) for index in range(len(store))]


def flip(path):
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "flipped": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(b"PK\x03\x04"),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_quarantined_counted_and_never_read(directory, kind, caplog):
    DAMAGE[kind](directory / "000001.safetensors")
    for _ in range(2):  # the count survives reopening
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            store = EpisodeStore(directory, damaged_share=0.25)
        assert (len(store), store.damaged, store.eligible()) == (4, 1, [0, 2, 3])
        assert "000001.safetensors is left out" in caplog.text
        with pytest.raises(DamagedEpisode, match=r"000001\.safetensors"):
            store.episode(1)
        assert not (directory / "000001.safetensors").exists()
        assert (directory / "quarantine" / "000001.safetensors").exists() == (kind != "missing")


def rewrite(directory, episode, schema=SCHEMA, **line):
    """Put other content at episode 1, with a checksum that fits it, and other values into its line."""
    data = save({name: np.ascontiguousarray(of) for name, of in episode.items()}, {SCHEMA_KEY: str(schema)})
    (directory / "000001.safetensors").write_bytes(data)
    path = directory / "manifest.jsonl"
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    lines[1] |= {"sha256": hashlib.sha256(data).hexdigest(), **line}
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


WHOLE = synthetic_episode(1, 4)._asdict()
CONTENT = {
    "no reward": {name: of for name, of in WHOLE.items() if name != "reward"},
    "another array": WHOLE | {"bonus": WHOLE["reward"]},
    "float64 rewards": WHOLE | {"reward": WHOLE["reward"].astype(np.float64)},
    "integer actions": WHOLE | {"action": WHOLE["action"].astype(np.int32)},
    "NaN": WHOLE | {"reward": np.full(4, np.nan, np.float32)},
    "shorter rewards": WHOLE | {"reward": WHOLE["reward"][:3]},
    "no steps": {name: of[:0] for name, of in WHOLE.items()},
    "a first action": WHOLE | {"action": np.ones((4, 2), np.float32)},
    "two starts": WHOLE | {"is_first": np.ones(4, bool)},
    "an end in the middle": WHOLE | {"continues": np.array([1, 0, 1, 1], np.float32)},
    "one step less": {name: of[:3] for name, of in WHOLE.items()},
    "another shape": WHOLE | {"observation": np.zeros((4, 2, 2, 3), np.uint8)},
    "another dtype": WHOLE | {"observation": np.zeros((4, 4, 4, 3), np.float32)},
    "more actions": WHOLE | {"action": np.zeros((4, 3), np.float32)},
    "another return": WHOLE | {"reward": WHOLE["reward"] + np.float32(1)},
}


@pytest.mark.parametrize("kind", CONTENT)
def test_a_checksum_that_fits_saves_no_content_that_does_not(directory, kind):
    rewrite(directory, CONTENT[kind])
    store = EpisodeStore(directory, damaged_share=0.25)
    assert (store.damaged, store.eligible()) == (1, [0, 2, 3])
    assert (directory / "quarantine" / "000001.safetensors").exists()


@pytest.mark.parametrize("line", [{"steps": 9}, {"return": 7.5}, {"name": "000002.safetensors"}, {"steps": 3}])
def test_a_line_that_does_not_fit_its_episode_is_damage(directory, line):
    rewrite(directory, WHOLE, **line)
    assert EpisodeStore(directory, damaged_share=0.25, read_only=True).eligible() == [0, 2, 3]


def test_an_episode_of_another_schema_is_damage(directory):
    rewrite(directory, WHOLE, schema=SCHEMA + 1)
    assert EpisodeStore(directory, damaged_share=0.25, read_only=True).eligible() == [0, 2, 3]


def test_above_the_share_the_store_refuses_and_changes_nothing(directory):
    flip(directory / "000001.safetensors")
    flip(directory / "000002.safetensors")
    before = contents(directory)
    with pytest.raises(UserError, match=r"2 of 4 episodes in .*replay .*49%"):
        EpisodeStore(directory, damaged_share=0.49)
    assert contents(directory) == before


def test_read_only_changes_nothing(directory):
    flip(directory / "000001.safetensors")
    (directory / ".000004.safetensors.tmp").touch()
    before = contents(directory)
    store = EpisodeStore(directory, damaged_share=0.25, read_only=True)
    assert (store.damaged, store.eligible()) == (1, [0, 2, 3])
    with pytest.raises(PermissionError, match="read-only"):
        store.append(synthetic_episode(4, 3))
    with pytest.raises(PermissionError, match="read-only"):
        store.truncate(0)
    assert contents(directory) == before


def test_a_writer_clears_what_a_killed_one_left(directory):
    before = contents(directory)
    (directory / ".000004.safetensors.tmp").write_bytes(b"half an epis")
    EpisodeStore(directory)
    assert contents(directory) == before


def test_a_reader_sees_what_the_writer_appends_when_it_asks(directory):
    writer, reader = EpisodeStore(directory), EpisodeStore(directory, read_only=True)
    for number in (4, 5):
        writer.append(synthetic_episode(number, 3 + number))
        assert len(reader) == number
        reader.refresh()
        assert reader.entries == writer.entries
    assert rewards(reader) == [0, 100, 200, 300, 400, 500]
    with (directory / "manifest.jsonl").open("a") as file:
        file.write('{"name": 1}\n')
    with pytest.raises(UserError, match="line 7: name"):
        reader.refresh()


def test_read_only_needs_a_store(tmp_path):
    with pytest.raises(UserError, match=r"absent.*manifest\.jsonl"):
        EpisodeStore(tmp_path / "absent", read_only=True)
    assert not (tmp_path / "absent").exists()


def test_truncate_forgets_and_the_next_append_goes_there(directory):
    store = EpisodeStore(directory)
    store.truncate(2)
    assert (len(store), store.steps) == (2, 7)
    assert names(directory) == ["000000.safetensors", "000001.safetensors", "manifest.jsonl"]
    store.append(synthetic_episode(9, 8))
    assert rewards(EpisodeStore(directory)) == [0, 100, 900]
    with pytest.raises(ValueError, match="holds 3 episodes, it cannot be cut to 4"):
        store.truncate(4)


def test_capacity_keeps_the_newest_and_always_one(directory):
    # Steps of 3, 4, 5, 6: the newest two have 11, three have 15.
    assert EpisodeStore(directory, capacity=15).eligible() == [1, 2, 3]
    assert EpisodeStore(directory, capacity=14).eligible() == [2, 3]
    assert EpisodeStore(directory, capacity=1).eligible() == [3]
    assert EpisodeStore(directory, capacity=9).eligible(episodes=3) == [1, 2]
    with pytest.raises(ValueError, match="no first 5"):
        EpisodeStore(directory).eligible(episodes=5)


def test_a_copy_starts_with_the_source_and_resumes_after_a_kill(directory, tmp_path):
    before = contents(directory)
    copy = EpisodeStore(tmp_path / "copy")
    copy.adopt(directory / "000000.safetensors")  # as far as a killed copy came
    copy.copy_from(directory)
    assert contents(copy.directory) == before
    copy.append(synthetic_episode(8, 3))
    copy.copy_from(directory)
    assert rewards(EpisodeStore(copy.directory)) == [0, 100, 200, 300, 800]
    assert contents(directory) == before


def test_a_copy_leaves_out_what_is_damaged_and_refuses_another_start(directory, tmp_path):
    flip(directory / "000001.safetensors")
    copy = EpisodeStore(tmp_path / "copy", damaged_share=0.25)
    copy.copy_from(directory)
    assert rewards(copy) == [0, 200, 300]
    flip(directory / "000002.safetensors")  # since it was copied
    copy.damaged_share = 0.5
    copy.copy_from(directory)
    assert rewards(copy) == [0, 200, 300]
    other = EpisodeStore(tmp_path / "other", damaged_share=0.5)
    other.append(synthetic_episode(7, 3))
    with pytest.raises(ValueError, match="episode 0 differs"):
        other.copy_from(directory)


@pytest.mark.parametrize("other", [{"shape": (8, 8, 3)}, {"shape": VECTOR}, {"actions": 1}])
def test_one_store_holds_one_shape(directory, other):
    store = EpisodeStore(directory)
    before = contents(directory)
    with pytest.raises(ValueError, match=r"\('uint8', \(4, 4, 3\), 2\)"):
        store.append(synthetic_episode(4, 3, **other))
    with pytest.raises(ValueError, match="NaN"):
        store.append(synthetic_episode(4, 3)._replace(reward=np.full(3, np.nan, np.float32)))
    assert contents(directory) == before


def test_a_store_of_vectors_is_as_good(tmp_path):
    store = EpisodeStore(tmp_path)
    for number in range(3):
        store.append(synthetic_episode(number, 3 + number, shape=VECTOR))
    flip(tmp_path / "000001.safetensors")
    store = EpisodeStore(tmp_path, damaged_share=0.5)
    assert store.eligible() == [0, 2]
    episode = store.episode(2)
    assert (episode.observation.shape, episode.observation.dtype) == ((5, *VECTOR), np.float32)
    with pytest.raises(ValueError, match=r"\('float32', \(5,\), 2\)"):
        store.append(synthetic_episode(4, 3))


def collect(directory):
    """Append until there are EPISODES, each some milliseconds of writing."""
    store = EpisodeStore(directory)
    while len(store) < EPISODES:
        store.append(synthetic_episode(len(store), 500, shape=(64, 64, 3)))


def collect_and_stay(directory):
    collect(directory)
    signal.pause()  # so that there is something to kill, however late


def kill_when(directory, pattern):
    """Kill a collecting child with -9 the moment that a file of this name appears."""
    child = FORK.Process(target=collect_and_stay, args=(directory,))
    child.start()
    while not any(directory.glob(pattern)):
        pass
    os.kill(child.pid, signal.SIGKILL)
    child.join()


def test_kill_9_leaves_whole_episodes_and_the_rerun_equals_a_clean_run(tmp_path):
    collect(tmp_path / "clean")
    clean = contents(tmp_path / "clean")
    directory = tmp_path / "killed"
    for number in range(EPISODES):
        # First inside the write, while any file of this number is new; then between the rename and the manifest's line.
        for pattern in (f"*{number:06d}*", f"{number:06d}.safetensors"):
            kill_when(directory, pattern)
            for path in directory.glob("*.safetensors"):
                read_episode(path)
            EpisodeStore(directory)
    collect(directory)
    assert contents(directory) == clean


def append_with_limit(directory, limit, steps, shape):
    """Exit 3 if files of this process may not grow beyond ``limit`` bytes and append says so."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    store = EpisodeStore(directory)
    before = len(store)
    try:
        store.append(synthetic_episode(before, steps, shape=shape))
    except OSError:
        os._exit(3 if len(store) == before else 4)


def assert_append_fails_cleanly(directory, limit, steps, shape):
    before = contents(directory)
    child = FORK.Process(target=append_with_limit, args=(directory, limit, steps, shape))
    child.start()
    child.join()
    assert child.exitcode == 3
    assert contents(directory) == before
    EpisodeStore(directory).append(synthetic_episode(99, steps, shape=shape))  # there is room again


def test_a_full_disk_leaves_no_part_of_an_episode(tmp_path):
    EpisodeStore(tmp_path).append(synthetic_episode(0, 20, shape=(32, 32, 3)))
    assert_append_fails_cleanly(tmp_path, limit=50_000, steps=50, shape=(32, 32, 3))  # 50·32·32·3 bytes do not fit


def test_a_full_disk_leaves_no_part_of_a_manifest_line(tmp_path):
    store = EpisodeStore(tmp_path)
    for number in range(8):
        store.append(synthetic_episode(number, 1, shape=(1, 1, 3)))
    limit = (tmp_path / "manifest.jsonl").stat().st_size + 10  # the episode fits, its line does not
    assert limit > (tmp_path / "000000.safetensors").stat().st_size
    assert_append_fails_cleanly(tmp_path, limit=limit, steps=1, shape=(1, 1, 3))
