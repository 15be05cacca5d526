"""Rows of the opcode tables, and the operations that rows expand to.

A row is one line of the PTX manual's syntax: an opcode and slots, each a choice of modifiers. The product of
its slots are its forms. ``build`` turns the chosen modifiers into an Operation: the types of what it writes
and reads, and a pure function on arrays. Does not know what any opcode computes.

Values are unsigned NumPy arrays, one element a lane: uint8, uint16, uint32 or uint64 as wide as the PTX type,
bool for ``.pred``; a source may also be of shape ``()``, the same in all lanes. Functions broadcast, never
raise and never warn, whatever the bits: lanes that do not execute hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...isa.features import Feature
from .meanings import MEANINGS

Values = npt.NDArray[Any]  # one unsigned value a lane, or one of shape () for all
Compute = Callable[..., tuple[Values, ...]]
Fidelity = Literal["exact", "inferred", "approximate"]
Version = tuple[int, int]


def array(values: Any) -> Values:
    """Return values as an array, a number of NumPy's as one of shape (); what is traced stays as it is."""
    found: Values = np.asarray(values) if isinstance(values, np.generic) else values
    return found


def is_recorded(values: Any) -> bool:
    """Return whether values record what is done with them, as machine code is made (machine/native)."""
    return hasattr(values, "refuse")


def looked_up(table: Values, places: Values) -> Values:
    """Return elements of a table of one axis at places that do not leave it."""
    if is_recorded(places):
        found: Values = places.taken_from(table)  # type: ignore[attr-defined]
        return found
    return array(table[places])


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One form: what it writes and reads, and how the one follows from the other.

    ``compute`` takes one array a source, then the carry flag (bool) where ``reads_carry``, and returns one
    array a result, then the carry flag where ``writes_carry``. ``optional`` results may be left out of the
    statement (``p|q`` of setp). ``note`` says why a result is not exact: the documented error, or what was
    inferred. With ``where`` that is so of some values alone: it takes sources and results, and returns in
    which lanes (bool). ``borrows`` says that the carry flag is that of a subtraction.
    """

    results: tuple[str, ...]  # PTX types without their dot, "pred" included
    sources: tuple[str, ...]
    compute: Compute
    fidelity: Fidelity = "exact"
    note: str = ""
    optional: int = 0  # so many of the last results may be left out
    constants: tuple[int, ...] = ()  # places of sources that only a constant may fill (immLut of lop3)
    bytes: tuple[int, ...] = ()  # places of sources whose constants are 0 to 255
    vector: int = 0  # so many of the first sources are written as a vector, {a, b, e, f}
    reads_carry: bool = False
    writes_carry: bool = False
    borrows: bool = False
    where: Callable[[Sequence[Values], Sequence[Values]], Values] | None = None


def nowhere(sources: Sequence[Values], results: Sequence[Values]) -> Values:
    """Return in no lane: what a note says shows in other statements."""
    return np.zeros((), np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """``opcode`` and its slots; "" in a slot stands for leaving the modifier out.

    ``since`` is the first PTX version with the forms, ``feature`` what a target needs for them;
    ``legal`` says which combinations of slots exist.
    """

    opcode: str
    slots: tuple[tuple[str, ...], ...]
    build: Callable[..., Operation]  # one argument a slot
    since: Version = (1, 0)
    feature: Feature | None = None
    any_order: bool = False  # ptxas takes the modifiers in any order, as long as the types keep theirs
    legal: Callable[..., bool] = field(default=lambda *modifiers: True)

    @property
    def meaning(self) -> str:
        """The rule for keys (meanings.py); "" for an uninterpreted function."""
        return MEANINGS.get(self.opcode, "")

    def forms(self) -> Iterator[tuple[str, ...]]:
        """Return the choices of every form, a choice for each slot."""
        return (choice for choice in product(*self.slots) if self.legal(*choice))

    def match(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the choice of each slot that these modifiers spell, None for none.

        In any order, but those of the name come first and in theirs; types and state spaces keep theirs.
        """
        types, named = _types(modifiers), _name_modifiers(self.opcode, modifiers)
        first = [modifier for modifier in modifiers if modifier != "aligned"]  # which may stand anywhere
        if (*first[: len(named)],) != named:
            return None
        spelled = (
            choice
            for choice in _matches(self.slots, modifiers)
            if _types(choice) == types and _name_modifiers(self.opcode, choice) == named
        )
        return next((choice for choice in spelled if self.legal(*choice)), None)

    @cached_property
    def by_modifiers(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The choices by the modifiers that are written, as ("sat", "s32")."""
        return {tuple(filter(None, choice)): choice for choice in self.forms()}


def opcode_row(
    build: Callable[[str], Callable[..., Operation]], opcode: str, *slots: tuple[str, ...], **more: Any
) -> Row:
    """Return the row of an opcode whose ``build`` depends on the opcode."""
    return Row(opcode=opcode, slots=slots, build=build(opcode), **more)


_TYPE = re.compile(r"(?:[bsuf]|[bt]f)\d+(?:x\d+)?|u?e\d+m\d+(?:x\d+)?")
_SPACE = re.compile(r"shared(?:::\w+)?|global")
# Modifiers that name the instruction together with the opcode, and so follow it at once.
_NAMED = {
    **dict.fromkeys(("mul", "mad", "madc", "mul24", "mad24", "dp2a"), frozenset({"lo", "hi", "wide"})),
    "shf": frozenset({"l", "r"}),
    "div": frozenset({"full"}),
    "cvta": frozenset({"to"}),
    "bar": frozenset({"cta", "warp", "sync", "arrive", "red"}),
    "barrier": frozenset({"cta", "cluster", "sync", "arrive", "wait", "red"}),
    "fence": frozenset({"proxy"}),
    "membar": frozenset({"proxy"}),
    "setmaxnreg": frozenset({"inc", "dec"}),
    "tensormap": frozenset({"replace", "cp_fenceproxy"}),
    "tcgen05": frozenset(
        {"alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "red", "cp", "shift", "commit"}
        | {"wait::ld", "wait::st", "fence::before_thread_sync", "fence::after_thread_sync"}
    ),
    "wmma": frozenset({"load", "store", "mma", "a", "b", "c", "d"}),
    "createpolicy": frozenset({"fractional", "range", "cvt"}),
    "cp": frozenset(
        {"reduce", "async", "bulk", "mbarrier", "arrive", "commit_group", "wait_group", "wait_all"}
    ),
    "mbarrier": frozenset(
        {"init", "inval", "expect_tx", "complete_tx", "arrive", "arrive_drop", "test_wait", "try_wait"}
        | {"parity", "pending_count"}
    ),
}


def _name_modifiers(opcode: str, modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modifiers that belong to the name: mul.lo.u32 is not mul.u32.lo."""
    names = _NAMED.get(opcode, frozenset())
    return tuple(modifier for modifier in modifiers if modifier in names)


def _types(modifiers: tuple[str, ...]) -> list[list[str]]:
    """Return the types, and the state spaces, among modifiers: cvt.rn.bf16.f64 is not cvt.rn.f64.bf16."""
    return [[modifier for modifier in modifiers if kind.fullmatch(modifier)] for kind in (_TYPE, _SPACE)]


def _matches(slots: tuple[tuple[str, ...], ...], left: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield every way to hand out modifiers to slots; each slot takes the first that suits, as ptxas does."""
    if not slots:
        if not left:
            yield ()
        return
    first, rest = slots[0], slots[1:]
    place = next((index for index, modifier in enumerate(left) if modifier in first), None)
    if place is not None:
        others = left[:place] + left[place + 1 :]
        yield from ((left[place], *more) for more in _matches(rest, others))
    if "" in first:
        yield from (("", *more) for more in _matches(rest, left))
