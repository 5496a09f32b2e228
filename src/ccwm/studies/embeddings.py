"""Maps of latent states by t-SNE: along one trajectory, true and retraced, and over many states with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from ccwm.files import write_csv
from ccwm.readers import NUMBER, OPTIONAL, TEXT, BadResult, read_arrays, read_table
from ccwm.seeds import named_seed
from ccwm.settings.schema import Latents
from ccwm.studies.images import PRINT, write_figure
from ccwm.studies.maps import TrajectoryMap, ValueMap, maps_figure
from ccwm.studies.neighbourhoods import overlap, trustworthiness, value_smoothness
from ccwm.studies.trajectories import Seen

MAPS = ("trajectory", "late", "values")


class Numbers(NamedTuple):
    """A line of ``embeddings.csv``: what neighbours say of one map; None where it does not apply."""

    map: str
    states: int
    perplexity: float
    neighbours: int
    trustworthiness: float | None
    overlap: float | None = None
    overlap_not_retraced: float | None = None
    overlap_chance: float | None = None
    value_smoothness: float | None = None
    value_smoothness_map: float | None = None
    truncated_share: float | None = None


class Embeddings(NamedTuple):
    """The maps, and the numbers beside each."""

    trajectory: TrajectoryMap
    late: TrajectoryMap
    values: ValueMap
    numbers: list[Numbers]


def embed_states(
    trajectory: Seen,
    kept: np.ndarray,
    seen: Sequence[Seen],
    settings: Latents,
    *,
    seed: int,
    advance: Callable[[], None],
) -> Embeddings:
    """Map the first states of a trajectory, the last of these on their own, and states drawn from many episodes.

    The trajectory's mask is ``kept`` [L]. Its last state, to which nothing is retraced, is left out. What is shorter is
    mapped whole. ``advance`` is called after each map.
    """
    length = min(settings.trajectory, len(trajectory.states) - 1)
    whole = _trajectory_map(trajectory, kept, slice(0, length), "trajectory", settings, seed)
    advance()
    late = _trajectory_map(trajectory, kept, slice(max(length - settings.late, 0), length), "late", settings, seed)
    advance()
    values = _value_map(seen, settings, seed)
    advance()
    return Embeddings(whole[0], late[0], values[0], [whole[1], late[1], values[1]])


def _trajectory_map(
    seen: Seen, kept: np.ndarray, part: slice, name: str, settings: Latents, seed: int
) -> tuple[TrajectoryMap, Numbers]:
    k, states = settings.neighbours, seen.states.cpu().numpy()
    true, following = states[part], states[part.start + 1 : part.stop + 1]
    retraced = true[:0] if seen.retraced is None else seen.retraced[part].cpu().numpy()
    both = np.concatenate([true, retraced])
    drawn = tsne(both, perplexity=settings.perplexity, seed=seed)
    picture = TrajectoryMap(drawn[: len(true)], drawn[len(true) :], kept[part], seen.episode.irreversible[part])
    return picture, Numbers(
        name,
        states=len(both),
        perplexity=used_perplexity(settings.perplexity, len(both)),
        neighbours=k,
        trustworthiness=trustworthiness(both, drawn, k=k),
        overlap=overlap(true, retraced, k=k) if len(retraced) else None,
        overlap_not_retraced=overlap(true, following, k=k),
        overlap_chance=min(k, len(true) - 1) / (len(true) - 1) if len(true) > 1 else None,
        truncated_share=float(1 - picture.kept.mean()),
    )


def _value_map(seen: Sequence[Seen], settings: Latents, seed: int) -> tuple[ValueMap, Numbers]:
    k = settings.neighbours
    states = np.concatenate([of.states.cpu().numpy() for of in seen])
    value = np.concatenate([of.value.cpu().numpy() for of in seen])
    rng = np.random.default_rng(named_seed("mapped", seed))
    chosen = np.sort(rng.permutation(len(states))[: settings.mapped])
    states, value = states[chosen], value[chosen]
    drawn = tsne(states, perplexity=settings.perplexity, seed=seed)
    return ValueMap(drawn, value), Numbers(
        "values",
        states=len(states),
        perplexity=used_perplexity(settings.perplexity, len(states)),
        neighbours=k,
        trustworthiness=trustworthiness(states, drawn, k=k),
        value_smoothness=value_smoothness(states, value, k=k),
        value_smoothness_map=value_smoothness(drawn, value, k=k),
    )


def used_perplexity(perplexity: float, states: int) -> float:
    """t-SNE needs about three neighbours for each unit of its perplexity."""
    return min(perplexity, (states - 1) / 3)


def tsne(states: np.ndarray, *, perplexity: float, seed: int) -> np.ndarray:
    """t-SNE from the first two principal components.   [n, F] → float32 [n, 2]; fewer than four points stay at 0.

    One thread, since the sums of several come in no fixed order: the same states give the same map.
    """
    from sklearn.manifold import TSNE  # here, since the report imports the studies for their readers alone
    from threadpoolctl import threadpool_limits

    if len(states) < 4:
        return np.zeros((len(states), 2), np.float32)
    with threadpool_limits(1):
        method = TSNE(
            perplexity=used_perplexity(perplexity, len(states)),
            init="pca",
            random_state=named_seed("t-SNE", seed) % 2**32,
            n_jobs=1,
        )
        return np.asarray(method.fit_transform(states.astype(np.float32)), np.float32)


@mpl.rc_context(PRINT)
def write_embeddings(folder: Path, embeddings: Embeddings, *, variant: str) -> None:
    """Write ``embeddings.csv``, the numbers, ``embeddings.safetensors``, the maps, and a picture of them."""
    write_csv(folder / "embeddings.csv", (row._asdict() for row in embeddings.numbers))
    maps: tuple[TrajectoryMap | ValueMap, ...] = embeddings[:3]
    arrays = {
        f"{name}.{part}": of for name, drawn in zip(MAPS, maps, strict=True) for part, of in drawn._asdict().items()
    }
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, folder / "embeddings.safetensors")
    write_figure(folder / "embeddings.png", maps_figure(variant, *embeddings[:3]))


def read_numbers(folder: Path) -> pd.DataFrame:
    """What neighbours say of the maps: a line for each, by its name in the column ``map``."""
    path = folder / "embeddings.csv"
    kinds = {name: OPTIONAL if "None" in str(kind) else NUMBER for name, kind in Numbers.__annotations__.items()}
    frame = read_table(path, {**kinds, "map": TEXT})
    if absent := [name for name in MAPS if name not in set(frame["map"])]:
        raise BadResult(f"{path} lacks the map {absent[0]!r}")
    return frame


def read_maps(folder: Path) -> tuple[TrajectoryMap, TrajectoryMap, ValueMap]:
    """The trajectory, its end, and many states with their values."""
    parts = [f"{name}.{part}" for name in ("trajectory", "late") for part in TrajectoryMap._fields]
    arrays = read_arrays(folder / "embeddings.safetensors", [*parts, "values.points", "values.value"])

    def trajectory(name: str) -> TrajectoryMap:
        return TrajectoryMap(*(arrays[f"{name}.{part}"] for part in TrajectoryMap._fields))

    return trajectory("trajectory"), trajectory("late"), ValueMap(arrays["values.points"], arrays["values.value"])
