"""Which code a run was made with."""

from __future__ import annotations

import subprocess

SOURCES = ("src", "pipeline", "claims.yaml", "dvc.yaml", "params.yaml", "pyproject.toml")
"""What makes a result. The pipeline rewrites its own tracked results while it runs, so they make nothing dirty."""


def git_state() -> tuple[str, str]:
    """The commit, and "true" or "false" for whether the sources differ from it; "unknown" outside a repository."""
    command = ["git", "status", "--porcelain=v2", "--branch", "--", *(f":/{source}" for source in SOURCES)]
    try:
        printed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown", "unknown"
    commit, *rest = printed.splitlines()  # `# branch.oid <commit>`, more lines of `# branch`, then the changes
    return commit.split()[-1], str(any(not line.startswith("#") for line in rest)).lower()
