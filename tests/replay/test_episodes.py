import hashlib

import numpy as np
import pytest
from safetensors.numpy import save, save_file
from synthetic_episodes import synthetic_episode

from ccwm.replay.episodes import DamagedEpisode, parse_episode, read_episode, read_window, write_episode


def assert_equal(got, expected):
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), strict=True, err_msg=name)


def test_round_trip_and_hash(tmp_path):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(3, 7, terminated=True)
    sha256 = write_episode(path, episode)
    assert_equal(read_episode(path), episode)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert list(tmp_path.iterdir()) == [path]


def test_equal_episodes_are_equal_files(tmp_path):
    first = write_episode(tmp_path / "a", synthetic_episode(1, 5))
    assert write_episode(tmp_path / "b", synthetic_episode(1, 5)) == first
    assert write_episode(tmp_path / "c", synthetic_episode(2, 5)) != first


def changed(**arrays):
    return synthetic_episode(0, 3)._replace(**arrays)


INVALID = {
    "image is float32": changed(image=np.zeros((3, 4, 4, 3), np.float32)),
    "image has shape": changed(image=np.zeros((3, 4, 5, 3), np.uint8)),
    "action has shape": changed(action=np.zeros((2, 2), np.float32)),
    "reward has shape": changed(reward=np.zeros(4, np.float32)),
    "reward holds NaN or inf": changed(reward=np.array([0, np.nan, 0], np.float32)),
    "action holds NaN or inf": changed(action=np.array([[0], [np.inf], [0]], np.float32)),
    r"action\[0\] is not zero": changed(action=np.ones((3, 2), np.float32)),
    "is_first must": changed(is_first=np.array([True, False, True])),
    "irreversible holds bytes": changed(irreversible=np.array([0, 2, 0], np.uint8).view(bool)),
    "continues must": changed(continues=np.array([1, 0, 1], np.float32)),
}


@pytest.mark.parametrize("reason", INVALID)
def test_invalid_episodes_are_neither_written_nor_read(tmp_path, reason):
    path = tmp_path / "a.safetensors"
    with pytest.raises(ValueError, match=reason):
        write_episode(path, INVALID[reason])
    assert not path.exists()
    save_file(INVALID[reason]._asdict(), path, {"ccwm.episode": "1"})
    with pytest.raises(DamagedEpisode, match=rf"a\.safetensors.*{reason}"):
        read_episode(path)


def test_foreign_files_are_refused(tmp_path):
    arrays = synthetic_episode(0, 3)._asdict()
    foreign = {
        "not a safetensors file": b"PK\x03\x04 not ours at all",
        "ccwm.episode=None": save(arrays),
        "ccwm.episode=2": save(arrays, {"ccwm.episode": "2"}),
        r"it holds \['weight'\]": save({"weight": arrays["reward"]}, {"ccwm.episode": "1"}),
    }
    for reason, data in foreign.items():
        with pytest.raises(DamagedEpisode, match=reason):
            parse_episode(data, tmp_path / "foreign")


def test_a_window_is_the_same_slice_of_the_whole(tmp_path):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(5, 9)
    write_episode(path, episode)
    # Strided targets, as the columns of a batch are.
    window = type(episode)(*(np.zeros((4, 2, *array.shape[1:]), array.dtype)[:, 1] for array in episode))
    read_window(path, 3, window)
    assert_equal(window, type(episode)(*(array[3:7] for array in episode)))
    with pytest.raises(IndexError, match="past the end"):
        read_window(path, 6, window)


@pytest.mark.parametrize(("kept", "reason"), [(0, "no safetensors header"), (40, "no JSON"), (-1, "shorter than")])
def test_a_window_of_a_file_cut_short_is_refused(tmp_path, kept, reason):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(0, 4)
    write_episode(path, episode)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DamagedEpisode, match=reason):
        read_window(path, 0, episode)
