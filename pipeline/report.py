"""Stage report: pages from the result files of all other stages."""

from __future__ import annotations

from pathlib import Path

from ccwm.cells import Cell
from ccwm.errors import run_main
from ccwm.report.claims import load_claims
from ccwm.report.page import build_report
from ccwm.report.sources import all_sources
from ccwm.report.summaries import summaries
from ccwm.tracking.stage import open_stage
from ccwm.tracking.studies import log_studies


def main() -> None:
    """Read results, write the pages."""
    cell, paper = Cell("report"), load_claims(Path("claims.yaml"))
    with open_stage(cell, renders=False) as stage:
        build_report(Path(), cell.results, stage.settings, paper)
        stage.run.log_artifact(cell.results)
        log_studies(stage.run, stage.settings.tracking, summaries(all_sources(Path(), stage.settings)))


if __name__ == "__main__":
    run_main(main)
