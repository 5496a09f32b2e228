"""The pictures of a search, drawn by Optuna, and the importance of its parameters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from optuna import Study
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from optuna.visualization import matplotlib as plots

from ccwm.tuning.space import Space
from ccwm.tuning.storage import experimental

ENOUGH = 4
"""Complete trials below which a share of variance says nothing."""


@experimental()
def draw_search(folder: Path, study: Study, space: Space, *, measure: str) -> None:
    """Write `history`, `slice`, `parallel`, `contour` (of the first two numbers) and `importance` as SVG.

    A picture that the complete trials are too few for is left out.
    """
    mpl.use("agg")
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    numbers = [space.names[key] for key, parameter in space.parameters.items() if parameter.kind != "choice"][:2]
    with mpl.rc_context({"svg.hashsalt": "ccwm", "figure.constrained_layout.use": True}):
        drawn: dict[str, Any] = {"history": plots.plot_optimization_history(study, target_name=measure)}
        drawn["slice"] = plots.plot_slice(study, target_name=measure)
        drawn["parallel"] = plots.plot_parallel_coordinate(study, target_name=measure)
        if len(numbers) == 2 and len(complete) > 2:
            drawn["contour"] = plots.plot_contour(study, params=numbers, target_name=measure)
        if importance(study, space):
            drawn["importance"] = plots.plot_param_importances(study, evaluator=_evaluator(), target_name=measure)
        for name, axes in drawn.items():
            figure = np.asarray(axes).flat[0].figure
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)


def importance(study: Study, space: Space) -> dict[str, float]:
    """The share of the measure's variance that each parameter explains (fANOVA); {} for too few complete trials."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    found = get_param_importances(study, evaluator=_evaluator(), params=list(space.names.values()))
    return {name: float(found[name]) for name in space.names.values() if math.isfinite(found[name])}


def _evaluator() -> FanovaImportanceEvaluator:
    return FanovaImportanceEvaluator(seed=0)
