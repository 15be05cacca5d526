"""PTX texts that are linked to a single text: linkages, static names, files, order."""

from __future__ import annotations

import pytest

from warpsim.programs.exec.clients.device_functions import device_functions
from warpsim.programs.exec.clients.ptx_linking import linked, pieces

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def declarations(*texts: str) -> list[str]:
    return linked([HEADER + text for text in texts]).removeprefix(HEADER).splitlines()


def test_a_single_text_stays_as_it_is() -> None:
    assert linked([HEADER + "// words"]) == HEADER + "// words"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # a declaration goes where the definition is, and a definition where it is used first
        (".extern .global .u32 v;", ".visible .global .u32 v = 3;", [".visible .global .u32 v = 3;"]),
        (".visible .global .u32 v;", ".extern .global .u32 v;", [".visible .global .u32 v;"]),
        (".extern .const .b8 t[4];", ".extern .const .b8 t[4];", [".extern .const .b8 t[4];"]),
        (".extern .shared .b8 s[];", ".extern .shared .b8 s[];", [".extern .shared .b8 s[];"]),
        # static names
        (
            ".global .b8 t[2] = {1, 2};",
            ".global .b8 t[2] = {3, 4};\n.visible .global .u64 p = t;",
            [
                ".global .b8 t[2] = {1, 2};",
                ".global .b8 t__link2[2] = {3, 4};",
                ".visible .global .u64 p = t__link2;",
            ],
        ),
        # weak functions once; a prototype before what uses it, with the linkage of the definition
        (".weak .func f()\n{ ret; }", ".weak .func f()\n{ exit; }", [".weak .func f()", "{ ret; }"]),
        (
            ".extern .func f();\n.global .u64 p = f;",
            ".visible .func f()\n{ ret; }",
            [".visible .func f();", ".global .u64 p = f;", ".visible .func f()", "{ ret; }"],
        ),
        # numbers of files, and braces in comments and strings
        (
            '.file 1 "a{.cu"\n.entry a()\n{ /* } */ .loc 1 2 3\nret; }',
            '.file 1 "b.cu"\n.entry b()\n{ .loc 1 2 3, function_name $L__info_string0, '
            "inlined_at 1 4 5\nret; }",
            [
                '.file 1 "a{.cu"',
                '.file 2 "b.cu"',
                *(".entry a()", "{ /* } */ .loc 1 2 3", "ret; }", ".entry b()"),
                "{ .loc 2 2 3, function_name $L__info_string0__link2, inlined_at 2 4 5",
                "ret; }",
            ],
        ),
    ],
)
def test_two_texts(first: str, second: str, expected: list[str]) -> None:
    assert declarations(first, second) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            (".version 9.0", ".target sm_90a"),
            (".version 9.1", ".target sm_90"),
            (".version 9.1", ".target sm_90a"),
        ),
        (
            (".version 8.10", ".target sm_80"),
            (".version 8.9", ".target sm_120"),
            (".version 8.10", ".target sm_120"),
        ),
    ],
)
def test_the_highest_version_and_target_are_taken(
    first: tuple[str, str], second: tuple[str, str], expected: tuple[str, str]
) -> None:
    bodies = (".entry a()\n{ ret; }", ".entry b()\n{ ret; }")
    texts = ["\n".join((*header, body)) for header, body in zip((first, second), bodies, strict=True)]
    assert tuple(linked(texts).splitlines()[:2]) == expected


def test_labels_of_debug_sections_belong_to_their_text() -> None:
    """Those of strings, and of places that the debugger looks up; labels of functions stay."""
    text = ".section .debug_loc\n{\n$L__debug_loc0:\n.b64 $L__tmp0\n.b32 $L__info_string1\n}"
    lines = declarations(text, text)
    assert lines[len(lines) // 2 :] == [
        ".section .debug_loc",
        "{",
        "$L__debug_loc0__link2:",
        ".b64 $L__tmp0",
        ".b32 $L__info_string1__link2",
        "}",
    ]


def test_what_no_text_defines_stays_declared() -> None:
    lines = declarations(
        ".extern .func g(.param .b32 x);", ".extern .func g(.param .b32 x);\n.entry a()\n{ ret; }"
    )
    assert lines == [".extern .func g(.param .b32 x);", ".entry a()", "{ ret; }"]


def test_declarations_have_names() -> None:
    text = (
        "\n// words\n/* more */ "
        + HEADER
        + ".visible .global .align 4 .v2 .f32 v[2][3] = {{1, 2}, {3}};\n"
        + ".visible .func (.param .b32 r) f\n(\n.param .b32 x\n)\n"
        + "{ { ret; } }\n.extern .func (.param .b32 r) h\n(\n)\n;"
    )
    assert [(each.name, each.linkage, each.function, each.body) for each in pieces(text)] == [
        ("v", "visible", False, False),
        ("f", "visible", True, True),
        ("h", "extern", True, False),
    ]


def test_functions_of_the_device_runtime_that_are_declared() -> None:
    declared = ".extern .func  (.param .b32 r) cudaCGSynchronize\n(\n)\n;"
    assert [name for text in device_functions([declared]) for name in text.split() if "CG" in name] == [
        "cudaCGSynchronize"
    ]
