"""The soak itself: it kills, it resumes, and it prints what it found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CLEAN = {"episodes_lost": 0, "updates_repeated": 0, "updates_skipped": 0, "final_weights_equal": True}


@pytest.mark.slow
def test_a_short_soak_survives_its_kills(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/soak.py", "--minutes", "0.3", "--json", str(tmp_path / "soak.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "soak.json").read_text())
    assert record["kills_survived"] >= 1
    assert {name: record[name] for name in CLEAN} == CLEAN
    assert f"kills survived: {record['kills_survived']}" in done.stdout
