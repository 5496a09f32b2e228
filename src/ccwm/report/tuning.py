"""Searches for settings in the report: a section for the page, and figures beside a search's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from ccwm.report import figures
from ccwm.report.searches import read_search
from ccwm.report.tuning_figures import search_figures
from ccwm.report.tuning_words import candidates_table, search_words


def tuning_section(results: Path, folder: Path) -> list[dict[str, Any]]:
    """Every search under ``results/tune`` for the page: words, the table of candidates, and figures in ``folder``."""
    shown = []
    for path in sorted((results / "tune").glob("*/study.json")):
        search = read_search(path.parent)
        name = search.summary["study"]
        drawn = [
            {
                "what": what,
                "file": f"tune-{name}-{what}",
                "svg": Markup(figures.save(figure, folder, f"tune-{name}-{what}")),
            }
            for what, figure in search_figures(search).items()
        ]
        table = candidates_table(search) if len(search.candidates) else None
        shown.append(
            {"study": name, "words": search_words(search), "table": table, "figures": drawn, "run_id": search.run_id}
        )
    return shown


def draw_study(folder: Path) -> None:
    """Write every figure of a search beside its files, as SVG."""
    for what, figure in search_figures(read_search(folder)).items():
        (folder / f"{what}.svg").write_text(figures.adaptive(figures.to_svg(figure)), "utf-8")
