from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ccwm.episode import Episode
from ccwm.errors import UserError
from ccwm.settings.schema import Latents
from ccwm.studies.embeddings import (
    Embeddings,
    embed_states,
    read_maps,
    read_numbers,
    tsne,
    used_perplexity,
    write_embeddings,
)
from ccwm.studies.trajectories import Seen


def walk(steps: int, *, retraces: bool = True, seed: int = 0) -> Seen:
    """A random walk of states, each retraced to nearly where it was."""
    random = torch.Generator().manual_seed(seed)
    states = torch.randn(steps, 6, generator=random).cumsum(0)
    retraced = states[:-1] + 1e-3 * torch.randn(steps - 1, 6, generator=random)
    irreversible = np.arange(steps) == 7
    episode = Episode(*(np.zeros(steps) for _ in range(5)), irreversible=irreversible)
    return Seen(episode, states, retraced if retraces else None, states[:, 0])


def embedded(trajectory: Seen, *, steps: int = 40, late: int = 12, mapped: int = 50) -> Embeddings:
    kept = np.arange(len(trajectory.states)) % 5 > 0
    seen = [walk(40, seed=1), walk(30, seed=2)]
    settings = Latents(trajectory=steps, late=late, mapped=mapped, neighbours=3)
    return embed_states(trajectory, kept, seen, settings, seed=0, advance=lambda: None)


def test_a_trajectory_is_mapped_with_its_retraced_states_and_its_mask():
    got = embedded(walk(61))
    assert got.trajectory.true.shape == got.trajectory.retraced.shape == (40, 2)
    assert got.late.true.shape == got.late.retraced.shape == (12, 2)
    assert got.values.points.shape == (50, 2)
    assert got.trajectory.kept.tolist() == [t % 5 > 0 for t in range(40)]
    assert got.late.kept.tolist() == [t % 5 > 0 for t in range(28, 40)]  # the last twelve of the forty
    assert np.flatnonzero(got.trajectory.irreversible).tolist() == [7]
    whole, late, values = got.numbers
    assert [row.map for row in got.numbers] == ["trajectory", "late", "values"]
    assert (whole.states, late.states, values.states) == (80, 24, 50)
    assert whole.overlap == pytest.approx(1, abs=0.02)  # retraced to where they were
    assert whole.overlap > whole.overlap_not_retraced > whole.overlap_chance == pytest.approx(3 / 39)
    assert whole.truncated_share == pytest.approx(8 / 40)
    assert values.value_smoothness > 0.5  # the value is a coordinate of the states


def test_an_agent_that_does_not_retrace_has_a_map_of_its_true_states():
    got = embedded(walk(61, retraces=False))
    assert got.trajectory.true.shape == (40, 2)
    assert got.trajectory.retraced.shape == (0, 2)
    assert got.numbers[0].overlap is None
    assert got.numbers[0].overlap_not_retraced is not None


def test_what_is_short_is_mapped_whole():
    got = embedded(walk(21), steps=500, late=76, mapped=10_000)
    assert len(got.trajectory.true) == len(got.late.true) == 20  # the last of 21 states has no retraced one
    assert len(got.values.points) == 70
    assert got.numbers[0].perplexity == used_perplexity(30.0, 40) == 13


def test_the_same_states_give_the_same_map():
    states = walk(60).states.numpy()
    assert np.array_equal(tsne(states, perplexity=10, seed=3), tsne(states, perplexity=10, seed=3))
    assert tsne(states[:3], perplexity=10, seed=3).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("retraces", [True, False])
def test_files_hold_the_maps_and_their_numbers_byte_for_byte(tmp_path: Path, retraces: bool):
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        write_embeddings(folder, embedded(walk(31, retraces=retraces)), variant="ccwm")
    names = sorted(str(path.relative_to(folders[0])) for path in folders[0].rglob("*.*"))
    assert names == ["embeddings.csv", "pictures/embeddings.png", "pictures/embeddings.safetensors"]
    for name in names:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    whole, late, values = read_maps(folders[0])
    assert (len(whole.true), len(whole.retraced)) == (30, 30 if retraces else 0)
    assert (len(late.true), len(values.points)) == (12, 50)
    numbers = read_numbers(folders[0]).set_index("map")
    assert list(numbers.index) == ["trajectory", "late", "values"]
    assert numbers["overlap"].notna().tolist() == [retraces, retraces, False]


def test_a_lost_map_is_named(tmp_path: Path):
    write_embeddings(tmp_path, embedded(walk(31)), variant="ccwm")
    frame = read_numbers(tmp_path)
    frame[frame["map"] != "late"].to_csv(tmp_path / "embeddings.csv", index=False)
    with pytest.raises(UserError, match=r"embeddings.csv lacks the map 'late'"):
        read_numbers(tmp_path)
    (tmp_path / "pictures" / "embeddings.safetensors").write_bytes(b"no")
    with pytest.raises(UserError, match=r"embeddings.safetensors"):
        read_maps(tmp_path)
