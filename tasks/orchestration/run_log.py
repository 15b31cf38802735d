"""What the terminal tells stands in the logs of Prefect's runs too: their pages open there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import UUID

from fourstage.terminal import also_tell

_flow_runs: list[UUID] = []  # those that go on, the outermost first


@contextmanager
def told_in_its_log() -> Iterator[None]:
    """Within a flow: what is said until the block ends goes to its run's log.

    A flow that was called by another one tells its part; the outermost has the whole story. Nothing
    is printed: Prefect's own loggers would print it a second time. Outside a flow there is no log.
    """
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        yield
        return
    _flow_runs.append(context.flow_run.id)
    try:
        yield
    finally:
        _flow_runs.pop()


def log(text: str) -> None:
    """Log something in the run of the flow that goes on and in the outermost one's."""
    for flow_run in dict.fromkeys((*_flow_runs[:1], *_flow_runs[-1:])):
        _logger().info(text, extra={"flow_run_id": flow_run})


@cache
def _logger() -> logging.Logger:
    from prefect.logging.handlers import APILogHandler

    logger = logging.getLogger("fourstage.story")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(APILogHandler())
    return logger


also_tell(log)
