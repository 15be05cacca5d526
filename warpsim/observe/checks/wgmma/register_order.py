"""The order of registers and wgmma-groups of one warpgroup: which statement came too early.

Knows register names and places in a text, as events of one warpgroup in program order; does not know shared
memory (see warpgroup_order.py), PTX syntax or numbers. Section numbers are
those of PTX ISA 9.1: 9.7.15.5 wgmma.mma_async, 9.7.15.7.1 to .3 wgmma.fence, commit_group and wait_group.

Every event has a number, its step, and what is not ordered yet is what lies behind one of three marks:

    a wgmma is in flight              until a wait completes its wgmma-group     step > completed
    a wgmma is in no wgmma-group      until the next commit_group                step > committed
    a register access is unordered    until the next wgmma.fence                 step > fenced

so a register only remembers its newest use of each sort. That is enough because marks move forward only, and
groups complete in the order of their commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .hazard import (
    COMMIT,
    EARLY,
    FENCE,
    MENDED_END,
    MENDED_FENCE,
    MENDED_READ,
    MENDED_WAIT,
    MENDED_WRITE,
    PARTICIPLE,
    STILL,
    WAIT,
    Hazard,
    Kind,
    Place,
    Role,
    Severity,
    counted,
    distinct,
    hazard_of,
    insert,
    line_of,
    listed,
    mended,
)

Conflicts = Mapping[Role, tuple[Role, ...]]  # later use -> the earlier uses it must be ordered after
Found = Callable[[Sequence[Hazard]], None]

# Uses of one register that 9.7.15.7.3 forbids while the earlier use is in flight. A after A is missing:
# the letter of the text forbids it too, but two reads cannot be misordered (nor does ptxas 13.0 wait).
_ACCESS_AFTER: Mapping[Kind, tuple[Role, ...]] = {"read": ("D", "A"), "write": ("D", "A", "metadata")}
_MENDED: Mapping[tuple[Kind, Role], str] = {  # what ptxas does about such an access
    ("read", "D"): MENDED_WAIT,
    ("write", "D"): MENDED_WAIT,
    ("read", "A"): MENDED_READ,
    ("write", "A"): MENDED_WRITE,
}
_WGMMA_AFTER: Conflicts = {"D": ("D", "A", "metadata"), "A": ("D",), "metadata": ("D",)}

# Uses by two wgmma that need a wgmma.fence between them (9.7.15.7.1), in flight or not. Metadata needs
# none: "Only the accumulator register and the input registers containing the fragments of matrix A".
_FENCED_AFTER: Conflicts = {"D": ("D", "A"), "A": ("D",)}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One wgmma.mma_async."""

    step: int
    shape: str
    operands: Mapping[Role, tuple[str, ...]]
    accumulate: bool
    place: Place

    def is_chained_to(self, earlier: Operation) -> bool:
        """Return whether the D of both is ordered without a fence or wait.

        9.7.15.7.1: "accumulator register accesses across multiple wgmma.mma_async instructions of the
        same shape" are ordered by default; types, scale-d, groups and what stands between do not
        matter. PTX does not say what happens if the two D merely overlap: that is not exempted here
        (ptxas 13.0 gives such D separate registers and waits).
        """
        return self.shape == earlier.shape and self.operands["D"] == earlier.operands["D"]


@dataclass(slots=True)
class _Group:
    """A pending wgmma-group: the step of its commit, and the latest wait_group that left it pending."""

    step: int
    passed: tuple[int, Place] | None = None


class RegisterOrder:
    """What is in flight in one warpgroup, notified of every statement just before it takes effect.

    ``found`` is called with what is broken before the state changes, and may raise. Register names are
    compared as they are: the caller makes those of inner scopes unique. ``compiled`` says that ptxas has
    compiled the statements together: where D is read early, the wait that it inserts there has happened.
    """

    def __init__(self, found: Found, *, compiled: bool = False) -> None:
        self.found, self.compiled = found, compiled
        self.copies: dict[str, Operation] = {}  # registers that a mov has filled from D in flight
        self.step = self.completed = 0
        self._committed = self._fenced = 0
        self._issued = False
        # The newest uses of each register: by a thread's own statement, until a wgmma uses it, and by wgmma.
        self._accesses: dict[str, tuple[int, Kind, Place]] = {}
        self._uses: dict[Role, dict[str, Operation]] = {"D": {}, "A": {}, "metadata": {}}
        self.operations: dict[int, Operation] = {}  # in flight, by step
        self._groups: list[_Group] = []  # pending, the oldest first
        self._wait: tuple[int, int, Place] | None = None  # the latest: step, N, place

    def copy(self) -> RegisterOrder:
        """Return the same state, for warpgroups that go on apart."""
        other = RegisterOrder(self.found, compiled=self.compiled)
        other.__dict__.update(self.__dict__)
        other._accesses = dict(self._accesses)
        other._uses = {role: dict(uses) for role, uses in self._uses.items()}
        other.operations, other.copies = dict(self.operations), dict(self.copies)
        other._groups = [replace(group) for group in self._groups]
        return other

    # --- events: find, report, then change the state ---

    def access(self, registers: Iterable[str], kind: Kind, place: Place, *, copied: bool = False) -> None:
        """Check registers that anything but the D, A and metadata operands of a wgmma reads or writes.

        9.7.15.7.3: "Accessing the accumulator register or the input register containing the fragments
        of matrix A" before the covering wait is undefined: reading A as well as writing it. Metadata is
        not named there; overwriting it early is a warning. ``copied`` is an access by a mov, for which ptxas
        12.9 and 13.0 do not wait where its result is A of another wgmma.
        """
        names = tuple(dict.fromkeys(registers))
        if self.operations:
            self.found(list(self._early_access(names, kind, place)))
        self.step += 1
        self._accesses.update(dict.fromkeys(names, (self.step, kind, place)))
        if self.compiled and not copied:
            self._mend(names, kind)

    def copied(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Note that a mov takes registers to others, behind its accesses."""
        early = self._users(sources, "D", self.completed)
        for name in targets:
            self.copies.pop(name, None)
            if early:
                self.copies[name] = max(early, key=lambda operation: operation.step)

    def wgmma(
        self,
        shape: str,
        *,
        d: Sequence[str],
        place: Place,
        a: Sequence[str] = (),
        metadata: str | None = None,
        accumulate: bool = True,
        late: Iterable[Hazard] = (),
    ) -> int:
        """Return the step of a wgmma.mma_async with D, perhaps A and metadata in registers.

        ``shape`` is m, n and k without the types. Without ``accumulate`` (scale-d false) D is not read,
        but it is written just as late: no rule asks less of it. ``late`` is what is wrong besides.
        """
        operands: dict[Role, tuple[str, ...]] = {"D": tuple(d), "A": tuple(a)}
        operands["metadata"] = () if metadata is None else (metadata,)
        operation = Operation(self.step + 1, shape, operands, accumulate, place)
        self.found([*self._early_use(operation), *self._unfenced_hazards(operation), *late])
        self._issue(operation)
        return operation.step

    def fence(self) -> None:
        """wgmma.fence: orders register accesses before it with wgmma after it; it waits for no wgmma."""
        self._fenced = self.step = self.step + 1

    def commit(self) -> None:
        """wgmma.commit_group; a group without any wgmma counts like any other (9.7.15.7.2)."""
        self._committed = self.step = self.step + 1
        self._groups.append(_Group(self.step))

    def wait(self, n: int, place: Place) -> None:
        """wgmma.wait_group n: all groups but the n most recent are complete.

        9.7.15: then all their wgmma "have been performed and completed". That frees D, A, metadata and
        the bytes they read, these without a further proxy fence (9.7.15.4). A wgmma in no group is not
        waited for; that is legal, but a mistake where nothing else could be waited for.
        """
        self.found(list(self._pointless(n, place)))
        self.step += 1
        self._wait = (self.step, n, place)
        complete = max(len(self._groups) - n, 0)
        if complete:
            self._complete(self._groups[complete - 1].step)
            del self._groups[:complete]
        for group in self._groups:
            group.passed = (n, place)

    def finish(self, place: Place) -> None:
        """Check the end of the program, which counts as a read of the D registers of every wgmma.

        PTX does not say what becomes of a wgmma in flight at the end of a kernel.
        """
        self.found(list(self._unfinished(place)))

    # --- state ---

    def _complete(self, step: int) -> None:
        self.completed = step
        self.operations = {s: operation for s, operation in self.operations.items() if s > step}

    def _mend(self, names: Sequence[str], kind: Kind) -> None:
        """Apply what ptxas inserts before a statement that comes too early: a wait, where it reads D."""
        if kind == "write":
            for name in names:
                self.copies.pop(name, None)
        elif early := self._users(names, "D", self.completed):
            self._complete(max(operation.step for operation in early))
            while self._groups and not any(step < self._groups[0].step for step in self.operations):
                del self._groups[0]

    def _issue(self, operation: Operation) -> None:
        self._issued = True
        self.step = operation.step
        self.operations[operation.step] = operation
        for role, names in operation.operands.items():
            self._uses[role].update(dict.fromkeys(names, operation))
            if role != "metadata" and self._accesses:
                for name in names:
                    self._accesses.pop(name, None)

    def _users(self, names: Sequence[str], role: Role, mark: int) -> dict[Operation, list[str]]:
        """Return the wgmma after the mark that used some of the registers in a role, and which registers."""
        uses = self._uses[role]
        if not uses:
            return {}
        users = dict.fromkeys(map(uses.get, names))  # few, in the order of their first registers
        return {
            operation: [name for name in names if uses.get(name) is operation]
            for operation in users
            if operation is not None and operation.step > mark
        }

    def _meetings(
        self, operation: Operation, conflicts: Conflicts, mark: int
    ) -> Iterator[tuple[Role, Role, Operation, list[str]]]:
        """Yield what a new wgmma has in conflict with a wgmma after the mark: both roles, that wgmma, the
        registers.
        """
        for role, earlier_roles in conflicts.items():
            for earlier_role in earlier_roles:
                for earlier, names in self._users(operation.operands[role], earlier_role, mark).items():
                    if not (role == earlier_role == "D" and operation.is_chained_to(earlier)):
                        yield role, earlier_role, earlier, names

    # --- rules about registers ---

    def _early_access(self, names: tuple[str, ...], kind: Kind, place: Place) -> Iterator[Hazard]:
        """9.7.15.7.3, of a statement that is not a wgmma."""
        for role in _ACCESS_AFTER[kind]:
            for operation, used in self._users(names, role, self.completed).items():
                hazard = self._early(used, role, operation, PARTICIPLE[kind], place)
                yield mended(hazard, _MENDED.get((kind, role), ""))

    def _early_use(self, operation: Operation) -> Iterator[Hazard]:
        """9.7.15.7.3, of another wgmma.

        9.7.15.7.1 taken alone might allow all of these after a mere wgmma.fence; 9.7.15.7.3 allows no
        access before the covering wait, and only chained accumulators are ordered without a wait. That ptxas
        13.0 compiles D after D of another shape, and A after D, with only a fence proves nothing.
        """
        for role, earlier_role, earlier, names in self._meetings(operation, _WGMMA_AFTER, self.completed):
            done = f"used as {role} by another wgmma"
            yield self._early(names, earlier_role, earlier, done, operation.place)
        copies = [name for name in operation.operands["A"] if name in self.copies]
        for name in copies:
            if (earlier := self.copies[name]).step > self.completed:
                cause, fix = self.cause(earlier, operation.place)
                message = (
                    f"{name}, which is A here, was copied from the accumulators of a wgmma that is still in "
                    f"flight: {cause}; ptxas 12.9 and 13.0 insert no wait for such copies"
                )
                places = operation.place, fix, earlier.place, STILL
                yield hazard_of(EARLY["D"], message, *places, (name,))
                return

    def _early(self, names: list[str], role: Role, operation: Operation, done: str, place: Place) -> Hazard:
        be, them = ("are", "them") if len(names) > 1 else ("is", "it")
        use = {
            "D": f"{'accumulates into' if operation.accumulate else 'writes'} {them}",
            "A": f"reads {them} as A",
            "metadata": f"reads {them} as metadata (PTX does not say when)",
        }[role]
        cause, fix = self.cause(operation, place)
        message = f"{listed(names)} {be} {done} while the wgmma that {use} is in flight: {cause}"
        severity: Severity = "warning" if role == "metadata" else "error"
        return hazard_of(
            EARLY[role], message, place, fix, operation.place, STILL, tuple(names), severity=severity
        )

    def _unfenced_hazards(self, operation: Operation) -> Iterator[Hazard]:
        """9.7.15.7.1: where a wgmma.fence must stand, and none does."""
        names = distinct(operation.operands["D"] + operation.operands["A"])
        place = operation.place
        if not self._issued and not self._fenced:
            message = "no wgmma.fence comes before the first wgmma of the warpgroup"
            hazard = hazard_of("first-fence", message, place, insert(FENCE, place), registers=names)
            yield mended(hazard, MENDED_FENCE)
            return
        yield from self._touched(names, place)
        for role, earlier_role, earlier, shared in self._meetings(operation, _FENCED_AFTER, self._fenced):
            message = (
                f"this wgmma uses {listed(shared)} as {role}, the wgmma at {line_of(earlier.place)} as "
                f"{earlier_role}, and no wgmma.fence stands between them; only wgmma of the same shape "
                "with the same D registers need none"
            )
            note = f"the earlier wgmma, of shape {earlier.shape}; the later wgmma is {operation.shape}"
            fix = insert(FENCE, place)
            yield hazard_of("fence-between", message, place, fix, earlier.place, note, tuple(shared))

    def _touched(self, names: tuple[str, ...], place: Place) -> Iterator[Hazard]:
        """Yield the hazard of registers that a thread's own statement accessed, even only read, since the
        last wgmma.fence.
        """
        held = {name: self._accesses[name] for name in names if name in self._accesses}
        late = {name: access for name, access in held.items() if access[0] > self._fenced}
        if late:
            latest, (_, kind, first) = max(late.items(), key=lambda item: item[1][0])
            how = " or ".join(sorted({PARTICIPLE[access[1]] for access in late.values()}))
            were = "were" if len(late) > 1 else "was"
            message = f"this wgmma uses {listed(late)}, which {were} {how} after the last wgmma.fence"
            note = f"{latest} is {PARTICIPLE[kind]} here"
            fix = insert(FENCE, place)
            hazard = hazard_of("fence", message, place, fix, first, note, tuple(late))
            written = any(access[1] == "write" for access in late.values())
            yield mended(hazard, MENDED_FENCE if written else "")

    # --- rules about groups ---

    def cause(self, operation: Operation, place: Place) -> tuple[str, str]:
        """Return why a wgmma is in flight at a place, and what to insert where."""
        if operation.step > self._committed:
            why = "no wgmma.commit_group has followed"
            if self._wait and self._wait[0] > operation.step and self._wait[1] == 0:
                return why, insert(COMMIT, self._wait[2])
            return why, insert(f"{COMMIT} {WAIT.format(0)}", place)
        own, *newer = (group for group in self._groups if group.step > operation.step)
        why = "no wgmma.wait_group has followed the commit"
        if own.passed is not None:
            n, waited = own.passed
            why = f"wgmma.wait_group {n} at {line_of(waited)} leaves the group pending"
        enough = f"N <= {len(newer)}" if newer else "N = 0"
        pending = f"{counted(len(self._groups), 'group')} pending, {enough} covers it"
        return f"{why} ({pending})", insert(WAIT.format(len(newer)), place)

    def _in_flight(self) -> tuple[list[Operation], list[Operation]]:
        """Return what is in flight in a group, and in none; the oldest first."""
        committed = [operation for operation in self.operations.values() if operation.step < self._committed]
        return committed, list(self.operations.values())[len(committed) :]

    def _pointless(self, n: int, place: Place) -> Iterator[Hazard]:
        """Yield the hazard of a wait for all groups where only wgmma without a group are in flight."""
        committed, left = self._in_flight()
        if n == 0 and left and not committed:
            count = counted(len(left), "wgmma")
            message = f"wgmma.wait_group 0 waits for nothing: no wgmma.commit_group follows {count}"
            fix, first, names = insert(COMMIT, place), left[-1].place, _accumulators(left)
            yield hazard_of("uncommitted", message, place, fix, first, STILL, names, severity="warning")

    def _unfinished(self, place: Place) -> Iterator[Hazard]:
        for rule, left in zip(("unwaited", "uncommitted"), self._in_flight(), strict=True):
            if left:
                cause, fix = self.cause(left[-1], place)
                message = f"the program ends with {counted(len(left), 'wgmma')} in flight: {cause}"
                hazard = hazard_of(rule, message, place, fix, left[-1].place, STILL, _accumulators(left))
                yield mended(hazard, MENDED_END)


def _accumulators(operations: Iterable[Operation]) -> tuple[str, ...]:
    return distinct(name for operation in operations for name in operation.operands["D"])
