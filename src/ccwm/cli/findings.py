"""`ccwm findings`: what all results say, those in ``evidence/`` included, without building the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccwm.cells import CLAIMS, PARAMS
from ccwm.settings.loading import load_settings

if TYPE_CHECKING:
    from ccwm.report.claims import Claim, Paper, Tiers
    from ccwm.report.ledger import Answer, Line


def findings(
    every: Annotated[bool, typer.Option("--all", help="List the claims that have not run, too.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write the page of every study, evidence/NAME/README.md, instead.")
    ] = False,
) -> None:
    """Print what was found, the returns of every study, and a verdict on each of the paper's claims."""
    from ccwm.report import ledger, overview
    from ccwm.report.claims import load_claims
    from ccwm.report.findings import findings as found
    from ccwm.report.sources import all_sources

    console, paper = Console(), load_claims(CLAIMS)
    if write:
        write_pages(paper)
        return
    sources = all_sources(Path(), load_settings(PARAMS))
    for sentence in found(sources, paper) or ["Nothing has been run."]:
        console.print(Text(sentence, "bold"))
    for source in sources:
        for task in source.results.study.tasks:
            if source.results.cells("evaluate", task=task):
                console.print(Text(f"{source.name}, {task}: {overview.outcome(source.results, task)}"))
    lines = ledger.load(sources, paper)
    for tier, of in reversed([*paper.tiers]):
        console.print(Text(f"{of.title}: {ledger.summary(lines, tier)}", "bold"))
    if shown := [line for line in lines if every or any(of.ours for of in line.answers.values())]:
        console.print(claims_table(shown, paper.tiers))


def write_pages(paper: Paper) -> None:
    """Write the page of every study in ``evidence/``, and say where."""
    from ccwm.report.sources import evidence_sources
    from ccwm.study_page import write_page

    for source in evidence_sources(Path()):
        typer.echo("\n".join(map(str, write_page(source, paper))))


def claims_table(lines: list[Line], tiers: Tiers) -> Table:
    """A row for each claim: its words and tasks, and what each tier says."""
    order = [name for name, _ in reversed([*tiers])]
    shown = Table("claim", *(getattr(tiers, tier).title for tier in order), show_lines=True)
    for claim, tasks, answers in lines:
        shown.add_row(f"{claim.says} [{', '.join(tasks)}]", *(answer_text(answers[tier], claim) for tier in order))
    return shown


def answer_text(of: Answer, claim: Claim) -> str:
    """The verdict, our numbers and their scale, or what is missing; and what was asked, if it is another question."""
    from ccwm.report.ledger import basis, ours_words

    asked = of.asked
    if asked is None or not of.ours:
        return f"{of.verdict}: {of.reason}"
    numbers = "; ".join(f"{row['task']} {ours_words(asked, row)}" for row in of.ours)
    other = "" if asked.says == claim.says else f"asked: {asked.says} "
    return f"{other}{of.verdict}: {numbers}; {of.reason} ({basis(of)})"
