"""Addresses as they may be shown."""

from __future__ import annotations

import pytest

from fourstage.settings import without_credentials


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("https://me:sesame@example.org:5000/a@b", "https://example.org:5000/a@b"),
        ("http://me:sesame/x@example.org", "http://example.org"),  # no port, so none to ask
        ("http://[::1", "http://[::1"),
        ("postgresql://me:sesame@127.0.0.1:9/runs", "postgresql://127.0.0.1:9/runs"),
        ("postgresql://me:a/ses?ame#@127.0.0.1/runs", "postgresql://127.0.0.1/runs"),
        ("postgresql://me:a@sesame@127.0.0.1/runs", "postgresql://127.0.0.1/runs"),
        ("postgresql:///runs?host=/run&password=sesame", "postgresql:///runs"),
        ("sqlite:////srv/me@example.org/mlflow.db", "sqlite:////srv/me@example.org/mlflow.db"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str):
    assert without_credentials(address) == shown
