"""Results in floating-point environments that another library has left behind, as digests.

Run as a script, ``environments.py ENVIRONMENT [few]``, it sets the environment before warpsim is imported, as
a library would have, and prints JSON: the digest of every result, and which calls left another environment
than they found. What is right is not known here: test_environment.py compares the digests of the
environment "default" with the others.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import numpy as np

_C = ctypes.CDLL(None)
_UP, _DOWN, _ZERO = {  # as glibc numbers them
    "aarch64": (0x400000, 0x800000, 0xC00000)
}.get(platform.machine(), (0x800, 0x400, 0xC00))
_ROUNDINGS = {"up": _UP, "down": _DOWN, "zero": _ZERO}
_PLACE = {"x86_64": 28, "aarch64": 0}  # in fenv_t, of the control word: MXCSR, FPCR
_FLUSHING = {  # its bits: FTZ and DAZ, FZ
    "x86_64": {"flush": 0x8040, "operands": 0x40, "results": 0x8000},
    "aarch64": {"flush": 1 << 24},
}
_EXCEPTIONS = {"x86_64": 0x3F, "aarch64": 0}  # that have occurred
ENVIRONMENTS = ("flush", "up", "down", "zero", "flush up")


def supported() -> bool:
    """Whether environments can be set here."""
    return platform.libc_ver()[0] == "glibc" and platform.machine() in _PLACE


def control() -> int:
    """The control word of this thread: rounding, flushing and masks, without the exceptions that occurred."""
    machine, environment = platform.machine(), ctypes.create_string_buffer(64)
    _C.fegetenv(environment)
    word: int = struct.unpack_from("<I", environment.raw, _PLACE[machine])[0]
    return word & ~_EXCEPTIONS[machine]


def set_environment(name: str) -> None:
    """Set this thread's environment: "default", or a rounding, or what is flushed, or both."""
    machine, environment = platform.machine(), ctypes.create_string_buffer(64)
    _C.fesetenv(ctypes.c_void_p(-1))
    for part in name.split():
        if part in _ROUNDINGS:
            assert _C.fesetround(_ROUNDINGS[part]) == 0
        elif part in _FLUSHING[machine]:
            _C.fegetenv(environment)
            word = struct.unpack_from("<I", environment, _PLACE[machine])[0]
            struct.pack_into("<I", environment, _PLACE[machine], word | _FLUSHING[machine][part])
            _C.fesetenv(environment)
        else:
            assert part == "default", part


Job = tuple[str, Callable[[], Any]]


def codes(element: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Random codes; those of floats are mostly subnormal or near 1, except in the first matrix of a batch."""
    code = rng.integers(0, element.mask, shape, np.uint64, endpoint=True)
    if element.is_float and element.fraction_bits:
        fraction = element.fraction_bits + element.ignored_bits
        field = np.clip(element.bias + rng.integers(-2, 2, shape), 1, None)
        field = np.where(rng.random(shape) < 0.4, 0, field).astype(np.uint64)
        tame = code & np.uint64((1 << fraction) - 1 | element.sign_bit) | field << np.uint64(fraction)
        code = np.where((np.arange(shape[0]) > 0)[:, None, None], tame, code)
    elif element.is_float:
        code = np.clip(code, element.bias - 3, element.bias + 3)
    return code.astype(element.code_dtype)


def forms(every: int) -> Iterator[Any]:
    """One instruction for each ``every``-th of the distinct arithmetics, and a few; of 0 these, of -1 one."""
    from tests.helpers import nasty

    found: dict[Any, Any] = {}
    for form in nasty.arithmetics():
        key = (nasty.arithmetic(form)[0], form.family.rules, form.d.name, form.sparse, str(form.scale))
        found.setdefault(key, form)
    chosen = ("f16.f16.f16.f16", "f32.tf32.tf32.f32", "f32.e4m3.e4m3.f32", "m8n8k4.row.row.f32.f16.f16.f32")
    chosen = chosen if every >= 0 else ("m8n8k4.row.row.f32.f16.f16.f32",)
    for number, form in enumerate(found.values()):
        if (every > 0 and number % every == 0) or (
            form.target in ("sm_70", "sm_80", "sm_89") and form.mnemonic.endswith(chosen)
        ):
            yield form


def _many(array: Any) -> Any:
    """So many cases that they go to other kernels, and are shared out among threads."""
    return np.tile(array, (440, *(1 for _ in array.shape[1:])))


def _by_numpy(job: Callable[[], Any]) -> Any:
    """The result of a call for which nothing is compiled."""
    from tests.helpers.compilation import done_by_numpy

    with done_by_numpy():
        return job()


def jobs(form: Any, rng: np.random.Generator, many: bool) -> Iterator[Job]:
    """Calls on an instruction: of every public function that computes."""
    import warpsim

    shapes = {name: form.matrix_shape(name) for name in "abc"}
    given = {name: codes(form.format(name), (5, *shape), rng) for name, shape in shapes.items()}
    a, b, c = (given[name] for name in "abc")
    values = a
    scales: dict[str, Any] = {}
    if form.scale:
        shape = (5, form.shape.m, form.scale_chunks), (5, form.scale_chunks, form.shape.n)
        scales = {"scale_a": codes(form.scale, shape[0], rng), "scale_b": codes(form.scale, shape[1], rng)}
    if form.sparse:
        logical = codes(form.a, (5, form.shape.m, form.shape.k), rng)
        matrix = logical.view(form.a.dtype) if form.a.is_float else logical
        yield "prune", lambda: warpsim.prune(matrix, form)
        pruned = np.zeros_like(logical)
        keep = np.arange(form.shape.k) % (2 * form.pattern.unit) < form.pattern.unit
        pruned[..., keep] = logical[..., keep]
        yield "compress", lambda: warpsim.compress(pruned, form)
        yield "matmul pruned", lambda: warpsim.matmul(form, pruned, b, c, **scales)
        units = np.tile(np.arange(form.pattern.kept), form.stored_k // form.pattern.stored).astype(np.uint8)
        a = (a, np.broadcast_to(units, (5, form.shape.m, len(units))))
    yield "matmul", lambda: warpsim.matmul(form, a, b, c, **scales)
    yield "matmul by NumPy", lambda: _by_numpy(lambda: warpsim.matmul(form, a, b, c, **scales))
    if many:
        lots = tuple(map(_many, a)) if form.sparse else _many(a), _many(b), _many(c)
        yield "matmul many", lambda: warpsim.matmul(form, *lots, **{x: _many(y) for x, y in scales.items()})
    if form.family.rules != "wgmma" and not form.scale and form.products == 1:
        words = {name: warpsim.pack(form, name, x) for name, x in (("a", values), ("b", b), ("c", c))}
        if form.sparse:
            words["e"] = warpsim.pack_metadata(form, a[1])
        yield "execute batched", lambda: warpsim.execute(form, **words)
        if many:
            yield "execute many", lambda: warpsim.execute(form, **{x: _many(y) for x, y in words.items()})
        one = {name: np.ascontiguousarray(x[1]) for name, x in words.items()}
        yield "execute", lambda: warpsim.execute(form, **one)
        yield "unpack", lambda: [warpsim.unpack(form, name, words[name]) for name in "abc"]
    yield "vectors", lambda: warpsim.generate_vectors(form, count=12, seed=1).arrays().values()
    if form.c != form.d:
        return
    a = tuple(np.concatenate(x[1:4], axis=1) for x in a) if form.sparse else np.concatenate(a[1:4], axis=1)
    b = np.concatenate([np.tile(x, (1, 9)) for x in b[1:4]])
    if form.scale:
        scales["scale_a"] = np.concatenate(scales["scale_a"][1:4], axis=1)
        scales["scale_b"] = np.concatenate([np.tile(x, (1, 9)) for x in scales["scale_b"][1:4]])
    c = np.tile(c[1], (1, 9))
    for threads in (1, 2):
        yield (
            f"gemm {threads}",
            lambda threads=threads: warpsim.gemm(form, a, b, c, threads=threads, **scales),
        )
    if form.d.is_float:
        yield "promote", lambda: warpsim.gemm(form, a, b, c, promote_every=2, **scales)
    yield "split", lambda: warpsim.gemm(form, a, b, c, split_k=2, **scales)
    if form.sparse:
        yield "gemm_sparse", lambda: warpsim.gemm_sparse(form, a[0], a[1], b, c, **scales)


def text_jobs() -> Iterator[Job]:
    """Calls that read or write numbers as text, or search."""
    import warpsim
    from warpsim.show.views.coverage import coverage_lines
    from warpsim.workbench.inputs.register_text import matrix_from

    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, 0x3C00, form.matrix_shape(name), np.uint16) for name in "ab"}
    codes["c"] = rng.integers(0, 0x1000000, form.matrix_shape("c"), np.uint32)
    words = {name: warpsim.pack(form, name, matrix) for name, matrix in codes.items()}
    d = warpsim.execute(form, **words, engine="reference")
    swapped = words | {"a": words["a"][:, [0, 2, 1, 3]]}
    yield "explain", lambda: str(warpsim.explain(form, 3, 5, **words))
    yield "compare_targets", lambda: str(warpsim.compare_targets(form, 3, 5, ["sm_80", "sm_90"], **words))
    yield "diagnose", lambda: str(warpsim.diagnose(form, d=d, **swapped))
    yield "compare_registers", lambda: str(warpsim.compare_registers(d, d ^ 1, "f32"))
    yield "draw_layout", lambda: warpsim.draw_layout(form, format="svg")
    yield (
        "constants",
        lambda: _constants("0.1", "0.3", "2.2250738585072014e-308", "1.0 / 3.0", "0d000012688B70E62B * 3.0"),
    )
    yield "matrix", lambda: matrix_from("0.1 0.3 1e-310 2.2250738585072011e-308", 4)
    yield (
        "coverage",
        lambda: "\n".join(coverage_lines(warpsim.coverage(warpsim.generate_vectors(form, count=30)))),
    )
    yield "separate", lambda: str(warpsim.separate(form, "sm_80", "sm_90").terms)
    yield "statements of a warp", lambda: _statements(warpsim.Warp("sm_80"))
    yield "statements of a warpgroup", lambda: _statements(warpsim.Warpgroup())


def _statements(machine: Any) -> list[Any]:
    """Registers that statements outside a launch compute: sums that are subnormal, and rounded products."""
    rng = np.random.default_rng(1)
    small, near_one = np.uint32(0x1000), np.uint32(0x3F800000)
    for name, first in (("%f0", 0), ("%f1", 0), ("%f2", near_one), ("%f3", near_one)):
        machine[name] = rng.integers(0, small, machine.lanes, np.uint32) + np.uint32(first)
    machine.run(
        "add.f32 %f4, %f0, %f1; mul.f32 %f5, %f2, %f3; fma.rn.f32 %f6, %f2, %f3, %f0;"
        "div.rn.f32 %f7, %f2, %f3; ex2.approx.f32 %f8, %f2; cvt.rn.f16.f32 %h9, %f2;"
        "sqrt.rn.f32 %f10, %f3; sub.rm.f32 %f11, %f0, %f2;"
    )
    return [machine[name] for name in ("%f4", "%f5", "%f6", "%f7", "%f8", "%h9", "%f10", "%f11")]


def _constants(*constants: str) -> Any:
    """The bits of constant expressions of PTX, as f64."""
    import warpsim

    warp = warpsim.Warp(target="sm_80")
    for number, text in enumerate(constants):
        warp.run(f".reg .f64 %x{number}; mov.f64 %x{number}, {text};")
    return [warp[f"%x{number}"] for number in range(len(constants))]


def digest(result: Any) -> str:
    """Of a text, an array, or several."""
    state = hashlib.sha256()
    if isinstance(result, str):
        return hashlib.sha256(result.encode()).hexdigest()[:16]
    for array in [result] if isinstance(result, np.ndarray) else list(result):
        array = np.ascontiguousarray(array)
        state.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
    return state.hexdigest()[:16]


def all_jobs(every: int) -> Iterator[Job]:
    """All of them with 1, or those of some forms; a job has the same name and result in all."""
    from tests.helpers import nasty
    from tests.helpers.opcode_results import opcode_jobs

    yield from text_jobs()
    yield from opcode_jobs(every > 0)
    for form in forms(every):
        title = nasty.name(form)
        for name, job in jobs(form, np.random.default_rng(crc32(title.encode())), many=every > 0):
            yield f"{title}: {name}", job


def main(environment: str, every: int) -> dict[str, Any]:
    """Digests of all results, and the calls that left the environment changed."""
    digests: dict[str, str] = {}
    changed: list[str] = []
    set_environment(environment)
    before = control()
    from tests.helpers.compilation import done_by_kernels

    for name, job in all_jobs(every):
        with done_by_kernels():
            digests[name] = digest(job())
        if control() != before:
            changed.append(name)
            set_environment(environment)
    return {"digests": digests, "changed": changed}


if __name__ == "__main__":
    from tests.helpers.families import usual

    results = main(sys.argv[1], {"one": -1, "few": 0}[sys.argv[2]] if sys.argv[2:] else usual(2, 1))
    set_environment("default")
    sys.stdout.write(json.dumps(results))
