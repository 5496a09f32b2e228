import json
import logging

import numpy as np
import pytest
from synthetic_episodes import synthetic_episode

from ccwm.replay.episodes import DamagedEpisode
from ccwm.replay.manifest import DamagedManifest
from ccwm.replay.store import EpisodeStore, TooManyDamaged


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


def test_the_manifest_describes_each_episode_in_order(directory):
    lines = [json.loads(line) for line in (directory / "manifest.jsonl").read_text().splitlines()]
    assert [line["name"] for line in lines] == [f"00000{number}.safetensors" for number in range(4)]
    assert set(lines[0]) == {"name", "steps", "size", "actions", "return", "sha256", "schema"}
    assert (lines[1]["steps"], lines[1]["size"], lines[1]["actions"], lines[1]["schema"]) == (4, 4, 2, 1)
    assert lines[1]["return"] == 100 + 101 + 102 + 103
    store = EpisodeStore(directory)
    assert (len(store), store.steps, store.damaged) == (4, 3 + 4 + 5 + 6, 0)
    assert rewards(store) == [0, 100, 200, 300]


@pytest.mark.parametrize("tail", [0, 100])  # a power cut can also leave zeros
def test_a_torn_last_line_is_ignored_and_then_replaced(directory, tail):
    manifest = directory / "manifest.jsonl"
    whole = contents(directory)
    manifest.write_bytes(manifest.read_bytes()[:-30] + b"\0" * tail)
    store = EpisodeStore(directory)
    assert rewards(store) == [0, 100, 200]
    store.append(synthetic_episode(3, 6))
    assert contents(directory) == whole


def test_a_damaged_line_in_the_middle_is_refused_by_number(directory):
    manifest = directory / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"steps":4', '"steps":-4'))
    with pytest.raises(DamagedManifest, match=r"manifest\.jsonl, line 2: steps"):
        EpisodeStore(directory)


def test_a_manifest_cannot_name_files_elsewhere(directory):
    manifest = directory / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace("000001.safetensors", "../000001.safetensors"))
    with pytest.raises(DamagedManifest, match="line 2: name"):
        EpisodeStore(directory)


def test_episodes_without_their_manifest_are_not_overwritten(directory):
    (directory / "manifest.jsonl").unlink()
    with pytest.raises(DamagedManifest, match="restore it"):
        EpisodeStore(directory)


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


def test_above_the_share_the_store_refuses_and_changes_nothing(directory):
    flip(directory / "000001.safetensors")
    flip(directory / "000002.safetensors")
    before = contents(directory)
    with pytest.raises(
        TooManyDamaged, match=r"2 of 4 episodes in .*replay .*more than the share of 49%.*collect again"
    ):
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
    with pytest.raises(DamagedManifest, match="line 7: name"):
        reader.refresh()


def test_read_only_needs_a_store(tmp_path):
    with pytest.raises(FileNotFoundError, match="no episode store"):
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


def test_a_copy_starts_with_the_source_and_goes_on_after_a_kill(directory, tmp_path):
    before = contents(directory)
    copy = EpisodeStore(tmp_path / "copy")
    copy.adopt(directory / "000000.safetensors")  # as far as a killed copy came
    copy.copy_from(directory)
    assert contents(copy.directory) == before
    copy.append(synthetic_episode(8, 3))
    copy.copy_from(directory)
    assert rewards(EpisodeStore(copy.directory)) == [0, 100, 200, 300, 800]
    assert contents(directory) == before


def test_a_copy_leaves_out_what_is_damaged_and_refuses_another_beginning(directory, tmp_path):
    flip(directory / "000001.safetensors")
    copy = EpisodeStore(tmp_path / "copy", damaged_share=0.25)
    copy.copy_from(directory)
    assert rewards(copy) == [0, 200, 300]
    other = EpisodeStore(tmp_path / "other", damaged_share=0.25)
    other.append(synthetic_episode(7, 3))
    with pytest.raises(ValueError, match=r"does not begin with .*episode 0 differs"):
        other.copy_from(directory)


def test_one_store_holds_one_shape(directory):
    store = EpisodeStore(directory)
    with pytest.raises(ValueError, match=r"image \(4, 4, 3\) and action \(2,\)"):
        store.append(synthetic_episode(4, 3, size=8))
    with pytest.raises(ValueError, match="use one directory"):
        store.append(synthetic_episode(4, 3, actions=1))
    with pytest.raises(ValueError, match="NaN"):
        store.append(synthetic_episode(4, 3)._replace(reward=np.full(3, np.nan, np.float32)))
    assert len(names(directory)) == 5
