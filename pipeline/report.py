"""Stage report: one page from the result files of all other stages."""

from __future__ import annotations

from pathlib import Path

from ccwm.cells import Cell
from ccwm.errors import run_main
from ccwm.report.claims import load_claims
from ccwm.report.page import build_report
from ccwm.tracking.stage import open_stage


def main() -> None:
    """Read results, write the page."""
    paper = load_claims(Path("claims.yaml"))
    with open_stage(Cell("report"), renders=False) as stage:
        study, report = stage.settings.study, stage.settings.report
        page = build_report(
            Path("results"),
            Path("report"),
            tasks=study.tasks,
            variants=study.variants,
            seeds=study.seeds,
            title=report.title,
            colours=report.colours,
            target_score=report.target_score,
            paper=paper,
        )
        stage.run.log_artifact(page.parent)


if __name__ == "__main__":
    run_main(main)
