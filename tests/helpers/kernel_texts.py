"""PTX kernels that load registers from arrays, execute one statement, and store registers to arrays.

Lane t of the grid reads and writes row t of every array. Knows the text around a statement; does not know
what statements do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.observe.checks.findings import Mode
from warpsim.programs.launch.launching import LaunchReport, load_text

Array = npt.NDArray[Any]

_LINEAR = """
    mov.u32 %own, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mad.lo.u32 %lane, %cta, %size, %own;
"""


def header(target: str, version: str = "9.0") -> str:
    """The directives that open a module."""
    return f".version {version}\n.target {target}\n.address_size 64\n"


def registers(name: str, count: int) -> str:
    """``{%a0, %a1}``: the vector of an array's registers."""
    return "{" + ", ".join(f"%{name}{place}" for place in range(count)) + "}"


def _moved(opcode: str, number: int, name: str, array: Array) -> str:
    """Loads or stores of the row of a lane."""
    bits, count = 8 * array.dtype.itemsize, array.shape[-1]
    lines = [
        f"ld.param.u64 %base, [p{number}];",
        f"mul.wide.u32 %row, %lane, {count * array.dtype.itemsize};",
        "add.u64 %base, %base, %row;",
    ]
    for place in range(count):
        where, register = f"[%base+{place * array.dtype.itemsize}]", f"%{name}{place}"
        operands = (register, where) if opcode == "ld" else (where, register)
        lines.append(f"{opcode}.global.b{bits} {', '.join(operands)};")
    return "\n".join(lines)


def kernel(
    target: str,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    body: str,
    shared: int = 0,
    extra: str = "",
) -> str:
    """The text of a kernel ``k``; registers of array ``a`` are ``%a0``, ``%a1``, …"""
    arrays = {**inputs, **outputs}
    parameters = ", ".join(f".param .u64 p{number}" for number in range(len(arrays)))
    declared = "\n".join(
        f".reg .b{8 * array.dtype.itemsize} %{name}<{array.shape[-1]}>;" for name, array in arrays.items()
    )
    loads = "\n".join(_moved("ld", i, name, array) for i, (name, array) in enumerate(inputs.items()))
    stores = "\n".join(
        _moved("st", len(inputs) + i, name, one) for i, (name, one) in enumerate(outputs.items())
    )
    memory = f".shared .align 128 .b8 memory[{shared}];" if shared else ""
    return (
        f"{header(target)}.visible .entry k({parameters}) {{\n{declared}\n{memory}\n{extra}\n"
        ".reg .b32 %own, %cta, %size, %lane; .reg .b64 %base, %row;\n"
        f"{_LINEAR}{loads}\n{body}\n{stores}\nret;\n}}\n"
    )


def run(
    target: str,
    ctas: int,
    threads: int,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, tuple[int, npt.DTypeLike]],
    body: str,
    checks: Mode = "error",
    **more: Any,
) -> dict[str, Array]:
    """Outputs ``(lanes of the grid, registers)`` of a launch; ``outputs`` are registers and dtype of each."""
    made = {name: np.zeros((ctas * threads, n), dtype) for name, (n, dtype) in outputs.items()}
    rows = {name: np.ascontiguousarray(one.reshape(ctas * threads, -1)) for name, one in inputs.items()}
    text = kernel(target, rows, made, body, **more)
    arguments: Sequence[Array] = [*rows.values(), *made.values()]
    report = load_text(text)["k"](ctas, threads, arguments, checks=checks)
    assert isinstance(report, LaunchReport)
    return made
