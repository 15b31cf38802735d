"""Runs commands that come in as JSON lines and answers each with its code and what it printed.

``{"command": ["run", "small"]}`` is a command line; ``{"refresh": "small.yaml"}`` is the flow of
that name, which has a deployment and no verb. With ``--untraced`` TensorFlow runs graphs operation
by operation.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from typing import Any

INTERNAL = 70  # nothing that a command may raise ends it with this


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if "--untraced" in sys.argv:
        _trace_nothing()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


def _trace_nothing() -> None:
    from fourstage.settings import make_private

    make_private()  # as the command does before it imports anything
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
        try:
            code = _run(request)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = INTERNAL
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in enumerate(kept, start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)
        return {"code": code, "out": _text(out), "err": _text(err)}


def _run(request: dict[str, Any]) -> int:
    if "command" in request:
        from fourstage.command import main as command

        return command(request["command"])
    from fourstage.settings import make_private

    make_private()
    from flows.refresh import refresh

    state = refresh(request["refresh"])
    print(json.dumps(state.result() if hasattr(state, "result") else state))  # noqa: T201
    return 0


def _text(stream: Any) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


if __name__ == "__main__":
    main()
