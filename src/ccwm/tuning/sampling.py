"""How points are proposed and when a trial is pruned."""

from __future__ import annotations

import statistics

from optuna import Study
from optuna.pruners import BasePruner, HyperbandPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from ccwm.seeds import episode_seed
from ccwm.settings.tune import Tune


def next_sampler(study: Study, tune: Tune) -> BaseSampler:
    """The sampler of the next trial; its randomness is a function of the study's name and the trial's number.

    So a restarted process does not propose its first points again, two processes never share a stream, and one process
    alone repeats a whole search exactly. A grid is queued when the study begins, so that it needs no sampler.
    """
    seed = episode_seed("tune", study.study_name, len(study.get_trials(deepcopy=False)))
    if tune.sampler == "tpe":
        return TPESampler(seed=seed, n_startup_trials=tune.startup)
    return RandomSampler(seed=seed)


class MedianAtStep(BasePruner):
    """Prunes a trial whose value is below the median of what complete trials had at the same step.

    Optuna's MedianPruner compares the trial's *best* value so far with that median. With several seeds, each of which
    begins low, the best is one of an earlier seed, and hardly anything would be pruned from the second seed on.
    """

    def __init__(self, startup: int) -> None:
        self._startup = startup

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial's last value is below the median."""
        step = trial.last_step
        if step is None:
            return False
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        values = [other.intermediate_values[step] for other in complete if step in other.intermediate_values]
        return len(values) >= self._startup and trial.intermediate_values[step] < statistics.median(values)


def make_pruner(tune: Tune, *, first: int, last: int) -> BasePruner:
    """The pruner of ``tune.pruner`` for trials that report from step ``first`` to step ``last``."""
    if tune.pruner == "median":
        return MedianAtStep(tune.startup)
    if tune.pruner == "hyperband":
        return HyperbandPruner(min_resource=first, max_resource=last, reduction_factor=3)
    return NopPruner()
