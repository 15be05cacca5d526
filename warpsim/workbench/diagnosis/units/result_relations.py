"""What a unit does to the code of a result, found by value: kinds of results written otherwise, stuck bits.

Nothing is guessed: a relation is read off the wrong outputs, and holds only if every known output obeys it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.formats import Format

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A sentence, and the codes that a unit writes in place of right codes."""

    name: str
    codes: Callable[[Array], Array]


def relations(right: Array, given: Array, element: Format) -> Iterator[Relation]:
    """Yield what may relate the codes of a unit to the right codes; both are flat arrays of known outputs."""
    yield from _of_kinds(right, given, element)
    yield from _of_bits(right, given, element)


# --- kinds of results ------------------------------------------------------------------------------


def kinds_of(codes: Array, element: Format) -> dict[str, Array]:
    """Return the outputs of each kind of result, by its name."""
    wide = codes.astype(np.uint64)
    if not element.is_float:
        top = np.uint64(element.sign_bit)
        return {"the largest number": wide == top - np.uint64(1), "the smallest number": wide == top}
    magnitude = wide & np.uint64(element.mask & ~element.sign_bit & -(1 << element.ignored_bits))
    negative = (wide & np.uint64(element.sign_bit)) != 0
    smallest = np.uint64(1 << element.fraction_bits + element.ignored_bits)
    infinity = np.uint64(element.infinity if element.has_infinity else element.mask)
    return {
        "NaN": magnitude > infinity,
        "+Inf": (magnitude == infinity) & ~negative,
        "-Inf": (magnitude == infinity) & negative,
        "Inf": magnitude == infinity,
        "-0": (magnitude == 0) & negative,
        "+0": (magnitude == 0) & ~negative,
        "subnormal": (magnitude > 0) & (magnitude < smallest),
        "positive subnormal": (magnitude > 0) & (magnitude < smallest) & ~negative,
        "negative subnormal": (magnitude > 0) & (magnitude < smallest) & negative,
    }


def _writings(element: Format) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield what may stand in place of a result: its name, and the codes."""
    if not element.is_float:
        return
    sign, ones = np.uint64(element.sign_bit), np.uint64(element.infinity - 1)

    yield "+0", _constant(0)
    yield "a zero with the sign of the result", lambda codes: codes & sign
    yield "the largest finite number, signed", lambda codes: (codes & sign) | ones
    yield "Inf, signed", lambda codes: (codes & sign) | np.uint64(element.infinity)
    yield "the same with the other sign", lambda codes: codes ^ sign
    yield "the canonical NaN", _constant(element.canonical_nan)
    yield (
        "the smallest normal number, signed",
        lambda codes: (codes & sign) | np.uint64(1 << element.fraction_bits),
    )


def _of_kinds(right: Array, given: Array, element: Format) -> Iterator[Relation]:
    wide, got = right.astype(np.uint64), given.astype(np.uint64)
    differs = wide != got
    for kind, mask in kinds_of(right, element).items():
        chosen = mask & differs
        if not chosen.any():
            continue
        writings = dict(_writings(element))
        first = int(got[chosen][0])
        if (got[chosen] == np.uint64(first)).all():
            writings |= {f"0x{first:0{element.bits // 4}x}": _constant(first)}
        for name, made in writings.items():
            if (made(wide[mask]) == got[mask]).all():
                yield Relation(name=f"{kind} is written as {name}", codes=_where(kind, element, made))
                break


def _constant(code: int) -> Callable[[Array], Array]:
    return lambda codes: np.full_like(codes, code)


def _where(kind: str, element: Format, made: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def codes(right: Array) -> Array:
        wide = right.astype(np.uint64)
        return np.where(kinds_of(right, element)[kind], made(wide), wide).astype(right.dtype)

    return codes


# --- bits ------------------------------------------------------------------------------------------


def _of_bits(right: Array, given: Array, element: Format) -> Iterator[Relation]:
    """Yield bits that are stuck, flipped or exchanged, where they give every known output."""
    wide, got, mask = right.astype(np.uint64), given.astype(np.uint64), np.uint64(element.mask)
    if not (wide != got).any():
        return
    always, ever = np.bitwise_and.reduce(got), np.bitwise_or.reduce(got)
    low = mask & ~ever & np.bitwise_or.reduce(wide)
    high = always & ~np.bitwise_and.reduce(wide)
    if low or high:
        parts = [f"bit {_bits(low)} of D is stuck at 0"] * bool(low)
        parts += [f"bit {_bits(high)} of D is stuck at 1"] * bool(high)
        yield Relation(name=" and ".join(parts), codes=_masked(low, high))
    flipped = np.bitwise_or.reduce(wide ^ got)
    if ((wide ^ got)[wide != got] == flipped).all() and flipped:
        yield Relation(name=f"bit {_bits(flipped)} of D is inverted", codes=_inverted(flipped))
    for name, made in _exchanges(element.bits):
        yield Relation(name=name, codes=made)


def _bits(word: np.uint64) -> str:
    return ", ".join(str(at) for at in range(64) if int(word) >> at & 1)


def _masked(low: np.uint64, high: np.uint64) -> Callable[[Array], Array]:
    return lambda right: ((right.astype(np.uint64) & ~low) | high).astype(right.dtype)


def _inverted(mask: np.uint64) -> Callable[[Array], Array]:
    return lambda right: (right.astype(np.uint64) ^ mask).astype(right.dtype)


def _exchanges(bits: int) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield orders of bytes and of halves that a unit may mix up."""
    yield "the bytes of D are in reversed order", lambda right: right.byteswap()
    half = bits // 2
    if bits >= 32:
        yield (
            "the halves of D are exchanged",
            lambda right: ((right << right.dtype.type(half)) | (right >> right.dtype.type(half))).astype(
                right.dtype
            ),
        )


def transitions(right: Array, given: Array, element: Format) -> list[tuple[str, int]]:
    """Return what became what, kind to kind, with counts, of wrong outputs; the most frequent first."""
    sides = []
    for codes in (right, given):
        kinds = {
            kind: mask for kind, mask in kinds_of(codes, element).items() if kind not in ("Inf", "subnormal")
        }
        names = np.full(codes.shape, "another number", object)
        for kind, mask in kinds.items():
            names[mask] = kind
        sides.append(names)
    pairs = [f"{x} became {y}" for x, y in zip(*sides, strict=True) if x != y or x != "another number"]
    return sorted(Counter(pairs).items(), key=lambda item: -item[1])
