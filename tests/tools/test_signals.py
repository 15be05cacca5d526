"""A command that is sent a signal ends with its exit code, and leaves nothing; what is left is found."""

from __future__ import annotations

import sys

import pytest

from tests.helpers.families import sample
from tools.fuzz.signals import COMMANDS, SIGNALS, Ended, ended, problem_of

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes as Linux shows them")


@pytest.mark.parametrize("name", sample(COMMANDS, 2))
def test_a_signal_in_the_middle(name: str) -> None:
    """The whole of it: python -m tools.fuzz.signals, at random moments."""
    sent = list(SIGNALS)[len(name) % 3]
    found = ended(name, 1.5, sent)
    assert not problem_of(found, {SIGNALS[sent], 0}), found


@pytest.mark.parametrize("sent", SIGNALS)
def test_a_program_under_exec_ends_with_it(sent: str) -> None:
    """SIGHUP left it to init, and the folder of the socket in /tmp."""
    found = ended("exec", 5.0, sent)
    assert not problem_of(found, {SIGNALS[sent]}), found


def test_a_script_of_the_debugger_is_interrupted() -> None:
    """It went on to the end of the script, and the exit code was 0."""
    found = ended("debug", 1.5)
    assert not problem_of(found, {SIGNALS["SIGINT"]}), found


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (Ended(code=143, said="", left=()), ""),
        (Ended(code=70, said="", left=()), "exit code 70, and not 143"),
        (Ended(code=143, said="Traceback (most recent call last)", left=()), "it says 'Traceback'"),
        (Ended(code=143, said="", left=("process 7", "temporary a")), "it leaves process 7, temporary a"),
    ],
)
def test_problems_are_seen(found: Ended, problem: str) -> None:
    assert problem_of(found, {143}) == problem


def test_what_is_left_is_seen() -> None:
    """A killed run leaves the folder of its socket, and its program."""
    found = ended("exec", 5.0, "SIGKILL")
    assert found.code == 137, found
    kinds = sorted(each.split()[0] for each in found.left)
    assert kinds[-1:] == ["temporary"], found
    assert kinds.count("process") == 3, found.left
