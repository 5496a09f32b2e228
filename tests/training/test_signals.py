"""SIGTERM and Ctrl-C as orderly ends."""

from __future__ import annotations

import os
import signal

import pytest

from ccwm.training.signals import Interrupted, deferred_signals, interrupting_signals


def send(signum: signal.Signals) -> None:
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_the_first_signal_waits_for_a_check(signum: signal.Signals, code: int) -> None:
    with deferred_signals() as stop:
        stop.check()
        send(signum)
        with pytest.raises(Interrupted) as caught:
            stop.check()
        stop.signum = None
    assert caught.value.code == code


def test_the_first_signal_waits_for_the_end_at_the_latest() -> None:
    with pytest.raises(Interrupted), deferred_signals():
        send(signal.SIGTERM)


def test_the_second_signal_interrupts_at_once() -> None:
    with deferred_signals() as stop:
        send(signal.SIGTERM)
        with pytest.raises(Interrupted):
            send(signal.SIGINT)
        stop.signum = None  # who clears it has dealt with it


def test_work_that_only_appears_whole_is_interrupted_at_once() -> None:
    with interrupting_signals(), pytest.raises(Interrupted) as caught:
        send(signal.SIGTERM)
    assert caught.value.code == 143


@pytest.mark.parametrize("handling", [deferred_signals, interrupting_signals])
def test_the_handlers_before_are_there_again(handling: object) -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)]
    with handling():  # type: ignore[operator]
        assert [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)] != before
    assert [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)] == before
