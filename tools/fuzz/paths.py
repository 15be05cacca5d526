"""Random legal instructions and operands, computed on every path: all of them give the same bits.

One case alone and in a batch, compiled and in plain integers, from registers and as matrices, as a whole
product; wgmma with A in registers and in shared memory.
"""

from __future__ import annotations

import sys
import time
from random import Random
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.codes import codes_of


def compare_paths(seed: str, seconds: float, most: int | None = None) -> int:
    """Compare for a while; 1 if any bit differs."""
    forms = [
        form for target in ("sm_80", "sm_89", "sm_90a", "sm_120a") for form in warpsim.instructions(target)
    ]
    stop, number, found = time.monotonic() + seconds, 0, 0
    while time.monotonic() < stop and number != most:
        rng = Random(f"paths {seed} {number}")
        form = rng.choice(forms)
        try:
            wrong = different(
                form, rng.randrange(1 << 30), rng.randint(1, 40), rng.choice(("shared", "registers"))
            )
        except warpsim.NotModelled:
            wrong = []
        for path in wrong:
            print(f"seed {seed}, case {number}: {form.mnemonic} on {form.target}: {path} differs", flush=True)
        found += bool(wrong)
        number += 1
    print(f"{number} instructions, {found} finds", file=sys.stderr)
    return int(found > 0)


def different(form: Any, seed: int, cases: int, a_in: str) -> list[str]:
    """The paths whose bits differ from those of the compiled kernels on the whole batch."""
    kind = "corner" if seed % 2 else "random"
    vectors = warpsim.generate_vectors(form, kind=kind, count=cases, seed=seed, a_in=a_in)
    wrong = []
    for part in vectors.inputs():
        d, arguments = vectors.d[part.cases], dict(part.arguments)
        names = [name for name, value in arguments.items() if getattr(value, "ndim", 0)]
        batch = warpsim.execute(form, **arguments)
        checks = {"the batch": batch}
        one = len(d) // 2
        alone = {name: value[one] if name in names else value for name, value in arguments.items()}
        checks["the reference"] = warpsim.execute(form, engine="reference", **alone)[None]
        checks["one alone"] = warpsim.execute(form, **alone)[None]
        checks |= _as_matrices(form, arguments)
        for path, found in checks.items():
            wanted = d if path in ("the batch", "matmul") else d[one : one + 1] if path != "gemm" else d[:1]
            if not np.array_equal(found, wanted):
                wrong.append(path)
    return wrong


def _as_matrices(form: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """D registers by matmul and gemm, of instructions whose operands are all plain registers."""
    plain = {"a", "b", "c", "e", "selector"}
    if arguments.keys() - plain or form.products > 1:
        return {}
    a, b, c = (warpsim.unpack(form, name, arguments[name]) for name in "abc")
    left: Any = a
    if form.sparse:
        left = (a, warpsim.unpack_metadata(form, arguments["e"], arguments.get("selector", 0)))
    found = {"matmul": warpsim.pack(form, "d", warpsim.matmul(form, left, b, c))}
    if form.c == form.d:
        first = (left[0][0], left[1][0]) if form.sparse else left[0]
        product = warpsim.gemm(form, first, b[0], c[0])
        found["gemm"] = warpsim.pack(form, "d", codes_of(product, form.d, "D"))[None]
    return found
