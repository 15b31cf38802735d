"""A run that is interrupted, or cancelled on Prefect's page, while a stage trains."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from fourstage.errors import Interrupted
from fourstage.terminal import say


@contextmanager
def dying_of_signals() -> Iterator[None]:
    """Kill this process with the signal that interrupted training, now that it has a checkpoint.

    Prefect must see the signal itself: after an exception, the run would be Failed instead of
    Crashed or Cancelled, and retries would apply.
    """
    try:
        yield
    except Interrupted as interruption:
        number = interruption.signal_number
        if not number:
            raise
        say(str(interruption))
        if signal.getsignal(number) == signal.SIG_IGN:
            # An earlier signal was obeyed, but its exception got lost in a library's callback.
            raise KeyboardInterrupt from interruption
        announce_cancellation()
        os.kill(os.getpid(), number)
        signal.pause()
        raise


def announce_cancellation() -> None:
    """Tell Prefect's engine, before it sees a signal, whether somebody has cancelled the run.

    A worker says so itself before it sends SIGTERM. But the engine listens only while the signal's
    handler is its own, and training has replaced it. A run that ends without this word is Crashed
    until its worker sets it to Cancelled: a false alarm, to which the janitor comes, too. Does
    nothing in a run that no worker has started.
    """
    import httpx
    from prefect._internal import control_listener  # Prefect offers no public way
    from prefect.client.orchestration import get_client

    if not (run := os.environ.get("PREFECT__FLOW_RUN_ID")):
        return
    # A server that is gone cannot have cancelled it.
    with suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(run)).state
        if state is not None and state.is_cancelling():
            control_listener._set_intent("cancel")
