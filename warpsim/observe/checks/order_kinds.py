"""What statements some code has: places by opcode, and the kinds of order that they ask for.

Kinds are flags, barriers of some threads, copies, and strong accesses: rules of a kind have nothing to do
where the code has no such statement. Knows statements and their modifiers (PTX ISA 9.1, section 8); does not
know clocks, memory or events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...machine.run.wave import Record

ACQUIRES, RELEASES = frozenset({"acquire", "acq_rel", "sc"}), frozenset({"release", "acq_rel", "sc"})
RELAXED = frozenset({"relaxed", "volatile", "mmio"})
FLAGS = frozenset({"ld", "st", "atom", "red"})
_STRONG = RELAXED | {"acquire", "release"}
_ATOMIC = frozenset({"atom", "red"})
_MOST = 4  # codes of which the statements are kept


class Kinds(NamedTuple):
    """Whether some code has flags, barriers of some threads, asynchronous copies, and strong accesses."""

    flags: bool = False
    of_some: bool = False
    asynchronous: bool = False
    strong: bool = False


class _Statements:
    """The statements of a code that have been looked at: ``places`` by opcode, and their kinds of order.

    A module's code grows when another of its kernels is taken; only what is new is looked at then.
    """

    def __init__(self, code: Sequence[Record]) -> None:
        self.code, self.places, self.kinds = code, dict[str, list[int]](), Kinds()
        self._count = 0
        self._last: Record | None = None

    def knows(self, code: Sequence[Record]) -> bool:
        """Return whether this is the code that was looked at, or has grown since."""
        count = self._count
        return self.code is code and (not count or (count <= len(code) and code[count - 1] is self._last))

    def look(self) -> None:
        """Look at the statements that have come since."""
        code, first = self.code, self._count
        if first == len(code):
            return
        new = code[first:]
        for place, record in enumerate(new, first):
            self.places.setdefault(record.statement.opcode, []).append(place)
        rules = _is_ordered, _is_partial_barrier, _is_asynchronous, is_strong
        self.kinds = Kinds(
            *(known or any(map(rule, new)) for known, rule in zip(self.kinds, rules, strict=True))
        )
        self._count, self._last = len(code), new[-1]


_KEPT: OrderedDict[int, _Statements] = OrderedDict()  # by identity of the code, the latest last


def _statements_of(code: Sequence[Record]) -> _Statements:
    """Return the statements of a code; those of the latest codes are kept, as launches repeat them."""
    known = _KEPT.pop(id(code), None)
    if known is None or not known.knows(code):
        known = _Statements(code)
    known.look()
    _KEPT[id(code)] = known
    while len(_KEPT) > _MOST:
        _KEPT.popitem(last=False)
    return known


def kinds_of(code: Sequence[Record]) -> Kinds:
    """Return the kinds of order that the statements of a code ask for."""
    return _statements_of(code).kinds


def places_of(code: Sequence[Record], opcode: str) -> Sequence[int]:
    """Return the program counters of the statements of an opcode, in rising order."""
    return _statements_of(code).places.get(opcode, ())


def is_strong(record: Record) -> bool:
    """Return whether a statement's accesses are strong: they may meet others that are."""
    statement = record.statement
    return statement.opcode in _ATOMIC or not _STRONG.isdisjoint(statement.modifiers)


def _is_partial_barrier(record: Record) -> bool:
    """Return whether a statement is a barrier to which not all threads of a CTA have to come, or only
    arrive.
    """
    statement = record.statement
    if statement.opcode not in ("bar", "barrier") or not {"warp", "cluster"}.isdisjoint(statement.modifiers):
        return False
    return len(statement.operands or ()) - 2 * ("red" in statement.modifiers) > 1


def _is_asynchronous(record: Record) -> bool:
    """Return whether a statement starts a copy from or to shared memory, or is of tcgen05; of wgmma alone,
    other rules speak.
    """
    opcode, words = record.statement.opcode, record.statement.modifiers
    if opcode == "tcgen05":
        return True
    return (opcode == "cp" and "bulk" in words) or any("complete_tx::" in word for word in words)


def _is_ordered(record: Record) -> bool:
    """Return whether a statement is a fence, or an access that releases or acquires."""
    statement = record.statement
    if statement.opcode in ("membar", "fence"):
        return "proxy" not in statement.modifiers
    return statement.opcode in FLAGS and not (ACQUIRES | RELEASES).isdisjoint(statement.modifiers)
