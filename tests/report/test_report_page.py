from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from results_tree import write_tree
from states_files import state_figures

from ccwm.report import build_report
from ccwm.report.claims import load_claims
from ccwm.report.results import STAGES
from ccwm.report.words import number

TASK, VARIANTS = "walker_walk", ["dreamer", "ccwm"]
PAPER = load_claims(Path(__file__).parents[2] / "claims.yaml")


def build(results: Path, out: Path, *, seeds: list[int] | None = None) -> str:
    names = {"tasks": [TASK], "variants": VARIANTS, "seeds": seeds or [0], "colours": {}}
    return build_report(results, out, **names, title="A <title>", paper=PAPER).read_text("utf-8")


def metrics(tree: Path, stage: str, variant: str, seed: int = 0) -> dict[str, Any]:
    return json.loads((tree / stage / TASK / variant / str(seed) / "metrics.json").read_text())


@pytest.fixture(scope="module")
def page(built: Path) -> str:
    return (built / "index.html").read_text("utf-8")


class Text(HTMLParser):
    """Cells of the page's tables, and every id and link."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.in_cell = False
        self.feed(page)

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
    names = {str(path.relative_to(built)) for path in built.rglob("*") if path.is_file()}
    drawn = ("learning", "strip", "error", "ssim", "horizons", "transfer", "losses")
    named = (*(f"{name}-{TASK}" for name in drawn), *state_figures(TASK))
    figures = {f"figures/{name}.{kind}" for name in named for kind in ("svg", "pdf")}
    figures |= {"figures/overview.png", f"figures/strip-{TASK}.png", f"figures/rollout-{TASK}.mp4"}
    written = ("claims", "learning", "evaluation", "prediction", "embeddings", "truncation", "transfer", "cost", "runs")
    assert names == {"index.html", "report.md"} | figures | {f"tables/{name}.csv" for name in written}
    assert [path.name for path in built.parent.iterdir()] == ["report"]
    assert Image.open(built / "figures/overview.png").size[0] == 1536


def test_page_shows_the_files_numbers(tree: Path, page: str) -> None:
    rows = Text(page).rows
    got = metrics(tree, "evaluate", "ccwm")
    assert [
        "ccwm",
        f"{number(got['return_mean'])} ± {number(got['return_sd'])}",
        f"{number(got['return_low'])} to {number(got['return_high'])}",
        f"{number(got['return_iqm'])}",
    ] in [row[:4] for row in rows]
    assert ["random policy", f"{number(got['random_mean'])} ± {number(got['random_sd'])}"] in [row[:2] for row in rows]
    moved = metrics(tree, "transfer", "dreamer")["rows"]["R+M"]
    assert f"{number(moved['mean'])} ± {number(moved['sd'])}" in next(row for row in rows if row[0] == "R+M")
    assert ["ccwm", "11", "6.25 to 12", "9.5", "12", "8 to 12"] in [row[:6] for row in rows]
    assert ["D4PG, quoted", "968.3"] in [row[:2] for row in rows]
    run = json.loads((tree / "evaluate" / TASK / "ccwm" / "0" / "run.json").read_text())
    assert [f"evaluate@{TASK}-ccwm-0", run["run_id"]] in [row[:2] for row in rows]


def test_tables_hold_the_files_numbers_unrounded(tree: Path, built: Path) -> None:
    table = pd.read_csv(built / "tables/evaluation.csv").set_index("variant")
    for variant in VARIANTS:
        got = metrics(tree, "evaluate", variant)
        assert table.loc[variant, "mean"] == got["return_mean"]
        assert table.loc[variant, "low"] == got["return_low"]
        assert table.loc[variant, "cells"] == f"evaluate@{TASK}-{variant}-0"


def test_headline_says_outcome_budget_and_limits(tree: Path, page: str) -> None:
    returns = [
        pd.read_csv(tree / "evaluate" / TASK / variant / "0" / "returns.csv").query("policy == 'agent'")["return"]
        for variant in VARIANTS
    ]
    assert f"ccwm is ahead of dreamer by {number((returns[1] - returns[0]).mean())} (95% interval" in page
    assert "10 paired episodes" in page
    assert "20,000 environment steps (simulator frames) and 2,000 updates" in page
    assert "1 seed: no statement about seeds" in page


def test_the_ledger_opens_the_report_and_is_in_its_text_too(built: Path, page: str) -> None:
    assert page.index('id="claims"') < page.index('id="learning"')
    # walker walk with one seed: the efficiency and the horizon of ccwm against dreamer have run
    table = pd.read_csv(built / "tables/claims.csv")
    run = table[table["verdict"] != "not run"]
    assert {*run["id"]} >= {"efficient", "longer-walker"}
    assert {*run["verdict"]} == {"undecided at this scale"}
    assert "1 of at least 3 seeds and 20,000 of at least 500,000 environment steps" in page
    assert "ccwm − dreamer +3.00 (no interval; 9.50 and 6.50)" in page
    text = (built / "report.md").read_text("utf-8")
    assert text.index("## The paper's claims") < text.index("## Learning curves")
    assert text.count("| not run |") == len(table[table["verdict"] == "not run"])
    assert "(preset paper-losses)" in text


def test_the_reward_only_row_is_said_to_show_no_difference(built: Path, page: str) -> None:
    assert "Sanity check passed" in page
    assert "Sanity check passed" in (built / "report.md").read_text("utf-8")


def test_clean_code_is_not_marked_as_changed(page: str) -> None:
    assert "+ changes</td>" not in page


def test_page_needs_nothing_from_outside(page: str) -> None:
    seen = Text(page)
    assert not re.search(r"https?://|//[a-z]+\.|@import|/home/", page)
    assert all(link.startswith(("#", "data:")) for link in seen.links)
    assert {link[1:] for link in seen.links if link.startswith("#")} <= set(seen.ids)
    assert len(seen.ids) == len(set(seen.ids))
    assert "A &lt;title&gt;" in page
    assert page.count('src="data:video/mp4;base64,') == 1


def test_same_files_give_the_same_bytes_over_an_older_report(tree: Path, built: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    out.mkdir()
    (out / "stale.txt").write_text("of an older report")
    (tmp_path / ".report.tmp").mkdir()
    (tmp_path / ".report.tmp" / "killed.txt").write_text("of a report that was killed")
    build(tree, out)
    first, second = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (built, out)
    )
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.parametrize("stage", STAGES)
def test_missing_stage_is_said_in_its_place(tree: Path, tmp_path: Path, stage: str) -> None:
    results = tmp_path / "results"
    shutil.copytree(tree, results)
    shutil.rmtree(results / stage)
    page = build(results, tmp_path / "report")
    said = re.findall(r'<p class="missing">.*?</p>', page, re.DOTALL)
    assert len(said) == {"train": 2, "rollout-viz": 4}.get(stage, 1)  # some stages feed several sections
    assert all(f"<code>dvc repro {stage}" in text for text in said)
    assert (tmp_path / "report" / "report.md").read_text().count("**Missing:**") == 1


@pytest.mark.parametrize("file", ["curve.csv", "losses.csv", "errors.csv", "horizons.csv", "frames.safetensors"])
def test_missing_file_is_said_in_its_place(tree: Path, tmp_path: Path, file: str) -> None:
    results = tmp_path / "results"
    heavy = {"losses.csv"} - {file}
    shutil.copytree(tree, results, ignore=lambda _, names: heavy & {*names})
    stage = "train" if file in ("curve.csv", "losses.csv") else "rollout-viz"
    (results / stage / TASK / "ccwm" / "0" / file).unlink()
    page = build(results, tmp_path / "report")
    assert f"<code>{stage}@{TASK}-ccwm-0/{file}</code>" in page
    assert f"<code>{stage}@{TASK}-dreamer-0/{file}</code>" not in page


def test_nothing_at_all_is_a_page_too(tmp_path: Path) -> None:
    page = build(tmp_path / "results", tmp_path / "report")
    assert "9 of 9 results are missing" in page
    assert (tmp_path / "report/figures/overview.png").is_file()


def test_seeds_are_averaged_and_their_spread_is_over_seeds(tmp_path: Path) -> None:
    results = write_tree(tmp_path / "results", [TASK], VARIANTS, [0, 1])
    shutil.rmtree(results / "train")
    page = build(results, tmp_path / "report", seeds=[0, 1, 2])
    means = [metrics(results, "evaluate", "ccwm", seed)["return_mean"] for seed in (0, 1)]
    sd = abs(means[0] - means[1]) / 2**0.5
    row = next(row for row in Text(page).rows if row[0] == "ccwm")
    assert row[1] == f"{number(sum(means) / 2)} ± {number(sd)}"
    assert "2 paired seeds" in page
    assert f"evaluate@{TASK}-ccwm-2" in page  # missing, and said so


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "evaluate/walker_walk/ccwm/0/metrics.json",
            "{",
            r"metrics.json is not valid JSON.*dvc repro --force evaluate@",
        ),
        ("train/walker_walk/ccwm/0/curve.csv", "a,b\n1,2\n", r"curve.csv lacks the column 'env_steps'"),
        ("rollout-viz/walker_walk/ccwm/0/frames.safetensors", "no", r"frames.safetensors holds no truth"),
    ],
)
def test_broken_file_is_named_and_the_older_report_stays(
    tree: Path, tmp_path: Path, file: str, text: str, message: str
) -> None:
    results, out = tmp_path / "results", tmp_path / "report"
    shutil.copytree(tree, results)
    (results / file).write_text(text)
    out.mkdir()
    (out / "index.html").write_text("older")
    with pytest.raises(ValueError, match=message):
        build(results, out)
    assert (out / "index.html").read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"results", "report"}
