"""Maps of latent states by t-SNE: along one trajectory, true and retraced, and over many states with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from safetensors.numpy import save_file
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from ccwm.files import write_csv
from ccwm.seeds import named_seed
from ccwm.studies.drawings import PRINT, TrajectoryMap, ValueMap, embeddings_figure, write_figure
from ccwm.studies.neighbourhoods import overlap, trustworthiness, value_smoothness
from ccwm.studies.trajectories import Seen

MAPS = 3
"""How many maps are drawn, for whoever shows how far they are."""


class Embeddings(NamedTuple):
    """The maps, and the numbers beside them: a line of ``embeddings.csv`` each."""

    trajectory: TrajectoryMap
    late: TrajectoryMap
    values: ValueMap
    numbers: list[dict[str, object]]


def embed_states(
    trajectory: Seen,
    kept: np.ndarray,
    seen: Sequence[Seen],
    *,
    steps: int,
    late: int,
    mapped: int,
    perplexity: float,
    neighbours: int,
    seed: int,
    advance: Callable[[], None],
) -> Embeddings:
    """Map the first ``steps`` states of a trajectory, the last ``late`` of these, and ``mapped`` states of the others.

    The trajectory's mask is ``kept`` [L]. Its last state, to which nothing is retraced, is left out. What is shorter is
    mapped whole. ``advance`` is called after each map.
    """
    length = min(steps, len(trajectory.states) - 1)
    pictures, numbers = [], []
    for name, first in (("trajectory", 0), ("late", max(length - late, 0))):
        picture, found = _trajectory_map(
            trajectory, kept, slice(first, length), perplexity=perplexity, k=neighbours, seed=seed
        )
        pictures.append(picture)
        numbers.append({"map": name, **found})
        advance()
    values, found = _value_map(seen, mapped, perplexity=perplexity, k=neighbours, seed=seed)
    advance()
    return Embeddings(pictures[0], pictures[1], values, [*numbers, {"map": "values", **found}])


def _trajectory_map(
    seen: Seen, kept: np.ndarray, part: slice, *, perplexity: float, k: int, seed: int
) -> tuple[TrajectoryMap, dict[str, object]]:
    states = seen.states.cpu().numpy()
    true, following = states[part], states[part.start + 1 : part.stop + 1]
    retraced = true[:0] if seen.retraced is None else seen.retraced[part].cpu().numpy()
    both = np.concatenate([true, retraced])
    drawn = tsne(both, perplexity=perplexity, seed=seed)
    picture = TrajectoryMap(drawn[: len(true)], drawn[len(true) :], kept[part], seen.episode.irreversible[part])
    chance = min(k, len(true) - 1) / (len(true) - 1) if len(true) > 1 else None
    return picture, {
        "states": len(both),
        "perplexity": used_perplexity(perplexity, len(both)),
        "neighbours": k,
        "trustworthiness": trustworthiness(both, drawn, k=k),
        "overlap": overlap(true, retraced, k=k) if len(retraced) else None,
        "overlap_not_retraced": overlap(true, following, k=k),
        "overlap_chance": chance,
        "value_smoothness": None,
        "value_smoothness_map": None,
        "truncated_share": float(1 - picture.kept.mean()),
    }


def _value_map(
    seen: Sequence[Seen], mapped: int, *, perplexity: float, k: int, seed: int
) -> tuple[ValueMap, dict[str, object]]:
    states = np.concatenate([of.states.cpu().numpy() for of in seen])
    value = np.concatenate([of.value.cpu().numpy() for of in seen])
    rng = np.random.default_rng(named_seed("mapped", seed))
    chosen = np.sort(rng.permutation(len(states))[:mapped])
    states, value = states[chosen], value[chosen]
    drawn = tsne(states, perplexity=perplexity, seed=seed)
    return ValueMap(drawn, value), {
        "states": len(states),
        "perplexity": used_perplexity(perplexity, len(states)),
        "neighbours": k,
        "trustworthiness": trustworthiness(states, drawn, k=k),
        "overlap": None,
        "overlap_not_retraced": None,
        "overlap_chance": None,
        "value_smoothness": value_smoothness(states, value, k=k),
        "value_smoothness_map": value_smoothness(drawn, value, k=k),
        "truncated_share": None,
    }


def used_perplexity(perplexity: float, states: int) -> float:
    """t-SNE needs about three neighbours for each unit of its perplexity."""
    return min(perplexity, (states - 1) / 3)


def tsne(states: np.ndarray, *, perplexity: float, seed: int) -> np.ndarray:
    """t-SNE from the first two principal components.   [n, F] → float32 [n, 2]; fewer than four points stay at 0.

    One thread, since the sums of several come in no fixed order: the same states give the same map.
    """
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
    write_csv(folder / "embeddings.csv", embeddings.numbers)
    maps: dict[str, TrajectoryMap | ValueMap] = {
        "trajectory": embeddings.trajectory,
        "late": embeddings.late,
        "values": embeddings.values,
    }
    arrays = {f"{name}.{part}": value for name, of in maps.items() for part, value in of._asdict().items()}
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, folder / "embeddings.safetensors")
    write_figure(folder / "embeddings.png", embeddings_figure(variant, *embeddings[:3]))
