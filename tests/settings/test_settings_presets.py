"""Every file of settings that ships is whole, known and says what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_helpers import ROOT

from ccwm.config import Settings
from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.tasks import check_task
from ccwm.params import BadParams, load_settings, read_yaml, resolve
from ccwm.presets import apply_preset, preset_names, summary

FOLDER = ROOT / "presets"
SHIPPED = [ROOT / "params.yaml", *sorted(FOLDER.glob("*.yaml"))]


@pytest.fixture(params=SHIPPED, ids=lambda path: path.stem)
def shipped(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_it_loads_with_tasks_and_layouts_that_exist(shipped: Path) -> None:
    settings = load_settings(shipped)
    for task in settings.study.tasks:
        check_task(task)
    assert set(settings.transfer.layouts) <= set(LAYOUTS)


def test_it_names_every_field(shipped: Path) -> None:
    content = read_yaml(shipped)
    assert list(content.keys() ^ Settings.model_fields.keys()) == []
    for name, section in load_settings(shipped).model_dump().items():
        assert content[name].keys() == section.keys(), name


def test_its_baseline_is_dreamer(shipped: Path) -> None:
    settings = load_settings(shipped)
    if "dreamer" in settings.variants:
        assert resolve(settings, "dreamer").retrace.weight == 0


def test_it_says_what_it_is_for(shipped: Path) -> None:
    assert len(summary(shipped).split()) >= 5


def test_a_preset_is_written_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "params.yaml"
    apply_preset("smoke", target, FOLDER)
    assert target.read_bytes() == (FOLDER / "smoke.yaml").read_bytes()


def test_a_bad_preset_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("study: {}\n")
    target = tmp_path / "params.yaml"
    target.write_text("old")
    with pytest.raises(BadParams):
        apply_preset("bad", target, tmp_path)
    assert target.read_text() == "old"


def test_an_unknown_preset_is_guessed() -> None:
    with pytest.raises(BadParams, match=r"unknown preset 'smok'\. Did you mean 'smoke'\? Known: "):
        apply_preset("smok", Path("unused"), FOLDER)


def test_presets_are_listed_by_name() -> None:
    assert "smoke" in preset_names(FOLDER)
