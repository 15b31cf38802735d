"""What passes for a server: what answers as one, and lets us in."""

from __future__ import annotations

import base64
import os
import re
from http.server import BaseHTTPRequestHandler

import pytest

from fourstage.command.required_servers import MLFLOW, PREFECT, fault_of, require_servers
from fourstage.errors import EnvironmentFault
from fourstage.settings import make_private
from tests.answering import answering

RIGHT = {PREFECT: b'"3.8.8"', MLFLOW: b'{"experiments": []}'}
both = pytest.mark.parametrize("server", [PREFECT, MLFLOW], ids=["prefect", "mlflow"])


def login(request: BaseHTTPRequestHandler) -> str | None:
    return request.headers.get("Authorization")


@both
@pytest.mark.parametrize("body", [b'{"status": "ok"}', b'"ok"', b"true", b"[]"])
def test_what_says_yes_to_everything_is_no_server(server, body):
    with answering(lambda request: (200, {}, body)) as address:
        assert "is not the address of a" in fault_of(server, address, {})


@both
def test_a_page_to_log_in_is_no_server(server):
    with answering(lambda request: (200, {}, b"<html>Who are you?</html>")) as address:
        assert "is not the address of a" in fault_of(server, address, {})


@both
def test_being_led_to_a_page_to_log_in_is_said_without_its_query(server):
    def answers(request):
        if request.path.startswith("/login"):
            return 200, {}, b"Who are you?"
        return 302, {"Location": "/login?next=secret"}, b""

    with answering(answers) as address:
        assert fault_of(server, address, {}).endswith(f"and leads to {address}/login")


@both
def test_a_server_of_the_other_kind_is_not_taken_for_it(server):
    other = MLFLOW if server is PREFECT else PREFECT
    with answering(lambda request: (200, {}, RIGHT[other])) as address:
        assert "is not the address of a" in fault_of(server, address, {})
    with answering(lambda request: (404, {}, b'{"detail": "Not Found"}')) as address:
        assert "server: it answers 404" in fault_of(server, address, {})


@both
def test_who_is_not_let_in_is_told_what_to_set(server):
    with answering(lambda request: (401, {}, b"")) as address:
        assert fault_of(server, address, {}) == f"does not let us in (401): set {server.login}"


@pytest.mark.parametrize(
    ("server", "environment", "sent"),
    [
        (PREFECT, {"PREFECT_API_AUTH_STRING": "me:sesame"}, "Basic"),
        (PREFECT, {"PREFECT_API_KEY": "sesame"}, "Bearer sesame"),
        (
            MLFLOW,
            {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "sesame"},
            "Basic",
        ),
        (MLFLOW, {"MLFLOW_TRACKING_TOKEN": "sesame"}, "Bearer sesame"),
    ],
)
def test_the_login_is_what_its_own_client_would_send(server, environment, sent):
    basic = f"Basic {base64.b64encode(b'me:sesame').decode()}"
    known = basic if sent == "Basic" else sent

    def answers(request):
        return (200, {}, RIGHT[server]) if login(request) == known else (401, {}, b"")

    with answering(answers) as address:
        assert fault_of(server, address, environment) == ""
        assert "(401)" in fault_of(server, address, {})
        known = basic
        assert fault_of(server, address.replace("://", "://me:sesame@"), {}) == ""


def test_a_login_goes_to_nobody_else():
    seen = []

    def elsewhere(request):
        seen.append(login(request))
        return 200, {}, b"Who are you?"

    with answering(elsewhere) as other:
        with answering(lambda request: (302, {"Location": f"{other}/"}, b"")) as address:
            fault_of(PREFECT, address, {"PREFECT_API_AUTH_STRING": "me:sesame"})
    assert seen == [None]


@both
def test_trouble_of_a_server_that_passes_is_waited_for(server, monkeypatch):
    monkeypatch.setattr("fourstage.command.required_servers.PAUSES", (0.01,) * 3)
    left = [500, None, 503]

    def answers(request):
        status = left.pop() if left else 200
        return None if status is None else (status, {}, RIGHT[server])

    with answering(answers) as address:
        assert fault_of(server, address, {}) == ""
    with answering(lambda request: (500, {}, b"")) as address:
        assert "does not answer as it should (500" in fault_of(server, address, {})
    with answering(lambda request: None) as address:
        assert fault_of(server, address, {}).startswith("does not answer (")


def test_servers_of_this_machine_are_not_asked_for_by_way_of_a_proxy(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "example.org")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    make_private()
    assert os.environ["NO_PROXY"] == "example.org,127.0.0.1,localhost"
    with answering(lambda request: (200, {}, RIGHT[PREFECT])) as address:
        assert fault_of(PREFECT, address, {}) == ""


def test_the_message_names_the_variable_and_no_credentials(monkeypatch):
    with answering(lambda request: (200, {}, b"Who are you?")) as address:
        monkeypatch.setenv("PREFECT_API_URL", address.replace("://", "://me:sesame@"))
        with pytest.raises(EnvironmentFault, match=f"PREFECT_API_URL={address} is not") as caught:
            require_servers()
    assert "sesame" not in str(caught.value)


@both
@pytest.mark.parametrize("address", ["http://[::1", "nonsense", "http://", "http://127.0.0.1:x"])
def test_an_address_that_is_none_is_named(server, address, monkeypatch):
    assert fault_of(server, address, {})
    monkeypatch.setenv("PREFECT_API_URL", address)
    with pytest.raises(EnvironmentFault, match=f"PREFECT_API_URL={re.escape(address)} "):
        require_servers()
