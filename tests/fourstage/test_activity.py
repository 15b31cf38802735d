"""What is being done: a line at the foot of a terminal, now and then a line in a log."""

from __future__ import annotations

import time

import pytest

from fourstage import activity as module
from fourstage import terminal
from fourstage.activity import activity, progress
from fourstage.terminal import say
from fourstage.text_width import width
from tests.flows.screen import Screen


@pytest.fixture(params=[80, 140])
def screen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """A terminal that we write to."""
    screen = Screen(request.param)
    with screen, open(screen.end, "w", encoding="utf-8", closefd=False) as stream:
        monkeypatch.setattr(terminal, "_own", stream)
        monkeypatch.setenv("TERM", "xterm")
        yield screen
        monkeypatch.undo()


def shown(screen: Screen) -> Screen:
    """The same, once all that was written has come through."""
    deadline = time.monotonic() + 10
    while not screen.text.endswith("the end\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return screen


def test_the_line_says_how_far_and_is_gone_when_it_is_over(screen: Screen):
    with activity("stage 领域: training"):
        say("a checkpoint is passed over")
        progress(3, 12, "loss 4.321  9,000 tokens/s")
    say("the end")
    assert shown(screen).lines == ["a checkpoint is passed over", "the end", ""]
    assert screen.feet[0] == "stage 领域: training  0:00"
    bar = "━" * 6 + "╌" * 18
    assert f"  {bar}  3 of 12  0:00  loss 4.321  9,000 tokens/s" in screen.feet[-1]


def test_a_line_that_is_too_long_is_cut_between_characters(screen: Screen):
    with activity("语料 " + "维基百科" * 40 + ": reading"):
        pass
    say("the end")
    (foot,) = set(shown(screen).feet)
    assert width(foot) < screen.columns
    assert foot.endswith("…")


def test_where_there_is_no_terminal_lines_come_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(module, "REWRITE_SECONDS", 0.02)
    monkeypatch.setattr(module, "FIRST_LINE_SECONDS", 0.05)
    monkeypatch.setattr(module, "NEXT_LINE_SECONDS", 0.1)
    with activity("corpus notes: reading"):
        pass
    with activity("stage general: training"):
        progress(3, 12, "loss 4.321")
        time.sleep(0.4)
    told = capsys.readouterr().err.splitlines()
    assert len(told) > 1
    assert all(line.startswith("stage general  3 of 12  0:") for line in told)
    assert told[0].endswith("  loss 4.321")
