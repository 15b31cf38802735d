"""Waits until the run that started it is gone, then ends the server that Prefect embedded in it.

Run as ``python -I tasks/guard.py OWNER`` with a pipe as standard input that only the run holds: the
kernel closes it however the run ends. Prefect ends its server itself unless the run is killed.
"""

import sys

import psutil


def main() -> None:
    """Wait for the end of the pipe."""
    sys.stdin.buffer.read()
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            embedded = variables.get("PREFECT__SERVER_EPHEMERAL") == "1"
            if embedded and variables.get("FOURSTAGE_OWNER") == sys.argv[1]:
                process.terminate()
        except psutil.Error:
            continue  # gone meanwhile, or somebody else's


main()
