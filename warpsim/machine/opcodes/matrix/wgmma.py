"""wgmma in launched kernels (PTX ISA 9.1, section 9.7.15): all warpgroups at the same statement act together.

A wgmma is computed where it is issued, for all of them in one call, or later, as the schedule has it: then it
reads registers and shared memory when it completes, each warpgroup's in the order in which they were issued.
All four statements are executed by a warpgroup as a whole: its first warps wait for the last. What is missing
(fences, waits) is found by observers (observe/checks/wgmma/warpgroup_order.py), which are notified of every
statement here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ....base.errors import located
from ....isa.families.wgmma import WGMMA
from ....isa.features import Feature
from ....isa.warps import WARPGROUP
from ....ptx.binding import WarpgroupBound, bind_warpgroup
from ...run.asynchronous import ASYNCHRONY, AT_ONCE, commit, drain, issue
from ...run.convergence import Warpgroups, warpgroups_together
from ...run.events import Groups, Share, observers_of
from ...run.pending import Pending, Stretches
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ...state.side_tables import SideTable
from ..effect import Effect
from ..statement_binder import Reader, StatementBinder
from .mma import MatrixRow, bound_of, numbers_of, source_of, sources_of, targets_of
from .wgmma_groups import Verb, wgmma_order
from .wgmma_operands import Multiplication, multiply, shares_of

FAMILY = "wgmma"  # of groups


# --- loading ---------------------------------------------------------------------------------------


def _multiplication(binder: StatementBinder) -> Multiplication:
    bound = bound_of(binder, bind_warpgroup)
    places, sources = bound.places, {}
    if bound.a is not None:
        sources["a"] = sources_of(binder, bound.a, 32, "a", places["a"])
    if bound.e is not None:
        sources["e"] = sources_of(binder, bound.e, 32, "sp-meta", places["e"])
    targets = targets_of(binder, bound)  # before the readers: registers may come into being here
    d = [name for name in bound.d if name is not None]
    registers = {"D": d, "A": bound.a or (), "metadata": [bound.e]}
    return Multiplication(
        bound=bound,
        sources=sources,
        accumulators=sources_of(binder, d, 32, "d", places["d"]),
        targets=targets,
        descriptors=_descriptors(binder, bound),
        scale_d=_scale_d(binder, bound),
        registers={role: tuple(numbers_of(binder, names)) for role, names in registers.items()},
    )


def _descriptors(binder: StatementBinder, bound: WarpgroupBound) -> dict[str, Reader]:
    """Return readers of the descriptors, by side."""
    found = {"b": source_of(binder, bound.b_descriptor, 64, "b-desc", bound.places["b_descriptor"])}
    if bound.a_descriptor is not None:
        found["a"] = source_of(binder, bound.a_descriptor, 64, "a-desc", bound.places["a_descriptor"])
    return found


def _scale_d(binder: StatementBinder, bound: WarpgroupBound) -> Reader:
    """Return whether D is read."""
    if isinstance(bound.scale_d, bool):
        constant = np.array(bound.scale_d)
        return lambda wave, path: constant
    negated, name = bound.scale_d
    read = source_of(binder, name, 1, "scale-d", bound.places["scale_d"])
    return (lambda wave, path: ~read(wave, path)) if negated else read


# --- running ---------------------------------------------------------------------------------------


def _mma_async(binder: StatementBinder, *modifiers: str) -> Step:
    wgmma = _multiplication(binder)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, groups: Groups) -> None:
        shares = shares_of(wave, path, wgmma, groups)
        for share in shares:
            observers_of(wave).wgmma(wave, path, wgmma, share)
        perform = multiply if ASYNCHRONY.of(wave).moment in AT_ONCE else _issue
        for share in shares:
            perform(wave, path, wgmma, share)

    return lambda wave, path, lanes: warpgroups_together(wave, path, lanes, act)


@dataclass(eq=False)
class _Later:
    """An execution that has been issued: it is computed for one warpgroup, or for several at once."""

    path: DivergentPath
    wgmma: Multiplication
    share: Share
    done: set[int] = field(default_factory=set)  # warpgroups

    def together(self, wave: Wave, pendings: Sequence[Pending]) -> None:
        """Compute it for the warpgroups of several in one call, before each of them completes."""
        places = Warpgroups.of(wave)
        self.multiply(wave, [int(places.number[pending.lane]) for pending in pendings])

    def multiply(self, wave: Wave, groups: Sequence[int]) -> None:
        """Compute it for some warpgroups, unless that has been done."""
        left = [group for group in groups if group not in self.done]
        if left:
            self.done.update(left)
            groups_left = np.array(left, np.intp)
            lanes = Warpgroups.of(wave).lanes_of(groups_left)  # others may have unwritten registers
            path = DivergentPath(self.path.pc, self.path.frame, lanes)
            multiply(wave, path, self.wgmma, replace(self.share, groups=groups_left))


@dataclass(eq=False, slots=True)
class Completion:
    """What a warpgroup does when its part of an execution completes."""

    later: _Later
    group: int

    @property
    def registers(self) -> dict[str, tuple[int, ...]]:
        """Return the numbers of the registers, by "D", "A", "metadata"."""
        return self.later.wgmma.registers

    def __call__(self, wave: Wave) -> None:
        """Complete it."""
        self.later.multiply(wave, [self.group])


_LATEST = SideTable[dict[int, Pending]](lambda _: {})  # by warpgroup: the wgmma that it has issued last


def _issue(wave: Wave, path: DivergentPath, wgmma: Multiplication, share: Share) -> None:
    """Each warpgroup of an execution has one more operation in flight, behind those that it has."""
    places = Warpgroups.of(wave)
    latest = _LATEST.of(wave)
    later, issued = _Later(DivergentPath(path.pc, path.frame, path.lanes), wgmma, share), list[Pending]()
    groups, record = share.groups, wave.code[path.pc]
    bases = places.cta[groups] * wave.memories.shared_stride
    ranges, lanes = share.ranges + bases[:, None, None], places.first[groups].tolist()
    for group, lane, read in zip(groups.tolist(), lanes, ranges, strict=True):
        before = latest.get(group)
        pending = latest[group] = Pending(
            record=record,
            lane=lane,
            kind=FAMILY,
            complete=Completion(later, group),
            reads=(Stretches(space="shared", ranges=read),),
            group=FAMILY,
            batch=later.together,
            after=() if before is None or before.done else (before,),
        )
        issued.append(pending)
    issue(wave, path, *issued)


# --- order -----------------------------------------------------------------------------------------


def _order(binder: StatementBinder, *modifiers: str) -> Step:
    """wgmma.fence, wgmma.commit_group and wgmma.wait_group."""
    with located(binder.statement.location):
        order = wgmma_order(binder.statement)
    act = partial(_ordered, order.verb, order.groups)
    return lambda wave, path, lanes: warpgroups_together(wave, path, lanes, act)


def _ordered(verb: Verb, most: int, wave: Wave, path: DivergentPath, lanes: Lanes, groups: Groups) -> None:
    if ASYNCHRONY.of(wave).moment not in AT_ONCE:
        if verb == "commit":
            commit(wave, lanes, FAMILY)
        elif verb == "wait":
            drain(wave, path, lanes, FAMILY, most)
    observers_of(wave).wgmma_order(wave, path, groups, verb, most)


_ORDERS = ("fence", "commit_group", "wait_group")


@dataclass(frozen=True, kw_only=True)
class _ProductRow(MatrixRow):
    """wgmma.mma_async, whose forms are those of the instruction families."""

    def match(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return all modifiers, unless they are those of another statement."""
        return None if modifiers[:1] and modifiers[0] in _ORDERS else modifiers


ROWS: tuple[Effect, ...] = (
    _ProductRow(opcode=WGMMA.opcode, slots=(), bind=_mma_async, together=WARPGROUP),
    Effect(
        opcode=WGMMA.opcode,
        slots=(_ORDERS, ("sync",), ("aligned", "")),
        bind=_order,
        since=(8, 0),
        feature=Feature.WGMMA,
        together=WARPGROUP,
    ),
)
