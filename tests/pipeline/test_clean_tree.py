"""A reproduced run leaves the tree clean: what names runs, times and machines is no output of DVC."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from project import ROOT, Project

STAMP = f"{sys.executable} -c 'import time, pathlib; pathlib.Path(\"{{}}\").write_text(str(time.time_ns()))'"
PIPELINE = f"""
stages:
  train:
    cmd:
      - mkdir -p results/train/t/v/0
      - echo 1 > results/train/t/v/0/metrics.json
      - {STAMP.format("results/train/t/v/0/run.json")}
    outs:
      - results/train/t/v/0/metrics.json: {{cache: false}}
  report:
    cmd:
      - mkdir -p report results/report
      - cat results/train/t/v/0/metrics.json > report/index.html
      - {STAMP.format("report/runs.html")}
      - {STAMP.format("results/report/run.json")}
    deps: [results]
    outs: [report]
"""


def test_runs_and_times_change_neither_gits_nor_dvcs_view(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.root.mkdir()
    for name in (".gitignore", ".dvcignore"):
        shutil.copy(ROOT / name, project.root / name)
    (project.root / "dvc.yaml").write_text(PIPELINE)
    project.init_dvc()
    with project.dvc() as repo:
        repo.reproduce()
    project.commit("Results")
    listed = project.command("git", "ls-files").splitlines()
    assert "results/train/t/v/0/metrics.json" in listed
    assert not [name for name in listed if name.endswith("run.json") or name.startswith("report/")]
    stamps = [project.root / name for name in ("results/train/t/v/0/run.json", "report/runs.html")]
    before = [path.read_text() for path in stamps]
    with project.dvc() as repo:
        repo.reproduce(force=True)
    assert all(path.read_text() != old for path, old in zip(stamps, before, strict=True))
    assert project.command("git", "status", "--porcelain") == ""
    with project.dvc() as repo:
        assert repo.status() == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_fresh_clone_that_is_reproduced_is_clean(collected: Project, tmp_path: Path) -> None:
    project = collected.copy(tmp_path / "project")
    project.init_dvc()
    project.command("dvc", "repro")
    project.commit("Results")
    project.command("git", "clone", "--quiet", str(project.root), str(tmp_path / "clone"))
    clone = Project(tmp_path / "clone")
    clone.command("dvc", "repro")
    assert clone.command("git", "status", "--porcelain") == ""
    assert clone.command("dvc", "status", "--json").strip() == "{}"
