"""The claims ledger: numbers by hand, and the scale below which nothing is decided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ccwm.report.blocks import Details, Table
from ccwm.report.claims import Paper
from ccwm.report.ledger import Answer, answer_entry, build, load, ours_words, records
from ccwm.report.section import Report
from ccwm.report.sources import Source
from ccwm.report.verdict import Verdict
from ccwm.studies.embeddings import write_embeddings
from ccwm.training.history import History

from .results_tree import embeddings, source, write_metrics, write_returns, write_rows

AGREES, DISAGREES, UNDECIDED, NOT_RUN, NOT_ASKED = Verdict
TASK = "walker_walk"
TIERS = {
    "paper": {"title": "from pixels", "observation": "pixels", "seeds": 3, "budget": 0.5},
    "states": {"title": "ours", "observation": "state", "seeds": 3, "budget": 0.5, "env_steps": 100, "preset": "small"},
}


def claimed(**claim: Any) -> Paper:
    """A paper with one claim: on walker walk the curve of ccwm is higher than dreamer's."""
    given = {
        "id": "a-claim",
        "says": "It is better.",
        "where": "Figure 1",
        "printed": "no number",
        "tasks": [TASK],
        "of": "ccwm",
        "than": "dreamer",
        "measure": {"curve": "area"},
        "rule": {"kind": "greater"},
        "env_steps": 1000,
        "preset": "paper",
    } | claim
    of = {"inputs": "pixels", "env_steps": 10, "source": "a table", "best_possible": 1000.0}
    quoted = {"method": "D4PG", **of, "returns": {TASK: 50.0}}
    published = {"method": "SAC", "inputs": "state", "source": "a file", "best_possible": 1000.0}
    published |= {"steps": [100, 1000], "returns": {TASK: [10.0, 20.0]}}
    return Paper.model_validate_json(
        json.dumps(
            {
                "title": "A paper",
                "tiers": TIERS,
                "normal": [{"variant": "dreamer", "method": "DreamerV3", "margin": 0.25, "nearness": 0.1}],
                "published": [published],
                "quoted": [quoted],
                "transfer": {"task": "cheetah_run", "where": "a table", "rows": {}},
                "claims": [{name: value for name, value in given.items() if value is not None}],
            }
        )
    )


def curves(root: Path, variant: str, heights: list[float], *, task: str = TASK, env_steps: int = 1000) -> None:
    """A level curve for each seed."""
    for seed, height in enumerate(heights):
        curve(root, variant, seed, {0: height, env_steps: height}, task=task)


def curve(root: Path, variant: str, seed: int, points: dict[int, float], *, task: str = TASK) -> None:
    history = History()
    for steps, value in points.items():
        history.add_evaluation(steps, steps // 10, [value], [], {})
    write_metrics(root / "results" / "train" / task / variant / str(seed), history, env_steps=max(points))


def folder(root: Path, stage: str, seed: int) -> Path:
    path = root / "results" / stage / TASK / "ccwm" / str(seed)
    path.mkdir(parents=True)
    return path


def found(root: Path, *tasks: str, **about: Any) -> Source:
    return source(root, observation="pixels", tasks=tasks or (TASK,), seeds=3, **about)


def judged(at: Source, paper: Paper) -> list[Answer]:
    """What is said at the paper's tier."""
    return [line.answers["paper"] for line in load([at], paper)]


def test_three_seeds_by_hand(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0])
    curves(tmp_path, "ccwm", [14.0, 25.0, 36.0])
    (line,) = judged(found(tmp_path), claimed())
    (of,) = line.ours
    # differences 4, 5, 6: mean 5, sd 1, 5 ± 4.302653 / √3
    assert (of["of"], of["other"], of["estimate"]) == (25.0, 20.0, 5.0)
    assert (of["low"], of["high"]) == pytest.approx((5 - 2.484138, 5 + 2.484138), abs=1e-5)
    assert (line.verdict, of["seeds"], of["env_steps"]) == (AGREES, 3, 1000)
    assert ours_words(line.asked, of) == "ccwm − dreamer +5.00 (95% 2.52 to 7.48; 25.00 and 20.00)"
    (record, _) = records(load([found(tmp_path)], claimed()))
    kept = {name: record[name] for name in ("verdict", "estimate", "of", "other", "seeds")}
    assert kept == {"verdict": "agrees", "estimate": 5.0, "of": 25.0, "other": 20.0, "seeds": 3}
    assert {str(cell) for cell in record["cells"]} == {
        f"train@{TASK}-{variant}-{seed}" for variant in ("ccwm", "dreamer") for seed in range(3)
    }


def test_a_higher_confidence_can_leave_it_undecided(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0])
    curves(tmp_path, "ccwm", [14.0, 24.0, 36.0])  # 4, 4, 6: sd 1.1547, 4.67 ± 2.868 at 95 %, ± 9.4 at 99.5 %
    assert judged(found(tmp_path), claimed())[0].verdict is AGREES
    assert judged(found(tmp_path), claimed(confidence=0.995))[0].verdict is UNDECIDED


@pytest.mark.parametrize(
    ("seeds", "env_steps", "reason"),
    [
        (1, 1000, "1 of at least 3 seeds"),
        (2, 1000, "2 of at least 3 seeds"),
        (3, 499, "499 of at least 500 environment steps"),
        (1, 499, "1 of at least 3 seeds and 499 of at least 500 environment steps"),
    ],
)
def test_below_the_scale_nothing_is_decided_but_the_numbers_stand(
    tmp_path: Path, seeds: int, env_steps: int, reason: str
) -> None:
    curves(tmp_path, "dreamer", [10.0] * seeds, env_steps=env_steps)
    curves(tmp_path, "ccwm", [90.0 + i for i in range(seeds)], env_steps=env_steps)
    (line,) = judged(found(tmp_path), claimed())
    assert (line.verdict, line.reason) == (UNDECIDED, reason)
    shown = answer_entry(line, line.asked)
    assert shown.notes[0].startswith("ccwm − dreamer +8")
    assert len(shown.cells) == 2 * seeds


def test_half_of_the_papers_steps_is_enough(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0], env_steps=500)
    curves(tmp_path, "ccwm", [4.0, 13.0, 22.0], env_steps=500)  # −6, −7, −8
    assert judged(found(tmp_path), claimed())[0].verdict is DISAGREES


def test_what_has_not_run_says_what_it_needs(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [1.0, 2.0, 3.0])
    (line,) = judged(found(tmp_path), claimed())
    assert (line.verdict, line.ours) == (NOT_RUN, ())
    assert line.reason == "needs ccwm and dreamer on walker_walk (preset paper)"
    curve(tmp_path, "dreamer", 5, {0: 1.0, 1000: 1.0})  # no seed of the study
    assert judged(found(tmp_path), claimed())[0].verdict is NOT_RUN


def test_results_of_another_study_are_left_alone(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        curves(tmp_path, variant, [1.0, 2.0, 3.0])
    others = found(tmp_path, "finger_spin"), found(tmp_path, variants=("ccwm",)), found(tmp_path, variants=("dreamer",))
    assert {judged(other, claimed())[0].verdict for other in others} == {NOT_RUN}


def test_a_claim_on_two_tasks_is_two_lines_and_a_tally_is_one(tmp_path: Path) -> None:
    for task, gain in ((TASK, 5.0), ("walker_run", -5.0)):
        curves(tmp_path, "dreamer", [10.0, 20.0, 30.0], task=task)
        curves(tmp_path, "ccwm", [10 + gain, 20.5 + gain, 31 + gain], task=task)
    both = [TASK, "walker_run"]
    assert [line.verdict for line in judged(found(tmp_path, *both), claimed(tasks=both))] == [AGREES, DISAGREES]
    rule = {"kind": "tally", "ahead": 1, "behind": 1}
    (line,) = judged(found(tmp_path, *both), claimed(tasks=both, rule=rule))
    assert (line.verdict, line.reason) == (AGREES, "ahead on 1, level on 0, behind on 1 of 2")
    assert [of["task"] for of in line.ours] == both
    (partly,) = judged(found(tmp_path), claimed(tasks=[TASK, "finger_spin"], rule=rule))
    assert (partly.verdict, partly.reason) == (NOT_RUN, "needs ccwm and dreamer on finger_spin (preset paper)")


def test_the_end_of_the_curve_is_taken_where_the_claim_says(tmp_path: Path) -> None:
    for seed in range(3):
        curve(tmp_path, "ccwm", seed, {800: 0.0, 900: 800.0, 1000: 840.0 + seed, 2000: 100.0})
    rule = {"kind": "at_least", "value": 900.0, "margin": 0.1}
    (line,) = judged(found(tmp_path), claimed(than=None, measure={"curve": "end"}, rule=rule))
    assert line.ours[0]["of"] == 820.5  # of 900 and 1000: 820, 820.5 and 821
    assert line.verdict is AGREES  # 820.5 ± 1.24 is above 810
    assert ours_words(line.asked, line.ours[0]) == "ccwm 820.5 (95% 819.3 to 821.7)"


def test_a_number_of_another_stage_and_a_quoted_one(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [0.0, 0.0, 0.0])
    for seed in range(3):
        write_rows(folder(tmp_path, "transfer", seed), {"unchanged": [1.0], "R+M": [40.0 + seed]})
    measure = {"stage": "transfer", "key": "rows/R+M/mean"}
    quoted = claimed(than=None, quoted="D4PG", measure=measure, rule={"kind": "tally", "ahead": 0, "behind": 0})
    (line,) = judged(found(tmp_path), quoted)
    assert line.ours[0]["estimate"] == -9.0  # 41 − 50
    assert line.verdict is DISAGREES
    assert str(line.ours[0]["cells"][0]) == "transfer@walker_walk-ccwm-0"
    write_returns(folder(tmp_path, "evaluate", 0), [40.0], best=200.0)
    assert judged(found(tmp_path), quoted)[0].verdict is NOT_RUN  # returns of shorter episodes
    below = {"kind": "below", "value": 1.0}
    absent = claimed(measure={"stage": "transfer", "key": "rows/R/mean"}, than=None, rule=below)
    assert judged(found(tmp_path), absent)[0].verdict is NOT_RUN


@pytest.mark.parametrize("damaged", ["train/walker_walk/ccwm/1/curve.csv", "transfer/walker_walk/ccwm/1/returns.csv"])
def test_no_number_of_a_damaged_cell_is_in_a_verdict(tmp_path: Path, damaged: str) -> None:
    curves(tmp_path, "ccwm", [0.0, 0.0, 0.0])
    for seed in range(3):
        write_rows(folder(tmp_path, "transfer", seed), {"unchanged": [1.0], "R+M": [40.0 + seed]})
    asked = claimed(
        than=None, measure={"stage": "transfer", "key": "rows/R+M/mean"}, rule={"kind": "at_least", "value": 1.0}
    )
    assert judged(found(tmp_path), asked)[0].verdict is AGREES
    path = tmp_path / "results" / damaged
    path.write_text(path.read_text()[:-2])
    (line,) = judged(found(tmp_path), asked)
    assert (line.verdict, line.ours[0]["seeds"]) == (UNDECIDED, 2)
    assert [cell.seed for cell in line.ours[0]["cells"]] == [0, 2]


def test_a_number_of_a_table_less_another(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [0.0, 0.0, 0.0])
    for seed, overlap in enumerate([0.6, 0.7, 0.8]):
        of = embeddings(retraces=True)
        numbers = [row._replace(overlap=overlap if row.map == "trajectory" else None) for row in of.numbers]
        write_embeddings(folder(tmp_path, "rollout-viz", seed), of._replace(numbers=numbers), variant="ccwm")
    measure = {"stage": "rollout-viz", "table": "embeddings.csv", "row": "trajectory", "key": "overlap"}
    measure["minus"] = "overlap_not_retraced"  # 0.5
    rule = {"kind": "at_least", "value": 0.0}
    (line,) = judged(found(tmp_path), claimed(than=None, measure=measure, rule=rule))
    assert line.ours[0]["of"] == pytest.approx(0.2)  # 0.1, 0.2 and 0.3
    assert line.verdict is UNDECIDED  # 0.2 ± 0.248 holds 0
    for absent in ("late", "nowhere"):
        other = claimed(than=None, measure={**measure, "row": absent}, rule=rule)
        assert judged(found(tmp_path), other)[0].verdict is NOT_RUN


def test_what_has_run_comes_first_and_the_rest_unfolds(report: Report) -> None:
    blocks = build(report)
    (run,) = [block for block in blocks if isinstance(block, Table)]
    waiting = next(block for block in blocks if isinstance(block, Details))
    table = pd.read_csv(report.folder / "tables" / "claims.csv")
    ran = table[~table["verdict"].isin([NOT_RUN, NOT_ASKED])]
    assert {*ran["id"]} == {"efficient", "longer-walker", "ordered-by-value"}
    assert {*ran["tier"]} == {"states"}
    assert len(run.rows) == 3
    assert len(run.rows) + len(waiting.blocks[0].rows) == (table["tier"] == "paper").sum() == 43


def test_every_shipped_claim_can_be_judged(tmp_path: Path, paper: Paper, make_report: Callable[..., Report]) -> None:
    lines = load([found(tmp_path)], paper)
    assert {line.answers["paper"].verdict for line in lines} == {NOT_RUN}
    put = Counter(line.answers["states"].verdict for line in lines)
    assert put == {NOT_RUN: 41, NOT_ASKED: 2}
    assert build(make_report(tmp_path, with_paper=False)) == []


def states(root: Path, name: str = "a-study", **about: Any) -> Source:
    return source(root, name=name, seeds=3, **about)


def test_a_tier_is_judged_by_its_own_studies_alone(tmp_path: Path) -> None:
    for variant, heights in (("dreamer", [10.0, 20.0, 30.0]), ("ccwm", [4.0, 13.0, 22.0])):
        curves(tmp_path, variant, heights, env_steps=60)
    (line,) = load([states(tmp_path)], claimed())
    ours, theirs = line.answers["states"], line.answers["paper"]
    assert (ours.verdict, ours.study, ours.asked.env_steps) == (DISAGREES, "a-study", 100)
    assert (theirs.verdict, theirs.ours, theirs.study) == (NOT_RUN, (), "")
    assert "3 seeds, 60 steps, a-study" in answer_entry(ours, ours.asked).notes[-1]
    assert answer_entry(ours, ours.asked).cells == ()  # they would lead to this study's runs
    small = states(tmp_path / "small")
    for variant in ("dreamer", "ccwm"):
        curves(tmp_path / "small", variant, [1.0, 2.0, 3.0], env_steps=49)
    assert load([small], claimed())[0].answers["states"].reason == "49 of at least 50 environment steps"


def test_the_largest_study_answers_whatever_it_says(tmp_path: Path) -> None:
    sizes = {"longest": (100, 3, -1.0), "short": (60, 3, 1.0), "few": (100, 2, 1.0)}
    for name, (env_steps, seeds, gain) in sizes.items():
        curves(tmp_path / name, "dreamer", [10.0, 20.0, 30.0][:seeds], env_steps=env_steps)
        curves(tmp_path / name, "ccwm", [10.0 + gain, 20.1 + gain, 30.2 + gain][:seeds], env_steps=env_steps)
    studies = {name: states(tmp_path / name, name) for name in sizes}

    def answering(*names: str) -> str:
        return load([studies[name] for name in names], claimed())[0].answers["states"].study

    assert answering("short", "longest", "few") == "longest"
    assert answering("few", "short") == "short"  # of two that are long enough, that with enough seeds
    assert answering("few") == "few"


def test_a_claim_is_put_to_states_as_it_says(tmp_path: Path) -> None:
    for variant, heights in (("dreamer", [10.0, 20.0, 30.0]), ("ccwm", [13.0, 14.0, 15.0])):
        curves(tmp_path, variant, heights, env_steps=100)
    (line,) = load([states(tmp_path)], claimed(states={"why": "It is about convergence."}))
    assert line.answers["states"][3:5] == (NOT_ASKED, "It is about convergence.")
    against = {"quoted": "SAC", "rule": {"kind": "greater"}, "says": "Better than SAC."}
    fixed = {"than": None, "rule": {"kind": "at_least", "value": 900.0}, "measure": {"curve": "end"}}
    (line,) = load([states(tmp_path)], claimed(**fixed, states=against))
    answer = line.answers["states"]
    assert (answer.asked.says, answer.ours[0]["estimate"], answer.verdict) == (
        "Better than SAC.",
        4.0,
        AGREES,
    )  # 14 − 10
    whole = claimed(tasks=[TASK, "walker_run"], rule={"kind": "tally", "ahead": 2, "behind": 0})
    assert load([states(tmp_path)], whole)[0].answers["states"].verdict is NOT_RUN
    part = {"tasks": [TASK], "rule": {"kind": "tally", "ahead": 0, "behind": 1}}
    fewer = claimed(tasks=[TASK, "walker_run"], rule={"kind": "tally", "ahead": 2, "behind": 0}, states=part)
    assert load([states(tmp_path)], fewer)[0].answers["states"].verdict is AGREES


def test_other_units_of_change_are_another_question(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        curves(tmp_path, variant, [1.0, 2.0, 3.0], env_steps=100)
    said = [
        load([states(tmp_path, units=units)], claimed(units="absolute"))[0].answers["states"].verdict
        for units in ("factor", "absolute")
    ]
    assert said == [NOT_RUN, UNDECIDED]


def test_curves_are_compared_up_to_the_end_of_the_shortest(tmp_path: Path) -> None:
    for seed in range(3):
        curve(tmp_path, "dreamer", seed, {0: 0.0, 500: 10.0 + seed, 1000: 990.0})
        curve(tmp_path, "ccwm", seed, {0: 0.0, 500: 20.0 + seed})
    (line,) = judged(found(tmp_path), claimed())
    assert (line.ours[0]["other"], line.ours[0]["of"]) == (5.5, 10.5)  # dreamer's rise after 500 is not counted
