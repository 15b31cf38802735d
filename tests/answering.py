"""A server on loopback that gives the answers of a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

# Status, headers, body; None cuts the connection off.
Answers = Callable[[BaseHTTPRequestHandler], tuple[int, Mapping[str, str], bytes] | None]


@contextmanager
def answering(answers: Answers) -> Iterator[str]:
    """Its address, as long as it answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers(self)
            if answer is None:
                self.close_connection = True
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815  named by http.server

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # By default it looks every half second whether it is to end.
    Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
