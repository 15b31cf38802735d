"""Runs a server for as long as another process lives, however that one ends.

``python -I guard.py COMMAND…``: standard input is a pipe that only the other process holds; the
kernel closes it with that process, and the server is ended.
"""

import os
import subprocess
import sys
import threading

STOP_SECONDS = 5


def main() -> None:
    """Start the server and wait for the end of the pipe, or of the server."""
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=lambda: os._exit(server.wait()), daemon=True).start()
    sys.stdin.buffer.read()
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


if __name__ == "__main__":
    main()
