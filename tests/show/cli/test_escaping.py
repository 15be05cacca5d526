"""What is printed from names and files: control characters are escaped, whichever verb prints them."""

from __future__ import annotations

import os
import sys
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest

from warpsim.base.errors import TraceError
from warpsim.base.files.archives import read_arrays
from warpsim.base.files.escaping import escaped, note_names
from warpsim.show.cli import main, output

HOSTILE = "a\x1b[31m\x07\nverify: passed\u202e\x9b2J"
SHOWN = r"a\x1b[31m\x07\nverify: passed\u202e\x9b2J"
FORM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return all that a command prints."""
    with pytest.raises(SystemExit):
        main(list(words))
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    "words",
    [
        *(["verify", "NAME.npz"], ["run", "NAME.npz"], ["run", "NAME.ptx"], ["view", "NAME.npz"]),
        *(["convert", "NAME.npz", "NAME.hex"], ["lint", "NAME.npz"], ["diff", "NAME.npz", "d=NAME.log"]),
        *(["vectors", "NAME.npz", "-o", "NAME.csv"], ["check", "NAME.ptx"], ["launch", "NAME.ptx"]),
        *(["launch", "NAME.ptx", "--arg", "NAME.npy"], ["replay", "--target", "sm_80", "NAME.log"]),
        *(["debug", "NAME.ptx", "--commands", "NAME.log"], ["explain", "NAME.npz", "--element", "0,0"]),
        *(["unpack", FORM, "a", "NAME.npy"], ["gemm", FORM, "NAME.npy", "NAME.npy", "-o", "NAME.npy"]),
        *(
            ["metadata", "NAME"],
            ["desc", "--map", "NAME.log"],
            ["layout", "NAME"],
            ["NAME"],
            ["info", "NAME"],
        ),
        *(["exec", "./NAME"], ["verify", "--NAME"], ["verify", "good.npz", "--junit", "NAME/r.xml"]),
    ],
)
def test_no_verb_prints_what_a_terminal_obeys(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warpsim.base.files.escaping._names", {})
    made = ["vectors", FORM, "--target", "sm_80", "-n", "2", "--kind", "random", "-o"]
    printed(capsys, *made, f"{HOSTILE}.npz")
    (tmp_path / "good.npz").write_bytes((tmp_path / f"{HOSTILE}.npz").read_bytes())
    (tmp_path / f"{HOSTILE}.ptx").write_text(f".version 8.0 // {HOSTILE}\n{HOSTILE}\n")
    (tmp_path / f"{HOSTILE}.log").write_text(f"{HOSTILE}\n")
    np.save(tmp_path / f"{HOSTILE}.npy", np.zeros(3))
    monkeypatch.setattr("warpsim.base.files.escaping._blanks", {})
    text = printed(capsys, *(word.replace("NAME", HOSTILE) for word in words))
    wrong = [each for each in text if unicodedata.category(each) in ("Cc", "Cf") and each not in "\n\t"]
    assert text.strip()
    assert not wrong, text
    lines = [line for line in text.splitlines() if line.startswith("verify: passed")]
    assert not lines, text


def test_names_are_shown_as_python_spells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert printed(capsys, "verify", HOSTILE + ".npz").count(f"{SHOWN}.npz: error: ") == 1
    assert "b\\nc.npy: error: " in printed(capsys, "unpack", FORM, "a", "b\nc.npy")


@pytest.mark.parametrize("name", [" ", "\t", "\n \n", "\u2028", "\u3000 "])
@pytest.mark.parametrize(
    "words",
    [
        *(["verify", "NAME"], ["check", "NAME"], ["lint", "NAME"], ["run", "NAME"], ["launch", "NAME"]),
        *(
            ["view", "NAME"],
            ["replay", "--target", "sm_80", "NAME"],
            ["debug", "NAME"],
            ["desc", "--map", "NAME"],
        ),
        *(["unpack", FORM, "a", "NAME"], ["explore", "-o", "NAME"], ["exec", "NAME"], ["metadata", "NAME"]),
        ["vectors", FORM, "--target", "sm_80", "-n", "2", "-o", "NAME", "--format", "npz"],
    ],
)
def test_names_of_white_space_alone_are_quoted(
    words: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("warpsim.base.files.escaping._names", {})
    monkeypatch.setattr("warpsim.base.files.escaping._blanks", {})
    if words[0] != "vectors" and words[0] != "exec":
        (tmp_path / name).write_text("x")
    text = printed(capsys, *(word.replace("NAME", name) for word in words))
    shown = "".join(each.encode("unicode_escape").decode() if each in "\t\n\u2028" else each for each in name)
    assert f"'{shown}'" in text
    assert f"{name}:" not in text.replace(f"'{shown}'", "quoted"), text


def test_a_blank_name_leaves_other_text_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpsim.base.files.escaping._blanks", {})
    note_names([" ", "d=\t"])
    text = "a : b\n  x : y\n\tc\td: e\n = f, of g"
    assert escaped(text) == text
    assert escaped(" : error: it\n2= : no array\nwrote \t") == "' ': error: it\n2=' ': no array\nwrote '\\t'"


def test_text_that_is_no_control_stays() -> None:
    text = "Größe\u00a0Δδ 行列 🙂\ta\nb ✓"
    assert escaped(text) == text
    assert escaped("\r\udcff\u2028\u200b\u2066") == r"\r\udcff\u2028\u200b\u2066"


def test_colours_of_our_own_are_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr(output.click, "echo", lambda text, **_: said.append(text))
    output.say("\x1bx", "red")
    assert said == ["\x1b[31m\\x1bx\x1b[0m"]


@pytest.mark.parametrize(("terminal", "shown"), [(True, "\\x1b[2J\r1%\n"), (False, "\x1b[2J\r1%\n")])
def test_what_device_code_prints_goes_on_as_it_is_but_to_a_terminal(
    terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str]()
    monkeypatch.setattr(output.click, "echo", lambda text, **_: said.append(text))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    output.pass_on("\x1b[2J\r1%\n")
    assert said == [shown]


def test_names_of_arrays_are_printable(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a\nb.npy", b"")
    with pytest.raises(TraceError, match=r"array 'a\\nb': expected a name of printable characters"):
        read_arrays(tmp_path / "a.npz")
    assert os.listdir(tmp_path) == ["a.npz"]
