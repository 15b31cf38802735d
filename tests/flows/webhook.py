"""A web address on loopback that remembers what it was told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Webhook:
    """Its address, and the messages so far."""

    address: str = ""
    told: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def webhook() -> Iterator[Webhook]:
    """Listen for as long as a test needs it."""
    heard = Webhook()

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        heard.address = f"http://127.0.0.1:{server.server_port}/hook"
        yield heard
        server.shutdown()
