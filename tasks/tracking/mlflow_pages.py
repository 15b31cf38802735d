"""MLflow's UI behind a login, as ``fourstage up`` starts it.

Write access to the registry determines what code the next `predict` loads. Without a login, every
user of the machine could therefore run code as this user. MLflow's own login needs another package
and a user database.
"""

from __future__ import annotations

import base64
import hmac
import os
from typing import TYPE_CHECKING

from fourstage.settings import home, mlflow_uri

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOGIN = "FOURSTAGE_LOGIN"
OPEN = ("/health", "/version")  # paths without a login; they reveal nothing


class Guarded:
    """ASGI middleware that requires a login and rejects cross-site requests.

    Args:
        app: The application.
        login: ``user:password``.
        addresses: Allowed origins; a browser sends the origin of the page that makes a request.
    """

    def __init__(self, app: ASGIApp, login: str, addresses: set[str]):
        self.app = app
        self.wanted = b"Basic " + base64.b64encode(login.encode())
        self.addresses = {address.encode() for address in addresses}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request or refuse it."""
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "lifespan" or scope.get("path") in OPEN:
            await self.app(scope, receive, send)
        elif headers.get(b"origin", b"") not in self.addresses | {b""}:
            await _refuse(send, 403, b"This request comes from a page on another site.\n")
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self.wanted):
            await _refuse(send, 401, b"A login is required; `fourstage up` prints it.\n")
        else:
            await self.app(scope, receive, send)


async def _refuse(send: Send, status: int, reason: bytes) -> None:
    headers = [(b"content-type", b"text/plain")]
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="MLflow of fourstage up"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason})


def pages() -> Guarded:
    """MLflow's server on the tracking database of this home, for ``uvicorn --factory``.

    Its settings are passed in the environment, because every user can read a command line.
    """
    from mlflow.server import constants

    address = os.environ["FOURSTAGE_MLFLOW_UI"]
    addresses = {address, address.replace("127.0.0.1", "localhost")}
    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: mlflow_uri(),
        constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
        constants.ARTIFACTS_DESTINATION_ENV_VAR: str(home() / "mlflow"),
        "MLFLOW_SERVER_ALLOWED_HOSTS": ",".join(each.split("//")[1] for each in addresses),
        "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": ",".join(addresses),
    }
    from mlflow.server.fastapi_app import app

    return Guarded(app, os.environ[LOGIN], addresses)
