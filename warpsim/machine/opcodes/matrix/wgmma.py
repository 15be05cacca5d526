"""wgmma in launched kernels (PTX ISA 9.1, section 9.7.15): all warpgroups that stand at one act together.

A wgmma is computed where it is issued, for all of them in one call, or later, as the schedule has it: then it
reads registers and shared memory when it completes, each warpgroup's in the order in which they were issued.
All four statements are executed by a warpgroup as a whole, its first warps wait for the last. What is missing
(fences, waits) observers find (checks/warpgroup_order.py), who are told of everything here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....errors import located
from ....isa.warps import WARPGROUP
from ....ptx.warpgroup import WarpgroupBound, bind_warpgroup
from ...bind.scope import RegisterName
from ...run.asynchronous import Pending, Stretches, commit, drain, issue
from ...run.convergence import Warpgroups, warpgroups_together
from ...state.lanes import Front, Lanes
from ..effect import Effect
from .mma import MatrixRow, bound_of, source_of, targets_of
from .wgmma_groups import Verb, wgmma_order
from .wgmma_operands import Groups, Multiplication, Share, multiply, shares_of

if TYPE_CHECKING:
    from ...bind.statement_binder import Reader, Site
    from ...run.wave import Step, Wave

_AT_ONCE = ("program", "earliest")  # schedules under which a wgmma completes where it is issued
_FAMILY = "wgmma"  # of groups


# --- loading ---------------------------------------------------------------------------------------


def _multiplication(site: Site) -> Multiplication:
    bound = bound_of(site, bind_warpgroup)
    descriptors = {"b": source_of(site, bound.b_descriptor, 64)}
    if bound.a_descriptor is not None:
        descriptors["a"] = source_of(site, bound.a_descriptor, 64)
    sources = {}
    if bound.a is not None:
        sources["a"] = [source_of(site, one, 32) for one in bound.a]
    if bound.e is not None:
        sources["e"] = [source_of(site, bound.e, 32)]
    d = [one for one in bound.d if one is not None]
    registers = {"D": d, "A": bound.a or (), "metadata": [bound.e]}
    return Multiplication(
        bound=bound,
        sources=sources,
        accumulators=[source_of(site, one, 32) for one in d],
        targets=targets_of(site, bound),
        descriptors=descriptors,
        scale_d=_scale_d(site, bound),
        registers={role: tuple(_numbers(site, names)) for role, names in registers.items()},
    )


def _numbers(site: Site, names: Sequence[object]) -> Iterator[int]:
    for name in names:
        found = site.scope.find(name) if isinstance(name, str) else None
        if isinstance(found, RegisterName):
            yield found.number


def _scale_d(site: Site, bound: WarpgroupBound) -> Reader:
    """Whether D is read."""
    if isinstance(bound.scale_d, bool):
        constant = np.array(bound.scale_d)
        return lambda wave, front: constant
    negated, name = bound.scale_d
    (number,) = _numbers(site, [name])
    read = site.reading(number)
    return (lambda wave, front: ~read(wave, front)) if negated else read


# --- running ---------------------------------------------------------------------------------------


def _mma_async(site: Site, *modifiers: str) -> Step:
    one = _multiplication(site)

    def act(wave: Wave, front: Front, lanes: Lanes, groups: Groups) -> None:
        shares = shares_of(wave, front, one, groups)
        if wave.observers:
            for share in shares:
                wave.tell("wgmma", front, one, share)
        perform = multiply if wave.asynchrony.moment in _AT_ONCE else _issue
        for share in shares:
            perform(wave, front, one, share)

    return lambda wave, front, lanes: warpgroups_together(wave, front, lanes, act)


@dataclass(eq=False)
class _Later:
    """An execution that has been issued: it is computed for one warpgroup, or for several at once."""

    front: Front
    one: Multiplication
    share: Share
    done: set[int] = field(default_factory=set)  # warpgroups

    def together(self, wave: Wave, pendings: Sequence[Pending]) -> None:
        """Compute it for the warpgroups of several in one call, before each of them completes."""
        places = Warpgroups.of(wave)
        self.multiply(wave, [int(places.number[one.lane]) for one in pendings])

    def multiply(self, wave: Wave, groups: Sequence[int]) -> None:
        """Compute it for some warpgroups, unless that has been done."""
        left = [group for group in groups if group not in self.done]
        if left:
            self.done.update(left)
            groups_left = np.array(left, np.intp)
            lanes = Warpgroups.of(wave).lanes_of(groups_left)  # others may have unwritten registers
            front = Front(self.front.pc, self.front.frame, lanes)
            multiply(wave, front, self.one, replace(self.share, groups=groups_left))


@dataclass(frozen=True, eq=False)
class _Completion:
    """What a warpgroup does when its part of an execution completes."""

    later: _Later
    group: int

    def __call__(self, wave: Wave) -> None:
        self.later.multiply(wave, [self.group])


def _issue(wave: Wave, front: Front, one: Multiplication, share: Share) -> None:
    """Each warpgroup of an execution has one more operation in flight, behind those that it has."""
    places = Warpgroups.of(wave)
    latest: dict[int, Pending] = wave.kept.setdefault("the latest wgmma of each warpgroup", {})
    later, issued = _Later(Front(front.pc, front.frame, front.lanes), one, share), list[Pending]()
    for group in share.groups.tolist():
        base = int(places.cta[group]) * wave.shared_stride
        before = latest.get(group)
        pending = latest[group] = Pending(
            record=wave.code[front.pc],
            lane=int(places.first[group]),
            kind="wgmma",
            complete=_Completion(later, group),
            reads=(Stretches(space="shared", ranges=share.ranges + base),),
            group=_FAMILY,
            batch=later.together,
            after=() if before is None or before.done else (before,),
        )
        issued.append(pending)
    issue(wave, front, *issued)


# --- order -----------------------------------------------------------------------------------------


def _order(site: Site, *modifiers: str) -> Step:
    """wgmma.fence, wgmma.commit_group and wgmma.wait_group."""
    with located(site.statement.location):
        order = wgmma_order(site.statement)
    act = partial(_ordered, order.verb, order.groups)
    return lambda wave, front, lanes: warpgroups_together(wave, front, lanes, act)


def _ordered(verb: Verb, most: int, wave: Wave, front: Front, lanes: Lanes, groups: Groups) -> None:
    if wave.asynchrony.moment not in _AT_ONCE:
        if verb == "commit":
            commit(wave, lanes, _FAMILY)
        elif verb == "wait":
            drain(wave, front, lanes, _FAMILY, most)
    if wave.observers:
        wave.tell("wgmma_order", front, groups, verb, most)


_ORDERS = ("fence", "commit_group", "wait_group")


@dataclass(frozen=True, kw_only=True)
class _ProductRow(MatrixRow):
    """wgmma.mma_async, whose forms are those of the instruction families."""

    def match(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Whatever they are, unless they are those of another statement."""
        return None if modifiers[:1] and modifiers[0] in _ORDERS else modifiers


ROWS: tuple[Effect, ...] = (
    _ProductRow(opcode="wgmma", slots=(), bind=_mma_async, together=WARPGROUP),
    Effect(
        opcode="wgmma",
        slots=(_ORDERS, ("sync",), ("aligned", "")),
        bind=_order,
        since=(8, 0),
        chips=(90,),
        suffix="a",
        together=WARPGROUP,
    ),
)
