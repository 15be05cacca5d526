"""mapa, getctarank and barrier.cluster: CTAs of a cluster (PTX ISA 9.1, 9.7.9.22, 9.7.9.23, 9.7.13.2).

mapa.shared::cluster.u32  d, a, b;          mapa.u64  d, a, b;      // b is a rank
getctarank.shared::cluster.u32  d, a;       getctarank.u64  d, a;
barrier.cluster.arrive;                     barrier.cluster.wait;

A rank that the cluster does not have is noticed where its address is used. Orders of the barrier change
nothing here: a statement completes before the next begins; observers know them.
"""

from __future__ import annotations

import numpy as np

from ....isa.features import Feature
from ....ptx.operands import Displacement, Register, Sink
from ...bind.scope import Variable
from ...bind.value_types import dtype_of
from ...run.barriers.cluster_barrier import ClusterBarrier
from ...run.clusters import FIRST, RANK_BYTES, rank_field, ranks_of
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ..effect import Effect
from ..special_registers import is_special
from ..statement_binder import Reader, StatementBinder

_HIGHEST = 253  # rank that an address of 32 bits has room for


# --- addresses ------------------------------------------------------------------------------------------


def _source(binder: StatementBinder, index: int, type_name: str) -> Reader:
    """Return the reader of an operand that is in shared memory or a special register."""
    operand = binder.operands[index]
    base = operand.base if isinstance(operand, Displacement) else operand
    if isinstance(base, Register):
        found = binder.scope.find(base.name)
        if found is None and is_special(base.name):
            raise binder.illegal(f"{binder.statement.opcode} does not take a special register", index)
        if isinstance(found, Variable) and found.space != "shared":
            raise binder.illegal(f"{base} is in .{found.space}, not in .shared", index)
    return binder.reader(operand, type_name, index)


def _shared(binder: StatementBinder, space: str, type_name: str) -> Reader:
    """Return addresses (lanes,) of .shared::cluster, int64; raises Fault for generic addresses that lie
    elsewhere.
    """
    read = _source(binder, 1, type_name)

    def address(wave: Wave, path: DivergentPath) -> Values:
        where = np.broadcast_to(read(wave, path), (wave.lanes,)).astype(np.int64)
        if space:
            return where
        outside = path.lanes.mask & (spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW))
        if outside.any():
            lane = int(outside.argmax())
            message = f"the generic address {int(where[lane]):#x} is not in shared memory"
            raise wave.fault(wave.code[path.pc], lane, f"{binder.statement.mnemonic}: {message}")
        return where - spaces.SHARED_WINDOW

    return address


def _check_result(binder: StatementBinder) -> None:
    if isinstance(binder.operands[0], Sink):
        raise binder.illegal(f"{binder.statement.opcode} does not take '_' for its result", 0)


def _map(binder: StatementBinder, space: str, type_name: str) -> Step:
    binder.count(3)
    _check_result(binder)
    write, address = binder.writer(binder.operands[0], type_name, 0), _shared(binder, space, type_name)
    operand = binder.operands[2]
    if isinstance(operand, Register) and isinstance(binder.scope.find(operand.name), Variable):
        raise binder.illegal(f"expected the rank of a CTA, not '{operand}'", 2)
    rank, dtype = _source(binder, 2, "u32"), dtype_of(type_name)
    window = 0 if space else spaces.SHARED_WINDOW

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        field = np.minimum(rank(wave, path).astype(np.int64), _HIGHEST) + FIRST
        found = address(wave, path) % RANK_BYTES + field * RANK_BYTES + window
        write(wave, path, lanes, found.astype(dtype))

    return step


def _rank(binder: StatementBinder, space: str, type_name: str) -> Step:
    binder.count(2)
    _check_result(binder)
    write, address = binder.writer(binder.operands[0], "u32", 0), _shared(binder, space, type_name)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        field = rank_field(address(wave, path))
        write(wave, path, lanes, np.where(field > 0, field - FIRST, ranks_of(wave)).astype(np.uint32))

    return step


# --- the barrier ----------------------------------------------------------------------------------------


def _check_barrier(binder: StatementBinder) -> None:
    binder.count(0)
    act = binder.statement.modifiers[1]
    if binder.statement.modifiers[0] != "cluster" or act not in ("arrive", "wait"):
        raise binder.illegal("barrier.cluster is followed by .arrive or .wait")


def _arrive(binder: StatementBinder, *modifiers: str) -> Step:
    _check_barrier(binder)
    return lambda wave, path, lanes: ClusterBarrier.of(wave).arrive(wave, path, lanes)


def _wait(binder: StatementBinder, *modifiers: str) -> Step:
    _check_barrier(binder)
    return lambda wave, path, lanes: ClusterBarrier.of(wave).wait(wave, path, lanes)


_FAR, _WIDTHS, _ALIGNED = ("", "shared::cluster"), ("u32", "u64"), ("", "aligned")
_CLUSTER, _ORDERS = ("cluster",), ("", "release", "relaxed")
_FIRST = (7, 8)

_NEW = Feature.CLUSTERS
ROWS: tuple[Effect, ...] = (
    Effect(opcode="mapa", slots=(_FAR, _WIDTHS), bind=_map, since=_FIRST, feature=_NEW),
    Effect(opcode="getctarank", slots=(_FAR, _WIDTHS), bind=_rank, since=_FIRST, feature=_NEW),
    Effect(
        opcode="barrier",
        slots=(_CLUSTER, ("arrive",), ("",), _ALIGNED),
        bind=_arrive,
        since=_FIRST,
        feature=_NEW,
    ),
    Effect(
        opcode="barrier",
        slots=(_CLUSTER, ("arrive",), _ORDERS[1:], _ALIGNED),
        bind=_arrive,
        since=(8, 0),
        feature=_NEW,
    ),
    Effect(
        opcode="barrier",
        slots=(_CLUSTER, ("wait",), ("",), _ALIGNED),
        bind=_wait,
        since=_FIRST,
        feature=_NEW,
    ),
    Effect(
        opcode="barrier",
        slots=(_CLUSTER, ("wait",), ("acquire",), _ALIGNED),
        bind=_wait,
        since=(8, 0),
        feature=_NEW,
    ),
)
