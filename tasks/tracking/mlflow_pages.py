"""MLflow's pages behind a login, as ``fourstage up`` starts them.

Whoever may write to the registry chooses what code the next `predict` loads, so that pages without
a login would let every user of the machine run code as this one. MLflow's own login wants a package
more, and tables of users.
"""

from __future__ import annotations

import base64
import hmac
import os
from typing import Any

from fourstage.settings import home, mlflow_uri

LOGIN = "FOURSTAGE_LOGIN"
OPEN = ("/health", "/version")  # what asks these has no login and learns nothing


class Guarded:
    """An ASGI application that answers only who knows the login, and no other site's page.

    Args:
        app: The application.
        login: ``user:password``.
        addresses: Where it is looked at; a browser names the page a request comes from.
    """

    def __init__(self, app: Any, login: str, addresses: set[str]):
        self.app = app
        self.wanted = b"Basic " + base64.b64encode(login.encode())
        self.addresses = {address.encode() for address in addresses}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "lifespan" or scope.get("path") in OPEN:
            await self.app(scope, receive, send)
        elif headers.get(b"origin", b"") not in self.addresses | {b""}:
            await _refuse(send, 403, b"This request comes from a page of another site.\n")
        elif not hmac.compare_digest(headers.get(b"authorization", b""), self.wanted):
            await _refuse(send, 401, b"A login is wanted; `fourstage up` says which.\n")
        else:
            await self.app(scope, receive, send)


async def _refuse(send: Any, status: int, reason: bytes) -> None:
    headers = [(b"content-type", b"text/plain")]
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="MLflow of fourstage up"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason})


def pages() -> Guarded:
    """MLflow's server on the tracking database of this home; for ``uvicorn --factory``.

    What MLflow's own command would take from its command line, which every user can read, goes
    through the environment.
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
