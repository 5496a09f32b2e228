"""An agent without a world model leaves empty tables, and says so."""

from __future__ import annotations

from pathlib import Path

from project import ROOT

from ccwm.settings.parsing import read_yaml
from ccwm.studies import components, embeddings, prediction, truncation
from ccwm.studies.without_model import has_world_model, write_without_model


def test_its_files_are_those_that_dvc_expects(tmp_path: Path) -> None:
    write_without_model(tmp_path)
    stage = read_yaml(ROOT / "dvc.yaml")["stages"]["rollout-viz"]
    paths = [out if isinstance(out, str) else next(iter(out)) for out in (*stage["outs"], *stage["plots"])]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(Path(path).name for path in paths)
    assert list((tmp_path / "pictures").iterdir()) == []


def test_its_tables_are_read_as_empty_ones(tmp_path: Path) -> None:
    write_without_model(tmp_path)
    assert prediction.read_errors(tmp_path).empty
    assert prediction.read_horizons(tmp_path).empty
    assert len(components.read_components(tmp_path).component) == 0
    assert truncation.read_truncation(tmp_path).empty
    assert embeddings.read_rows(tmp_path / "embeddings.csv", embeddings.Numbers).empty


def test_results_have_a_world_model_unless_they_say_otherwise(tmp_path: Path) -> None:
    assert has_world_model(tmp_path)  # nothing was written yet
    (tmp_path / "metrics.json").write_text('{"episodes": 1}\n')
    assert has_world_model(tmp_path)
    (tmp_path / "metrics.json").write_text("{")  # damaged: another place says so
    assert has_world_model(tmp_path)
    (tmp_path / "metrics.json").unlink()
    write_without_model(tmp_path)
    assert not has_world_model(tmp_path)
