"""Stage report: pages from the result files of all other stages."""

from __future__ import annotations

from pathlib import Path

from ccwm.cells import Cell
from ccwm.errors import run_main
from ccwm.report.claims import load_claims
from ccwm.report.page import build_report
from ccwm.tracking.stage import open_stage


def main() -> None:
    """Read results, write the pages."""
    cell, paper = Cell("report"), load_claims(Path("claims.yaml"))
    with open_stage(cell, renders=False) as stage:
        build_report(Path(), cell.results, stage.settings, paper)
        stage.run.log_artifact(cell.results)


if __name__ == "__main__":
    run_main(main)
