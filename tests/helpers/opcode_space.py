"""Statements around every form of the opcode tables: forms, mutated names, mutated operands.

Knows which operands are worth trying with an opcode, and how names and operands are changed. Knows no form
and no verdict: names come from the rows, and ptxas and the machine are asked by others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

from tests.helpers.opcode_statements import PREFIXES, is_type, shape_of
from tests.helpers.own_operands import own_operands
from tests.helpers.warp_statements import OPERANDS as OF_WARPS
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes import rows
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.operation import Operation, Row

Words = tuple[str, ...]
Forms = Sequence[tuple[Row, Words]]

_LATE = ".reg .b128 %q<9>;"  # since PTX 8.3, as PREFIXES has it
DECLARATIONS = (
    ".reg .b8 %c<9>; .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %d<40>; "
    ".reg .f32 %f<9>; .reg .f64 %g<9>; .reg .u32 %u<9>; .reg .s32 %s<9>; .reg .u16 %i<9>; .reg .s64 %l<9>; "
    ".shared .align 16 .b8 sm[64]; .local .align 16 .b8 lo[64]; .param .align 16 .b8 pf[64];"
)


def declarations(version: str) -> str:
    """The registers and variables that statements name, as far as a version of PTX has them."""
    return DECLARATIONS + _LATE * (tuple(map(int, version.split("."))) >= (8, 3))


def _vectors(prefix: str, *counts: int) -> list[str]:
    return ["{" + ", ".join(f"{prefix}{place}" for place in range(1, count + 1)) + "}" for count in counts]


_VALUES = ["%r1", "%h1", "%d1", "%c1", "%f1", "%g1", "%q1", "%u1", "%s1", "%p1", "4", "0f3F800000"]
_SOME = [*_VALUES, *_vectors("%r", 2, 4, 8), *_vectors("%d", 2, 4), *_vectors("%h", 2, 4), *_vectors("%f", 2)]
_ADDRESSES = ["[%d9]", "[%d9+16]", "[%r9]", "[sm]", "[sm+4]", "[lo]", "[pf]", "[%d9-4]", "[16]"]
_TILES = [*_vectors("%r", 1, 2, 4), "%r1"]
_BARRIERS = (
    "[%r1]", "[%d1]", "[sm]", "[%d1], %r2", "[%d1], 5", "[%r1], %r2", "%d2, [%d1]", "_, [%d1]", "%d2, [%r1]",
    "%d2, [%d1], %r2", "_, [%d1], %r2", "%r2, %d2", "%p1, [%d1], %d2", "%p1, [%d1], %r2", "_, [%r1], 3",
    "%p1, [%d1], %d2, %r3", "%p1, [%d1], %r2, %r3", "%p1, [%r1], %d2, 500", "[%d1], %d2", "%p1, [%d1], 0",
    "%d1, [%d1]", "_, [%d1], %d2",
)  # fmt: skip
_COPIES = (
    "", "2", "%r1", *(f"[%r1], [%d1], {size}{more}" for size in (4, 8, 16, 12)
    for more in ("", ", %r2", ", 4", ", %p1", ", !%p1", ", %d4", ", %r2, %d4", ", %p1, %d4")),
    "[%d1], [%d2], 16", "[sm], [%d1], 16", "[%r1], [%r2], 8", "[%r1]", "[%d1]",
)  # fmt: skip
OPERANDS: dict[str, tuple[str, ...]] = {
    **OF_WARPS,
    "ld": tuple(f"{value}, {address}" for value in _SOME for address in ("[%d9]", "[%r9]", "[sm]"))
    + tuple(f"%r1, {address}{hint}" for address in _ADDRESSES for hint in ("", ", %d8")),
    "ldu": tuple(f"{value}, [%d9]" for value in _SOME),
    "st": tuple(f"{address}, {value}" for value in _SOME for address in ("[%d9]", "[%r9]", "[sm]"))
    + tuple(f"{address}, %r1{hint}" for address in _ADDRESSES for hint in ("", ", %d8")),
    "mov": tuple(f"{one}, {other}" for one in _SOME for other in [*_SOME, "%tid.x", "sm", "sm+4", "!%p1"]),
    "cvta": ("%d1, %d2", "%r1, %r2", "%d1, sm", "%d1, sm+4", "%d1, lo", "%d1, 5", "%r1, sm", "%d1, pf",
    "%g1, %d1"),
    "isspacep": ("%p1, %d2", "%p1, %r2", "%p1, sm", "%p1, 5", "%r1, %d2"),
    "bra": ("L1", "L2", "%r1", ""),
    "ret": ("", "%r1"),
    "exit": ("", "%r1"),
    "trap": ("", "0"),
    "brkpt": ("", "0"),
    "pmevent": ("1", "%r1", "16", "-1", "0", "15", "70000"),
    "nanosleep": ("%r1", "20", "%h1", "%d1", "-4"),
    "ldmatrix": tuple(f"{one}, {address}" for one in _TILES for address in ("[%d9]", "[%r9]", "[sm]")),
    "stmatrix": tuple(f"{address}, {one}" for one in _TILES for address in ("[%d9]", "[%r9]", "[sm]")),
    "movmatrix": ("%r1, %r2", "%d1, %d2", "%r1, 5", "%f1, %f2"),
    "cp": _COPIES,
    "mbarrier": _BARRIERS,
    "prefetch": ("[%d9]", "[%r9]", "[sm]", "%d9", "[%d9+8]"),
    "prefetchu": ("[%d9]", "[%r9]"),
    "applypriority": ("[%d9], 128", "[%d9], 64", "[%d9]", "[%d9], %r1"),
    "discard": ("[%d9], 128", "[%d9], 64", "[%d9]", "[%d9], %r1"),
    "createpolicy": (
        "%d1", "%d1, %f1", "%d1, 0f3F000000", "%d1, 0.5", "%d1, [%d2], %r1, %r2", "%d1, [%d2], 4, 8",
        "%d1, %d2", "%d1, 5", "%d1, [%r2], %r1, %r2", "%r1",
    ),
    "alloca": ("%d1, %d2", "%d1, 16", "%d1, %d2, 16", "%r1, %r2", "%d1, %d2, 3", "%r1, %r2, 8"),
    "stacksave": ("%d1", "%r1"),
    "stackrestore": ("%d1", "%r1", "5"),
    "griddepcontrol": ("", "0"),
}  # fmt: skip

# What registers a type takes instead of its own kind, and things that are not registers.
_OTHERS = (
    *("%c1", "%p1", "!%p1", "%h1", "%r1", "%d1", "%f1", "%g1", "%u1", "%s1", "%i1", "%l1", "%q1", "0", "1"),
    *("-1", "5", "0x1ffffffff", "0f3F800000", "0d3FF0000000000000", "1.5", "_", "%tid.x", "%clock64", "sm"),
    *("sm+4", "{%r1, %r2}", "{%h1, %h2}", "%r1|%p1", "[%d1]", "%laneid", "WARP_SZ", "%nosuch", "k"),
)
_PLACES = (
    *("[%d9]", "[%r9]", "[%d9+16]", "[%d9+-16]", "[%d9+%r1]", "[sm]", "[sm+8]", "[lo]", "[16]", "[%h1]"),
    *("[%f1]", "[%p1]", "[%tid.x]", "[_]", "[]", "[[%d9]]", "[%d9, %r1]", "[%d9+0x7fffffff]", "%d9"),
)
_OPERAND = re.compile(r"\[(?:[^\[\]{}]|\{[^}]*\})*\]|\{[^}]*\}|[^,\s]+")


def opcodes() -> list[str]:
    """Those with rows whose operands are known here: mma, wgmma and what goes elsewhere have comparisons of
    their own.
    """
    return [name for name in rows() if name in OPERANDS or _has_own(name) or not _is_effect(name)]


def _is_effect(opcode: str) -> bool:
    return isinstance(rows()[opcode][0], Effect)


def _has_own(opcode: str) -> bool:
    return any(own_operands(opcode, tuple(filter(None, choice))) for _, choice in _forms(opcode)[:40])


@cache
def _forms(opcode: str) -> list[tuple[Row, Words]]:
    return [(row, choice) for row in rows()[opcode] for choice in row.forms()]


def _own_operands(operation: Operation) -> list[str]:
    """As many operands as an operation has, each in a register of its width."""
    results, sources = shape_of(operation)
    written = "|".join(f"{PREFIXES[width]}{place + 6}" for place, width in enumerate(results))
    read = ["0x1b" if one == "#" else f"{PREFIXES[one]}{place}" for place, one in enumerate(sources, 1)]
    if operation.vector:
        read[: operation.vector] = ["{" + ", ".join(read[: operation.vector]) + "}"]
    return [written, *read]


def spelled(opcode: str, words: Sequence[str], operands: str) -> str:
    """One line of PTX."""
    return f"{'.'.join((opcode, *filter(None, words)))} {operands};".replace(" ;", ";")


class Space:
    """The statements around the forms of one opcode."""

    def __init__(self, opcode: str, words: Sequence[str] = ()) -> None:
        self.opcode = opcode
        self.forms = _forms(opcode)
        vocabulary = {word for row in rows()[opcode] for slot in row.slots for word in slot if word}
        spoken = {word for _, choice in self.forms for word in choice if word}
        self.vocabulary = sorted(vocabulary | spoken | set(words))

    def operands(self, row: Row, choice: Words) -> list[str]:
        """Operands for a form: its own, or all that the opcode may have."""
        if isinstance(row, Effect):
            return list(OPERANDS.get(self.opcode, ()))
        return [", ".join(_own_operands(row.build(*choice)))]

    def of_forms(self, forms: Forms) -> Iterator[str]:
        """Forms with their operands, and without optional results."""
        for row, choice in forms:
            for operands in self.operands(row, choice):
                yield spelled(self.opcode, choice, operands)
                if "|" in operands and not isinstance(row, Effect):
                    alone = operands.partition("|")[0] + operands[operands.index(",") :]
                    yield spelled(self.opcode, choice, alone)

    def of_names(self, forms: Forms) -> Iterator[str]:
        """Forms with one word left out, exchanged, added or repeated, or two exchanged."""
        shapes = sorted({one for row, choice in self.forms[:40] for one in self.operands(row, choice)})[:6]
        for row, choice in forms:
            words = [*filter(None, choice)]
            own = self.operands(row, choice) or list(own_operands(self.opcode, tuple(filter(None, choice))))
            for changed in _changes(words, self.vocabulary):
                more = () if isinstance(row, Effect) else (*_retyped(own[0], words, changed), *shapes)
                yield from (spelled(self.opcode, changed, one) for one in dict.fromkeys((*own, *more)))

    def of_operands(self, forms: Forms) -> Iterator[str]:
        """Scalar forms with one operand exchanged, left out, or one too many."""
        for row, choice in forms:
            own = [] if isinstance(row, Effect) else _own_operands(row.build(*choice))
            for place in range(len(own)):
                for other in ("", *_OTHERS):
                    changed = [*own[:place], *([other] if other else []), *own[place + 1 :]]
                    yield spelled(self.opcode, choice, ", ".join(changed))
            for other in ("%r1", "%p1") if own else ():
                yield spelled(self.opcode, choice, ", ".join([*own, other]))

    def of_effects(self, forms: Forms) -> Iterator[str]:
        """Forms that do more than compute, as they are and with one operand exchanged, left out or added."""
        for row, choice in forms:
            words = tuple(filter(None, choice))
            own = own_operands(self.opcode, words) if isinstance(row, Effect) else ()
            own = own or OF_WARPS.get(self.opcode, ())
            for operands in own:
                yield spelled(self.opcode, words, operands)
                yield from (spelled(self.opcode, words, changed) for changed in _exchanged(operands))

    def sample(self, count: int, seed: int) -> list[str]:
        """At most so many statements of each kind, about as many forms."""
        random, found = Random(f"{seed} {self.opcode}"), dict[str, None]()
        for kind in (self.of_forms, self.of_names, self.of_operands, self.of_effects):
            forms = random.sample(self.forms, min(max(count // 10, 20), len(self.forms)))
            texts = list(dict.fromkeys(kind(forms)))
            found.update(dict.fromkeys(random.sample(texts, min(count, len(texts)))))
        return list(found)


def _changes(words: list[str], vocabulary: Sequence[str]) -> Iterator[list[str]]:
    for place in range(len(words)):
        yield [*words[:place], *words[place + 1 :]]
        yield [*words[:place], words[place], *words[place:]]
        for other in range(place):
            changed = list(words)
            changed[place], changed[other] = changed[other], changed[place]
            yield changed
        yield from (
            [*words[:place], word, *words[place + 1 :]] for word in vocabulary if word != words[place]
        )
    for place in range(len(words) + 1):
        yield from ([*words[:place], word, *words[place:]] for word in vocabulary if word not in words)


def _exchanged(operands: str) -> Iterator[str]:
    """Operands with one exchanged, left out, or one too many; addresses and vectors also changed in part."""
    parts = _OPERAND.findall(operands)
    for place, part in enumerate(parts):
        others = (*_OTHERS, *_PLACES) if part.startswith("[") else _OTHERS
        for other in ("", *others, *_parts(part)):
            yield ", ".join([*parts[:place], *([other] if other else []), *parts[place + 1 :]])
    for other in ("%r1", "%d8", "%p1", "4", "[%d9]"):
        yield ", ".join([*parts, other])


def _parts(operand: str) -> Iterator[str]:
    """An address or vector with one of its elements exchanged, left out or doubled."""
    inner = re.search(r"\{(.*)\}", operand)
    if inner is None:
        return
    elements = inner[1].split(", ")
    for place in sorted({0, len(elements) - 1}):
        for other in ((), ("%r1",), ("%d1",), ("%h1",), ("_",), ("1",), (elements[place],) * 2):
            changed = [*elements[:place], *other, *elements[place + 1 :]]
            yield operand.replace(inner[1], ", ".join(changed))


def _retyped(operands: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """The operands with registers as wide as types of the new name instead of the old."""
    pairs = zip(filter(is_type, old), filter(is_type, new), strict=False)
    for one, other in pairs:
        before, after = PREFIXES.get(str(bits_of(one))), PREFIXES.get(str(bits_of(other)))
        if before and after and before != after:
            yield operands.replace(before, after)
