"""The `ccwm` command as a person meets it: help, answers on stdout, refusals in a line on stderr."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ccwm.cells import STAGES
from ccwm.cli import app, data, main, params, tracking
from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import read_yaml
from ccwm.settings.variants import resolve

ROOT = Path(__file__).parents[1]
COMMAND = Path(sys.executable).with_name("ccwm")
Answer = tuple[int, str, str]
Ccwm = Callable[..., Answer]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with presets and, as params.yaml, the smoke settings; commands run there."""
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline")
    shutil.copy(ROOT / "presets" / "smoke.yaml", tmp_path / "params.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ccwm(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ccwm:
    """Run the command within this process: exit code, stdout and stderr, without colours, which some CIs force."""
    for variable in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["ccwm", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        out, err = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in capsys.readouterr())
        return code if isinstance(code, int) else 0, out, err

    return run


def spoil(project: Path, key: str, value: object) -> None:
    content = read_yaml(project / "params.yaml")
    section, _, field = key.partition(".")
    content[section][field] = value
    with (project / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(content, file)


@pytest.mark.parametrize(
    ("group", "path"),
    [(app, []), (params, ["params"]), (data, ["data"]), (tracking, ["tracking"])],
    ids=["ccwm", "params", "data", "tracking"],
)
def test_help_lists_every_command_with_a_line(ccwm: Ccwm, group: object, path: list[str]) -> None:
    code, out, _ = ccwm(*path, "--help")
    assert code == 0
    commands = [info.name or info.callback.__name__ for info in group.registered_commands]
    commands += [info.name for info in group.registered_groups]
    for command in commands:
        (line,) = [line for line in out.splitlines() if f"│ {command} " in line]
        assert len(line.strip("│ ").split()) >= 4, line


def test_a_bare_command_shows_its_help(ccwm: Ccwm) -> None:
    _, out, err = ccwm()
    assert "ccwm [OPTIONS] COMMAND" in out + err  # before it stands how this process was started


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


def test_presets_are_listed(ccwm: Ccwm, project: Path) -> None:
    (project / "presets" / "odd.yaml").write_text("# Has [brackets] in it.\n")
    code, out, _ = ccwm("preset")
    assert code == 0
    assert all(path.stem in out for path in (ROOT / "presets").glob("*.yaml"))
    assert "Has [brackets] in it." in out


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


def test_without_a_file_the_cure_is_named(ccwm: Ccwm, project: Path) -> None:
    (project / "params.yaml").unlink()
    code, _, err = ccwm("params", "check")
    assert code == 2
    assert err.startswith("error: params.yaml is missing: ")


def test_an_unknown_stage_is_guessed(ccwm: Ccwm) -> None:
    code, out, err = ccwm("run", "rollout_viz")
    assert (code, out) == (2, "")
    assert err == f"error: unknown stage 'rollout_viz'. Did you mean 'rollout-viz'? Known: {', '.join(STAGES)}.\n"


def test_the_ui_explains_its_port(ccwm: Ccwm) -> None:
    code, out, _ = ccwm("ui", "--help")
    assert code == 0
    assert "--port" in out
    assert ccwm("ui", "--port", "0")[0] == 2


def test_a_maze_needs_no_gl(ccwm: Ccwm, project: Path) -> None:
    spoil(project, "study.tasks", ["maze_two_rooms"])
    assert ccwm("gl") == (0, "no task of params.yaml needs OpenGL\n", "")


def test_a_stage_gets_its_arguments_and_gives_its_exit_code(project: Path) -> None:
    (project / "pipeline" / "evaluate.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(7)\n")
    done = subprocess.run([COMMAND, "run", "evaluate", "--task", "x", "--seed", "0"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "['--task', 'x', '--seed', '0']\n")


def test_a_stage_that_is_stopped_may_take_its_time(project: Path) -> None:
    """Training leaves a checkpoint when it is stopped, which takes longer than a parent process would wait."""
    script = """
import pathlib, signal, sys, time
def leave(*_):
    time.sleep(1)
    pathlib.Path("checkpoint").touch()
    sys.exit(130)
signal.signal(signal.SIGINT, leave)
pathlib.Path("started").touch()
time.sleep(60)
"""
    (project / "pipeline" / "train.py").write_text(script)
    stage = subprocess.Popen([COMMAND, "run", "train"])
    deadline = time.monotonic() + 60
    while not (project / "started").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    stage.send_signal(signal.SIGINT)
    assert stage.wait(60) == 130
    assert (project / "checkpoint").exists()
