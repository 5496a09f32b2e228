"""The layers point one way: the imports of every source file are read, and an upward edge fails."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "ccwm"

# From the bottom up. An entry may import from the layers below and from entries before it in its own layer.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("refusal", "files", "seeds", "progress", "config", "structs", "reference", "params", "presets"),
    ("ops", "losses"),
    ("nets", "envs", "data"),
    ("agent",),
    ("training", "studies"),
    ("machine", "matrix", "tracking", "stage", "report", "tuning"),
    ("loading", "verify", "plan", "commands", "cli"),
)
STRANGERS = {"nets", "envs", "data"}  # one layer, but none of them knows another

ONLY_IN = {"mlflow": "tracking", "optuna": "tuning", "dm_control": "envs", "mujoco": "envs"}
NEVER_IMPORTED = {"pickle", "cloudpickle", "dill"}
NEVER_CALLED = {"eval", "exec"}
NEVER_TRUE = {"shell", "allow_pickle"}

RANK = {entry: (layer, line) for layer, entries in enumerate(LAYERS) for line, entry in enumerate(entries)}


def imported_modules(tree: ast.AST, package: list[str]) -> Iterator[str]:
    """Dotted names of all that a file of `package` imports, wherever in the file the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def edge_fault(entry: str, target: str) -> str | None:
    """Why `entry` may not import `target`, or None where it may."""
    if target not in RANK:
        return f"imports {target}, which has no layer"
    if {entry, target} <= STRANGERS and entry != target:
        return f"imports {target}; nets, envs and data do not know each other"
    if RANK[target] > RANK[entry]:
        return f"imports upward from {target}"
    return None


def import_fault(entry: str, module: str) -> str | None:
    """Why a file of `entry` may not import `module`, or None where it may."""
    top, *rest = module.split(".")
    if top == "ccwm":
        return edge_fault(entry, rest[0]) if rest and rest[0] != "__version__" else None
    if top in NEVER_IMPORTED:
        return f"imports {top}"
    if ONLY_IN.get(top, entry) != entry:
        return f"imports {top}; only {ONLY_IN[top]} may"
    return None


def usage_fault(node: ast.AST) -> str | None:
    """Why this node has no place in the sources, or None where it has."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in NEVER_CALLED:
            return f"calls {name}("
        case ast.Call(func=ast.Attribute(attr="cuda")):
            return "calls .cuda("
        case ast.keyword(arg=str(name), value=ast.Constant(value=True)) if name in NEVER_TRUE:
            return f"sets {name}=True"
        case ast.Constant(value=str(text)) if text == "cuda" or text.startswith("cuda:"):
            return f"names the device {text!r}"
    return None


def faults(package: Path) -> list[str]:
    """All offences in a package called ccwm, as `file: what`."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        reasons = [usage_fault(node) for node in ast.walk(tree)]
        entry = inside.parts[0].removesuffix(".py")
        if entry in RANK:
            parents = ["ccwm", *inside.parts[:-1]]
            reasons += [import_fault(entry, module) for module in imported_modules(tree, parents)]
        elif entry not in ("__init__", "__main__"):
            reasons.append("has no layer: give it a line in LAYERS")
        found += [f"{inside.as_posix()}: {reason}" for reason in reasons if reason]
    return found


def test_the_sources_keep_to_their_layers() -> None:
    assert list(PACKAGE.rglob("*.py"))
    assert faults(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("nets/rssm.py", "from ccwm.agents import WorldModel", "imports upward from agent"),
        ("ops/returns.py", "def f():\n    import ccwm.losses.model", "imports upward from losses"),
        ("training/loop.py", "from ccwm import tracking", "imports upward from tracking"),
        ("training/loop.py", "from .. import studies", "imports upward from studies"),
        ("agent/policy.py", "from ..training.loop import train", "imports upward from training"),
        ("config.py", "from .structs import Batch", "imports upward from structs"),
        ("data/replay.py", "from ccwm.envs import make", "imports envs; nets, envs and data do not know each other"),
        ("nets/conv.py", "from ccwm.helpers import f", "imports helpers, which has no layer"),
        ("helpers.py", "", "has no layer: give it a line in LAYERS"),
        ("training/loop.py", "import mlflow.pytorch", "imports mlflow; only tracking may"),
        ("studies/transfer.py", "from dm_control import suite", "imports dm_control; only envs may"),
        ("data/replay.py", "from pickle import load", "imports pickle"),
        ("data/replay.py", "np.load(path, allow_pickle=True)", "sets allow_pickle=True"),
        ("cli.py", "run(command, shell=True)", "sets shell=True"),
        ("cli.py", "eval('1')", "calls eval("),
        ("agent/policy.py", "model.cuda()", "calls .cuda("),
        ("agent/policy.py", "model.to('cuda:0')", "names the device 'cuda:0'"),
    ],
)
def test_an_offence_is_found(tmp_path: Path, file: str, source: str, fault: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert faults(tmp_path) == [f"{file}: {fault}"]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("params.py", "from ccwm.settings.schema import Settings")(
            "losses/model.py", "from ccwm.ops.gaussian import kl\nfrom . import retrace"
        ),
        ("studies/returns.py", "from ..training import load"),
        ("agent/policy.py", "import torch\nmodel.eval()\ntorch.cuda.is_available()"),
        ("tracking.py", "import mlflow"),
        ("envs/dmc.py", "import mujoco"),
    ],
)
def test_a_downward_edge_passes(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert faults(tmp_path) == []
