"""The page of a study that git keeps: `README.md` and its two figures beside its results, and a function of them."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from matplotlib.figure import Figure

from ccwm.cells import PARAMS
from ccwm.files import write_atomically
from ccwm.report import baseline, evaluation, evidence, figures, format, learning, ledger, retracing, runs
from ccwm.report.blocks import Block, Heading, Table, Words
from ccwm.report.claims import Paper
from ccwm.report.differences import difference_figure
from ccwm.report.findings import findings, gap
from ccwm.report.page import render_text
from ccwm.report.results import MEASURED, Results
from ccwm.report.section import damaged
from ccwm.report.sources import Source
from ccwm.report.statistics import Estimate
from ccwm.report.table import Column, Row, averaged, rows_of, table
from ccwm.report.words import say
from ccwm.studies.returns import read_metrics
from ccwm.training.history import read_curve

PAGE, DIFFERENCES, CURVES = "README.md", "differences.svg", "curves.svg"
ACROSS = 3
"""Panels of the learning curves in a row."""
ALONE = 6.4
"""Inches of a figure that has a row to itself."""
RETURNS = (
    Column("Task", "task"),
    Column("Variant", "variant"),
    Column("Return (95% interval)", ("mean", "low", "high"), format.around),
    Column("By seed", "by_seed"),
    Column("− reference (95%, paired)", ("gap", "gap_low", "gap_high"), lambda *of: _difference(*of)),
    Column("Height of the curve", "height"),
    Column("− reference (95%, paired)", ("rise", "rise_low", "rise_high"), lambda *of: _difference(*of)),
)
SKILLS = (
    Column("Task", "task"),
    Column("Variant", "variant"),
    Column("Skill, latent", "retrace_skill_latent"),
    Column("by seed", "latent_by_seed"),
    Column("Skill, observation", "retrace_skill_observation"),
)


@figures.styled
def write_page(source: Source, paper: Paper) -> list[Path]:
    """Write a study's page, its differences and its learning curves; returns the files."""
    root = source.results.root
    about = [line.removeprefix("#").strip() for line in (root / PARAMS).read_text("utf-8").splitlines()]
    first = about[: next((n for n, line in enumerate(about) if not line), 0)]
    opening, *rest = build(source, paper)
    written, pictures = [root / PAGE], list[Block]()
    for name, label, drawn in (
        (DIFFERENCES, "Differences", difference_figure(source.results, {}, width=ALONE)),
        (CURVES, "Learning curves", draw_curves(source, paper)),
    ):
        if drawn is not None:
            written.append(root / name)
            write_atomically(root / name, figures.adaptive(figures.to_svg(drawn)).encode())
            caption = say("study", Path(name).stem, reference=source.results.reference)
            pictures += [Words(f"![{label} of {source.name}]({name})"), Words(caption)]
    context = {"title": source.name, "about": " ".join(first), "blocks": [opening, *pictures, *rest]}
    write_atomically(root / PAGE, render_text("study.md.j2", context).encode())
    return written


def build(source: Source, paper: Paper) -> list[Block]:
    """What was found, returns and curves by seed, the baseline, retrace skill, all tasks, claims, and the cost."""
    results = source.results
    blocks: list[Block] = [Words(" ".join([evidence.scale(source), *findings([source], paper)]))]
    blocks += [block for stage in MEASURED for block in damaged(results, stage)]
    if rows := returns(results):
        words = say("study", "returns", reference=results.reference)
        blocks += [Heading("Returns"), _unlinked(table(words, rows, RETURNS, texts=2))]
    if rows := evaluation.aggregate(results):
        words = say("evaluation", "aggregate", tasks=rows[0]["tasks"], reference=results.reference)
        blocks += [Heading("All tasks together"), _unlinked(table(words, rows, evaluation.AGGREGATE))]
    if rows := baseline.compare_all([source], paper):
        blocks += [Heading("Are the baselines normal?"), baseline.baseline_table(rows, paper)]
    if rows := skills(results):
        blocks += [Heading("Does it retrace?"), _unlinked(table(say("study", "skills"), rows, SKILLS, texts=2))]
    if answered := [own for line in ledger.load([source], paper) if (own := _answered(line)).answers]:
        blocks += [Heading("Claims"), Words(say("study", "claims")), ledger.claims_table(answered, paper.tiers)]
    return [*blocks, Heading("How it was made"), Words(made(source))]


def returns(results: Results) -> list[Row]:
    """A row for each task and variant: evaluated returns and heights of the curve, and what each lacks or gains."""
    rows = []
    for task in results.study.tasks:
        heights = {variant: gap(results, variant) for variant in results.study.variants}
        curves = results.load("train", task, read_curve, learning.FILES)
        for row in evaluation.summarise(results, task):
            variant, found = row["variant"], results.load("evaluate", task, read_metrics)
            by_seed = [format.number(metrics.return_mean) for metrics in found[variant].values()]
            areas = [learning.curve_area(frame) or 0.0 for frame in curves.get(variant, {}).values()]
            row |= {"by_seed": ", ".join(by_seed), "height": sum(areas) / len(areas) if areas else None}
            if variant != results.reference:
                difference, rise = evaluation.return_difference(results, task, variant), heights[variant]
                row |= _named("gap", difference and difference[0]) | _named("rise", rise and rise.tasks.get(task))
            rows.append(row)
    return rows


def skills(results: Results) -> list[Row]:
    """A row for each task and variant that retraces: its skill at the last evaluation, over seeds and for each."""
    found = []
    for task in results.study.tasks:
        load = results.load("train", task, read_curve, retracing.CURVE)
        for row in averaged(rows_of(load, lambda curve: [retracing.last_skill(curve)]), "task", "variant"):
            if row["retrace_skill_latent"] is not None:
                each = [retracing.last_skill(curve)["retrace_skill_latent"] for curve in load[row["variant"]].values()]
                found.append({**row, "latent_by_seed": ", ".join(format.number(of) for of in each)})
    return found


def draw_curves(source: Source, paper: Paper) -> Figure | None:
    """The learning curves of every task that has some, with published returns; None where nothing is trained."""
    results = source.results
    curves = {task: of for task in results.study.tasks if (of := learning.load_curves(results, task))}
    if not curves:
        return None
    across = min(len(curves), ACROSS)
    down = ceil(len(curves) / across)
    width = 0.85 * figures.WIDTH * across
    figure = Figure(figsize=(width, 2.9 * down))
    panels = [*figure.subplots(down, across, squeeze=False).flat]
    for axes, (task, of) in zip(panels, curves.items(), strict=False):
        learning.draw_learning(axes, results, task, of, {})
        learning.draw_published(axes, paper, source, task, until=max(curve.x[-1] for curve in of.values()))
    for axes in panels[len(curves) :]:
        axes.remove()
    figures.shared_legend(figure, width=width)
    return figure


def made(source: Source) -> str:
    """The code, the machines and the time behind the study, and the command that makes it anew."""
    records = runs.load(source.results)
    commits = sorted({row["commit"][:10] + " with changes" * row["dirty"] for row in records if row["commit"]})
    hours = format.number(sum(row["seconds"] or 0.0 for row in records) / 3600)
    code = f" --commit {commits[0]}" if len(commits) == 1 else ""
    about = {"results": format.count(len(records), "result"), "commits": format.listing(commits or ["no commit"])}
    return say("study", "made", **about, hours=hours, study=source.name, code=code)


def _answered(line: ledger.Line) -> ledger.Line:
    """At the tiers alone at which there are numbers."""
    return line._replace(answers={tier: of for tier, of in line.answers.items() if of.ours})


def _unlinked(of: Table) -> Table:
    """Without the names of cells, of which there are too many."""
    return of._replace(cells=())


def _named(name: str, of: Estimate | None) -> Row:
    return {} if of is None else {name: of.mean, f"{name}_low": of.low, f"{name}_high": of.high}


def _difference(mean: float | None, low: float | None, high: float | None) -> str:
    within = "" if low is None else f" ({format.interval(low, high)})"
    return format.signed(mean) + within
