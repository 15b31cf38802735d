"""A stage is trained when the networks of those before it are gone."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from models.training import trainer
from tasks.steps.train_stage import _trained


class Network:
    """Refers to itself, as Keras's do by way of what they track."""

    def __init__(self):
        self.itself = self


def test_networks_of_before_are_gone_when_a_stage_is_trained(monkeypatch: pytest.MonkeyPatch):
    before = weakref.ref(Network())
    alive: list[bool] = []
    monkeypatch.setattr(trainer, "train", lambda *_: alive.append(before() is not None))
    nothing: Any = None
    gc.disable()  # or it might come upon it by chance
    try:
        _trained(nothing, Path(), nothing)
    finally:
        gc.enable()
    assert alive == [False]
