"""The rows of cvt have exactly what ptxas 13.0 accepts: every combination of modifiers and types is judged.

One difference remains, the PTX version of fp8 on sm_89, and is written down below.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from random import Random

import pytest

from tests.helpers import ptxas
from tests.helpers.row_targets import first_target, is_on
from warpsim.machine.opcodes.conversion import cvt as conversion
from warpsim.machine.opcodes.conversion import cvt_packed as packing
from warpsim.machine.opcodes.conversion.cvt import FLOAT_ROUNDINGS, INTEGER_ROUNDINGS, REGISTERS
from warpsim.machine.opcodes.operation import Operation, Row

pytestmark = pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "ptxas is there")

ROWS: tuple[Row, ...] = (*conversion.ROWS, *packing.ROWS)
INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
SCALARS = (*INTEGERS, "f16", "bf16", "f32", "f64")
PACKED = tuple(x for x in (*REGISTERS, "f16x2") if x != "bf16")
ROUNDINGS = ("", "rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi")
OTHERS = (("", "ftz"), ("", "sat"), ("", "relu"), ("", "satfinite"))
TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_100a", "sm_100f", "sm_103a", "sm_110a",
           "sm_120a", "sm_120f")  # fmt: skip
VERSIONS = ((6, 3), (6, 4), (6, 5), (7, 0), (7, 1), (7, 2), (7, 7), (7, 8), (8, 0), (8, 1), (8, 5), (8, 6),
            (8, 7), (8, 8), (9, 0))  # fmt: skip
FIRST_VERSION = {
    "sm_75": (6, 3),
    "sm_80": (7, 0),
    "sm_89": (7, 8),
    "sm_90": (7, 8),
    "sm_100": (8, 6),
    "sm_100a": (8, 6),
}

# The manual and ptxas have fp8 in PTX 7.8 for sm_90 alone; a row has one version: the first of any chip.
LATER_FOR_89 = (8, 1)

_TYPES = sorted({"b8", "b16", "b32", "b64", "f16", "f16x2", "f32", "f64", *INTEGERS})
DECLARATIONS = " ".join(f".reg .{x} %{x}_<9>;" for x in _TYPES)


def statement(
    written: tuple[str, ...], results: tuple[str, ...], sources: tuple[str, ...], vector: int
) -> str:
    names = [f"%{x}_{i}" for i, x in enumerate((*results, *sources))]
    if vector:
        first = len(results)
        names[first : first + vector] = ["{" + ", ".join(names[first : first + vector]) + "}"]
    return f"{'.'.join(('cvt', *written))} {', '.join(names)};"


def of_operation(written: tuple[str, ...], operation: Operation) -> str:
    return statement(written, operation.results, operation.sources, operation.vector)


@cache
def forms() -> dict[tuple[str, ...], tuple[Row, str]]:
    """Row and statement by modifiers."""
    return {
        written: (row, of_operation(written, row.build(*choice)))
        for row in ROWS
        for written, choice in row.by_modifiers.items()
    }


_NOT_TYPES = {*FLOAT_ROUNDINGS, *INTEGER_ROUNDINGS, "rna", "rs", "ftz", "sat", "relu", "satfinite"}
_Key = tuple[tuple[str, ...], tuple[str, ...]]


def _key(modifiers: tuple[str, ...]) -> _Key:
    types = tuple(x for x in modifiers if x not in _NOT_TYPES)
    return tuple(sorted(x for x in modifiers if x in _NOT_TYPES)), types


@cache
def _in_order() -> dict[_Key, tuple[str, ...]]:
    rows = [row for row in ROWS if row.any_order]
    return {_key(written): written for row in rows for written in row.by_modifiers}


def in_manual_order(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modifiers of a ``cvt`` as the rows write them; unchanged if none has them."""
    return _in_order().get(_key(modifiers), modifiers)


def accepted(lines: list[str], target: str, version: tuple[int, int] = (9, 0)) -> list[bool]:
    number = f"{version[0]}.{version[1]}"
    judged = ptxas.verdicts(lines, target=target, declarations=DECLARATIONS, version=number)
    return [verdict is None for verdict in judged]


def legal(row: Row, target: str, version: tuple[int, int] = (9, 0)) -> bool:
    """What the row's fields say."""
    since = LATER_FOR_89 if first_target(row).name == target == "sm_89" else row.since
    return is_on(row, target) and version >= since


def guessed_operands(result: str, source: str, rounding: str) -> tuple[tuple[str, ...], int]:
    """Sources that fit types, whether or not such a conversion exists."""
    exact = {"u8", "s8"} & {source} if result == "bf16" else set()
    register = source if exact else REGISTERS.get(source, source)
    count = int(result[-1]) if result[-2:] in ("x2", "x4") and source == "f32" else 1
    random = ("b32",) if rounding == "rs" else ()
    return (register,) * count + random, count if count == 4 else 0


def everything() -> Iterator[tuple[tuple[str, ...], str]]:
    pairs = [*product(SCALARS, SCALARS), *product(PACKED, (*SCALARS, *PACKED)), *product(SCALARS, PACKED)]
    for (result, source), rounding, *others in product(pairs, ROUNDINGS, *OTHERS):
        written = (*filter(None, (rounding, *others)), result, source)
        sources, vector = guessed_operands(result, source, rounding)
        yield written, statement(written, (REGISTERS.get(result, result),), sources, vector)


def test_every_combination_is_accepted_where_a_row_has_it() -> None:
    written, lines = zip(*everything(), strict=True)
    known = {in_manual_order(x) for x in written if in_manual_order(x) in forms()}
    assert known == {x for x in forms() if x[0] != "pack"}
    verdicts = accepted(list(lines), "sm_100a")
    different = [
        line
        for modifiers, line, verdict in zip(written, lines, verdicts, strict=True)
        if verdict != (in_manual_order(modifiers) in forms())
    ]
    assert not different


@pytest.mark.parametrize("target", TARGETS)
def test_every_form_on_its_targets(target: str) -> None:
    lines = [line for _, line in forms().values()]
    verdicts = accepted(lines, target)
    different = [
        (line, verdict)
        for (row, line), verdict in zip(forms().values(), verdicts, strict=True)
        if verdict != legal(row, target)
    ]
    assert not different


@pytest.mark.parametrize("target", FIRST_VERSION)
def test_every_form_since_its_version(target: str) -> None:
    for version in VERSIONS:
        if version < FIRST_VERSION[target]:
            continue
        verdicts = accepted([line for _, line in forms().values()], target, version)
        different = [
            (version, line, verdict)
            for (row, line), verdict in zip(forms().values(), verdicts, strict=True)
            if verdict != legal(row, target, version)
        ]
        assert not different


def test_modifiers_stand_in_any_order() -> None:
    rng, lines = Random(1), []
    for written, (row, line) in forms().items():
        if not row.any_order:
            continue
        orders = [x for x in permutations(written) if _types(x) == _types(written)]
        other = rng.choice(orders)
        assert in_manual_order(other) == written
        lines.append(line.replace(".".join(written), ".".join(other), 1))
    assert all(accepted(lines, "sm_100a"))


def _types(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(x for x in modifiers if any(digit in x for digit in "0123456789"))


def test_mutations_of_pack() -> None:
    types = ("u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16", "u32", "s32", "b32", "f32")
    lines, known = [], []
    for sat, result, source, rest in product(
        ("", "sat"), types, ("s32", "u32", "s16", "b32"), ("", "b32", "u32")
    ):
        written = ("pack", *filter(None, (sat, result, source, rest)))
        sources = (source, source, "b32") if rest else (source, source)
        lines.append(statement(written, ("b32",), sources, 0))
        known.append(written in forms())
    assert accepted(lines, "sm_100a") == known
    assert sum(known) == 8
