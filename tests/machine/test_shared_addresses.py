"""Where variables in shared memory lie, as a launched kernel sees their addresses."""

from __future__ import annotations

import numpy as np

from warpsim.programs.launch.launching import load_text

_HEAD = ".version 8.5\n.target sm_80\n.address_size 64\n"


def kernel(name: str, declarations: str, variables: tuple[str, ...]) -> str:
    """A kernel that writes the addresses of variables to its parameter."""
    stores = "\n".join(
        f"  mov.u32 %r1, {variable};\n  st.global.u32 [%rd1+{4 * place}], %r1;"
        for place, variable in enumerate(variables)
    )
    return f""".visible .entry {name}(.param .u64 out)
{{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  {declarations}
  ld.param.u64 %rd1, [out];
{stores}
  ret;
}}
"""


def addresses(text: str, name: str, count: int, shared_bytes: int = 0) -> list[int]:
    found = np.zeros(count, np.uint32)
    load_text(_HEAD + text)[name](1, 1, [found], shared_bytes=shared_bytes)
    return found.tolist()


def test_kernels_do_not_pay_for_each_others_variables() -> None:
    declaration = ".shared .align 16 .b8 tile[40000];"
    text = "".join(kernel(f"k{number}", declaration, ("tile",)) for number in range(8))
    assert [addresses(text, f"k{number}", 1) for number in range(8)] == [[0]] * 8


def test_what_the_module_declares_lies_apart_from_what_kernels_do() -> None:
    text = ".shared .align 4 .b8 common[20];\n"
    text += kernel("one", ".shared .align 16 .b8 own[100];", ("common", "own"))
    text += ".shared .align 4 .b8 later[8];\n"
    text += kernel("two", ".shared .align 4 .b8 own[4];", ("common", "later", "own"))
    assert addresses(text, "one", 2) == [0, 32]
    assert addresses(text, "two", 3) == [0, 20, 28]


def test_kernels_pay_for_what_they_name_of_the_module() -> None:
    text = ".shared .align 4 .b8 vast[40000];\n.func other() { ret; }\n"
    text += kernel("one", ".shared .align 4 .b8 own[20];", ("own",))
    text += kernel("two", ".shared .align 4 .b8 own[20]; call other;", ("own",))
    text += kernel("three", ".shared .align 4 .b8 own[20]; { mov.u32 %r1, vast; }", ("own",))
    assert [addresses(text, name, 1) for name in ("one", "two", "three")] == [[0], [40000], [40000]]


def test_what_a_function_declares_lies_apart_from_what_kernels_do() -> None:
    """Any kernel may call it: its variables are behind those of the kernels before, before those after."""
    text = kernel("one", ".shared .align 4 .b8 own[20];", ("own",))
    text += ".func helper() { .shared .align 4 .b8 kept[12]; st.shared.u32 [kept], 7; ret; }\n"
    called = ".shared .align 4 .b8 own[4]; call helper; mov.u32 %r1, 20; ld.shared.u32 %r1, [%r1];"
    text += kernel("two", called, ("own",))
    assert addresses(text, "one", 1) == [0]
    assert addresses(text, "two", 1) == [32]


def test_dynamic_shared_memory_begins_where_its_alignment_allows() -> None:
    text = ".extern .shared .align 128 .b8 rest[];\n"
    text += kernel("one", ".shared .align 4 .b8 own[20];", ("own", "rest"))
    assert addresses(text, "one", 2, shared_bytes=64) == [0, 128]
