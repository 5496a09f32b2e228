"""docs/faults.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_fault_names_a_test_that_is_there() -> None:
    rows = [line for line in (ROOT / "docs" / "faults.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", row)
        assert named, row
        for file, name in named:
            assert f"\ndef {name}(" in (ROOT / file).read_text(), f"{file}::{name}"
