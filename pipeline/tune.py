"""The search for better settings, outside of the DVC graph: trials until the budget is spent, then fresh seeds."""

from __future__ import annotations

from ccwm.cli.tune import parse_search
from ccwm.errors import run_main
from ccwm.tuning.search import search


def main() -> None:
    """Search as params.yaml and the command line say."""
    search(parse_search())


if __name__ == "__main__":
    run_main(main)
