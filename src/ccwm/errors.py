"""Errors that a user can fix: they print without a traceback."""

from __future__ import annotations

import difflib
import errno
import sys
from collections.abc import Callable, Iterable

EXIT_CODE = 2
_SPACE = "make room, then run the same command again to resume"
_RIGHTS = "make it writable for this user, or move the project"
_IN_THE_WAY = "move away what stands there"
REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: _SPACE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTEMPTY: _IN_THE_WAY,
    errno.ENOENT: "make or restore it, or run at the project's root",
}
"""What a user can do about a failure of the file system."""


class UserError(Exception):
    """The message names the key or the file; ``hint`` says what to do about it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.message, self.hint = message, hint


def run_main(main: Callable[[], object]) -> None:
    """Run a command; user errors exit with 2 and a line on stderr, the file system's with 1; others pass through."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_CODE)
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        path = error.filename2 or error.filename or "a file"
        print(f"error: {path}: {error.strerror}: {REMEDIES[error.errno]}", file=sys.stderr, flush=True)
        sys.exit(1)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the nearest known one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    listed = f" Known: {', '.join(names)}." if names else ""
    return (f" Did you mean {close[0]!r}?" if close else "") + listed
