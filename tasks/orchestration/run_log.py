"""Copy terminal messages to the logs of Prefect's flow runs, which their pages show first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import UUID

from fourstage.terminal import also_tell

_flow_runs: list[UUID] = []  # active flow runs, outermost first


@contextmanager
def told_in_its_log() -> Iterator[None]:
    """Within a flow: copy messages to its run's log until the block ends.

    The log of a subflow has its own messages, that of the outermost flow has all. Nothing is
    printed, unlike with Prefect's own loggers, which would print messages twice. Outside a flow,
    this does nothing.
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
    """Log a message in the innermost and the outermost active flow run."""
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
