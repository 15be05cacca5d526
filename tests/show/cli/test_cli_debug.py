"""``warpsim debug``: commands from a file and from standard input, exit codes, and the prompt."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from tests.show.debugger.small_kernel import TEXT, line, results
from warpsim.show.cli import cli
from warpsim.show.cli import debug as verb

GIVEN = ("k.ptx", "--block", "64", "--arg", "zeros:f32:64", "--arg", "u32:3")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(TEXT)
    np.save("good.npy", results())
    np.save("bad.npy", results() + 1)


def run(*options: str, commands: str = "") -> Any:
    return CliRunner().invoke(cli, ["debug", *GIVEN, *options], input=commands, standalone_mode=False)


def test_commands_of_a_file_are_printed_with_what_they_give() -> None:
    Path("commands.txt").write_text(
        f"break {line('bar.sync 0;')}\nrun\n# a comment\nprint %r4\nq\nnonsense\n"
    )
    result = run("--commands", "commands.txt")
    assert result.output == (
        f"(warpsim) break {line('bar.sync 0;')}\n"
        f"breakpoint 1: {line('bar.sync 0;')}: line {line('bar.sync 0;')} of the PTX\n"
        "(warpsim) run\n"
        f"breakpoint 1: {line('bar.sync 0;')}, 64 lanes of 2 warps\n"
        "time 28, CTA (0, 0, 0), warp 0, lane 0\n"
        f"k.ptx:{line('bar.sync 0;')}: bar.sync 0;\n"
        "(warpsim) # a comment\n"
        "(warpsim) print %r4\n"
        "%r4 = 0x00000000\n"
    )
    assert result.return_value == 0


@pytest.mark.parametrize(
    ("commands", "options", "code"),
    [
        ("run\n", ("--expect", "0=good.npy"), 0),
        ("run\nreverse-continue\n", ("--expect", "0=bad.npy"), 1),
        ("run\n", ("--expect", "0=bad.npy", "--tolerance", "0.5"), 0),
        ("run\nfoo\nrun\n", (), 2),
        ("", (), 0),
        ("start\n", ("--entry", "k", "--schedule", "latest", "--checks", "warn"), 0),
    ],
)
def test_exit_codes(commands: str, options: tuple[str, ...], code: int) -> None:
    assert run(*options, commands=commands).return_value == code


def test_a_wrong_command_ends_a_script_with_its_line() -> None:
    result = run(commands="start\nbrek 3\nrun\n")
    assert "there is no command brek; did you mean break?" in result.stderr
    assert "standard input:2: this command has ended the session" in result.stderr
    assert "(warpsim) run" not in result.output


def test_a_launch_that_fails_says_so_with_exit_code_1() -> None:
    Path("k.ptx").write_text(TEXT.replace("    bar.sync 0;\n", "").replace("%r6, 4;", "%r6, 128;"))
    result = run(commands="run\nwhy\n")
    assert result.output.count("error: race") == 2
    assert result.return_value == 1


def test_json_has_each_command() -> None:
    result = run("--json", commands="start\nstepi\nfoo\n")
    document = json.loads(result.stdout)
    assert [each["time"] for each in document["commands"]] == [0, 1, 1]
    assert "there is no command foo" in document["commands"][2]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("k.ptx", "--entry", "nothing"), "there is no such kernel"),
        (("k.ptx", "--block", "64"), "2 parameters"),
        (("k.ptx", "--block", "a"), "expected one to three numbers"),
        ((*GIVEN, "--expect", "1=good.npy"), "is not an array"),
        ((*GIVEN, "--schedule", "never"), "schedule"),
    ],
)
def test_usage(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["debug", *arguments], input="run\n", standalone_mode=False)
    assert isinstance(result.exception, click.UsageError) or result.return_value in (2, 3)
    assert message in f"{result.exception and getattr(result.exception, 'message', '')}{result.stderr}"


@pytest.mark.parametrize("arguments", [("none.ptx",), (*GIVEN, "--commands", "none.txt")])
def test_files_that_are_not_there(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["debug", *arguments], standalone_mode=False)
    assert result.return_value == 3
    assert result.stderr.startswith("none.")


def test_the_prompt_takes_interrupts_repeats_steps_and_ends_at_the_end_of_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["start", "stepi", "", "foo", KeyboardInterrupt, "where", "", EOFError])

    def read(prompt: str = "") -> str:
        given = next(typed)
        if isinstance(given, str):
            return given
        raise given

    monkeypatch.setattr(builtins, "input", read)
    monkeypatch.setattr("warpsim.show.cli.debug_prompt.reader", lambda session, prompt: lambda: input(prompt))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    options = dict(verb.debug.make_context("debug", [*GIVEN]).params)
    assert verb.debug.callback is not None
    assert verb.debug.callback(**options) == 0
    printed = capsys.readouterr()
    assert printed.out.count("time 2, ") == 2  # by the empty line, and where
    assert "quit, or Ctrl-D, ends the session" in printed.out
    assert "there is no command foo" in printed.err


def test_an_interrupt_stops_the_launch_and_keeps_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a command runs Ctrl-C stops the launch, at the prompt the line is dropped."""

    class Idle:
        asked = 0

        def interrupt(self) -> None:
            self.asked += 1

    idle: Any = Idle()
    dialog = verb._Dialog(session=idle, as_json=False, running=True)
    dialog.interrupted(2, None)
    assert idle.asked == 1
    dialog.running = False
    with pytest.raises(KeyboardInterrupt):
        dialog.interrupted(2, None)


def test_prompt_toolkit_completes_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    toolkit = pytest.importorskip("prompt_toolkit")
    from prompt_toolkit.document import Document
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from tests.show.debugger.small_kernel import session
    from warpsim.show.cli.debug_prompt import reader

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    talk, made = toolkit.PromptSession, dict[str, Any]()
    with create_pipe_input() as typed, session() as debugged:

        def start(**how: Any) -> Any:
            made.update(how)
            return talk(input=typed, output=DummyOutput(), **how)

        monkeypatch.setattr(toolkit, "PromptSession", start)
        read = reader(debugged, verb.PROMPT)
        typed.send_text("where\n")
        assert read() == "where"
        found = [*made["completer"].get_completions(Document("reverse-c"), None)]
        assert [(each.text, each.start_position) for each in found] == [("reverse-continue", -9)]
        assert "not running" in made["bottom_toolbar"]()
    assert (tmp_path / "warpsim" / "debug_history").exists()
