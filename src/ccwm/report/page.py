"""The report as a whole: figures, tables and one self-contained page, published in one move."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from ccwm.files import published
from ccwm.report import (
    embeddings,
    figures,
    heatmap,
    ledger,
    ledger_words,
    retracing,
    strips,
    summaries,
    tables,
    transfers,
    truncation,
    words,
)
from ccwm.report.claims import Paper
from ccwm.report.curves import Curve, over_seeds, still_better, variant_curves, variant_frames
from ccwm.report.films import write_film
from ccwm.report.learning import learnings
from ccwm.report.results import STAGES, Results
from ccwm.report.tuning import tuning_section

COUNTERS = ("env_steps", "updates")  # the columns of losses.csv that are no loss


def build_report(
    results: Path,
    out: Path,
    *,
    tasks: list[str],
    variants: list[str],
    seeds: list[int],
    title: str,
    colours: dict[str, str],
    target_score: float = 0.5,
    paper: Paper | None = None,
) -> Path:
    """Turn the result files into out/index.html, report.md, figures and tables, and return the page's path.

    The first variant is the one that the others are compared with. What is missing is said in its place. The whole
    folder appears at once: until then the previous one stays as it was. ``paper`` brings the claims and the numbers of
    the paper; ``target_score`` is the score whose first reaching is timed.
    """
    study = Results(results, tasks, variants, seeds)
    with published(out) as folder:
        (folder / "figures").mkdir()
        (folder / "tables").mkdir()
        chosen = figures.variant_colours(variants, colours)
        _write(study, folder, title=title, colours=chosen, target_score=target_score, paper=paper)
    return out / "index.html"


def _write(
    study: Results, folder: Path, *, title: str, colours: dict[str, str], target_score: float, paper: Paper | None
) -> None:
    def save(figure: Figure, name: str) -> dict[str, Any]:
        return _save(figure, folder, name)

    context = {
        "title": title,
        "ledger": _ledger(study, folder, paper),
        "results": study,
        "colours": colours,
        "comparison": words.comparison(study),
        "outcomes": words.outcomes(study),
        "caveats": words.caveats(study),
        "missing": {stage: [cell.name for cell in study.missing(stage)] for stage in STAGES},
        "missing_files": {
            "learning": study.missing_files("train", ["curve.csv"]),
            "losses": study.missing_files("train", ["losses.csv"]),
            "prediction": study.missing_files("rollout-viz", ["errors.csv", "horizons.csv", "frames.safetensors"]),
            "retracing": study.missing_files("rollout-viz", retracing.FILES),
            "embeddings": study.missing_files("rollout-viz", embeddings.FILES),
            "truncation": study.missing_files("rollout-viz", truncation.FILES),
            "transfer": study.missing_files("transfer", ["returns.csv"]),
        },
        "learning": _learning(study, folder, colours, target_score=target_score, paper=paper),
        "evaluation": _evaluation(study, folder, paper),
        "prediction": _prediction(study, folder, colours),
        "retracing": retracing.retracing_section(study, save),
        "embeddings": embeddings.embeddings_section(study, folder, save),
        "truncation": truncation.truncation_section(study, folder, colours, save),
        "transfer": _transfer(study, folder, paper),
        "tuning": tuning_section(study.root, folder / "figures"),
        "losses": _losses(study, folder, colours),
        "cost": _cost(study, folder),
        "runs": _runs(study, folder),
    }
    _overview(study, folder, colours)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ccwm.report"),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for template, file in (("page.html.j2", "index.html"), ("report.md.j2", "report.md")):
        (folder / file).write_text(environment.get_template(template).render(context), "utf-8")


def _learning_curves(study: Results, task: str) -> dict[str, Curve]:
    frames = variant_frames(study, "train", task, "curve.csv", ["env_steps", "return_mean", "return_sd"])
    return variant_curves(frames, "env_steps", "return_mean", spread="return_sd")


def _ledger(study: Results, folder: Path, paper: Paper | None) -> dict[str, Any] | None:
    if paper is None:
        return None
    entries = ledger.ledger(study, paper)
    ledger_words.write_csv(folder / "tables" / "claims.csv", entries)
    lines = ledger_words.lines(entries)
    return {
        "paper": paper.title,
        "summary": ledger_words.summary(entries),
        "scale": ledger_words.scale_rule(paper.scale),
        "rules": ledger_words.RULES,
        "run": [line for line in lines if line.verdict != ledger.Verdict.NOT_RUN],
        "not_run": [line for line in lines if line.verdict == ledger.Verdict.NOT_RUN],
    }


def _learning(
    study: Results, folder: Path, colours: Mapping[str, str], *, target_score: float, paper: Paper | None
) -> list[dict[str, Any]]:
    shown, everything = [], []
    for task in study.tasks:
        rows = learnings(study, task, target_score=target_score)
        everything += rows
        if curves := _learning_curves(study, task):
            best = summaries.best_possible(study, task)
            quoted = paper.quoted_on(task, best) if paper is not None else {}
            figure = figures.learning_figure(task, curves, colours, random=study.random_level(task), quoted=quoted)
            runs = {variant: tables.sources(study.cells("train", task=task, variant=variant)) for variant in curves}
            table = tables.learning_table(task, rows)
            shown.append({"task": task, "runs": runs, "table": table, **_save(figure, folder, f"learning-{task}")})
    tables.write_csv(folder / "tables" / "learning.csv", everything)
    return shown


def _evaluation(study: Results, folder: Path, paper: Paper | None) -> list[tables.Table]:
    rows = {task: summaries.evaluations(study, task) for task in study.tasks}
    tables.write_csv(folder / "tables" / "evaluation.csv", [row for of in rows.values() for row in of])
    together = summaries.aggregates(study)
    tables.write_csv(folder / "tables" / "aggregate.csv", together)
    quoted = paper.quoted if paper is not None else ()
    each = [tables.evaluation_table(task, of, quoted=quoted) for task, of in rows.items() if of]
    return [*([tables.aggregate_table(together)] if together else []), *each]


def _prediction(study: Results, folder: Path, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    shown, everything = [], []
    for task in study.tasks:
        rows = summaries.predictions(study, task)
        everything += rows
        if not rows:
            continue
        episodes = strips.load_strips(study, task)
        shown.append(
            {
                "task": task,
                "table": tables.prediction_table(task, rows),
                "strip": _strip(episodes[0], folder, task) if episodes else None,
                "seed": episodes[0].seed if episodes else None,
                "figures": [*_step_curves(study, task, folder, colours), *_horizons(study, task, folder, colours)],
                "film": _film(episodes, folder, task),
            }
        )
    tables.write_csv(folder / "tables" / "prediction.csv", everything)
    return shown


def _strip(strip: strips.Strip, folder: Path, task: str) -> dict[str, Any]:
    """The paper's figure as SVG, PDF and PNG."""
    figure = strips.strip_figure(strip)
    saved = _save(figure, folder, f"strip-{task}")
    with mpl.rc_context(figures.STYLE):
        picture = folder / "figures" / f"{saved['file']}.png"
        figure.savefig(picture, dpi=200, facecolor="white", metadata={"Software": None})
    return saved


def _film(episodes: list[strips.Strip], folder: Path, task: str) -> str | None:
    """The paper's figure as MP4, and the same as base64 for the page."""
    if not episodes:
        return None
    path = folder / "figures" / f"rollout-{task}.mp4".replace(":", "-")
    write_film(path, episodes)
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _step_curves(study: Results, task: str, folder: Path, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """Pixel error and structural similarity against the predicted step, with those of the baselines."""
    frames = variant_frames(study, "rollout-viz", task, "errors.csv", ["step", "error", "baseline_error"])
    every = [frame for of in frames.values() for frame in of]
    measures = {
        "error": ("error per pixel (MSE)", {"last frame repeated": "baseline_error", "mean frame": "mean_frame_error"}),
        "ssim": ("structural similarity (SSIM)", {"last frame repeated": "baseline_ssim"}),
    }
    shown = []
    for column, (label, baselines) in measures.items():
        if not (curves := variant_curves(frames, "step", column)):
            continue
        known = {name: curve for name, of in baselines.items() if (curve := over_seeds(every, "step", of)) is not None}
        figure = figures.step_figure(
            task, curves, known, colours, label=label, floor=0.0 if column == "error" else None
        )
        shown.append({"label": label, **_save(figure, folder, f"{column}-{task}")})
    return shown


def _horizons(study: Results, task: str, folder: Path, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    """How the horizon is distributed over the episodes of all seeds."""
    frames = variant_frames(study, "rollout-viz", task, "horizons.csv", ["episode", "last_frame", "mean_frame"])
    longest = max([int(row.horizon) for row in summaries.predictions(study, task)], default=0)
    baselines = {"the last frame repeated": "last_frame", "the mean frame": "mean_frame"}
    shares = {
        name: {variant: still_better(of, column, longest) for variant, of in frames.items() if of}
        for name, column in baselines.items()
    }
    if not any(shares.values()):
        return []
    figure = figures.horizon_figure(task, shares, colours)
    return [{"label": "distribution of the horizon", **_save(figure, folder, f"horizons-{task}")}]


def _transfer(study: Results, folder: Path, paper: Paper | None) -> list[dict[str, Any]]:
    shown, everything = [], []
    for task in study.tasks:
        rows = transfers.transfers(study, task)
        everything += rows
        if not rows:
            continue
        printed = paper.transfer if paper is not None else None
        grids = {of: table for of in study.variants if (table := heatmap.grid(study, task, of)) is not None}
        figure = heatmap.heatmap_figure(task, grids, reference=study.reference) if grids else None
        shown.append(
            {
                "task": task,
                "table": transfers.transfer_table(task, rows, variants=study.variants, paper=printed),
                "runs": {of: tables.sources(study.cells("transfer", task=task, variant=of)) for of in study.variants},
                "check": transfers.reward_check(study, task),
                "heatmap": figure and _save(figure, folder, f"transfer-{task}"),
            }
        )
    tables.write_csv(folder / "tables" / "transfer.csv", everything)
    return shown


def _losses(study: Results, folder: Path, colours: Mapping[str, str]) -> dict[str, Any]:
    """Panels of every task: one for each term that any variant logged, in the order of the files."""
    shown: dict[str, Any] = {}
    for task in study.tasks:
        frames = variant_frames(study, "train", task, "losses.csv", list(COUNTERS))
        logged = dict.fromkeys(column for of in frames.values() for frame in of for column in frame.columns)
        terms = [column for column in logged if column not in COUNTERS]
        curves = {term: of for term in terms if (of := variant_curves(frames, "env_steps", term))}
        if not curves:
            continue
        _save(figures.losses_figure(task, curves, colours), folder, f"losses-{task}")
        shown[task] = {
            term: Markup(figures.inline(figures.to_svg(figures.loss_figure(term, of, colours)), f"loss-{task}-{term}"))
            for term, of in curves.items()
        }
    return shown


def _cost(study: Results, folder: Path) -> tables.Table | None:
    rows = summaries.costs(study)
    tables.write_csv(folder / "tables" / "cost.csv", rows)
    return tables.cost_table(rows) if rows else None


def _runs(study: Results, folder: Path) -> list[tables.Run]:
    runs = tables.provenance(study)
    pd.DataFrame(runs, columns=list(tables.Run._fields)).to_csv(
        folder / "tables" / "runs.csv", index=False, lineterminator="\n"
    )
    return runs


def _overview(study: Results, folder: Path, colours: Mapping[str, str]) -> None:
    learning = {
        task: (curves, study.random_level(task)) for task in study.tasks if (curves := _learning_curves(study, task))
    }
    found = (strip for task in study.tasks for strip in strips.load_strips(study, task))
    figure = strips.overview_figure(learning, next(found, None), colours)
    with mpl.rc_context(figures.STYLE):
        figure.savefig(folder / "figures" / "overview.png", dpi=160, facecolor="white", metadata={"Software": None})


def _save(figure: Figure, folder: Path, name: str) -> dict[str, Any]:
    """The figure's file name, and its SVG for the page; a task may hold a colon, which not every disk allows."""
    file = name.replace(":", "-")
    return {"file": file, "svg": Markup(figures.save(figure, folder / "figures", file))}
