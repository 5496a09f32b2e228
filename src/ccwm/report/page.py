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
from ccwm.report import figures, strips, summaries, tables, words
from ccwm.report.curves import Curve, over_seeds, variant_curves, variant_frames
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
) -> Path:
    """Turn the result files into out/index.html, report.md, figures and tables, and return the page's path.

    The first variant is the one that the others are compared with. What is missing is said in its place. The whole
    folder appears at once: until then the previous one stays as it was.
    """
    study = Results(results, tasks, variants, seeds)
    with published(out) as folder:
        (folder / "figures").mkdir()
        (folder / "tables").mkdir()
        _write(study, folder, title=title, colours=figures.variant_colours(variants, colours))
    return out / "index.html"


def _write(study: Results, folder: Path, *, title: str, colours: dict[str, str]) -> None:
    context = {
        "title": title,
        "results": study,
        "colours": colours,
        "comparison": words.comparison(study),
        "outcomes": words.outcomes(study),
        "caveats": words.caveats(study),
        "missing": {stage: [cell.name for cell in study.missing(stage)] for stage in STAGES},
        "missing_files": {
            "learning": study.missing_files("train", ["curve.csv"]),
            "losses": study.missing_files("train", ["losses.csv"]),
            "prediction": study.missing_files("rollout-viz", ["errors.csv", "frames.safetensors", "rollout.mp4"]),
        },
        "learning": _learning(study, folder, colours),
        "evaluation": _evaluation(study, folder),
        "prediction": _prediction(study, folder, colours),
        "transfer": _transfer(study, folder),
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


def _learning(study: Results, folder: Path, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    shown = []
    for task in study.tasks:
        if curves := _learning_curves(study, task):
            figure = figures.learning_figure(task, curves, colours, random=study.random_level(task))
            runs = {variant: tables.sources(study.cells("train", task=task, variant=variant)) for variant in curves}
            shown.append({"task": task, "runs": runs, **_save(figure, folder, f"learning-{task}")})
    return shown


def _evaluation(study: Results, folder: Path) -> list[tables.Table]:
    rows = {task: summaries.evaluations(study, task) for task in study.tasks}
    tables.write_csv(folder / "tables" / "evaluation.csv", [row for of in rows.values() for row in of])
    return [tables.evaluation_table(task, of) for task, of in rows.items() if of]


def _prediction(study: Results, folder: Path, colours: Mapping[str, str]) -> list[dict[str, Any]]:
    shown, everything = [], []
    for task in study.tasks:
        rows = summaries.predictions(study, task)
        everything += rows
        if not rows:
            continue
        strip = strips.load_strip(study, task)
        shown.append(
            {
                "task": task,
                "table": tables.prediction_table(task, rows),
                "strip": strip and _save(strips.strip_figure(strip), folder, f"strip-{task}"),
                "seed": strip and strip.seed,
                "errors": _error_curves(study, task, folder, colours),
                "videos": _videos(study, task),
            }
        )
    tables.write_csv(folder / "tables" / "prediction.csv", everything)
    return shown


def _error_curves(study: Results, task: str, folder: Path, colours: Mapping[str, str]) -> Any:
    frames = variant_frames(study, "rollout-viz", task, "errors.csv", ["step", "error", "baseline_error"])
    if not (curves := variant_curves(frames, "step", "error")):
        return None
    baseline = over_seeds([frame for of in frames.values() for frame in of], "step", "baseline_error")
    return _save(figures.error_figure(task, curves, baseline, colours), folder, f"errors-{task}")


def _videos(study: Results, task: str) -> dict[str, str]:
    """Every variant's first video, as base64."""
    videos: dict[str, str] = {}
    for cell in study.cells("rollout-viz", task=task):
        path = cell.folder / "rollout.mp4"
        if cell.variant is not None and cell.variant not in videos and path.is_file():
            videos[cell.variant] = base64.b64encode(path.read_bytes()).decode("ascii")
    return videos


def _transfer(study: Results, folder: Path) -> list[tables.Table]:
    rows = {task: summaries.transfers(study, task) for task in study.tasks}
    tables.write_csv(folder / "tables" / "transfer.csv", [row for of in rows.values() for row in of])
    return [tables.transfer_table(task, of, variants=study.variants) for task, of in rows.items() if of]


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
    found = (strip for task in study.tasks if (strip := strips.load_strip(study, task)) is not None)
    figure = strips.overview_figure(learning, next(found, None), colours)
    with mpl.rc_context(figures.STYLE):
        figure.savefig(folder / "figures" / "overview.png", dpi=160, facecolor="white", metadata={"Software": None})


def _save(figure: Figure, folder: Path, name: str) -> dict[str, Any]:
    """The figure's file name, and its SVG for the page; a task may hold a colon, which not every disk allows."""
    file = name.replace(":", "-")
    return {"file": file, "svg": Markup(figures.save(figure, folder / "figures", file))}
