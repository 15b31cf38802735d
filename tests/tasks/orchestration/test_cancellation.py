"""A signal that has interrupted training ends the process."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from fourstage.errors import Interrupted
from tasks.orchestration.cancellation import dying_of_signals


@pytest.fixture
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_signal_is_raised_again(handler: None):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt) as caught, dying_of_signals():
        raise Interrupted("stopped", signal.SIGINT)
    assert caught.value.__cause__ is None, "by its handler"


def test_a_signal_that_is_ignored_by_now_does_not_hang(handler: None):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt) as caught, dying_of_signals():
        raise Interrupted("stopped", signal.SIGINT)
    assert isinstance(caught.value.__cause__, Interrupted)


def test_a_deadline_raises_no_signal(handler: None):
    with pytest.raises(Interrupted), dying_of_signals():
        raise Interrupted("over")
