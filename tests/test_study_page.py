from __future__ import annotations

import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from report.results_tree import results, source, study, write_returns, write_run, write_tree

from ccwm.cells import Cell
from ccwm.report.claims import Paper, load_claims
from ccwm.report.sources import evidence_sources
from ccwm.study_page import CURVES, DIFFERENCES, PAGE, returns, skills, write_page

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def paper() -> Paper:
    return load_claims(ROOT / "claims.yaml")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A study of two seeds with its settings."""
    write_tree(tmp_path, study(seeds=2), states=True)
    (tmp_path / "params.yaml").write_text("# What it is asked,\n# in two lines.\n\n# Not this.\nstudy: {}\n")
    return tmp_path


def test_returns_are_listed_by_seed_and_compared_with_the_reference(kept: Path) -> None:
    """Returns 100 and 120 against 90 and 100: +10 and +20, mean 15, s.d. 7.07, t = 12.71, so ± 12.71 · 5 = 63.5."""
    for variant, levels in {"dreamer": (90.0, 100.0), "ccwm": (100.0, 120.0)}.items():
        for seed, level in enumerate(levels):
            cell = Cell("evaluate", "walker_walk", variant, seed)
            write_returns(kept / cell.results, [level] * 2)
            write_run(kept / cell.record, cell)
    reference, other = returns(results(kept, seeds=2))
    assert (reference["by_seed"], other["by_seed"]) == ("90.00, 100.0", "100.0, 120.0")
    assert "gap" not in reference
    assert (other["gap"], other["gap_low"], other["gap_high"]) == pytest.approx((15.0, -48.53, 78.53), abs=0.01)
    assert other["rise"] == pytest.approx(other["height"] - reference["height"])


def test_skill_is_that_of_the_last_evaluation_and_only_of_what_retraces(kept: Path) -> None:
    (row,) = skills(results(kept, seeds=2))
    assert row["variant"] == "ccwm"
    assert row["retrace_skill_latent"] == 0.5  # 20,000 of 40,000 steps
    assert row["latent_by_seed"] == "0.500, 0.500"


def test_the_page_says_what_was_asked_found_and_made(kept: Path, paper: Paper) -> None:
    files = [kept / name for name in (PAGE, DIFFERENCES, CURVES)]
    assert write_page(source(kept, name="kept", seeds=2), paper) == files
    text = (kept / PAGE).read_text()
    assert text.startswith("# kept\n\nWhat it is asked, in two lines.\n")
    for heading in ("Returns", "Are the baselines normal?", "Does it retrace?", "Claims", "How it was made"):
        assert f"\n### {heading}\n" in text
    assert "--preset kept --commit c0ffeec0ff`" in text
    assert text.index(f"]({DIFFERENCES})") < text.index(f"]({CURVES})") < text.index("### Returns")
    first = [path.read_bytes() for path in files]
    write_page(source(kept, name="kept", seeds=2), paper)
    assert [path.read_bytes() for path in files] == first


def test_a_damaged_file_is_named_and_its_cell_counts_nowhere(kept: Path, paper: Paper) -> None:
    with (kept / "results" / "evaluate" / "walker_walk" / "ccwm" / "1" / "metrics.json").open("a") as file:
        file.write(" ")
    write_page(source(kept, name="kept", seeds=2), paper)
    text = (kept / PAGE).read_text()
    assert "evaluate@walker_walk-ccwm-1" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| walker_walk | ccwm | ") and "(" in line]
    assert ", " not in line.split("|")[4]  # one seed is left


def test_the_committed_pages_are_current(tmp_path: Path, paper: Paper) -> None:
    """`ccwm findings --write` writes them. As committed, since a fleet may be adding results to the files here."""
    archive = subprocess.run(["git", "archive", "HEAD", "evidence"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(tmp_path, filter="data")
    studies = evidence_sources(tmp_path)
    assert studies
    for of in studies:
        committed = {path: path.read_bytes() for path in (tmp_path / "evidence" / of.name).iterdir() if path.is_file()}
        for path in write_page(of, paper):
            assert path.read_bytes() == committed[path]
