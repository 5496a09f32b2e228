"""The results of a search as files, whole or not at all: ``results/tune/<study>/`` with Optuna's pictures."""

from __future__ import annotations

import io
import math
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from filelock import FileLock
from matplotlib import pyplot as plt
from optuna import Study
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from optuna.visualization import matplotlib as plots
from ruamel.yaml import YAML

from ccwm.files import md5, published, write_atomically, write_json
from ccwm.settings.schema import Settings
from ccwm.studies.search import RESULTS, Outcome, write_search
from ccwm.tracking.stage import origin
from ccwm.tuning.measures import MEASURES
from ccwm.tuning.points import nested
from ccwm.tuning.space import Space
from ccwm.tuning.storage import experimental, study_folder

SUMMARISED = {"study", "task", "variant", "overrides", "measure", "sampler", "pruner", "seeds", "fresh_seeds"}
ENOUGH = 4
"""Complete trials below which a share of variance says nothing."""


def publish(settings: Settings, space: Space, study: Study, outcome: Outcome, *, run_id: str, began: float) -> Path:
    """Write trials, candidates, the summary, the best settings, the record and the pictures."""
    tune = settings.tune
    summary = {
        **tune.model_dump(mode="json", include=SUMMARISED),
        "measure_title": MEASURES[tune.measure],
        "space": {key: value.model_dump(mode="json", exclude_none=True) for key, value in space.parameters.items()},
        "importance": importance(study, space),
    }
    record = origin("tune", run_id, settings.tracking.experiment)
    with FileLock(study_folder(tune.study) / "publish.lock"), published(RESULTS / tune.study) as folder:
        write_search(folder, outcome, summary)
        write_atomically(folder / "best.yaml", _best_yaml(settings, outcome).encode())
        draw_search(folder, study, space, measure=tune.measure)
        files = {f"{(RESULTS / tune.study / made.name).as_posix()}": md5(made) for made in sorted(folder.iterdir())}
        write_json(folder / "run.json", {**record, "seconds": round(time.monotonic() - began, 3), "files": files})
    return RESULTS / tune.study


def draw_search(folder: Path, study: Study, space: Space, *, measure: str) -> None:
    """Write `history`, `slice`, `parallel`, `contour` (of the first two numbers) and `importance` as SVG.

    A picture that the complete trials are too few for is left out.
    """
    mpl.use("agg")
    numbers = [space.names[key] for key, parameter in space.parameters.items() if parameter.kind != "choice"][:2]
    with experimental(), mpl.rc_context({"svg.hashsalt": "ccwm", "figure.constrained_layout.use": True}):
        drawn: dict[str, Any] = {
            "history": plots.plot_optimization_history(study, target_name=measure),
            "slice": plots.plot_slice(study, target_name=measure),
            "parallel": plots.plot_parallel_coordinate(study, target_name=measure),
        }
        if len(numbers) == 2 and len(_complete_values(study)) > 2:
            drawn["contour"] = plots.plot_contour(study, params=numbers, target_name=measure)
        if importance(study, space):
            evaluator = FanovaImportanceEvaluator(seed=0)
            drawn["importance"] = plots.plot_param_importances(study, evaluator=evaluator, target_name=measure)
        for name, axes in drawn.items():
            figure = np.asarray(axes).flat[0].figure
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")
            plt.close(figure)


def importance(study: Study, space: Space) -> dict[str, float]:
    """The share of the measure's variance that each parameter explains (fANOVA); {} for too few complete trials."""
    values = _complete_values(study)
    if len(values) < ENOUGH or len(set(values)) < 2:
        return {}
    names = list(space.names.values())
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0), params=names)
    return {name: float(found[name]) for name in names if math.isfinite(found[name])}


def _complete_values(study: Study) -> list[float | None]:
    return [trial.value for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))]


def _best_yaml(settings: Settings, outcome: Outcome) -> str:
    """The winner's point, or the best one's so far, as sections of ``params.yaml`` with a comment on its origin."""
    tune, winner = settings.tune, outcome.winner
    best = winner.searched if winner else outcome.best
    assert best is not None, "a search without a complete trial publishes nothing"
    fresh = f"{winner.fresh_value:.6g} on fresh seeds" if winner else "not yet checked on fresh seeds"
    text, yaml = io.StringIO(), YAML()
    text.write(f"# {tune.variant} on {tune.task}, trial {best.trial} of the study {tune.study}:\n")
    text.write(f"# {tune.measure} {best.value:.6g} on the seeds of the search, {fresh}\n")
    yaml.default_flow_style = False
    yaml.dump(nested(best.point), text)
    return text.getvalue()
