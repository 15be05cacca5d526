"""The source lines of statements, as .file and .loc name them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from warpsim.ptx.parser import parse
from warpsim.ptx.source import Source
from warpsim.ptx.statements import Kernel, instructions_of

TEXT = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry first()
{
	.reg .b32 %r<4>;
	mov.u32 %r0, 0;
	.loc	1 3 5
	mov.u32 %r1, 1;
$L__tmp0:
	.loc	2 7 9, function_name $L__info_string0, inlined_at 1 4 3
	mov.u32 %r2, 2;
	.loc	1 0 0
	mov.u32 %r3, 3;
	.loc 1 5 1 // gemm.cu:5:1
	ret;
}
.func second()
{
	ret;
}
	.file	1 "/nowhere/gemm.cu"
	.file	2 "/nowhere/tile.h", 1700000000, 1234
	.section	.debug_str
	{
$L__info_string0:
.b8 116, 0
	}
"""


def lines(file: str) -> Sequence[str]:
    return [f"{file}, line {number}" for number in range(1, 10)]


def instructions(text: str, **options: object) -> list:
    program = parse(text, "gemm.ptx", **options)
    return [
        one
        for kernel in program.statements
        if isinstance(kernel, Kernel)
        for one in instructions_of(kernel.body)
    ]


def test_each_statement_has_the_line_of_the_loc_before_it() -> None:
    sources = [one.location().source for one in instructions(TEXT)]
    assert [source and str(source) for source in sources] == [
        None,
        "/nowhere/gemm.cu:3",
        "/nowhere/tile.h:7",
        None,
        "/nowhere/gemm.cu:5",
        None,  # of another function
    ]


def test_an_inlined_statement_names_the_call() -> None:
    source = instructions(TEXT)[2].location().source
    assert str(source.inlined_at) == "/nowhere/gemm.cu:4"


def test_the_source_comes_first_and_is_quoted() -> None:
    location = instructions(TEXT, read=lines)[2].location()
    assert str(location) == "/nowhere/tile.h:7 (gemm.ptx:13:2)"
    assert location.excerpt() == (
        "    /nowhere/tile.h, line 7\n"
        "    inlined at /nowhere/gemm.cu:4\n"
        "    /nowhere/gemm.cu, line 4\n"
        "    \tmov.u32 %r2, 2;\n"
        "    \t^~~~~~~"
    )


def test_files_below_the_current_folder_are_named_from_there(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace("/nowhere/gemm.cu", str(tmp_path / "gemm.cu"))
    assert str(instructions(text)[1].location().source) == "gemm.cu:3"


def test_a_line_behind_the_end_of_the_file_has_no_text() -> None:
    assert instructions(TEXT, read=lambda file: ["only one"])[1].location().source.text == ""


@pytest.mark.parametrize("text", ["", ".loc 1 2 3\n", '.file 1 "a"\n', '.loc 9 9 9\n.file 1 "a"\nx'])
def test_texts_without_lines(text: str) -> None:
    assert Source(text).location(len(text)).source is None
