"""Operations as C has them, compiled with gcc: a reference whose arithmetic is another program's.

Knows C expressions and where C defines them. Floating-point registers of f16 and bf16 are not here.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.opcode_values import Reference, number
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.operation import Operation

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
FLOATS = {"f32": "float", "f64": "double"}


@dataclass(frozen=True)
class Case:
    """An expression of a, b and c; ``defined`` says for which bits."""

    expression: str
    defined: Callable[..., bool] = lambda *sources: True


def c_type(type_name: str) -> str:
    """C's name of a PTX type."""
    if type_name == "pred":
        return "uint8_t"
    if type_name in FLOATS:
        return FLOATS[type_name]
    return f"{'' if type_name.startswith('s') else 'u'}int{bits_of(type_name)}_t"


def _quotient_defined(type_name: str) -> Callable[..., bool]:
    least = -(1 << (bits_of(type_name) - 1))
    return lambda a, b: b != 0 and (number(a, type_name), number(b, type_name)) != (least, -1)


def _integer_cases() -> dict[str, Case]:
    cases = {}
    for name in INTEGERS:
        bits, unsigned = bits_of(name), f"(u{c_type(name).lstrip('u')})"
        wide = f"({'' if name[0] == 's' else 'unsigned '}__int128)"
        cases |= {
            f"add.{name}": Case(f"{unsigned}a + {unsigned}b"),
            f"sub.{name}": Case(f"{unsigned}a - {unsigned}b"),
            f"mul.lo.{name}": Case(f"{wide}a * {wide}b"),
            f"mul.hi.{name}": Case(f"({wide}a * {wide}b) >> {bits}"),
            f"mul.wide.{name}": Case(f"{wide}a * {wide}b"),
            f"mad.lo.{name}": Case(f"{wide}a * {wide}b + c"),
            f"div.{name}": Case("a / b", _quotient_defined(name)),
            f"rem.{name}": Case("a % b", _quotient_defined(name)),
            f"min.{name}": Case("a < b ? a : b"),
            f"max.{name}": Case("a > b ? a : b"),
            f"shr.{name}": Case("a >> b", lambda a, b, bits=bits: b < bits),
        }
    return cases


def _bit_cases() -> dict[str, Case]:
    cases = {
        "popc.b32": Case("__builtin_popcount(a)"),
        "popc.b64": Case("__builtin_popcountll(a)"),
        "clz.b32": Case("__builtin_clz(a)", lambda a: a != 0),
        "clz.b64": Case("__builtin_clzll(a)", lambda a: a != 0),
        "bfind.u32": Case("31 - __builtin_clz(a)", lambda a: a != 0),
        "bfind.u64": Case("63 - __builtin_clzll(a)", lambda a: a != 0),
        "shf.l.wrap.b32": Case("((uint64_t)b << 32 | a) << (c & 31) >> 32"),
        "shf.r.wrap.b32": Case("((uint64_t)b << 32 | a) >> (c & 31)"),
    }
    for name in ("b16", "b32", "b64"):
        bits = bits_of(name)
        cases |= {
            f"{word}.{name}": Case(f"a {sign} b") for word, sign in (("and", "&"), ("or", "|"), ("xor", "^"))
        }
        cases |= {f"not.{name}": Case("~a"), f"cnot.{name}": Case("!a")}
        cases[f"shl.{name}"] = Case("(uint64_t)a << b", lambda a, b, bits=bits: b < bits)
    return cases


def _comparison_cases() -> dict[str, Case]:
    signs = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    cases = {}
    for name in (*INTEGERS, *FLOATS):
        for word, sign in signs.items():
            cases[f"set.{word}.u32.{name}"] = Case(f"-(uint32_t)(a {sign} b)")
        ordered = "" if name in INTEGERS else "!__builtin_isunordered(a, b) && "
        cases[f"set.ne.u32.{name}"] = Case(f"-(uint32_t)({ordered}a != b)")
    for name in FLOATS:
        for word, sign in (("ltu", ">="), ("leu", ">"), ("gtu", "<="), ("geu", "<"), ("neu", "==")):
            cases[f"set.{word}.u32.{name}"] = Case(f"-(uint32_t)!(a {sign} b)")
        cases[f"set.nan.u32.{name}"] = Case("-(uint32_t)(__builtin_isunordered(a, b) != 0)")
        cases[f"set.equ.u32.{name}"] = Case("-(uint32_t)(__builtin_isunordered(a, b) || a == b)")
        cases[f"testp.finite.{name}"] = Case("__builtin_isfinite(a) != 0")
        cases[f"testp.infinite.{name}"] = Case("__builtin_isinf(a) != 0")
        cases[f"testp.notanumber.{name}"] = Case("__builtin_isnan(a) != 0")
        cases[f"testp.normal.{name}"] = Case("__builtin_isnormal(a) || a == 0")
        cases[f"slct.u64.{name}"] = Case("c >= 0 ? a : b")
    return cases


CASES = _integer_cases() | _bit_cases() | _comparison_cases()


def _function(name: str, operation: Operation) -> str:
    sources = "".join(
        f"{c_type(source)} {letter}; memcpy(&{letter}, in + {8 * place}, sizeof {letter}); "
        for place, (letter, source) in enumerate(zip("abcd", operation.sources, strict=False))
    )
    result = f"{c_type(operation.results[0])} d = {CASES[name].expression};"
    return (
        f"uint64_t {name.replace('.', '_')}(const unsigned char *in) {{ {sources}"
        f"{result} uint64_t out = 0; memcpy(&out, &d, sizeof d); return out; }}\n"
    )


@cache
def _library(names: tuple[str, ...], text: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "operations.c", Path(folder) / "operations.so"
        source.write_text("#include <stdint.h>\n#include <string.h>\n" + text)
        subprocess.run(
            ["gcc", "-O1", "-w", "-fwrapv", "-shared", "-fPIC", str(source), "-o", str(built)], check=True
        )
        return ctypes.CDLL(str(built))


def compiled(name: str, operation: Operation) -> Reference:
    """The operation of one result as C computes it; skips the test where there is no gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    function = getattr(_library((name,), _function(name, operation)), name.replace(".", "_"))
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p]

    def reference(*sources: int) -> tuple[int]:
        return (function(b"".join(source.to_bytes(8, "little") for source in sources)),)

    return reference
