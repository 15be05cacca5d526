"""Small kernels around a few PTX statements: each thread has its own inputs and outputs, 32 or 64 bits wide.

Knows how to load, store and launch. Knows nothing about what the statements do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.observe.checks.findings import Mode
from warpsim.programs.launch.launching import load_text

Words = npt.NDArray[Any]
NUMBER = """mov.u32 %n, %ctaid.x; mov.u32 %t0, %ntid.x; mov.u32 %t1, %tid.x; mad.lo.u32 %n, %n, %t0, %t1;
mov.u32 %lane, %laneid;"""


def _moved(name: str, place: int, bits: int, store: bool) -> str:
    address = f"ld.param.u64 %x, [p{place}]; mad.wide.u32 %x, %n, {bits // 8}, %x;"
    return (
        f"{address} st.global.b{bits} [%x], %{name};"
        if store
        else f"{address} ld.global.b{bits} %{name}, [%x];"
    )


def text_of(
    body: str, inputs: Mapping[str, int], outputs: Mapping[str, int], buffers: int, target: str
) -> str:
    """A module with the kernel k; inputs, outputs (name -> bits) and then buffers are its parameters."""
    names = [*inputs, *outputs]
    count = len(names) + buffers
    parameters = ", ".join(f".param .u64 p{place}" for place in range(count))
    registers = " ".join(f".reg .b{bits} %{name};" for name, bits in {**inputs, **outputs}.items())
    lines = [_moved(name, place, bits, False) for place, (name, bits) in enumerate(inputs.items())]
    lines += [f"mov.b{bits} %{name}, 0;" for name, bits in outputs.items()]
    lines += [f"ld.param.u64 %buffer{place}, [p{len(names) + place}];" for place in range(buffers)]
    ends = [
        _moved(name, len(inputs) + place, bits, True) for place, (name, bits) in enumerate(outputs.items())
    ]
    return f""".version {"6.3" if target == "sm_70" else "9.0"}
.target {target}
.address_size 64
.visible .entry k({parameters}) {{
.reg .b32 %n, %lane, %t<9>; .reg .b64 %x, %y<9>, %buffer<9>; .reg .b16 %h<9>; .reg .pred %p<9>; {registers}
.shared .align 128 .b8 sm[1024];
{NUMBER}
{chr(10).join(lines)}
{body}
{chr(10).join(ends)}
ret;
}}
"""


def run(
    body: str,
    inputs: Mapping[str, Words],
    outputs: Mapping[str, int],
    *,
    threads: int,
    ctas: int = 1,
    buffers: Sequence[Words] = (),
    target: str = "sm_100a",
    checks: Mode = "error",
) -> dict[str, Words]:
    """Outputs by name, one value a thread; ``buffers`` are changed in place."""
    widths = {name: values.dtype.itemsize * 8 for name, values in inputs.items()}
    text = text_of(body, widths, outputs, len(buffers), target)
    found = {name: np.zeros(threads * ctas, f"u{bits // 8}") for name, bits in outputs.items()}
    load_text(text)["k"](ctas, threads, [*inputs.values(), *found.values(), *buffers], checks=checks)
    return found
