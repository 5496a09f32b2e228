"""Real signals and a real limit on file size: what a kill and a full disk leave behind."""

import multiprocessing
import os
import resource
import signal

from synthetic_episodes import synthetic_episode

from ccwm.replay.episodes import read_episode
from ccwm.replay.store import EpisodeStore

FORK = multiprocessing.get_context("fork")  # a child that need not import torch again
EPISODES = 4


def collect(directory):
    """Append until there are EPISODES, each some milliseconds of writing."""
    store = EpisodeStore(directory)
    while len(store) < EPISODES:
        store.append(synthetic_episode(len(store), 500, size=64))


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


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


def append_with_limit(directory, limit, steps, size):
    """Exit 3 if files of this process may not grow beyond ``limit`` bytes and append says so."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    store = EpisodeStore(directory)
    before = len(store)
    try:
        store.append(synthetic_episode(before, steps, size=size))
    except OSError:
        os._exit(3 if len(store) == before else 4)


def assert_append_fails_cleanly(directory, limit, steps, size):
    before = contents(directory)
    child = FORK.Process(target=append_with_limit, args=(directory, limit, steps, size))
    child.start()
    child.join()
    assert child.exitcode == 3
    assert contents(directory) == before
    EpisodeStore(directory).append(synthetic_episode(99, steps, size=size))  # there is room again


def test_a_full_disk_leaves_no_part_of_an_episode(tmp_path):
    EpisodeStore(tmp_path).append(synthetic_episode(0, 20, size=32))
    assert_append_fails_cleanly(tmp_path, limit=50_000, steps=50, size=32)  # 50·32·32·3 bytes do not fit


def test_a_full_disk_leaves_no_part_of_a_manifest_line(tmp_path):
    store = EpisodeStore(tmp_path)
    for number in range(8):
        store.append(synthetic_episode(number, 1, size=1))
    limit = (tmp_path / "manifest.jsonl").stat().st_size + 10  # the episode fits, its line does not
    assert limit > (tmp_path / "000000.safetensors").stat().st_size
    assert_append_fails_cleanly(tmp_path, limit=limit, steps=1, size=1)
