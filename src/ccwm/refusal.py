"""What a person can mend is told in a sentence, not in a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

EXIT_CODE = 2


class Refusal(Exception):
    """The message names the key or the file, and the cure."""


def run_main(main: Callable[[], object]) -> None:
    """Run a command; a refusal goes to stderr and exits with 2, everything else passes through."""
    try:
        main()
    except Refusal as refusal:
        _tell(refusal)
    except FileNotFoundError as error:
        if error.errno is not None:  # the system's own, which knows no cure
            raise
        _tell(error)


def _tell(error: Exception) -> None:
    print(f"error: {error}", file=sys.stderr, flush=True)
    sys.exit(EXIT_CODE)
