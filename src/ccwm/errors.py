"""Errors that a user can fix: they print without a traceback."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable

EXIT_CODE = 2


class UserError(Exception):
    """The message names the key or the file; ``hint`` says what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.message, self.hint = message, hint


def run_main(main: Callable[[], object]) -> None:
    """Run a command; a user error goes to stderr and exits with 2, every other exception passes through."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_CODE)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    listed = f" Known: {', '.join(names)}." if names else ""
    return (f" Did you mean {close[0]!r}?" if close else "") + listed
