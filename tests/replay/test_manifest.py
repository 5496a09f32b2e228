"""The manifest: one line for each episode, and what a torn, damaged or hostile one does."""

import hashlib
import json

import pytest
from synthetic_episodes import PIXELS, VECTOR, synthetic_episode

from ccwm.errors import UserError
from ccwm.replay.manifest import Manifest
from ccwm.replay.store import EpisodeStore


@pytest.fixture
def directory(tmp_path):
    """A store of episodes 0 … 3 of 3, 4, 5 and 6 steps."""
    store = EpisodeStore(tmp_path / "replay")
    for number in range(4):
        store.append(synthetic_episode(number, 3 + number))
    return store.directory


def contents(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("shape", "dtype"), [(PIXELS, "uint8"), (VECTOR, "float32")])
def test_the_manifest_describes_each_episode_in_order(tmp_path, shape, dtype):
    store = EpisodeStore(tmp_path)
    for number in range(2):
        store.append(synthetic_episode(number, 3 + number, shape=shape))
    first, second = (json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines())
    assert (first["name"], second["name"]) == ("000000.safetensors", "000001.safetensors")
    assert second == {
        "name": "000001.safetensors",
        "steps": 4,
        "observation_shape": list(shape),
        "observation_dtype": dtype,
        "action_size": 2,
        "return": 100 + 101 + 102 + 103,
        "sha256": hashlib.sha256((tmp_path / "000001.safetensors").read_bytes()).hexdigest(),
        "schema": 2,
    }
    assert Manifest(tmp_path, create=False).entries == list(store.entries)


@pytest.mark.parametrize("tail", [0, 100])  # a power cut can also leave zeros
def test_a_torn_last_line_is_ignored_and_then_replaced(directory, tail):
    manifest = directory / "manifest.jsonl"
    whole = contents(directory)
    manifest.write_bytes(manifest.read_bytes()[:-30] + b"\0" * tail)
    store = EpisodeStore(directory)
    assert len(store) == 3
    store.append(synthetic_episode(3, 6))
    assert contents(directory) == whole


def test_a_damaged_line_in_the_middle_is_refused_by_number(directory):
    manifest = directory / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"steps":4', '"steps":-4'))
    with pytest.raises(UserError, match=r"manifest\.jsonl, line 2: steps"):
        EpisodeStore(directory)


def test_a_manifest_cannot_name_files_elsewhere(directory):
    manifest = directory / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("000001.safetensors", "../000001.safetensors"))
    with pytest.raises(UserError, match="line 2: name"):
        EpisodeStore(directory)


def test_episodes_without_their_manifest_are_not_overwritten(directory):
    (directory / "manifest.jsonl").unlink()
    with pytest.raises(UserError, match="no manifest"):
        EpisodeStore(directory)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"observation_dtype":"uint8"', '"observation_dtype":"object"', "observation_dtype"),
        ('"observation_shape":[4,4,3]', '"observation_shape":[4,0,3]', "observation_shape"),
        ('"observation_shape":[4,4,3]', '"observation_shape":[]', "observation_shape"),
        ('"schema":2', '"schema":1', "schema"),
    ],
)
def test_each_line_is_checked(directory, old, new, key):
    manifest = directory / "manifest.jsonl"
    assert old in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(old, new))
    with pytest.raises(UserError, match=f"line 1: {key}"):
        EpisodeStore(directory)


def test_lines_must_agree_on_shape_and_dtype(directory):
    manifest = directory / "manifest.jsonl"
    lines = manifest.read_text().splitlines()
    lines[2] = lines[2].replace('"observation_shape":[4,4,3]', '"observation_shape":[8,8,3]')
    manifest.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=r"line 3: .*\(8, 8, 3\).*\(4, 4, 3\)"):
        EpisodeStore(directory)
