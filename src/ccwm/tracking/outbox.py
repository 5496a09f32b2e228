"""The background thread that brings a spool to the store, so that training never waits for the network."""

from __future__ import annotations

import threading
import time

from ccwm.tracking.delivery import Delivery, root_cause
from ccwm.tracking.spool import Spool

PERIOD = 1.0
LONGEST_PAUSE = 30.0


class Outbox:
    """Owns a spool; sends it as it grows, and tries again when the store is unreachable."""

    def __init__(self, spool: Spool, wait: float) -> None:
        """Start to send, and wait at most ``wait`` seconds for the store's first answer or refusal.

        The thread is a daemon: a store that hangs must not keep a finished process alive.
        """
        self._spool = spool
        self._delivery = Delivery(spool)
        self._thread = threading.Thread(target=self._work, name="ccwm-outbox", daemon=True)
        self._answered = threading.Event()
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._remove = False
        self.trouble: str | None = None
        self._thread.start()
        if not self._answered.wait(wait):
            self.trouble = f"no answer within {wait:g} s"

    def close(self, wait: float, *, remove: bool) -> bool:
        """Send the rest, until the store gives no sign of life for ``wait`` seconds; true if it has everything.

        ``remove`` then drops the spool.
        """
        self._remove = remove
        closed = time.monotonic()
        self._closing.set()
        while (left := max(closed, self._delivery.last_progress) + wait - time.monotonic()) > 0:
            self._thread.join(left)
            if not self._thread.is_alive():
                break
        self._given_up.set()
        self._thread.join(PERIOD)  # between two attempts it ends at once and frees the spool; a hanging one may not
        return not self._thread.is_alive() and not self._spool.unsent

    def _work(self) -> None:
        pause = PERIOD
        while True:
            try:
                self._delivery.bind()
                self._answered.set()
                self._delivery.drain()
                self.trouble, pause = None, PERIOD
            except Exception as error:  # any failure of a store or a network: the run continues and we try again
                self.trouble = root_cause(error)
                pause = min(2 * pause, LONGEST_PAUSE)
            self._answered.set()
            if not self._closing.is_set():
                self._closing.wait(pause)
            elif not self._spool.unsent or self._given_up.wait(PERIOD / 2):
                break
        self._spool.close(remove=self._remove)
