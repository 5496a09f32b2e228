"""A search in a real PostgreSQL, shared by two processes, one of which is killed."""

from __future__ import annotations

from tuning_project import Project


def test_processes_that_start_at_once_share_a_study_and_a_killed_one_s_trial_is_retried(
    project: Project, database: str
) -> None:
    first, second = (project.start("--storage", database, name=name) for name in ("first", "second"))
    first.wait_until(lambda: len(project.training()) >= 2)
    first.kill()
    assert second.end() == 0, second.output
    assert "it is retried" in second.output
    trials = project.trials()
    assert len(trials) == 3  # nothing lost, nothing counted twice
    assert (trials["trial"] != trials["first_number"]).sum() == 1
    assert sorted(trials["first_number"]) == sorted(set(trials["first_number"]))
    assert list(trials.sort_values("first_number")["anchor"][:2]) == ["default", "paper"]
    assert project.summary()["winner"] is not None

    more = project.run("--storage", database, "--trials", "4")
    assert more.end() == 0, more.output
    assert len(project.trials()) == 4
