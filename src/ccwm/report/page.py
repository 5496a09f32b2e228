"""The report as a whole: one self-contained page and its text, a page of runs, figures and tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from ccwm.files import published
from ccwm.readers import BadResult
from ccwm.report import (
    baseline,
    evaluation,
    evidence,
    figures,
    latents,
    learning,
    ledger,
    losses,
    overview,
    prediction,
    retracing,
    runs,
    transfer,
    truncation,
    tuning,
)
from ccwm.report.blocks import Block, Details, Words, cell_groups, kind
from ccwm.report.claims import Paper
from ccwm.report.results import MEASURED, Results
from ccwm.report.section import Report, damaged
from ccwm.report.sources import all_sources
from ccwm.report.words import say
from ccwm.settings.schema import Settings

MODULES = (
    ledger,
    baseline,
    evidence,
    learning,
    evaluation,
    prediction,
    retracing,
    latents,
    truncation,
    transfer,
    tuning,
    losses,
)
SECTIONS = tuple(module.SECTION for module in MODULES)
"""In the order of the page."""
NAMED = 8
"""Missing results and files that are named at most; the others unfold."""


@figures.styled
def build_report(root: Path, out: Path, settings: Settings, paper: Paper | None) -> Path:
    """Turn the results below ``root`` into ``out`` and return the path of its page, ``index.html``.

    The first variant is the one that the others are compared with. What is missing or damaged is said in its place, and
    a damaged file raises BadResult once the page is there. The whole folder appears at once: until then the previous
    one stays as it was. All but ``runs.html`` and ``runs.csv`` is a function of the results, the evidence, the settings
    and the paper.
    """
    look, sources = settings.report, all_sources(root, settings)
    results = sources[0].results
    with published(out) as folder:
        (folder / "figures").mkdir()
        (folder / "tables").mkdir()
        colours = figures.variant_colours(settings.study.variants, look.colours)
        report = Report(results, folder, colours, look.target_score, paper, sources)
        built = {section: section.build(report) + missing(results, section.needs) for section in SECTIONS}
        overview.write_overview(report)
        context: dict[str, Any] = {
            "title": look.title,
            "head": overview.head(report),
            "sections": {section: blocks for section, blocks in built.items() if blocks},
        }
        render(folder / "index.html", "page.html.j2", context)
        render(folder / "report.md", "report.md.j2", context)
        render(folder / "runs.html", "runs.html.j2", {"title": look.title, "blocks": runs.build(results, folder)})
    broken = [of for source in sources for stage in MEASURED for of in source.results.damaged(stage).values()]
    if broken := [*broken, *report.broken]:
        hint = f"{out / 'index.html'} names each and counts none of them; write them again with `dvc repro --force`"
        raise BadResult(f"{len(broken)} damaged results: " + "; ".join(broken[:NAMED]), hint=hint)
    return out / "index.html"


def missing(results: Results, needs: dict[str, tuple[str, ...]]) -> list[Block]:
    """What a section needs and does not find: cells that have not run, and files of those that have."""
    said: list[Block] = []
    for stage, files in needs.items():
        said += damaged(results, stage)
        absent = {"cells": results.missing(stage), "files": results.missing_files(stage, files)}
        for what, names in absent.items():
            if names:
                about = {"n": len(names), "stage": stage, "expected": len(results.expected(stage))}
                about |= {"names": " ".join(f"`{name}`" for name in names[:NAMED])}
                about |= {"target": names[0] if len(names) == 1 else stage}
                said.append(Words(say("missing", what, **about), "missing"))
            if rest := names[NAMED:]:
                said.append(Details(f"and {len(rest)} more", [Words(" ".join(rest), "missing")]))
    return said


def code(text: str) -> Markup:
    """Text for HTML, with what stands between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def render(path: Path, template: str, context: dict[str, Any]) -> None:
    """Write a page from its template."""
    path.write_text(render_text(template, context), "utf-8")


def render_text(template: str, context: dict[str, Any]) -> str:
    """A page from its template."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ccwm.report"),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell_groups": cell_groups, "code": code, "kind": kind}
    return environment.get_template(template).render(context)
