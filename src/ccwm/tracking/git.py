"""Which code a run was made with."""

from __future__ import annotations

import subprocess

SOURCES = ("src", "pipeline", "claims.yaml", "dvc.yaml", "params.yaml", "pyproject.toml")
"""What makes a result. The pipeline rewrites its own tracked results while it runs, so they make nothing dirty."""


def git_state() -> tuple[str, str]:
    """The commit, and "true" or "false" for whether the sources differ from it; "unknown" outside a repository."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", *(f":/{source}" for source in SOURCES))
    return commit or "unknown", "unknown" if changes is None else str(bool(changes)).lower()


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
