"""Which project files a script runs, found by reading imports."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


@functools.cache
def imported_files(script: Path) -> frozenset[Path]:
    """Every file under ``src`` that the script imports, directly or not, with the packages on the way."""
    found: set[Path] = set()
    waiting = [script]
    while waiting:
        for module in _modules(waiting.pop()):
            for path in _files(module):
                if path not in found:
                    found.add(path)
                    waiting.append(path)
    return frozenset(found)


@functools.cache
def _modules(path: Path) -> set[str]:
    names: set[str] = set()
    tree = ast.parse(path.read_text())
    unrun = {node for block in ast.walk(tree) if _is_for_types_only(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if node in unrun:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "ccwm"}


def _is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _files(module: str) -> list[Path]:
    parts = module.split(".")
    files = [SOURCE.joinpath(*parts[:end], "__init__.py") for end in range(1, len(parts) + 1)]
    files.append(SOURCE.joinpath(*parts).with_suffix(".py"))
    return [file for file in files if file.is_file()]
