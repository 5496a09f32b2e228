"""Maps of latent states by t-SNE: along one trajectory, true and retraced, and over many states with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd

from ccwm.files import write_csv
from ccwm.readers import BadResult, read_arrays
from ccwm.seeds import named_seed
from ccwm.settings.schema import Latents
from ccwm.studies.images import PICTURES, PRINT, write_figure
from ccwm.studies.maps import TrajectoryMap, ValueMap, maps_figure
from ccwm.studies.neighbourhoods import overlap, trustworthiness, value_smoothness
from ccwm.studies.tables import read_rows, write_arrays
from ccwm.studies.trajectories import Seen

MAPS = ("trajectory", "late", "values")
ARRAYS = f"{PICTURES}/embeddings.safetensors"


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
    whole = _trajectory_map("trajectory", trajectory, kept, slice(0, length), settings, seed)
    advance()
    late = _trajectory_map("late", trajectory, kept, slice(max(length - settings.late, 0), length), settings, seed)
    advance()
    values = _value_map(seen, settings, seed)
    advance()
    return Embeddings(whole[0], late[0], values[0], [whole[1], late[1], values[1]])


def _trajectory_map(
    name: str, seen: Seen, kept: np.ndarray, part: slice, settings: Latents, seed: int
) -> tuple[TrajectoryMap, Numbers]:
    k, states = settings.neighbours, seen.states.cpu().numpy()
    true, following = states[part], states[part.start + 1 : part.stop + 1]
    retraced = true[:0] if seen.retraced is None else seen.retraced[part].cpu().numpy()
    drawn, numbers = _map(name, np.concatenate([true, retraced]), settings, seed)
    picture = TrajectoryMap(drawn[: len(true)], drawn[len(true) :], kept[part], seen.episode.irreversible[part])
    return picture, numbers._replace(
        overlap=overlap(true, retraced, k=k) if len(retraced) else None,
        overlap_not_retraced=overlap(true, following, k=k),
        overlap_chance=min(k, len(true) - 1) / (len(true) - 1) if len(true) > 1 else None,
        truncated_share=float(1 - picture.kept.mean()),
    )


def _value_map(seen: Sequence[Seen], settings: Latents, seed: int) -> tuple[ValueMap, Numbers]:
    states, value = (np.concatenate([getattr(of, name).cpu().numpy() for of in seen]) for name in ("states", "value"))
    rng = np.random.default_rng(named_seed("mapped", seed))
    chosen = np.sort(rng.permutation(len(states))[: settings.mapped])
    states, value = states[chosen], value[chosen]
    drawn, numbers = _map("values", states, settings, seed)
    return ValueMap(drawn, value), numbers._replace(
        value_smoothness=value_smoothness(states, value, k=settings.neighbours),
        value_smoothness_map=value_smoothness(drawn, value, k=settings.neighbours),
    )


def _map(name: str, states: np.ndarray, settings: Latents, seed: int) -> tuple[np.ndarray, Numbers]:
    """A map by t-SNE, and the numbers that every map has.   [n, F] → [n, 2]."""
    drawn, k = tsne(states, perplexity=settings.perplexity, seed=seed), settings.neighbours
    used = used_perplexity(settings.perplexity, len(states))
    return drawn, Numbers(name, len(states), used, k, trustworthiness(states, drawn, k=k))


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
    """Write ``embeddings.csv``, the numbers, the maps as arrays, and a picture of them."""
    write_csv(folder / "embeddings.csv", (row._asdict() for row in embeddings.numbers))
    maps = {name: getattr(embeddings, name)._asdict() for name in MAPS}
    arrays = {f"{name}.{part}": of for name, parts in maps.items() for part, of in parts.items()}
    (folder / PICTURES).mkdir(exist_ok=True)
    write_arrays(folder / ARRAYS, arrays)
    write_figure(folder / PICTURES / "embeddings.png", maps_figure(variant, *embeddings[:3]))


def read_numbers(folder: Path) -> pd.DataFrame:
    """What neighbours say of the maps: a line for each, by its name in the column ``map``."""
    path = folder / "embeddings.csv"
    frame = read_rows(path, Numbers)
    if absent := [name for name in MAPS if name not in set(frame["map"])]:
        raise BadResult(f"{path} lacks the map {absent[0]!r}")
    return frame


def read_maps(folder: Path) -> tuple[TrajectoryMap, TrajectoryMap, ValueMap]:
    """The trajectory, its end, and many states with their values."""
    parts = [f"{name}.{part}" for name in ("trajectory", "late") for part in TrajectoryMap._fields]
    arrays = read_arrays(folder / ARRAYS, [*parts, "values.points", "values.value"])

    def trajectory(name: str) -> TrajectoryMap:
        return TrajectoryMap(*(arrays[f"{name}.{part}"] for part in TrajectoryMap._fields))

    return trajectory("trajectory"), trajectory("late"), ValueMap(arrays["values.points"], arrays["values.value"])
