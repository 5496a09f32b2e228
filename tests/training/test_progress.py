"""What a training run shows where there is no terminal."""

from __future__ import annotations

import pytest

from ccwm.training import progress
from ccwm.training.history import History
from ccwm.training.module import Counters
from ccwm.training.progress import TrainingProgress, hidden_progress


def show(times: int) -> None:
    history, counters = History(), Counters(updates=4, env_steps=120)
    history.add_evaluation(80, 0, [1.5], [], {})
    history.add_losses(80, 4, {"model/kl": 0.25, "actor/mean": 9.0})
    with TrainingProgress(history, counters, env_steps=2000, updates=10, label="maze ccwm") as shown:
        for _ in range(times):
            shown.show()


def test_a_line_has_steps_return_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    show(1)
    line = capsys.readouterr().err
    assert [part for part in ("maze ccwm", "120/2,000", "1.5", "model/kl 0.25") if part not in line] == []
    assert "actor/mean" not in line


def test_lines_come_twice_a_minute(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    show(3)
    assert capsys.readouterr().err.count("maze ccwm") == 1
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    show(3)
    assert capsys.readouterr().err.count("maze ccwm") == 3


def test_nothing_is_shown_for_a_caller_with_a_display_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with hidden_progress():
        show(2)
    assert capsys.readouterr().err == ""
