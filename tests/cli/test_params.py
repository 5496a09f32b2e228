"""`ccwm params`: answers on stdout, user errors in a line on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import ROOT, Ccwm, spoil
from ruamel.yaml import YAML

from ccwm.settings.loading import load_settings
from ccwm.settings.variants import resolve


def test_the_settings_are_shown_as_yaml_that_can_be_read_back(ccwm: Ccwm) -> None:
    code, out, _ = ccwm("params", "show")
    assert code == 0
    assert YAML(typ="safe").load(out) == load_settings(Path("params.yaml")).model_dump(mode="json")


def test_a_variant_is_shown_with_its_overrides(ccwm: Ccwm) -> None:
    code, out, _ = ccwm("params", "show", "--variant", "dreamer")
    shown = YAML(typ="safe").load(out)
    expected = resolve(load_settings(Path("params.yaml")), "dreamer").model_dump(mode="json")
    assert code == 0
    assert shown == {name: section for name, section in expected.items() if name not in ("study", "variants")}
    assert shown["retrace"]["weight"] == 0


def test_an_unknown_variant_is_guessed(ccwm: Ccwm) -> None:
    code, out, err = ccwm("params", "show", "--variant", "dreamers")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown variant 'dreamers'. Did you mean 'dreamer'?")


def test_good_settings_pass_the_check(ccwm: Ccwm) -> None:
    code, out, err = ccwm("params", "check")
    assert (code, err) == (0, "")
    assert out.startswith("params.yaml is fine: ")


def test_bad_settings_are_refused_in_one_line_on_stderr(ccwm: Ccwm, project: Path) -> None:
    spoil(project, "transfer.friction", [[1.0, 2.0]])
    code, out, err = ccwm("params", "check")
    assert (code, out) == (2, "")
    told = "transfer.friction.0: must be a list of 3, each a number above 0, got [1.0, 2.0]"
    assert err == f"error: params.yaml: {told}\n"


def test_an_unknown_task_is_guessed(ccwm: Ccwm, project: Path) -> None:
    spoil(project, "study.tasks", ["walker_wolk"])
    code, out, err = ccwm("params", "check")
    assert (code, out) == (2, "")
    assert "unknown task 'walker_wolk'. Did you mean 'walker_walk'?" in err


@pytest.mark.parametrize("name", ["schema", "docs"])
def test_pages_are_printed_or_written(ccwm: Ccwm, project: Path, name: str) -> None:
    (project / "docs").mkdir()
    _, printed, _ = ccwm("params", name)
    assert ccwm("params", name, "--write") == (0, "", "")
    (page,) = (project / "docs").iterdir()
    assert page.read_text(encoding="utf-8") == printed
    assert (ROOT / "docs" / page.name).is_file()


def test_without_a_file_a_hint_is_given(ccwm: Ccwm, project: Path) -> None:
    (project / "params.yaml").unlink()
    code, _, err = ccwm("params", "check")
    assert code == 2
    assert err.startswith("error: params.yaml is missing: ")
