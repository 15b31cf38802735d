"""Runs a server for as long as another process lives, however that process ends.

``python -I guard.py COMMAND…``: standard input is a pipe that only the other process holds open.
When that process ends, the kernel closes the pipe, and this script ends the server.
"""

import os
import subprocess
import sys
import threading

STOP_SECONDS = 5


def main() -> None:
    """Start the server and wait until the pipe is closed or the server ends."""
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
