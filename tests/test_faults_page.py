"""docs/faults.md names tests that exist, and for every fault one that `make test` runs."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def found_in(file: str) -> dict[str, bool]:
    """The tests of a file, and whether all cases of a test are slow."""
    body = ast.parse((ROOT / file).read_text()).body
    marked = [
        ast.unparse(node.value) for node in body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
    ]
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return {
        function.name: any("mark.slow" in mark for mark in marked)
        or any(ast.unparse(decorator) == "pytest.mark.slow" for decorator in function.decorator_list)
        for function in functions
    }


def test_every_fault_names_a_test_that_is_there_and_one_that_is_fast() -> None:
    rows = [line for line in (ROOT / "docs" / "faults.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", row)
        assert [f"{file}::{name}" for file, name in named if name not in found_in(file)] == [], row
        assert [name for file, name in named if not found_in(file)[name]], f"only slow ones: {row}"
