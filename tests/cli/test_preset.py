"""`ccwm preset`: a list, and params.yaml replaced or left alone."""

from __future__ import annotations

from pathlib import Path

from cli_helpers import ROOT, Ccwm


def test_presets_are_listed(ccwm: Ccwm, project: Path) -> None:
    (project / "presets" / "odd.yaml").write_text("# Has [brackets] in it.\n")
    code, out, _ = ccwm("preset")
    assert code == 0
    assert all(path.stem in out for path in (ROOT / "presets").glob("*.yaml"))
    assert "Has [brackets] in it." in out


def test_a_preset_that_is_no_text_is_named_and_the_others_are_listed(ccwm: Ccwm, project: Path) -> None:
    (project / "presets" / "binary.yaml").write_bytes(b"\xff\x00\xfe")
    code, out, _ = ccwm("preset")
    assert code == 0
    assert "binary.yaml" in " ".join(out.split())
    assert "smoke" in out
    code, _, err = ccwm("preset", "binary")
    assert code == 2
    assert err.startswith("error: presets/binary.yaml is no valid YAML")


def test_a_preset_is_applied(ccwm: Ccwm, project: Path) -> None:
    (project / "params.yaml").unlink()
    code, out, _ = ccwm("preset", "smoke")
    assert code == 0
    assert "smoke" in out
    assert (project / "params.yaml").read_bytes() == (ROOT / "presets" / "smoke.yaml").read_bytes()


def test_an_unknown_preset_is_guessed_and_changes_nothing(ccwm: Ccwm, project: Path) -> None:
    before = (project / "params.yaml").read_bytes()
    code, out, err = ccwm("preset", "smoked")
    assert (code, out) == (2, "")
    assert err.startswith("error: unknown preset 'smoked'. Did you mean 'smoke'?")
    assert (project / "params.yaml").read_bytes() == before
