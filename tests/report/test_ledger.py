"""Verdicts by hand: every kind of rule, and the scale below which nothing is decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ccwm.report.claims import Paper, Rule, load_claims
from ccwm.report.ledger import Verdict, ledger, tally, weigh
from ccwm.report.ledger_words import lines, ours_words, summary, write_csv
from ccwm.report.results import Results

AGREES, DISAGREES, UNDECIDED, NOT_RUN = Verdict
TASK = "walker_walk"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 2.0, AGREES), (0.0, 2.0, UNDECIDED), (-1.0, 1.0, UNDECIDED), (-2.0, -0.1, DISAGREES)],
)
def test_greater(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="greater"), low, high, other=50.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [  # a tenth of the other's −200 is 20
        (-20.0, 20.0, AGREES),
        (-5.0, 21.0, UNDECIDED),
        (-21.0, 5.0, UNDECIDED),
        (20.5, 40.0, DISAGREES),
        (-40.0, -20.5, DISAGREES),
    ],
)
def test_comparable(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="comparable", margin=0.1), low, high, other=-200.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-20.0, 500.0, AGREES), (30.0, 90.0, AGREES), (-21.0, 90.0, UNDECIDED), (-90.0, -20.5, DISAGREES)],
)
def test_no_worse(low: float, high: float, verdict: Verdict) -> None:
    assert weigh(Rule(kind="no_worse", margin=0.1), low, high, other=200.0)[0] is verdict


@pytest.mark.parametrize(
    ("low", "high", "at_least", "below"),
    [  # a tenth less than 900 is 810
        (810.0, 950.0, AGREES, DISAGREES),
        (800.0, 820.0, UNDECIDED, UNDECIDED),
        (700.0, 809.0, DISAGREES, AGREES),
    ],
)
def test_a_value_against_the_papers(low: float, high: float, at_least: Verdict, below: Verdict) -> None:
    assert weigh(Rule(kind="at_least", value=900.0, margin=0.1), low, high, other=900.0)[0] is at_least
    assert weigh(Rule(kind="below", value=900.0, margin=0.1), low, high, other=900.0)[0] is below


@pytest.mark.parametrize(
    ("intervals", "verdict", "reason"),
    [
        ("+++~-", AGREES, "ahead on 3, level on 1, behind on 1 of 5"),
        ("++~~-", UNDECIDED, "ahead on 2, level on 2, behind on 1 of 5"),  # one of the level ones may be ahead
        ("+++--", DISAGREES, "ahead on 3, level on 0, behind on 2 of 5"),
        ("+~---", DISAGREES, "ahead on 1, level on 1, behind on 3 of 5"),
    ],
)
def test_tally(intervals: str, verdict: Verdict, reason: str) -> None:
    ends = {"+": (1.0, 2.0), "~": (-1.0, 1.0), "-": (-2.0, -1.0)}
    assert tally(Rule(kind="tally", ahead=3, behind=1), [ends[sign] for sign in intervals]) == (verdict, reason)


def paper(**claim: Any) -> Paper:
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
    source = {"inputs": "pixels", "env_steps": 10, "source": "a table", "best_possible": 1000.0}
    quoted = {"method": "D4PG", **source, "returns": {TASK: 50.0}}
    return Paper.model_validate_json(
        json.dumps(
            {
                "title": "A paper",
                "scale": {"seeds": 3, "budget": 0.5},
                "quoted": [quoted],
                "transfer": {"task": "cheetah_run", "where": "a table", "rows": {}},
                "claims": [{name: value for name, value in given.items() if value is not None}],
            }
        )
    )


def curves(root: Path, variant: str, heights: list[float], *, task: str = TASK, env_steps: int = 1000) -> None:
    """A level curve for each seed."""
    for seed, height in enumerate(heights):
        folder = root / "train" / task / variant / str(seed)
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps({"env_steps": env_steps}))
        pd.DataFrame({"env_steps": [0, env_steps], "return_mean": height}).to_csv(folder / "curve.csv", index=False)


def results(root: Path, *, tasks: tuple[str, ...] = (TASK,)) -> Results:
    return Results(root, [*tasks], ["dreamer", "ccwm"], [0, 1, 2])


def test_three_seeds_by_hand(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0])
    curves(tmp_path, "ccwm", [14.0, 25.0, 36.0])
    (entry,) = ledger(results(tmp_path), paper())
    (of,) = entry.ours
    # differences 4, 5, 6: mean 5, sd 1, 5 ± 4.302653 / √3
    assert (of.means, of.found.mean) == ({"ccwm": 25.0, "dreamer": 20.0}, 5.0)
    assert (of.found.low, of.found.high) == pytest.approx((5 - 2.484138, 5 + 2.484138), abs=1e-5)
    assert (entry.verdict, entry.reason) == (AGREES, "the interval is above 0")
    assert (entry.seeds, entry.env_steps, len(entry.cells)) == (3, 1000, 6)
    assert ours_words(entry.claim, of, named=False) == ("ccwm − dreamer +5.00 (95% 2.52 to 7.48; 25.00 and 20.00)")
    write_csv(tmp_path / "claims.csv", [entry])
    row = pd.read_csv(tmp_path / "claims.csv").iloc[0]
    assert (row["verdict"], row["estimate"], row["of"], row["other"], row["seeds"]) == ("agrees", 5.0, 25.0, 20.0, 3)
    assert "train@walker_walk-ccwm-0" in row["cells"]


def test_a_higher_confidence_can_leave_it_undecided(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0])
    curves(tmp_path, "ccwm", [12.0, 25.0, 38.0])  # 2, 5, 8: 5 ± 3 · 4.302653 / √3 holds 0; so does 98 %
    assert ledger(results(tmp_path), paper())[0].verdict is UNDECIDED
    curves(tmp_path / "b", "dreamer", [10.0, 20.0, 30.0])
    curves(tmp_path / "b", "ccwm", [14.0, 24.0, 36.0])  # 4, 4, 6: sd 1.1547, 4.67 ± 2.868 at 95 %, ± 4.643 at 98 %
    close = results(tmp_path / "b")
    assert ledger(close, paper())[0].verdict is AGREES
    assert ledger(close, paper(confidence=0.995))[0].verdict is UNDECIDED


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
    (entry,) = ledger(results(tmp_path), paper())
    assert (entry.verdict, entry.reason) == (UNDECIDED, reason)
    (line,) = lines([entry])
    assert line.ours[0].startswith("ccwm − dreamer +8")
    assert line.scale == f"{seeds} seed{'s' if seeds > 1 else ''}, {env_steps:,} steps (the paper 1,000)"
    assert [(variant, len(runs.links)) for variant, runs in line.runs.items()] == [("ccwm", seeds), ("dreamer", seeds)]


def test_half_of_the_papers_steps_is_enough(tmp_path: Path) -> None:
    curves(tmp_path, "dreamer", [10.0, 20.0, 30.0], env_steps=500)
    curves(tmp_path, "ccwm", [4.0, 13.0, 22.0], env_steps=500)  # −6, −7, −8
    assert ledger(results(tmp_path), paper())[0].verdict is DISAGREES


def test_what_has_not_run_says_what_it_needs(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [1.0, 2.0, 3.0])
    (entry,) = ledger(results(tmp_path), paper())
    assert (entry.verdict, entry.ours) == (NOT_RUN, ())
    assert entry.reason == "needs ccwm and dreamer on walker_walk (preset paper)"
    assert summary([entry]).startswith("Of the paper’s 1 claim none has been run")


def test_seeds_that_do_not_meet_cannot_be_compared(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [1.0])
    curves(tmp_path, "dreamer", [1.0, 2.0])
    (tmp_path / "train" / TASK / "dreamer" / "0" / "metrics.json").unlink()
    assert ledger(results(tmp_path), paper())[0].verdict is NOT_RUN


def test_results_of_another_study_are_left_alone(tmp_path: Path) -> None:
    for variant in ("dreamer", "ccwm"):
        curves(tmp_path, variant, [1.0, 2.0, 3.0])
    for study in (Results(tmp_path, [TASK], ["ccwm"], [0]), results(tmp_path, tasks=("finger_spin",))):
        assert ledger(study, paper())[0].verdict is NOT_RUN


def test_a_claim_on_two_tasks_is_two_lines_and_a_tally_is_one(tmp_path: Path) -> None:
    for task, gain in ((TASK, 5.0), ("walker_run", -5.0)):
        curves(tmp_path, "dreamer", [10.0, 20.0, 30.0], task=task)
        curves(tmp_path, "ccwm", [10 + gain, 20.5 + gain, 31 + gain], task=task)
    both = [TASK, "walker_run"]
    study = results(tmp_path, tasks=(TASK, "walker_run"))
    two = ledger(study, paper(tasks=both))
    assert [entry.verdict for entry in two] == [AGREES, DISAGREES]
    assert summary(two) == "Of the paper’s 2 claims: 1 agrees, 1 disagrees."
    assert summary([*two, two[0]]) == "Of the paper’s 3 claims: 2 agree, 1 disagrees."
    (entry,) = ledger(study, paper(tasks=both, rule={"kind": "tally", "ahead": 1, "behind": 1}))
    assert (entry.verdict, entry.reason) == (AGREES, "ahead on 1, level on 0, behind on 1 of 2")
    assert [of.task for of in entry.ours] == both
    partly = ledger(
        results(tmp_path), paper(tasks=[TASK, "finger_spin"], rule={"kind": "tally", "ahead": 1, "behind": 1})
    )
    assert (partly[0].verdict, partly[0].reason) == (
        NOT_RUN,
        "needs ccwm and dreamer on finger_spin (preset paper)",
    )


def test_the_end_of_the_curve_is_taken_where_the_claim_says(tmp_path: Path) -> None:
    for seed in range(3):
        folder = tmp_path / "train" / TASK / "ccwm" / str(seed)
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps({"env_steps": 2000}))
        curve = {"env_steps": [800, 900, 1000, 2000], "return_mean": [0.0, 800.0, 840.0 + seed, 100.0]}
        pd.DataFrame(curve).to_csv(folder / "curve.csv", index=False)
    rule = {"kind": "at_least", "value": 900.0, "margin": 0.1}
    (entry,) = ledger(results(tmp_path), paper(than=None, measure={"curve": "end"}, rule=rule))
    assert entry.ours[0].means == {"ccwm": 820.5}  # of 900 and 1000: 820, 820.5 and 821
    assert entry.verdict is AGREES  # 820.5 ± 1.24 is above 810
    assert lines([entry])[0].ours == ["ccwm 820.5 (95% 819.3 to 821.7)"]


def test_a_number_of_another_stage_and_a_quoted_one(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [0.0, 0.0, 0.0])
    for seed in range(3):
        folder = tmp_path / "transfer" / TASK / "ccwm" / str(seed)
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps({"rows": {"R+M": {"mean": 40.0 + seed}}}))
    measure = {"stage": "transfer", "key": "rows/R+M/mean"}
    tallied = {"kind": "tally", "ahead": 0, "behind": 0}
    (entry,) = ledger(results(tmp_path), paper(than=None, quoted="D4PG", measure=measure, rule=tallied))
    assert entry.ours[0].found.mean == -9.0  # 41 − 50
    assert entry.verdict is DISAGREES
    assert entry.cells[0].name == "transfer@walker_walk-ccwm-0"
    shorter = tmp_path / "evaluate" / TASK / "ccwm" / "0"
    shorter.mkdir(parents=True)
    (shorter / "metrics.json").write_text(json.dumps({"return_mean": 40.0, "best_possible": 200.0, "episodes": 1}))
    quoted = paper(than=None, quoted="D4PG", measure=measure, rule=tallied)
    assert ledger(results(tmp_path), quoted)[0].verdict is NOT_RUN  # returns of shorter episodes
    absent = paper(measure={"stage": "transfer", "key": "rows/R/mean"}, than=None, rule={"kind": "below", "value": 1.0})
    assert ledger(results(tmp_path), absent)[0].verdict is NOT_RUN


def test_a_number_of_a_table_less_another(tmp_path: Path) -> None:
    curves(tmp_path, "ccwm", [0.0, 0.0, 0.0])
    for seed, overlap in enumerate([0.5, 0.6, 0.7]):
        folder = tmp_path / "rollout-viz" / TASK / "ccwm" / str(seed)
        folder.mkdir(parents=True)
        maps = {"map": ["trajectory", "late"], "overlap": [overlap, None], "next": [0.4, 0.4]}
        pd.DataFrame(maps).to_csv(folder / "embeddings.csv", index=False)
    measure = {
        "stage": "rollout-viz",
        "table": "embeddings.csv",
        "row": "trajectory",
        "key": "overlap",
        "minus": "next",
    }
    rule = {"kind": "at_least", "value": 0.0}
    (entry,) = ledger(results(tmp_path), paper(than=None, measure=measure, rule=rule))
    assert entry.ours[0].means["ccwm"] == pytest.approx(0.2)  # 0.1, 0.2 and 0.3
    assert entry.verdict is UNDECIDED  # 0.2 ± 0.248 holds 0
    for absent in ("late", "nowhere"):
        other = paper(than=None, measure={**measure, "row": absent}, rule=rule)
        assert ledger(results(tmp_path), other)[0].verdict is NOT_RUN


def test_every_shipped_claim_can_be_judged(tmp_path: Path) -> None:
    shipped = load_claims(Path(__file__).parents[2] / "claims.yaml")
    entries = ledger(results(tmp_path), shipped)
    assert {entry.verdict for entry in entries} == {NOT_RUN}
    assert len(entries) > len(shipped.claims)
