"""Truncation quality: what the mask takes out, against the true labels of what cannot be undone.

**Truth.** An event is a transition t − 1 → t whose label is irreversible. True states are both its ends.

**States.** Predicted are the states that the mask does not keep. Precision = |predicted ∩ true| / |predicted|,
recall = |predicted ∩ true| / |true|, F1 their harmonic mean. A detection takes out τ + 1 states around an event with
two, so that even a perfectly placed one has a precision of at most 2 / (τ + 1).

**Events.** A transition leaves the retrace loss as soon as one of its ends is not kept. An event is found where its
transition leaves. A detection is a maximal run of states that are not kept; it is right where one of its states is an
end of an event. Event precision = right detections / detections, event recall = found events / events.

Values are of whole episodes, where training sees windows of them. A ratio without a denominator, and every ratio where
no event happened in any episode (a task without irreversible transitions, or without labels), is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from ccwm.agents.export import Agent
from ccwm.agents.truncation import Truncation
from ccwm.files import write_csv
from ccwm.studies.tables import read_rows
from ccwm.studies.trajectories import Seen

RULES = ("prose", "algorithm1")


class Counts(NamedTuple):
    """What one mask did to some episodes; counts of several are added up."""

    states: int
    truncated: int
    true: int
    hit: int
    events: int
    found: int
    detections: int
    right: int


class Quality(NamedTuple):
    """A line of ``truncation.csv``; the formulas are those of this module's docstring."""

    rule: str
    threshold: float
    own: bool
    """Whether this is the rule and η that the agent's own settings name."""
    episodes: int
    states: int
    events: int
    detections: int
    truncated_share: float
    true_share: float | None
    """|true| / |states|: the precision of a mask that knows nothing."""
    precision: float | None
    recall: float | None
    f1: float | None
    event_precision: float | None
    event_recall: float | None
    event_f1: float | None


def count(kept: np.ndarray, irreversible: np.ndarray) -> Counts:
    """Compare one episode's mask with its truth.   bool [L] each; irreversible[t] is the transition into t."""
    gone, detections = ~kept, runs(~kept)
    true = irreversible.copy()
    true[:-1] |= irreversible[1:]
    leaves = gone.copy()  # the transition into t
    leaves[1:] |= gone[:-1]
    return Counts(
        states=len(kept),
        truncated=int(gone.sum()),
        true=int(true.sum()),
        hit=int((gone & true).sum()),
        events=int(irreversible.sum()),
        found=int((leaves & irreversible).sum()),
        detections=len(detections),
        right=sum(bool(irreversible[first : after + 1].any()) for first, after in detections),
    )


def runs(flags: np.ndarray) -> np.ndarray:
    """Where each maximal run of True begins, and the first place after it.   bool [L] → int [runs, 2]."""
    return np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)


def own_threshold(agent: Agent) -> float:
    """The η that the agent's truncation ended with (`auto`), has, or would have had."""
    truncation = agent.modelled.truncation
    return agent.card.config.truncation.threshold if truncation is None else float(truncation.threshold)


def mask(agent: Agent, value: Tensor, *, rule: str | None = None, threshold: float | None = None) -> np.ndarray:
    """What a rule keeps of an episode with these values, whether the agent truncates or not.   [L] → bool [L].

    The rule and η that are not given are the agent's own.
    """
    own = agent.card.config.truncation
    chosen = {"rule": rule or own.rule, "threshold": own_threshold(agent) if threshold is None else threshold}
    truncation = Truncation(own.model_copy(update={**chosen, "mode": "adaptive"}), discount=1.0)
    return truncation.mask(value.unsqueeze(1))[:, 0].cpu().numpy()


def truncation_quality(agent: Agent, seen: Sequence[Seen], *, thresholds: Sequence[float]) -> list[Quality]:
    """Both rules at every η and at the agent's own, over all episodes together; a row each, by rule and η."""
    own = own_threshold(agent)
    rows = []
    for rule in RULES:
        for threshold in sorted({*thresholds, own}):
            masks = [mask(agent, of.value, rule=rule, threshold=threshold) for of in seen]
            each = [count(kept, of.episode.irreversible) for kept, of in zip(masks, seen, strict=True)]
            is_own = rule == agent.card.config.truncation.rule and threshold == own
            total = Counts(*map(sum, zip(*each, strict=True)))
            rows.append(quality(total, rule=rule, threshold=threshold, own=is_own, episodes=len(each)))
    return rows


def quality(counts: Counts, *, rule: str, threshold: float, own: bool, episodes: int) -> Quality:
    """The ratios of added-up counts."""

    def ratio(part: int, whole: int) -> float | None:
        return part / whole if counts.events and whole else None

    precision, recall = ratio(counts.hit, counts.truncated), ratio(counts.hit, counts.true)
    event_precision, event_recall = ratio(counts.right, counts.detections), ratio(counts.found, counts.events)
    return Quality(
        rule=rule,
        threshold=threshold,
        own=own,
        episodes=episodes,
        states=counts.states,
        events=counts.events,
        detections=counts.detections,
        truncated_share=counts.truncated / counts.states,
        true_share=ratio(counts.true, counts.states),
        precision=precision,
        recall=recall,
        f1=harmonic_mean(precision, recall),
        event_precision=event_precision,
        event_recall=event_recall,
        event_f1=harmonic_mean(event_precision, event_recall),
    )


def harmonic_mean(precision: float | None, recall: float | None) -> float | None:
    """2PR / (P + R); 0 where both are 0, and where nothing was found though there was something to find."""
    if recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def write_truncation(folder: Path, rows: Sequence[Quality]) -> None:
    """Write ``truncation.csv``."""
    write_csv(folder / "truncation.csv", (row._asdict() for row in rows))


def read_truncation(folder: Path) -> pd.DataFrame:
    """A line for each rule and η, as in ``Quality``."""
    return read_rows(folder / "truncation.csv", Quality)
