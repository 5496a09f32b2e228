"""Every file of settings that ships is whole, known and says what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from settings_helpers import ROOT

from ccwm.envs.layouts import LAYOUTS
from ccwm.envs.tasks import check_task
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import BadParams, read_yaml
from ccwm.settings.presets import apply_preset, load_preset, preset_names, preset_text, summary
from ccwm.settings.schema import Settings
from ccwm.settings.variants import resolve

FOLDER = ROOT / "presets"


@pytest.fixture(params=["params.yaml", *preset_names(FOLDER)], scope="module")
def shipped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """params.yaml as it ships, and as every preset would make it."""
    if request.param == "params.yaml":
        return ROOT / "params.yaml"
    path = tmp_path_factory.mktemp("preset") / f"{request.param}.yaml"
    apply_preset(request.param, path, FOLDER)
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


def test_params_yaml_ships_as_the_quick_preset_which_sees_states() -> None:
    assert (ROOT / "params.yaml").read_bytes() == (FOLDER / "quick.yaml").read_bytes()
    quick = load_preset("quick", FOLDER)
    assert quick.env.observation == "state"
    assert len(quick.study.seeds) >= 3  # below that no interval over seeds is worth a verdict


def test_a_preset_is_written_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "params.yaml"
    apply_preset("smoke", target, FOLDER)
    assert target.read_bytes() == (FOLDER / "smoke.yaml").read_bytes()


BASE = """\
# The base.

study:
  tasks: [maze_open]  # a comment
  seeds: [0, 1]
train:
  epsilon: 1.0e-07
"""


def composed(folder: Path, overlay: str) -> str:
    (folder / "base.yaml").write_text(BASE)
    (folder / "other.yaml").write_text(overlay)
    return preset_text("other", folder)


def test_an_extending_preset_is_its_base_with_its_own_values_and_words(tmp_path: Path) -> None:
    text = composed(tmp_path, "# Another.\n\nextends: base\n\nstudy:\n  seeds: [7]\n")
    assert text == (
        "# Another.\n\nstudy:\n  tasks: [maze_open]  # a comment\n  seeds: [7]\ntrain:\n  epsilon: 1.0e-07\n"
    )


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ("extends: bas\n", r"unknown preset 'bas'\. Did you mean 'base'\?"),
        ("extends: base\nstudi: {seeds: [7]}\n", r"other.yaml: studi: is not a known key\. Did you mean 'study'\?"),
        ("extends: base\nbehaviour: {trace: 1}\n", r"other.yaml: behaviour: is now called actor_critic"),
        ("extends: base\nstudy: 7\n", r"other.yaml: study: must be a section of the fields that differ, got 7"),
        ("extends: other\n", r"other.yaml: extends: 'other' extends another preset itself"),
    ],
)
def test_an_extending_preset_is_refused_by_its_key(tmp_path: Path, overlay: str, message: str) -> None:
    with pytest.raises(BadParams, match=message):
        composed(tmp_path, overlay)


def test_an_unknown_field_of_an_extending_preset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "smoke.yaml").write_bytes((FOLDER / "smoke.yaml").read_bytes())
    (tmp_path / "other.yaml").write_text("extends: smoke\ntrain: {updats: 3}\n")
    with pytest.raises(BadParams, match=r"preset 'other': train.updats: is not a known key\. Did you mean 'updates'\?"):
        load_preset("other", tmp_path)


def test_the_papers_presets_differ_from_paper_only_where_they_say() -> None:
    whole = load_preset("paper", FOLDER)
    transfer = load_preset("paper-transfer", FOLDER)
    assert transfer.study.seeds == list(range(15))
    assert transfer.transfer.mass == [6.0, 8.0, 10.0, 20.0]
    assert len(transfer.transfer.friction) == 8  # {0.6, 0.8} × {0.4, 0.5} × {0.3, 0.4}
    assert transfer.transfer.rows == [["R"], ["R", "M"], ["R", "F"], ["R", "S"], ["R", "M", "F"], ["R", "M", "S", "F"]]
    assert (transfer.train, transfer.model, transfer.optimiser) == (whole.train, whole.model, whole.optimiser)
    prediction = load_preset("paper-prediction", FOLDER)
    assert resolve(prediction, "dreamer").train.env_steps == 2 * resolve(prediction, "ccwm").train.env_steps


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
