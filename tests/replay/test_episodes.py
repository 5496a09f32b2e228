"""Episode files: their bytes, their checks, and windows of them."""

import numpy as np
import pytest
from safetensors.numpy import save
from synthetic_episodes import PIXELS, VECTOR, synthetic_episode

from ccwm.replay.episodes import SCHEMA, DamagedEpisode, parse_episode, read_episode, read_window, serialise_episode

KINDS = pytest.mark.parametrize("shape", [PIXELS, VECTOR, (2, 3)])


def assert_equal(got, expected):
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name), strict=True, err_msg=name)


@KINDS
def test_round_trip(tmp_path, shape):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(3, 7, shape=shape, terminated=True)
    path.write_bytes(serialise_episode(episode))
    assert_equal(read_episode(path), episode)


def test_equal_episodes_are_equal_files():
    first = serialise_episode(synthetic_episode(1, 5))
    assert serialise_episode(synthetic_episode(1, 5)) == first
    assert serialise_episode(synthetic_episode(2, 5)) != first


def changed(**arrays):
    return synthetic_episode(0, 3)._replace(**arrays)


INVALID = {
    "observation is float64": changed(observation=np.zeros((3, 5))),
    "observation is int64": changed(observation=np.zeros((3, 4, 4, 3), np.int64)),
    "observation has shape": changed(observation=np.zeros(3, np.float32)),
    "observation has shape ": changed(observation=np.zeros((3, 0), np.float32)),
    "observation holds NaN or inf": changed(observation=np.array([[0], [np.nan], [0]], np.float32)),
    "observation holds NaN or inf ": changed(observation=np.array([[0], [np.inf], [0]], np.float32)),
    "action has shape": changed(action=np.zeros((2, 2), np.float32)),
    "reward has shape": changed(reward=np.zeros(4, np.float32)),
    "reward is float64": changed(reward=np.zeros(3)),
    "reward holds NaN or inf": changed(reward=np.array([0, np.nan, 0], np.float32)),
    "action holds NaN or inf": changed(action=np.array([[0], [np.inf], [0]], np.float32)),
    r"action\[0\]": changed(action=np.ones((3, 2), np.float32)),
    "is_first must": changed(is_first=np.array([True, False, True])),
    "irreversible holds bytes": changed(irreversible=np.array([0, 2, 0], np.uint8).view(bool)),
    "continues must": changed(continues=np.array([1, 0, 1], np.float32)),
}


@pytest.mark.parametrize("reason", INVALID)
def test_invalid_episodes_are_neither_written_nor_read(tmp_path, reason):
    with pytest.raises(ValueError, match=reason.strip()):
        serialise_episode(INVALID[reason])
    data = save(INVALID[reason]._asdict(), {"ccwm.episode": str(SCHEMA)})
    with pytest.raises(DamagedEpisode, match=rf"a\.safetensors.*{reason.strip()}"):
        parse_episode(data, tmp_path / "a.safetensors")


def test_foreign_files_are_refused(tmp_path):
    arrays = synthetic_episode(0, 3)._asdict()
    foreign = {
        "not a safetensors file": b"PK\x03\x04 not ours at all",
        "ccwm.episode=None": save(arrays),
        "ccwm.episode=1": save(arrays, {"ccwm.episode": "1"}),
        r"\['weight'\]": save({"weight": arrays["reward"]}, {"ccwm.episode": str(SCHEMA)}),
    }
    for reason, data in foreign.items():
        with pytest.raises(DamagedEpisode, match=reason):
            parse_episode(data, tmp_path / "foreign")


@KINDS
def test_a_window_is_the_same_slice_of_the_whole(tmp_path, shape):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(5, 9, shape=shape)
    path.write_bytes(serialise_episode(episode))
    # Strided targets, as the columns of a batch are.
    window = type(episode)(*(np.zeros((4, 2, *array.shape[1:]), array.dtype)[:, 1] for array in episode))
    read_window(path, 3, window)
    assert_equal(window, type(episode)(*(array[3:7] for array in episode)))
    with pytest.raises(IndexError, match="past the end"):
        read_window(path, 6, window)


def test_a_window_of_another_shape_or_dtype_is_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(serialise_episode(synthetic_episode(0, 4)))
    for other in (synthetic_episode(0, 4, shape=(8, 8, 3)), synthetic_episode(0, 4, shape=VECTOR)):
        with pytest.raises(DamagedEpisode, match="its observation is not"):
            read_window(path, 0, other)


@pytest.mark.parametrize(
    ("kept", "reason"), [(0, "no safetensors header"), (40, "no safetensors header"), (-1, "shorter than")]
)
def test_a_window_of_a_file_cut_short_is_refused(tmp_path, kept, reason):
    path = tmp_path / "a.safetensors"
    episode = synthetic_episode(0, 4)
    path.write_bytes(serialise_episode(episode)[:kept])
    with pytest.raises(DamagedEpisode, match=reason):
        read_window(path, 0, episode)
