"""MLflow's pages answer who knows the login, and no page of another site."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tasks.tracking.mlflow_pages import Guarded

ADDRESS = "http://127.0.0.1:5000"
LOGIN = ("fourstage", "a-password")


async def inside(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def ask(
    path: str = "/api/x", login: tuple[str, str] | None = LOGIN, **headers: str
) -> httpx.Response:
    async def send() -> httpx.Response:
        guarded = Guarded(inside, ":".join(LOGIN), {ADDRESS})
        transport = httpx.ASGITransport(guarded)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, auth=login) as client:
            return await client.post(path, headers=headers)

    return asyncio.run(send())


def test_who_knows_the_login_is_let_in_from_its_own_page():
    assert ask().text == "inside"
    assert ask(Origin=ADDRESS).text == "inside"


@pytest.mark.parametrize("login", [None, ("fourstage", "guessed"), ("fourstage", "")])
def test_who_does_not_is_asked_for_it(login):
    answer = ask(login=login)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize("origin", ["http://another.site", "null", "http://127.0.0.1:8080"])
def test_a_page_of_another_site_is_refused_though_the_browser_knows_the_login(origin):
    assert ask(Origin=origin).status_code == 403


def test_whether_it_is_alive_anybody_may_ask():
    assert ask("/health", login=None).text == "inside"
