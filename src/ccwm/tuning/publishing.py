"""The results of a search as files: ``results/tune/<study>/``, whole or not at all."""

from __future__ import annotations

import io
import time
from pathlib import Path

from filelock import FileLock
from optuna import Study
from ruamel.yaml import YAML

from ccwm.files import published, write_atomically, write_json
from ccwm.settings.schema import Settings
from ccwm.studies.search import RESULTS, Outcome, write_search
from ccwm.tracking.stage import origin
from ccwm.tuning.figures import draw_search, importance
from ccwm.tuning.measures import MEASURES
from ccwm.tuning.points import nested
from ccwm.tuning.space import Space
from ccwm.tuning.storage import study_folder

SUMMARISED = {"study", "task", "variant", "overrides", "measure", "sampler", "pruner", "seeds", "fresh_seeds"}


def publish(settings: Settings, space: Space, study: Study, outcome: Outcome, *, run_id: str, began: float) -> Path:
    """Write trials, candidates, the summary, the best settings, the record and the pictures."""
    tune = settings.tune
    summary = {
        **tune.model_dump(mode="json", include=SUMMARISED),
        "measure_title": MEASURES[tune.measure].title,
        "space": {key: value.model_dump(mode="json", exclude_none=True) for key, value in space.parameters.items()},
        "importance": importance(study, space),
    }
    record = origin("tune", run_id, settings.tracking.experiment)
    with FileLock(study_folder(tune.study) / "publish.lock"), published(RESULTS / tune.study) as folder:
        write_search(folder, outcome, summary)
        write_atomically(folder / "best.yaml", _best_yaml(settings, outcome).encode())
        write_json(folder / "run.json", {**record, "seconds": round(time.monotonic() - began, 3)})
        draw_search(folder, study, space, measure=tune.measure)
    return RESULTS / tune.study


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
