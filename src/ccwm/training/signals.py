"""SIGTERM and Ctrl-C, turned into an orderly end with the right exit code."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(SystemExit):
    """A signal asked the stage to end; exits with 128 + the signal's number, so that DVC commits nothing."""

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum


class StopRequest:
    """Remembers a signal until the work reaches a point where its state is whole."""

    def __init__(self) -> None:
        self.signum: int | None = None

    def check(self) -> None:
        """Raise Interrupted if a signal has come."""
        if self.signum is not None:
            raise Interrupted(self.signum)


@contextmanager
def deferred_signals() -> Iterator[StopRequest]:
    """Within, the first SIGTERM or SIGINT is only remembered, until the end at the latest; a second one interrupts."""
    request = StopRequest()

    def handle(signum: int, _: FrameType | None) -> None:
        if request.signum is not None:
            raise Interrupted(signum)
        request.signum = signum

    with _handler(handle):
        yield request
    request.check()


@contextmanager
def interrupting_signals() -> Iterator[None]:
    """Within, SIGTERM and SIGINT raise Interrupted at once: for work whose outputs only appear whole."""

    def handle(signum: int, _: FrameType | None) -> None:
        raise Interrupted(signum)

    with _handler(handle):
        yield


@contextmanager
def _handler(handle: object) -> Iterator[None]:
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {signum: signal.signal(signum, handle) for signum in signals}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for signum, old in before.items():
            signal.signal(signum, old)
