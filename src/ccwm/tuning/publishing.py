"""A study as files: ``results/tune/<study>/``, whole or not at all."""

from __future__ import annotations

import io
import math
import time
from pathlib import Path

from optuna import Study
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from ruamel.yaml import YAML

from ccwm.files import published, write_atomically, write_csv, write_json
from ccwm.report.tuning import draw_study
from ccwm.settings.schema import Settings
from ccwm.tracking.stage import origin
from ccwm.tuning.measures import MEASURES
from ccwm.tuning.outcome import Candidate, Outcome, Row
from ccwm.tuning.space import Space, nested

RESULTS = Path("results") / "tune"


def publish(settings: Settings, space: Space, study: Study, outcome: Outcome, *, run_id: str, began: float) -> Path:
    """Write trials, candidates, the summary, the best settings and the plots."""
    tune = settings.tune
    place = RESULTS / tune.study
    with published(place) as folder:
        write_csv(folder / "trials.csv", (_trial_line(row, space) for row in outcome.rows))
        write_csv(folder / "candidates.csv", (_candidate_line(each, outcome, space) for each in outcome.candidates))
        write_json(folder / "study.json", _summary(settings, space, study, outcome))
        best = outcome.winner.searched if outcome.winner else outcome.best
        if best is not None:
            write_atomically(folder / "best.yaml", _best_yaml(settings, best, outcome).encode())
        record = origin("tune", run_id, settings.tracking.experiment)
        write_json(folder / "run.json", {**record, "seconds": round(time.monotonic() - began, 3)})
        draw_study(folder)
    return place


def _trial_line(row: Row, space: Space) -> dict[str, object]:
    return {
        "trial": row.number,
        "first_number": row.root,
        "anchor": row.anchor,
        "state": row.state,
        "value": row.value,
        "sd": row.sd,
        **{key: row.point.get(key) for key in space.parameters},
        **{f"seed {seed}": value for seed, value in row.seeds.items()},
    }


def _candidate_line(candidate: Candidate, outcome: Outcome, space: Space) -> dict[str, object]:
    searched, fresh = candidate.searched, candidate.fresh
    return {
        "trial": searched.number,
        "anchor": searched.anchor,
        "winner": candidate is outcome.winner,
        **{key: searched.point.get(key) for key in space.parameters},
        "search_mean": searched.value,
        "search_sd": searched.sd,
        "fresh_mean": fresh.value if fresh else None,
        "fresh_sd": fresh.sd if fresh else None,
        **{f"fresh seed {seed}": value for seed, value in (fresh.seeds if fresh else {}).items()},
    }


def _summary(settings: Settings, space: Space, study: Study, outcome: Outcome) -> dict[str, object]:
    tune, winner = settings.tune, outcome.winner
    states = [row.state for row in outcome.rows]
    return {
        "study": tune.study,
        "task": tune.task,
        "variant": tune.variant,
        "overrides": tune.overrides,
        "measure": tune.measure,
        "measure_title": MEASURES[tune.measure].title,
        "sampler": tune.sampler,
        "pruner": tune.pruner,
        "seeds": tune.seeds,
        "fresh_seeds": tune.fresh_seeds,
        "space": {
            key: parameter.model_dump(mode="json", exclude_none=True) for key, parameter in space.parameters.items()
        },
        "trials": {state: states.count(state) for state in ("complete", "pruned", "failed", "running")},
        "commits": sorted({row.commit for row in outcome.rows if row.commit}),
        "importance": importance(study, space),
        "winner": winner and _candidate_line(winner, outcome, space) | {"point": winner.searched.point},
    }


def importance(study: Study, space: Space) -> dict[str, float]:
    """The share of the measure's variance that each parameter explains (fANOVA over whole trials); {} for too few."""
    whole = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    names = list(space.names.values())
    if len(whole) < 4 or len({trial.value for trial in whole}) < 2:
        return {}
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0), params=names)
    return {name: float(found[name]) for name in names if math.isfinite(found[name])}


def _best_yaml(settings: Settings, best: Row, outcome: Outcome) -> str:
    """The point as sections of ``params.yaml``, with a word on where it comes from."""
    tune, winner = settings.tune, outcome.winner
    lines = [
        f"# {tune.variant} on {tune.task}: trial {best.number} of the study {tune.study}, "
        f"{tune.measure} {best.value:.6g} on the seeds of the search"
    ]
    if winner and winner.fresh and winner.fresh.value is not None:
        lines.append(f"# and {winner.fresh.value:.6g} on fresh seeds. `ccwm tune apply` writes it into params.yaml.")
    else:
        lines.append("# and not yet checked on fresh seeds.")
    text = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.dump(nested(best.point), text)
    return "\n".join([*lines, text.getvalue()])
