from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ccwm.cells import Cell, cells
from ccwm.errors import UserError
from ccwm.report.blocks import Details, Words
from ccwm.report.claims import Paper
from ccwm.report.page import NAMED, SECTIONS, build_report, code, missing

from .results_tree import one, results, settings, study, sums, write_run, write_tree
from .search_files import write_study

TASK, VARIANTS = "walker_walk", ("dreamer", "ccwm")
PROVENANCE = {"runs.html", "runs.csv"}


def build(root: Path, out: Path, paper: Paper | None = None, **names) -> Path:
    return build_report(root, out, settings(**names), paper).parent


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Text(HTMLParser):
    """Every id, link and table row of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.in_cell = False
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = dict(attrs)
        self.ids += [of["id"]] if of.get("id") else []
        self.links += [of[key] for key in ("href", "src") if of.get(key)]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.in_cell:
            self.rows[-1][-1] += data


def test_every_file_is_there_and_nothing_else_is_left(built: Path) -> None:
    alone = ("learning", "strip", "error", "ssim", "horizons", "skill", "transfer", "losses", "values")
    measures = ("truncated-share", "precision", "recall", "event-precision", "event-recall")
    of_agents = [f"{name}-{TASK}-{of}" for name in ("retracing", "trajectory", "late", "truncated") for of in VARIANTS]
    named = [f"{name}-{TASK}" for name in (*alone, *(f"truncation-{measure}" for measure in measures))] + of_agents
    figures = {f"figures/{name}.{kind}" for name in ["differences", *named] for kind in ("svg", "pdf")}
    figures |= {"figures/overview.png", f"figures/strip-{TASK}.png", f"figures/rollout-{TASK}.mp4"}
    written = (
        "claims",
        "baseline",
        "learning",
        "evaluation",
        "prediction",
        "retracing",
        "embeddings",
        "truncation",
        "transfer",
    )
    assert files(built).keys() == {"index.html", "report.md"} | PROVENANCE | figures | {
        f"tables/{name}.csv" for name in written
    }
    assert [path.name for path in built.parent.iterdir()] == ["report"]


def test_pages_need_nothing_from_outside_and_their_links_lead_somewhere(built: Path) -> None:
    page, runs = Text(built / "index.html"), Text(built / "runs.html")
    for path in (built / "index.html", built / "runs.html"):
        assert not re.search(r"https?://|//[a-z]+\.|@import|/home/", path.read_text("utf-8"))
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert {section.id for section in SECTIONS} - {"tuning", "evidence"} <= inside <= {*page.ids}
    for seen in (page, runs):
        assert len(seen.ids) == len({*seen.ids})
    outside = {link for link in page.links if not link.startswith(("#", "data:"))}
    assert outside == {"runs.html"} | {f"runs.html#{cell}" for cell in cells(study()) if cell.stage in LINKED}
    assert {link.partition("#")[2] for link in outside} - {""} <= {*runs.ids}
    assert (built / "index.html").read_text("utf-8").count('src="data:video/mp4;base64,') == 1
    assert "A &lt;title&gt;" in (built / "index.html").read_text("utf-8")


LINKED = ("train", "evaluate", "rollout-viz", "transfer")


def test_page_and_text_show_the_files_numbers(tree: Path, built: Path) -> None:
    got = json.loads((tree / "results" / "evaluate" / TASK / "ccwm" / "0" / "metrics.json").read_text())
    line = ["ccwm", f"{got['return_mean']:.1f} ± {got['return_sd']:.2f}"]
    assert line in [row[:2] for row in Text(built / "index.html").rows]
    text = (built / "report.md").read_text("utf-8")
    assert f"| {' | '.join(line)} |" in text
    assert text.index("## The paper’s claims") < text.index("## Learning curves")
    run = json.loads((tree / "results" / "evaluate" / TASK / "ccwm" / "0" / "run.json").read_text())
    assert [f"evaluate@{TASK}-ccwm-0", run["run_id"]] in [row[:2] for row in Text(built / "runs.html").rows]


def test_the_report_is_a_function_of_the_results_whatever_the_runs_were(
    tree: Path, built: Path, tmp_path: Path, paper: Paper
) -> None:
    shutil.copytree(tree / "results", tmp_path / "results")
    changed = Cell("train", TASK, "ccwm", 0)
    write_run(tmp_path / changed.record, changed, run_id="other", commit="f00", dirty="true", seconds=1.0)
    bare = Cell("evaluate", TASK, "ccwm", 0)  # as in a clone, which has no records
    (tmp_path / bare.record).unlink()
    outs = [{"path": path, "md5": of} for path, of in sums(tmp_path / bare.results, bare).items()]
    (tmp_path / "dvc.lock").write_text(json.dumps({"stages": {str(bare): {"outs": outs}}}))
    out = tmp_path / "report"
    out.mkdir()
    (out / "stale.txt").write_text("of an older report")
    (tmp_path / ".report.tmp").mkdir()
    (tmp_path / ".report.tmp" / "killed.txt").write_text("of a report that was killed")
    build(tmp_path, out, paper)
    first, second = files(built), files(out)
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] != second[name]} == PROVENANCE


def test_what_is_missing_is_named(tree: Path, tmp_path: Path) -> None:
    nothing = missing(results(tmp_path, seeds=10), {"evaluate": ()})
    assert all(f"evaluate@{TASK}-{variant}-0" in nothing[0].text for variant in VARIANTS)
    assert one(nothing, Details).blocks[0].text.count("evaluate@") == 20 - NAMED
    (said,) = missing(results(tmp_path, variants=("ccwm",)), {"evaluate": ()})
    assert f"`dvc repro evaluate@{TASK}-ccwm-0`" in said.text
    (lost,) = missing(results(tree), {"rollout-viz": ("errors.csv", "nothing.csv")})
    assert lost == Words(lost.text, "missing")
    assert f"rollout-viz@{TASK}-ccwm-0/nothing.csv" in lost.text
    assert "errors.csv" not in lost.text
    assert missing(results(tree), {section.id: () for section in ()}) == []


def test_every_section_says_what_it_misses_and_nothing_at_all_is_a_page_too(tmp_path: Path) -> None:
    out = build(tmp_path, tmp_path / "report")
    page, text = (out / "index.html").read_text(), (out / "report.md").read_text()
    for section in SECTIONS:
        assert (f'id="{section.id}"' in page) == bool(section.needs)
    needs = sum(len(section.needs) for section in SECTIONS)
    assert page.count('<p class="missing">Missing') == text.count("> Missing") == needs
    assert "9 of 9 results" in page
    assert (out / "figures" / "overview.png").is_file()
    assert 'class="missing"' in (out / "runs.html").read_text()


def test_a_search_has_a_section_and_its_run_is_on_the_page_of_runs(tmp_path: Path) -> None:
    write_study(tmp_path)
    out = build(tmp_path, tmp_path / "report")
    assert 'id="tuning"' in (out / "index.html").read_text()
    assert "ab" * 16 not in (out / "index.html").read_text()
    assert "ab" * 16 in (out / "runs.html").read_text()


def test_backticks_are_code_and_the_rest_is_escaped() -> None:
    assert code("run `dvc repro a<b` & wait") == "run <code>dvc repro a&lt;b</code> &amp; wait"


@pytest.mark.slow
def test_two_tasks_and_seeds_are_shown(tmp_path: Path) -> None:
    names = {"tasks": (TASK, "gym:Pendulum-v1"), "seeds": 2}
    write_tree(tmp_path, study(**names))
    out = build(tmp_path, tmp_path / "report", **names)
    assert f"evaluate@{TASK}-ccwm-{{0,1}}" in (out / "report.md").read_text()
    assert (out / "figures" / "learning-gym-Pendulum-v1.svg").is_file()


def test_damage_is_named_in_its_place_counted_nowhere_and_ends_the_report(tmp_path: Path, paper: Paper) -> None:
    write_tree(tmp_path, study(seeds=2))
    broken = tmp_path / "results" / "train" / TASK / "ccwm" / "1" / "curve.csv"
    broken.write_text(broken.read_text()[:-30])
    (write_study(tmp_path) / "study.json").write_text("{")
    with pytest.raises(UserError, match=rf"2 damaged results: {broken}.*study\.json") as error:
        build(tmp_path, tmp_path / "report", paper, seeds=2)
    assert str(tmp_path / "report" / "index.html") in error.value.hint
    text = (tmp_path / "report" / "report.md").read_text("utf-8")
    learning = text[text.index("## Learning curves") : text.index("## Evaluation")]
    assert f"Damaged, and in no number here: `train@{TASK}-ccwm-1` ({broken}" in learning
    assert "study.json" in text[text.index("## Tuning") :]
    tables = tmp_path / "report" / "tables"
    assert "ccwm-0" in (tables / "learning.csv").read_text()
    for name in ("learning", "claims", "baseline"):
        assert f"train@{TASK}-ccwm-1" not in (tables / f"{name}.csv").read_text()
