"""Checks the servers that the environment names before any work.

A login page or the error page of a proxy is an answer, too. So the check requests something that
only the real server knows, with the credentials that its own client would send.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, IncompleteRead
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from fourstage.errors import EnvironmentFault
from fourstage.settings import mlflow_uri, without_credentials

SECONDS = 10
PAUSES = (0.5, 1.0, 2.0)  # seconds between retries after a server error
CUT_OFF = (ConnectionResetError, BrokenPipeError, IncompleteRead)
LONGEST_ANSWER = 1 << 20  # bytes
TRUE = ("true", "1")
CLOUD = "https://api.prefect.cloud/"  # has none of the pages requested here


@dataclass(frozen=True)
class Server:
    """A kind of server.

    Attributes:
        name: Its name in messages.
        variable: The variable with its address.
        path: The path to request, below the address.
        answers: Whether an answer, parsed as JSON, comes from such a server.
        login: What to set if it requires a login.
        basic: Variables of user and password, or of both in one.
        bearer: Variable of a token.
        certificate: Variable of the file of trusted certificates.
        insecure: Variable that is ``true`` to accept any certificate.
        remedy: What to do if it cannot be reached.
    """

    name: str
    variable: str
    path: str
    answers: Callable[[Any], bool]
    login: str
    basic: tuple[str, ...]
    bearer: str
    certificate: str
    insecure: str
    remedy: str


PREFECT = Server(
    "Prefect",
    "PREFECT_API_URL",
    "/admin/version",
    lambda said: isinstance(said, str) and bool(re.match(r"\d+\.\d+", said)),
    "PREFECT_API_AUTH_STRING to its user:password; for a server of `fourstage up` by sourcing"
    " servers.env in its home",
    ("PREFECT_API_AUTH_STRING",),
    "PREFECT_API_KEY",
    "PREFECT_API_SSL_CERT_FILE",
    "PREFECT_API_TLS_INSECURE_SKIP_VERIFY",
    "Give the address of one that runs (`fourstage up` starts one on this machine), or unset"
    " PREFECT_API_URL to run without a server.",
)
MLFLOW = Server(
    "MLflow",
    "MLFLOW_TRACKING_URI",
    "/api/2.0/mlflow/experiments/search?max_results=1",
    lambda said: isinstance(said, dict) and said.keys() <= {"experiments", "next_page_token"},
    "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
    ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"),
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "MLFLOW_TRACKING_INSECURE_TLS",
    "Give the address of one that runs, or unset MLFLOW_TRACKING_URI to run without a server, on"
    " SQLite under the home.",
)


def require_servers() -> None:
    """Check that every server named by the environment answers as it should.

    Otherwise Prefect would raise a ``RuntimeError`` in the middle of the first flow, and MLflow
    would be contacted only after half a minute of starting everything else.

    Raises:
        EnvironmentFault: A server does not; the message contains no credentials.
    """
    for server, address in named_servers():
        if fault := fault_of(server, address):
            raise EnvironmentFault(
                f"{server.variable}={without_credentials(address)} {fault}. {server.remedy}"
            )


def named_servers() -> list[tuple[Server, str]]:
    """The servers that the environment names, with their addresses."""
    prefect = os.environ.get("PREFECT_API_URL", "")
    found = [(PREFECT, prefect)] if prefect and not prefect.startswith(CLOUD) else []
    if mlflow_uri().startswith(("http://", "https://")):
        found.append((MLFLOW, mlflow_uri()))
    return found


def fault_of(
    server: Server,
    address: str,
    environment: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> str:
    """What is wrong with a server, worded to follow its address; None if nothing is.

    Args:
        server: The kind of server.
        address: Its address.
        environment: Variables with the credentials; by default those of this process.
        seconds: How long an answer may take.
    """
    environment = os.environ if environment is None else environment
    try:
        request, context = _request(server, address, environment)
    except (ValueError, OSError) as error:
        return f"can't be asked ({error})"
    said, place = b"", address
    for pause in (*PAUSES, None):
        try:
            with urllib.request.urlopen(request, timeout=seconds, context=context) as answer:
                said, place = answer.read(LONGEST_ANSWER), answer.url
            break
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403):
                return f"does not let us in ({error.code}): set {server.login}"
            if error.code < 500 and error.code != 429:
                return f"is not the address of {_article(server)} server: it answers {error.code}"
            if pause is None:
                return f"does not answer as it should ({error.code} {error.reason})"
            time.sleep(pause)
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if pause is None or not isinstance(reason, CUT_OFF):
                return f"does not answer ({reason})"
            time.sleep(pause)
    try:
        right = server.answers(json.loads(said))
    except ValueError:
        right = False
    if right:
        return ""
    there = _page(place)
    led = "" if there == _page(request.full_url) else f", and leads to {there}"
    return f"is not the address of {_article(server)} server: something else answers{led}"


def _request(
    server: Server, address: str, environment: Mapping[str, str]
) -> tuple[urllib.request.Request, ssl.SSLContext | None]:
    """The request that the server's own client would send, with its credentials."""
    parts = urlsplit(address)
    bare = without_credentials(address).rstrip("/")
    request = urllib.request.Request(f"{bare}{server.path}")
    basic = ":".join(environment.get(name, "") for name in server.basic).strip(":")
    if not basic and parts.username is not None:
        basic = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    if basic:
        login = f"Basic {base64.b64encode(basic.encode()).decode()}"
    elif token := environment.get(server.bearer):
        login = f"Bearer {token}"
    else:
        login = ""
    if login:
        # Not sent on after a redirect.
        request.add_unredirected_header("Authorization", login)
    if server is PREFECT:
        custom = json.loads(environment.get("PREFECT_CLIENT_CUSTOM_HEADERS") or "{}")
        for name, value in custom.items():
            request.add_unredirected_header(name, value)
    context = None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=environment.get(server.certificate) or None)
        if environment.get(server.insecure, "").lower() in TRUE:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return request, context


def _page(address: str) -> str:
    """An address without credentials and without the query of a login page."""
    return without_credentials(urlunsplit(urlsplit(address)._replace(query="", fragment="")))


def _article(server: Server) -> str:
    return f"an {server.name}" if server is MLFLOW else f"a {server.name}"
