"""The ordering rules of asynchronous wgmma: which statement came too early, and what to insert before it.

Knows register names, byte ranges of shared memory and places in a text, as events of one warpgroup in
program order. Knows neither PTX syntax nor numbers. Section numbers are those of PTX ISA 9.1: 9.7.15.4
async proxy, 9.7.15.5 wgmma.mma_async, 9.7.15.7.1 to .3 wgmma.fence, commit_group and wait_group.

Every event has a number, its step, and what is not ordered yet is what lies behind one of four marks:

    a wgmma is in flight              until a wait completes its wgmma-group     step > completed
    a wgmma is in no wgmma-group      until the next commit_group                step > committed
    a register access is unordered    until the next wgmma.fence                 step > fenced
    a generic store is unordered      until the next fence.proxy.async           step > proxied

so a register or a byte only remembers its newest use of each sort. That is enough because marks move
forward only, and groups complete in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..errors import Location, UndefinedBehavior

__all__ = ["Hazard", "HazardChecker", "HazardError", "Mode", "Place", "resolved"]

Severity = Literal["error", "warning"]
Mode = Literal["error", "warn", "off"]
Kind = Literal["read", "write"]
Proxy = Literal["generic", "async"]
Role = Literal["D", "A", "metadata"]
Conflicts = Mapping[Role, tuple[Role, ...]]  # later use -> the earlier uses it must be ordered after
Integers = npt.NDArray[np.int64]
Place = Location | Callable[[], Location]  # in a text that is read again only where there is a hazard to show
ByteRanges = Sequence[tuple[int, int]] | Integers  # (n, 2): the first byte, the byte after the last
Stretches = list[slice]  # the same, none of them empty

_SHARED_BYTES = 1 << 18  # what the 14-bit start address of a matrix descriptor can reach

# Uses of one register that 9.7.15.7.3 forbids while the earlier one is in flight. A after A is missing:
# the letter of the text forbids it too, but two reads cannot be misordered (nor does ptxas 13.0 wait).
_ACCESS_AFTER: Mapping[Kind, tuple[Role, ...]] = {"read": ("D", "A"), "write": ("D", "A", "metadata")}
_WGMMA_AFTER: Conflicts = {"D": ("D", "A", "metadata"), "A": ("D",), "metadata": ("D",)}

# Uses by two wgmma that need a wgmma.fence between them (9.7.15.7.1), in flight or not. Metadata needs
# none: "Only the accumulator register and the input registers containing the fragments of matrix A".
_FENCED_AFTER: Conflicts = {"D": ("D", "A"), "A": ("D",)}


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """One broken rule between two statements.

    ``second`` is the statement that came too early; ``first`` the one it had to be ordered after, None
    where there is none, and ``note`` what that one did. ``byte_ranges`` are (first byte, byte after the
    last). An "error" is what PTX leaves undefined, a "warning" is legal or something PTX is silent about.
    """

    severity: Severity
    rule: str
    message: str
    first: Location | None
    second: Location
    fix: str
    note: str = ""
    registers: tuple[str, ...] = ()
    byte_ranges: tuple[tuple[int, int], ...] = ()

    def render(self) -> str:
        """Both statements with their carets, in the assembler's shape, and what to do."""
        lines = [f"{self.second}: {self.severity}: {self.message}", self.second.excerpt()]
        if self.first is not None:
            lines += [f"{self.first}: note: {self.note}", self.first.excerpt()]
        lines.append(f"{self.second}: fix: {self.fix}")
        return "\n".join(line for line in lines if line)


class HazardError(UndefinedBehavior):
    """UndefinedBehavior that shows two statements; ``hazard`` has the particulars."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(hazard.message, hazard.second)
        self.hazard = hazard

    def render(self) -> str:
        """The hazard with both statements."""
        return self.hazard.render()


def resolved(place: Place) -> Location:
    """The location itself."""
    return place if isinstance(place, Location) else place()


@dataclass(frozen=True, slots=True, eq=False)
class _Operation:
    """One wgmma.mma_async."""

    step: int
    shape: str
    operands: Mapping[Role, tuple[str, ...]]
    accumulate: bool
    place: Place

    def is_chained_to(self, earlier: _Operation) -> bool:
        """Whether the D of both is ordered without a fence or wait.

        9.7.15.7.1: "accumulator register accesses across multiple wgmma.mma_async instructions of the
        same shape" are ordered by default; types, scale-d, groups and what stands between do not
        matter. PTX does not say what happens if the two D merely overlap: that is not exempted here
        (ptxas 13.0 gives such D separate registers and waits).
        """
        return self.shape == earlier.shape and self.operands["D"] == earlier.operands["D"]


@dataclass(slots=True)
class _Register:
    """The newest uses of a register: by a thread's own statement, and by wgmma in each role."""

    access: tuple[int, Kind, Place] | None = None  # step, ...; None again once a wgmma has used it
    uses: dict[Role, _Operation] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    """A pending wgmma-group: the step of its commit, and the latest wait_group that left it pending."""

    step: int
    passed: tuple[int, Place] | None = None


class HazardChecker:
    """The asynchronous state of one warpgroup, told of every statement just before it takes effect.

    ``mode`` "error" raises HazardError at the first error, and leaves the state as it was before that
    event; "warn" only collects; "off" does nothing at all. Warnings never raise. ``hazards`` are those
    collected, each of them once: the turns of a loop do not repeat it.

    Register names are compared as they are: the caller makes those of inner scopes unique. Byte ranges
    must lie within ``shared_bytes``. That a bulk copy has completed (mbarrier) is not checked.
    """

    def __init__(self, mode: Mode = "error", shared_bytes: int = _SHARED_BYTES) -> None:
        self.mode: Mode = mode
        self._found: dict[Hazard, None] = {}
        self._step = self._completed = self._committed = self._fenced = self._proxied = 0
        self._issued = False
        self._registers: dict[str, _Register] = {}
        self._operations: dict[int, _Operation] = {}  # in flight, by step
        self._groups: list[_Group] = []  # pending, the oldest first
        self._wait: tuple[int, int, Place] | None = None  # the latest: step, N, place
        self._stores: dict[int, Place] = {}  # generic stores since the last fence.proxy.async, by step
        self._stored: Integers = np.zeros(0 if mode == "off" else shared_bytes, np.int64)
        self._read: Integers = np.zeros_like(self._stored)  # by wgmma; both hold a step for every byte

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What has been collected, in program order."""
        return tuple(self._found)

    # --- events: find, report, then change the state ---

    def access(self, registers: Iterable[str], kind: Kind, place: Place) -> None:
        """Registers are read or written, by anything but the D, A and metadata operands of a wgmma.

        9.7.15.7.3: "Accessing the accumulator register or the input register containing the fragments
        of matrix A" before the covering wait is undefined: reading A as well as writing it. Metadata is
        not named there; overwriting it early is a warning.
        """
        if self.mode == "off":
            return
        names = tuple(dict.fromkeys(registers))
        if self._operations:
            self._report(self._early_access(names, kind, place))
        self._step += 1
        for name in names:
            self._register(name).access = (self._step, kind, place)

    def wgmma(
        self,
        shape: str,
        *,
        d: Sequence[str],
        place: Place,
        a: Sequence[str] = (),
        metadata: str | None = None,
        shared: ByteRanges = (),
        accumulate: bool = True,
    ) -> None:
        """wgmma.mma_async with D, perhaps A and metadata in registers, reading ranges of shared memory.

        ``shape`` is m, n and k without the types. Without ``accumulate`` (scale-d false) D is not read,
        but it is written just as late: no rule asks less of it.
        """
        if self.mode == "off":
            return
        operands: dict[Role, tuple[str, ...]] = {"D": tuple(d), "A": tuple(a)}
        operands["metadata"] = () if metadata is None else (metadata,)
        operation = _Operation(self._step + 1, shape, operands, accumulate, place)
        stretches = self._stretches(shared)
        late = self._unproxied(stretches, place)
        self._report(self._early_use(operation), self._unfenced(operation), late)
        self._issue(operation, stretches)

    def fence(self, place: Place) -> None:
        """wgmma.fence: orders register accesses before it with wgmma after it; it waits for no wgmma."""
        if self.mode != "off":
            self._fenced = self._step = self._step + 1

    def commit(self, place: Place) -> None:
        """wgmma.commit_group; a group without any wgmma counts like any other (9.7.15.7.2)."""
        if self.mode != "off":
            self._committed = self._step = self._step + 1
            self._groups.append(_Group(self._step))

    def wait(self, n: int, place: Place) -> None:
        """wgmma.wait_group n: all groups but the n most recent are complete.

        9.7.15: then all their wgmma "have been performed and completed". That frees D, A, metadata and
        the bytes they read, these without a further proxy fence (9.7.15.4). A wgmma in no group is not
        waited for; that is legal, but a mistake where nothing else could be waited for.
        """
        if self.mode == "off":
            return
        self._report(self._pointless(n, place))
        self._step += 1
        self._wait = (self._step, n, place)
        complete = max(len(self._groups) - n, 0)
        if complete:
            self._completed = self._groups[complete - 1].step
            del self._groups[:complete]
            self._operations = {s: one for s, one in self._operations.items() if s > self._completed}
        for group in self._groups:
            group.passed = (n, place)

    def shared_write(self, ranges: ByteRanges, place: Place, proxy: Proxy = "generic") -> None:
        """Bytes are written: through the generic proxy by st, stmatrix, cp.async; async by bulk copies.

        That the bytes of a wgmma in flight must stay as they are follows from its being asynchronous;
        9.7.15.7.3 does not name them. An async write over a generic one leaves the latter unordered.
        """
        if self.mode == "off":
            return
        stretches = self._stretches(ranges)
        self._report(self._overwritten(stretches, place))
        self._step += 1
        if proxy == "generic":
            self._stores[self._step] = place
            for stretch in stretches:
                self._stored[stretch] = self._step

    def shared_read(self, ranges: ByteRanges, place: Place, proxy: Proxy = "generic") -> None:
        """Bytes are read. That a wgmma in flight reads them too does no harm; crossing proxies does."""
        if self.mode != "off" and proxy == "async":
            self._report(self._unproxied(self._stretches(ranges), place))

    def proxy_fence(self, place: Place) -> None:
        """fence.proxy.async, of shared memory at least: the async proxy sees the generic stores before it."""
        if self.mode != "off":
            self._proxied = self._step = self._step + 1
            self._stores.clear()

    def barrier(self, place: Place) -> None:
        """bar.sync: completes no wgmma, orders no proxies and no registers; nothing changes.

        Nor is its absence reported: 9.7.15 has wgmma.fence "indicate that the register/shared-memory
        across the warpgroup have been written into", and this warpgroup runs its warps in step.
        """

    def uniform(self, what: str, values: Iterable[int], place: Place) -> None:
        """An operand that must not differ: its four values, one a warp, or 128, one a lane.

        9.7.15.5: "The contents of a matrix descriptor must be same across all the warps in the
        warpgroup". Selectors are constants in PTX text.
        """
        if self.mode != "off":
            self._report(_differing(what, [int(value) for value in values], place))

    def finish(self, place: Place) -> None:
        """The end of the program counts as a look at the D registers of every wgmma.

        PTX does not say what becomes of a wgmma in flight at the end of a kernel.
        """
        if self.mode != "off":
            self._report(self._unfinished(place))

    # --- state ---

    def _report(self, *rules: Iterable[Hazard]) -> None:
        """Raise the first error where errors raise; otherwise collect."""
        hazards = [hazard for rule in rules for hazard in rule]
        for hazard in hazards:
            if self.mode == "error" and hazard.severity == "error":
                raise HazardError(hazard)
        self._found.update(dict.fromkeys(hazards))

    def _register(self, name: str) -> _Register:
        return self._registers.setdefault(name, _Register())

    def _issue(self, operation: _Operation, stretches: Stretches) -> None:
        self._issued = True
        self._step = operation.step
        self._operations[operation.step] = operation
        for stretch in stretches:
            self._read[stretch] = operation.step
        for role, names in operation.operands.items():
            for name in names:
                register = self._register(name)
                register.uses[role] = operation
                if role != "metadata":
                    register.access = None

    def _stretches(self, ranges: ByteRanges) -> Stretches:
        """The ranges, joined where one begins at the end of the one before."""
        bounds = np.asarray(ranges, np.int64).reshape(-1, 2)
        if not bounds.size:
            return []
        inside = (bounds >= 0) & (bounds <= self._stored.size) & (bounds[:, :1] <= bounds[:, 1:])
        assert inside.all(), f"byte ranges {bounds.tolist()} do not lie within 0..{self._stored.size}"
        apart = np.flatnonzero(bounds[1:, 0] != bounds[:-1, 1])
        starts, stops = bounds[[0, *(apart + 1)], 0].tolist(), bounds[[*apart, -1], 1].tolist()
        return [slice(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]

    def _users(self, names: Iterable[str], role: Role, mark: int) -> dict[_Operation, list[str]]:
        """The wgmma after the mark that used some of the registers in a role, and which registers."""
        users: dict[_Operation, list[str]] = {}
        if not self._issued:
            return users
        registers = self._registers
        for name in names:
            operation = registers[name].uses.get(role) if name in registers else None
            if operation is not None and operation.step > mark:
                users.setdefault(operation, []).append(name)
        return users

    def _meetings(
        self, operation: _Operation, conflicts: Conflicts, mark: int
    ) -> Iterator[tuple[Role, Role, _Operation, list[str]]]:
        """What a new wgmma has in conflict with one after the mark: both roles, that one, the registers."""
        for role, earlier_roles in conflicts.items():
            for earlier_role in earlier_roles:
                for earlier, names in self._users(operation.operands[role], earlier_role, mark).items():
                    if not (role == earlier_role == "D" and operation.is_chained_to(earlier)):
                        yield role, earlier_role, earlier, names

    # --- rules about registers ---

    def _early_access(self, names: tuple[str, ...], kind: Kind, place: Place) -> Iterator[Hazard]:
        """9.7.15.7.3, of a statement that is no wgmma."""
        for role in _ACCESS_AFTER[kind]:
            for operation, used in self._users(names, role, self._completed).items():
                yield self._early(used, role, operation, _PARTICIPLE[kind], place)

    def _early_use(self, operation: _Operation) -> Iterator[Hazard]:
        """9.7.15.7.3, of another wgmma.

        9.7.15.7.1 taken alone might allow all of these after a mere wgmma.fence; 9.7.15.7.3 allows no
        access before the covering wait, and only chained accumulators are ordered without one. That
        ptxas 13.0 compiles D after D of another shape, and A after D, with only a fence proves nothing.
        """
        for role, earlier_role, earlier, names in self._meetings(operation, _WGMMA_AFTER, self._completed):
            done = f"used as {role} by another wgmma"
            yield self._early(names, earlier_role, earlier, done, operation.place)

    def _early(self, names: list[str], role: Role, operation: _Operation, done: str, place: Place) -> Hazard:
        be, them = ("are", "them") if len(names) > 1 else ("is", "it")
        use = {
            "D": f"{'accumulates into' if operation.accumulate else 'writes'} {them}",
            "A": f"reads {them} as A",
            "metadata": f"reads {them} as metadata (PTX does not say when)",
        }[role]
        cause, fix = self._cause(operation, place)
        message = f"{_listed(names)} {be} {done} while the wgmma that {use} is in flight: {cause}"
        severity: Severity = "warning" if role == "metadata" else "error"
        return _hazard(
            _EARLY[role], message, place, fix, operation.place, _STILL, tuple(names), severity=severity
        )

    def _unfenced(self, operation: _Operation) -> Iterator[Hazard]:
        """9.7.15.7.1: where a wgmma.fence must stand, and none does."""
        names = _distinct(operation.operands["D"] + operation.operands["A"])
        place = operation.place
        if not self._issued and not self._fenced:
            message = "no wgmma.fence comes before the first wgmma of the warpgroup"
            yield _hazard("first-fence", message, place, _insert(_FENCE, place), registers=names)
            return
        yield from self._touched(names, place)
        for role, earlier_role, earlier, shared in self._meetings(operation, _FENCED_AFTER, self._fenced):
            message = (
                f"this wgmma uses {_listed(shared)} as {role}, the one at {_line(earlier.place)} as "
                f"{earlier_role}, and no wgmma.fence stands between them; only wgmma of the same shape "
                "with the same D registers need none"
            )
            note = f"the earlier wgmma, of shape {earlier.shape}; the later one is {operation.shape}"
            fix = _insert(_FENCE, place)
            yield _hazard("fence-between", message, place, fix, earlier.place, note, tuple(shared))

    def _touched(self, names: tuple[str, ...], place: Place) -> Iterator[Hazard]:
        """Registers that a thread's own statement accessed, even only read, since the last wgmma.fence."""
        held = {name: register.access for name in names if (register := self._registers.get(name))}
        late = {name: access for name, access in held.items() if access and access[0] > self._fenced}
        if late:
            latest, (_, kind, first) = max(late.items(), key=lambda item: item[1][0])
            how = " or ".join(sorted({_PARTICIPLE[access[1]] for access in late.values()}))
            were = "were" if len(late) > 1 else "was"
            message = f"this wgmma uses {_listed(late)}, which {were} {how} after the last wgmma.fence"
            note = f"{latest} is {_PARTICIPLE[kind]} here"
            fix = _insert(_FENCE, place)
            yield _hazard("fence", message, place, fix, first, note, tuple(late))

    # --- rules about shared memory ---

    def _overwritten(self, stretches: Stretches, place: Place) -> Iterator[Hazard]:
        latest = _latest(self._read, stretches)
        if latest > self._completed:
            operation = self._operations[latest]
            ranges = _runs(_after(self._read, stretches, self._completed))
            cause, fix = self._cause(operation, place)
            message = (
                f"{_listed_bytes(ranges)} of shared memory are written while a wgmma that reads them is in "
                f"flight: {cause}"
            )
            first = operation.place
            yield _hazard("shared-in-flight", message, place, fix, first, _STILL, byte_ranges=ranges)

    def _unproxied(self, stretches: Stretches, place: Place) -> Iterator[Hazard]:
        """9.7.15.4 and 9.7.15.7.1: generic stores that the async proxy need not see."""
        latest = _latest(self._stored, stretches)
        if latest > self._proxied:
            ranges = _runs(_after(self._stored, stretches, self._proxied))
            message = (
                f"{_listed_bytes(ranges)} of shared memory are read through the async proxy, but were "
                "written through the generic proxy with no fence.proxy.async since"
            )
            first, fix = self._stores[latest], _insert(_PROXY_FENCE, place)
            note = "the last of these generic stores"
            yield _hazard("proxy-fence", message, place, fix, first, note, byte_ranges=ranges)

    # --- rules about groups ---

    def _cause(self, operation: _Operation, place: Place) -> tuple[str, str]:
        """Why a wgmma is in flight at a place, and what to insert where."""
        if operation.step > self._committed:
            why = "no wgmma.commit_group has followed"
            if self._wait and self._wait[0] > operation.step and self._wait[1] == 0:
                return why, _insert(_COMMIT, self._wait[2])
            return why, _insert(f"{_COMMIT} {_WAIT.format(0)}", place)
        own, *newer = (group for group in self._groups if group.step > operation.step)
        why = "no wgmma.wait_group has followed the commit"
        if own.passed is not None:
            n, waited = own.passed
            why = f"wgmma.wait_group {n} at {_line(waited)} leaves the group pending"
        enough = f"N <= {len(newer)}" if newer else "N = 0"
        pending = f"{_count(len(self._groups), 'group')} pending, {enough} covers it"
        return f"{why} ({pending})", _insert(_WAIT.format(len(newer)), place)

    def _left(self) -> tuple[list[_Operation], list[_Operation]]:
        """What is in flight in a group, and in none; the oldest first."""
        committed = [one for one in self._operations.values() if one.step < self._committed]
        return committed, list(self._operations.values())[len(committed) :]

    def _pointless(self, n: int, place: Place) -> Iterator[Hazard]:
        """A wait for everything, where nothing is in flight but what is in no group."""
        committed, left = self._left()
        if n == 0 and left and not committed:
            count = _count(len(left), "wgmma")
            message = f"wgmma.wait_group 0 waits for nothing: no wgmma.commit_group follows {count}"
            fix, first, names = _insert(_COMMIT, place), left[-1].place, _accumulators(left)
            yield _hazard("uncommitted", message, place, fix, first, _STILL, names, severity="warning")

    def _unfinished(self, place: Place) -> Iterator[Hazard]:
        for rule, left in zip(("unwaited", "uncommitted"), self._left(), strict=True):
            if left:
                cause, fix = self._cause(left[-1], place)
                message = f"the program ends with {_count(len(left), 'wgmma')} in flight: {cause}"
                yield _hazard(rule, message, place, fix, left[-1].place, _STILL, _accumulators(left))


def _differing(what: str, values: list[int], place: Place) -> Iterator[Hazard]:
    other = next((i for i, value in enumerate(values) if value != values[0]), None)
    if other is not None:
        unit = "warp" if len(values) == 4 else "lane"
        message = (
            f"{what} must be the same in the whole warpgroup, but is {values[0]:#x} in {unit} 0 and "
            f"{values[other]:#x} in {unit} {other}"
        )
        yield _hazard("uniform", message, place, f"give all warps the same {what} before {_line(place)}")


def _hazard(
    rule: str,
    message: str,
    second: Place,
    fix: str,
    first: Place | None = None,
    note: str = "",
    registers: tuple[str, ...] = (),
    *,
    byte_ranges: tuple[tuple[int, int], ...] = (),
    severity: Severity = "error",
) -> Hazard:
    return Hazard(
        severity=severity,
        rule=rule,
        message=message,
        first=None if first is None else resolved(first),
        second=resolved(second),
        fix=fix,
        note=note,
        registers=registers,
        byte_ranges=byte_ranges,
    )


# --- words ---

_FENCE = "wgmma.fence.sync.aligned;"
_COMMIT = "wgmma.commit_group.sync.aligned;"
_WAIT = "wgmma.wait_group.sync.aligned {};"
_PROXY_FENCE = "fence.proxy.async;"
_STILL = "this wgmma is still in flight"
_PARTICIPLE: Mapping[Kind, str] = {"read": "read", "write": "written"}
_EARLY: Mapping[Role, str] = {
    "D": "accumulator-in-flight",
    "A": "fragment-in-flight",
    "metadata": "metadata-in-flight",
}
_LISTED = 4  # how many names or ranges a message lists; the hazard holds all


def _insert(statement: str, place: Place) -> str:
    return f"insert '{statement}' before {_line(place)}"


def _line(place: Place) -> str:
    place = resolved(place)
    return f"{place.file}:{place.line}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _accumulators(operations: Iterable[_Operation]) -> tuple[str, ...]:
    return _distinct(name for one in operations for name in one.operands["D"])


def _listed(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    everything = list(names)
    shown, more = everything[:_LISTED], len(everything) - _LISTED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _listed_bytes(ranges: tuple[tuple[int, int], ...]) -> str:
    return "bytes " + _listed(f"{first:#x}..{stop - 1:#x}" for first, stop in ranges)


def _latest(steps: Integers, stretches: Stretches) -> int:
    """The highest step of any byte."""
    return max((int(steps[stretch].max()) for stretch in stretches), default=0)


def _after(steps: Integers, stretches: Stretches, mark: int) -> Integers:
    """The addresses whose step lies behind a mark."""
    return np.concatenate([one.start + np.flatnonzero(steps[one] > mark) for one in stretches])


def _runs(addresses: Integers) -> tuple[tuple[int, int], ...]:
    """The addresses as ranges (first, after the last), ascending."""
    ordered = np.unique(addresses)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    return tuple((int(run[0]), int(run[-1]) + 1) for run in np.split(ordered, breaks))
