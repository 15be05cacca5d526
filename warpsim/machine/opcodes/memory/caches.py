"""Hints to caches, which change no result: prefetch, applypriority, discard, createpolicy; and ldu.

There are no caches here. What a hint names is not looked at; a policy is an opaque number. PTX ISA 9.1,
sections 9.7.9.10 and 9.7.9.14 to 9.7.9.18.
"""

from __future__ import annotations

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import Address
from ...bind.value_types import bits_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ..effect import Effect
from ..statement_binder import StatementBinder
from ..wide import needed
from .transfers import TYPES, loading

_LINE = 128  # bytes
_PRIORITIES = ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged")
_SECOND = ("", "L2::evict_first", "L2::evict_unchanged")
_WIDEST = 128  # bits


def _nothing(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
    """Do nothing: a hint changes no result."""


def _prefetch(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(1)
    _address(binder, 0, modifiers)
    return _nothing


def _prefetch_uniform(binder: StatementBinder, *modifiers: str) -> Step:
    """No variable, which lies in a space of its own."""
    operand = binder.operands[0] if binder.operands else None
    if isinstance(operand, Address) and operand.base is not None:
        binder.register(operand.base, 0)
    return _prefetch(binder, *modifiers)


def _line(binder: StatementBinder, *modifiers: str) -> Step:
    """applypriority and discard, of one line."""
    binder.count(2)
    _address(binder, 0, modifiers)
    size = binder.operands[1]
    if not isinstance(size, Immediate) or size.value != _LINE:
        raise binder.illegal(f"the size is {_LINE}, not '{size}'", 1)
    return _nothing


def _address(binder: StatementBinder, index: int, modifiers: tuple[str, ...]) -> None:
    """Check that the operand is an address of the space that is named."""
    space = next((name for name in ("global", "local", "const", "param") if name in modifiers), "generic")
    binder.address(index, space)


def _fraction(binder: StatementBinder, _: str, first: str, second: str, kind: str) -> Step:
    given = binder.count(1, 2)
    if given == 2:
        binder.reader(binder.operands[1], "f32", 1)
    return _policy(binder, first, second)


def _range(binder: StatementBinder, _: str, space: str, first: str, second: str, kind: str) -> Step:
    binder.count(4)
    _address(binder, 1, (space,))
    for index in (2, 3):
        binder.reader(binder.operands[index], "u32", index)
    return _policy(binder, first, second)


def _converted(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    binder.policy(1)
    return _policy(binder, _PRIORITIES[0], "")


def _policy(binder: StatementBinder, first: str, second: str) -> Step:
    """Return some number, the same for the same priorities."""
    write = binder.writer(binder.operands[0], "u64", 0)
    value = np.array(1 + _PRIORITIES.index(first) + 4 * _SECOND.index(second), np.uint64)
    return lambda wave, path, lanes: write(wave, path, lanes, value)


def _uniform_load(binder: StatementBinder, space: str, vector: str, type_name: str) -> Step:
    binder.count(2)
    binder.check_available(needed((type_name,)))
    return loading(binder, "global" if space else "generic", int(vector[1:] or 1), type_name)


def _fits(space: str, vector: str, type_name: str) -> bool:
    return int(vector[1:] or 1) * bits_of(type_name) <= _WIDEST


_GLOBAL = ("", "global")
_OPAQUE = "PTX keeps the bits of a policy to itself"


def _policies(*slots: tuple[str, ...], bind: object) -> Effect:
    return Effect(
        opcode="createpolicy",
        slots=slots,
        bind=bind,  # type: ignore[arg-type]
        since=(7, 4),
        feature=Feature.CACHE_POLICIES,
        fidelity="inferred",
        note=_OPAQUE,
    )


ROWS: tuple[Effect, ...] = (
    Effect(opcode="prefetch", slots=(("", "global", "local"), ("L1", "L2")), bind=_prefetch, since=(2, 0)),
    Effect(
        opcode="prefetch",
        slots=(_GLOBAL, ("L2::evict_last", "L2::evict_normal")),
        bind=_prefetch,
        since=(7, 4),
        feature=Feature.CACHE_POLICIES,
    ),
    Effect(
        opcode="prefetch",
        slots=(("", "const", "param"), ("tensormap",)),
        bind=_prefetch,
        since=(8, 0),
        feature=Feature.TENSOR_COPY,
    ),
    Effect(opcode="prefetchu", slots=(("L1",),), bind=_prefetch_uniform, since=(2, 0)),
    Effect(
        opcode="applypriority",
        slots=(_GLOBAL, ("L2::evict_normal",)),
        bind=_line,
        since=(7, 4),
        feature=Feature.CACHE_POLICIES,
    ),
    Effect(
        opcode="discard", slots=(_GLOBAL, ("L2",)), bind=_line, since=(7, 4), feature=Feature.CACHE_POLICIES
    ),
    _policies(("fractional",), _PRIORITIES, _SECOND, ("b64",), bind=_fraction),
    _policies(("range",), _GLOBAL, _PRIORITIES, _SECOND, ("b64",), bind=_range),
    _policies(("cvt",), ("L2",), ("b64",), bind=_converted),
    Effect(opcode="ldu", slots=(_GLOBAL, ("", "v2", "v4"), TYPES), bind=_uniform_load, legal=_fits),
)
