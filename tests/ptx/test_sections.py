"""What stands in sections: numbers in range of their type, labels, their differences, and places."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.helpers import ptxas
from warpsim.base.errors import PtxError, WarpsimError
from warpsim.machine.load.program import Module
from warpsim.programs.launch.launching import load_text
from warpsim.ptx.parser import parse
from warpsim.ptx.sections import labels_of
from warpsim.ptx.statements import Directive

HEAD = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k() {\nL: ret;\n}\n"
TAKEN = (
    "{ }",
    "{ .b8 1,2 , 255 }",
    "{ .b8 -128, 0x10, 017, 1U }",
    "{ .b16 65535 .b16 -32768 }",
    "{ .b32 4294967295, -2147483648 }",
    "{ .b64 18446744073709551615, -5 }",
    "{ .b32 L .b64 L+4 .b32 nope }",
    "{ first: .b8 1 last: .b32 last - first }",
    "{ .b64 .debug_line .b32 .debug_abbrev + 0x10 }",
    "{ first: second: }",
    "{ .b8 1, // one\n 2 /* two: */ }",
)
NUMBERS = "a label, '.b8', '.b16', '.b32', '.b64' or '}'"
REFUSED = {
    "{ .b8 }": "expected an integer, found '}'",
    "{ .b8 1 2 }": f"expected {NUMBERS}, found '2'",
    "{ .b8 1, }": "expected an integer, found '}'",
    "{ .b8 256 }": "256 is not a .b8: -128 to 255",
    "{ .b8 1, 300, 2 }": "300 is not a .b8: -128 to 255",
    "{ .b8 -129 }": "-129 is not a .b8: -128 to 255",
    "{ .b16 65536 }": "65536 is not a .b16: -32768 to 65535",
    "{ .b8 -1U }": "a negative integer has no U",
    "{ .b8 1.5 }": "expected an integer, found '1.5'",
    "{ .b32 0f3F800000 }": "expected an integer, a label or a section, found '0f3F800000'",
    "{ .b8 (1) }": "expected an integer, found '('",
    "{ .b8 L }": "expected an integer, found 'L'",
    "{ .b16 .debug_str }": "expected an integer, found '.debug_str'",
    "{ .b32 1, L }": "expected an integer, a label or a section, found 'L'",
    "{ .b32 L+L }": "expected an integer, found 'L'",
    "{ .b32 L+WARP_SZ }": "expected an integer, found 'WARP_SZ'",
    "{ .b32 L-1 }": "expected a label, found '1'",
    "{ .b32 .debug_str-L }": f"expected {NUMBERS}, found '-'",
    "{ .b32 .global }": "'.global' is a word of PTX, not the name of a section",
    "{ .u8 1 }": f"expected {NUMBERS}, found '.u8'",
    "{ .b8 1; }": f"expected {NUMBERS}, found ';'",
    "{ { .b8 1 } }": f"expected {NUMBERS}, found '{{'",
    '{ "text" }': f"expected {NUMBERS}, found '\"text\"'",
    "{ .b8 1": f"expected {NUMBERS}, found the end of the text",
    "{ WARP_SZ: .b8 1 }": f"expected {NUMBERS}, found 'WARP_SZ'",
    "{ same: .b8 1 same: }": "the label same stands in sections twice",
}
NAMES = {
    "debug_str": "expected the name of a section, such as '.debug_str', found 'debug_str'",
    ".entry": "'.entry' is a word of PTX, not the name of a section",
    "": "expected the name of a section, such as '.debug_str', found '{'",
}


def refused(text: str) -> str:
    """Return why a module is refused, "" where it is not."""
    try:
        problems: list[WarpsimError] = load_text(HEAD + text).problems
    except PtxError as error:
        problems = [error]
    return "".join(problem.message for problem in problems)


CASES = {
    **{f".section .debug_str {text}": "" for text in TAKEN},
    **{f".section .debug_str {text}": said for text, said in REFUSED.items()},
    **{f".section {name} {{ .b8 1 }}": said for name, said in NAMES.items()},
    ".section .debug_str { a: } .section .debug_info { .b32 a }": "",
    ".section .debug_str { a: } .section .debug_info { a: }": "the label a stands in sections twice",
}


@pytest.mark.parametrize("text", CASES)
def test_sections(text: str) -> None:
    assert refused(text) == CASES[text]


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there is a ptxas")
def test_ptxas_judges_the_same(tmp_path: Path) -> None:
    path = tmp_path / "module.ptx"
    command = [str(ptxas.program()), "-arch=sm_80", "-c", "-o", str(tmp_path / "module.cubin"), str(path)]
    taken = []
    for text in CASES:
        path.write_text(HEAD + text + "\n")
        taken.append(subprocess.run(command, capture_output=True, check=False).returncode == 0)
    assert taken == [not said for said in CASES.values()]


def test_a_section_is_one_statement_wherever_its_lines_end() -> None:
    text = ".section .debug_str\n{\n.b8 97,98,\n 0\nend:\n.b32 end\n}"
    (section,) = parse(text).statements
    assert isinstance(section, Directive)
    assert (section.name, section.text) == ("section", text.removeprefix(".section "))
    assert labels_of(text) == ["end"]


def test_sections_may_be_long() -> None:
    text = ".section .debug_str { " + "\n".join([".b8 97,98,99,0"] * 20_000) + " }"
    assert Module(parse(HEAD + text)).problems == []
