"""What SECURITY.md promises, read from the sources, the lock file, the Dockerfile and the workflow."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "pipeline", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]
PICKLES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput"}
RUNNERS = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output"}


def dotted(node: ast.AST) -> str:
    """`torch.load` for the function of such a call."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def call_fault(call: ast.Call) -> str | None:
    """Why this call has no place in the sources."""
    name = dotted(call.func)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    true = {key for key, value in given.items() if isinstance(value, ast.Constant) and value.value is True}
    first = call.args[0] if call.args else None
    if name in {"eval", "exec", "compile"} | SHELLS or name in {"yaml.load", "yaml.unsafe_load", "yaml.full_load"}:
        return f"calls {name}"
    if name == "torch.load" and "weights_only" not in true:
        return "calls torch.load without weights_only=True"
    if "shell" in true or "allow_pickle" in true or "trust_remote_code" in true:
        return f"sets {', '.join(sorted(key for key in true if key))}"
    if name in RUNNERS and isinstance(first, ast.Constant | ast.JoinedStr):
        return f"gives {name} a command as text"
    if name == "YAML" and isinstance(given.get("typ"), ast.Constant) and given["typ"].value == "unsafe":  # type: ignore[attr-defined]
        return "reads unsafe YAML"
    return None


def faults(source: str) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [f"imports {name}" for name in names if name.split(".")[0] in PICKLES]
        fault = call_fault(node) if isinstance(node, ast.Call) else None
        found += [fault] if fault else []
    return found


def test_no_source_file_runs_what_it_reads() -> None:
    assert len(SOURCES) > 50
    assert {path.name: found for path in SOURCES if (found := faults(path.read_text()))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "eval(text)",
        "exec(text)",
        "import pickle",
        "from cloudpickle import loads",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(command, shell=True)",
        "subprocess.run(f'git {name}')",
        "os.system('ls')",
        "yaml.load(text)",
        "YAML(typ='unsafe')",
    ],
)
def test_an_offence_is_seen(source: str) -> None:
    assert faults(source)


@pytest.mark.parametrize(
    "source", ["torch.load(path, weights_only=True)", "model.eval()", "subprocess.run(['git', x])"]
)
def test_what_is_safe_passes(source: str) -> None:
    assert faults(source) == []


def test_every_locked_package_has_hashes() -> None:
    blocks = re.split(r"\n(?=[a-zA-Z0-9])", (ROOT / "requirements.lock").read_text())
    assert len(blocks) > 100
    assert [block.split()[0] for block in blocks if "--hash=sha256:" not in block] == []
    makefile = (ROOT / "Makefile").read_text()
    assert "--require-hashes" in makefile
    assert "pip-audit --strict" in makefile


def test_the_container_does_not_end_as_root() -> None:
    users = re.findall(r"^USER (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert users
    assert users[-1] not in ("root", "0")


def test_the_workflow_may_only_read() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        assert "permissions:\n  contents: read\n" in path.read_text()


def test_commands_of_the_pipeline_quote_every_name() -> None:
    commands = re.findall(r"^    cmd: (.*)$", (ROOT / "dvc.yaml").read_text(), re.MULTILINE)
    assert commands
    for command in commands:
        assert re.findall(r"(?<!')\$\{", command) == []
