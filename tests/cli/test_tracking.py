"""`ccwm tracking sync`: how many runs were sent, what is kept and why, and an exit code that tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import Ccwm

from ccwm.tracking import SyncReport


@pytest.mark.parametrize(
    ("report", "code", "told"),
    [
        (SyncReport(["a", "b"], {}), 0, ["2 runs sent, 0 kept"]),
        (SyncReport([], {Path("spool/x"): "refused"}), 1, ["0 runs sent, 1 kept", "spool/x: refused"]),
    ],
)
def test_what_was_sent_and_what_was_kept(
    ccwm: Ccwm, monkeypatch: pytest.MonkeyPatch, report: SyncReport, code: int, told: list[str]
) -> None:
    monkeypatch.setattr("ccwm.tracking.sync", lambda root: report)
    found, out, _ = ccwm("tracking", "sync")
    assert (found, out.splitlines()) == (code, told)
