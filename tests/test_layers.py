"""The layers point one way: the imports of every source file are read, and an upward edge fails."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "ccwm"

# From the bottom up, as docs/design.md lists them: an entry imports from itself and from those before it.
ORDER = (
    *("errors", "checksums", "files", "readers", "seeds", "structs", "episode"),
    *("settings", "cells", "progress", "machine"),
    *("ops", "losses", "nets", "envs", "replay", "agents"),
    *("training", "studies", "report", "study_page", "tracking", "tuning", "fleet", "plan", "verify", "loading", "cli"),
)
STRANGERS = {"nets", "envs", "replay"}  # none of them knows another
PURE = {"ops", "losses", "nets"}  # maths of values: no settings, no files, no ranks
PURE_MAY_IMPORT = {"structs", *PURE}

ONLY_IN = {"mlflow": "tracking", "optuna": "tuning", "ray": "fleet", "dm_control": "envs", "mujoco": "envs"}
NEVER_IMPORTED = {"pickle", "cloudpickle", "dill"}
NEVER_CALLED = {"eval", "exec"}
NEVER_TRUE = {"shell", "allow_pickle"}
CASTS = {"half", "bfloat16", "autocast"}

RANK = {entry: rank for rank, entry in enumerate(ORDER)}


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
        return f"imports {target}, a stranger"
    if RANK[target] > RANK[entry]:
        return f"imports upward from {target}"
    if entry in PURE and target not in PURE_MAY_IMPORT:
        return f"imports {target} into pure maths"
    return None


def import_fault(entry: str, module: str) -> str | None:
    """Why a file of `entry` may not import `module`, or None where it may."""
    top, *rest = module.split(".")
    if top == "ccwm":
        return edge_fault(entry, rest[0]) if rest and rest[0] not in ("__version__", "load_agent") else None
    if top in NEVER_IMPORTED:
        return f"imports {top}"
    if ONLY_IN.get(top, entry) != entry:
        return f"imports {top}; only {ONLY_IN[top]} may"
    if entry in PURE and module.startswith("torch.distributed"):
        return "imports torch.distributed into pure maths"
    return None


def usage_fault(node: ast.AST, *, pure: bool) -> str | None:
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
        case ast.Attribute(value=ast.Name(id="torch"), attr="distributed") if pure:
            return "uses torch.distributed in pure maths"
        case ast.Call(func=ast.Attribute(attr=name)) if pure and name in CASTS:
            return f"casts by {name} in pure maths"
    return None


def faults(package: Path) -> list[str]:
    """All offences in a package called ccwm, as `file: what`."""
    found = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        entry = inside.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        reasons = [usage_fault(node, pure=entry in PURE) for node in ast.walk(tree)]
        if entry in RANK:
            parents = ["ccwm", *inside.parts[:-1]]
            reasons += [import_fault(entry, module) for module in imported_modules(tree, parents)]
        elif entry not in ("__init__", "__main__"):
            reasons.append("has no layer: give it a place in ORDER")
        found += [f"{inside.as_posix()}: {reason}" for reason in reasons if reason]
    return found


def test_the_sources_keep_to_their_layers() -> None:
    assert list(PACKAGE.rglob("*.py"))
    assert faults(PACKAGE) == []


def test_every_layer_is_there() -> None:
    assert [
        entry for entry in ORDER if not (PACKAGE / entry).is_dir() and not (PACKAGE / f"{entry}.py").is_file()
    ] == []


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("nets/rssm.py", "from ccwm.agents import WorldModel", "imports upward from agents"),
        ("ops/returns.py", "def f():\n    import ccwm.losses.model", "imports upward from losses"),
        ("training/loop.py", "from ccwm import tracking", "imports upward from tracking"),
        ("training/loop.py", "from .. import studies", "imports upward from studies"),
        ("agents/policy.py", "from ..training.loop import train", "imports upward from training"),
        ("seeds.py", "from .structs import Batch", "imports upward from structs"),
        ("replay/store.py", "from ccwm.envs import make", "imports envs, a stranger"),
        ("nets/pixels.py", "from ccwm.helpers import f", "imports helpers, which has no layer"),
        ("helpers.py", "", "has no layer: give it a place in ORDER"),
        ("losses/model.py", "from ccwm.settings.agent import Model", "imports settings into pure maths"),
        ("ops/gaussian.py", "from torch import distributed", "imports torch.distributed into pure maths"),
        ("ops/gaussian.py", "torch.distributed.all_reduce(x)", "uses torch.distributed in pure maths"),
        ("nets/mlp.py", "x.half()", "casts by half in pure maths"),
        ("training/loop.py", "import mlflow.pytorch", "imports mlflow; only tracking may"),
        ("tuning/search.py", "import ray", "imports ray; only fleet may"),
        ("studies/transfer.py", "from dm_control import suite", "imports dm_control; only envs may"),
        ("replay/store.py", "from pickle import load", "imports pickle"),
        ("replay/store.py", "np.load(path, allow_pickle=True)", "sets allow_pickle=True"),
        ("cli/app.py", "run(command, shell=True)", "sets shell=True"),
        ("cli/app.py", "eval('1')", "calls eval("),
        ("agents/policy.py", "model.cuda()", "calls .cuda("),
        ("agents/policy.py", "model.to('cuda:0')", "names the device 'cuda:0'"),
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
        ("cells.py", "from ccwm.settings.schema import Settings"),
        ("losses/model.py", "from ccwm.ops.gaussian import kl\nfrom . import retrace\nfrom ccwm.structs import Batch"),
        ("studies/returns.py", "from ..training import load"),
        ("agents/policy.py", "import torch\nmodel.eval()\ntorch.cuda.is_available()\ntorch.distributed.is_available()"),
        ("tracking/run.py", "import mlflow"),
        ("envs/dmc.py", "import mujoco"),
    ],
)
def test_a_downward_edge_passes(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert faults(tmp_path) == []
