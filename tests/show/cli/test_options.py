"""Options mean the same in every verb: names, checks of values, older names, help and completion."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from warpsim.base.files.archives import LARGEST_TEXT
from warpsim.isa.architectures import ARCHITECTURES, CARDS, near_target, target_of_card
from warpsim.show.cli import cli, main
from warpsim.show.cli.exec import exec as exec_verb
from warpsim.show.cli.options import target_of

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
VERBS = [command for name in cli.list_commands(None) if (command := cli.get_command(None, name))]
OPTIONS = [(verb, each) for verb in VERBS for each in verb.params if isinstance(each, click.Option)]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The last line of a wrong command line."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err[:15]) == ("", "Usage: warpsim ")
    return err.splitlines()[-1]


# --- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "near"),
    [("90a", "sm_90a"), ("sm_90x", "sm_90"), ("compute_90a", "sm_90a"), ("sm90", "sm_90"),
     ("SM_90A", "sm_90a"), ("H101", "sm_90a"), ("x", None), ("", None), ("hopper", None)],
)  # fmt: skip
def test_a_wrong_target_suggests_the_nearest(
    capsys: pytest.CaptureFixture[str], given: str, near: str | None
) -> None:
    assert near_target(given) == near
    line = refused(capsys, "warmup", "--target", given)
    hint = f"; is it {near}?" if near else ""
    known = ", ".join(ARCHITECTURES)
    assert line == f"Error: Invalid value for '--target': unknown target {given!r}; known are {known}{hint}"


def test_cards_are_targets() -> None:
    assert set(CARDS.values()) <= set(ARCHITECTURES)
    assert [target_of(name) for name in ("H100", "h100", "rtx-4090", "RTX 4090", "sm_80")] == [
        "sm_90a", "sm_90a", "sm_89", "sm_89", "sm_80",
    ]  # fmt: skip
    assert target_of_card("sm_90a") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "x.npz", "--threads", "-1"], "'--threads': -1 is not in the range x>=1."),
        (["verify", "x.npz", "--jobs", "0"], "'--jobs': 0 is not in the range x>=1."),
        (["gemm", DENSE, "a", "b", "-o", "d", "--target", "sm_80", "--threads", "0"],
         "'--threads': 0 is not in the range x>=1."),
        (["launch", "x.ptx", "--processes", "-2"], "'--processes': -2 is not in the range 1<=x<=256."),
        (["launch", "x.ptx", "--tolerance", "1"], "'--tolerance': 1.0 is not in the range 0<=x<1."),
        (["vectors", DENSE, "--seed", "-1"], "'--seed': -1 is not in the range x>=0."),
        (["vectors", DENSE, "-n", "none"], "'-n': 'none' is not a valid integer range."),
        (["run", "x.ptx", "-o", "."], "'-o' / '--out': File '.' is a directory."),
        (["replay", "x.log", "--target", "90a", "-o", "x"], "'--target': unknown target '90a'; known are "),
        (["explain", "x.ptx", "--element", "0,0", "--target", "sm_80,80"], "unknown target '80'; known are "),
        (["exec", "--chip", "90a", "true"], "'--chip': unknown target '90a'; known are "),
        (["exec", "--schedule", "backwards", "true"], "'--schedule': "),
        (["info", "--ptx-version", "nine"], "'--ptx-version': PTX version 'nine': expected major.minor"),
        (["lint", "x.npz", "--select", "lane=1"], "'--select': unknown field 'lane'; known are cta, "),
        (["desc", "none"], "'none' is not an integer, decimal or with 0x"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_a_folder_that_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verbs = (["explore", DENSE], ["vectors", DENSE, "--target", "sm_80", "-n", "1"])
    for words in verbs:
        with pytest.raises(SystemExit) as caught:
            main([*words, "-o", "none/x.npz"])
        assert caught.value.code == 3
        assert capsys.readouterr().err == "none/x.npz: error: No such file or directory\n"
    assert not list(tmp_path.iterdir())


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exec", "--chip", "sm_80", "--target", "sm_90a", "true"], "--chip is another name of --target"),
        (["verify", "x.npz", "--jobs", "1", "--threads", "2"], "--jobs is another name of --threads"),
    ],
)
def test_two_names_of_an_option_are_one_too_many(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert refused(capsys, *arguments) == f"Error: {message}: give one of them"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["launch", "x.ptx", "--lane", "0"], "--lane goes with --break or --watch"),
        (["exec", "--server", "x", "true"], "--server goes with --serve or --connect"),
        (["desc", "--field", "m=128"], "--field goes with --kind"),
    ],
)
def test_an_option_names_those_that_it_goes_with(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert refused(capsys, *arguments) == f"Error: {message}"


@pytest.mark.parametrize(("verb", "option"), OPTIONS, ids=lambda each: each.name)
def test_names_are_the_same_in_every_verb(verb: click.Command, option: click.Option) -> None:
    names = {*option.opts, *option.secondary_opts}
    assert option.hidden or option.help
    assert not names & {"--out", "-o"} or {"-o", "--out"} <= names
    if not option.hidden:
        assert not names & {"--jobs", "--workers", "--output", "--arch"}
        assert "--chip" not in names or verb.name == "replay"  # the name of a card, of any spelling


@pytest.mark.parametrize("verb", [each.name for each in VERBS if each.name not in ("exec",)])
def test_every_verb_takes_json(verb: str) -> None:
    (command,) = (each for each in VERBS if each.name == verb)
    assert any("--json" in each.opts for each in command.params)


def test_a_target_is_an_option_of_all_that_have_one() -> None:
    with_target = {verb.name for verb, option in OPTIONS if "--target" in option.opts}
    assert with_target >= {
        *("run", "launch", "debug", "exec", "check", "gemm", "replay", "diff", "explain", "lint", "view"),
        *("layout", "info", "pack", "unpack", "compress", "vectors", "verify", "warmup"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "target", "command"),
    [
        (["--target", "sm_80", "prog", "--target", "x"], "sm_80", ("prog", "--target", "x")),
        (["prog", "--target=x", "--size", "2"], None, ("prog", "--target=x", "--size", "2")),
        (["--chip", "sm_80", "--", "prog", "--chip", "x"], "sm_80", ("prog", "--chip", "x")),
        (["prog", "--chip", "sm_80", "--size", "2"], "sm_80", ("prog", "--size", "2")),
    ],
)
def test_a_program_keeps_its_own_target(
    words: list[str], target: str | None, command: tuple[str, ...]
) -> None:
    params = exec_verb.make_context("exec", words).params
    assert (params["target"] or params["older_target"], params["command"]) == (target, command)


# --- completion ------------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    *before, last = words
    return [each.value for each in ShellComplete(cli, {}, "warpsim", "").get_completions(before, last)]


def test_words_are_completed(tmp_path: Path) -> None:
    assert completed("ver") == ["verify"]
    assert completed("run", "--target", "sm_90") == ["sm_90", "sm_90a"]
    assert completed("explain", "x.ptx", "--target", "sm_80,sm_103") == [
        "sm_80,sm_103", "sm_80,sm_103a", "sm_80,sm_103f",
    ]  # fmt: skip
    assert completed("info", "mma.s") == ["mma.sp.", "mma.sp::ordered_metadata.", "mma.sync."]
    assert completed("run", "--engine", "") == ["kernel", "reference"]
    file = tmp_path / "k.ptx"
    file.write_text(".visible .entry gemm_a()\n.entry gemm_b()\n.entry other()")
    assert completed("launch", str(file), "--entry", "gemm") == ["gemm_a", "gemm_b"]
    assert completed("launch", "none.ptx", "--entry", "gemm") == []
    os.truncate(file, LARGEST_TEXT + 1)
    assert completed("launch", str(file), "--entry", "gemm") == []


def test_modules_of_verbs_are_commands() -> None:
    for verb in VERBS:
        assert import_module(verb.callback.__module__)  # type: ignore[union-attr]
        assert verb.help, verb.name
