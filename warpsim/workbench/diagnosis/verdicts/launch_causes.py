"""Causes of a wrong launch, each with its evidence: checks, schedules, origins of operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ....base.errors import Deadlock, Location, WarpsimError
from ....observe.algebra.locating.operand_copies import loads_of
from ....observe.checks.findings import FindingError, LaunchFinding
from ....programs.launch.fidelity import SCHEDULED
from ..origins.element_origins import Names, Origins, find_origins
from ..origins.packing_checks import PackingFinding
from .output_errors import output_error
from .repeated_launch import Array, Attempt, RepeatedLaunch

SCHEDULES = ("program", "earliest", "latest", "random:1", "random:2", "random:3", "random:4")
_FURTHER = "further schedules"
_WAITED_FOR = {"wgmma", "tcgen05", "mbarrier"}  # opcodes
_FIXES = {  # by the kind of what origins find: what says most about the mistake comes first
    "stage": "use the stage that holds this step: check the stage index, the prologue and the order of waits",
    "repeated": "give this instruction tiles of its own: these are those of an earlier execution",
    "registers": "load the fragment's registers in the order of its layout, or give the mma the registers so",
    "transposed": "add .trans to the ldmatrix, or remove it",
    "ldmatrix row": "let the lanes named give the addresses of the rows named",
    "swizzle": "apply the same swizzle where shared memory is written and where it is read",
    "stride": "use the row stride, with its padding, with which the tile was written",
    "metadata step": "advance the metadata together with A",
    "metadata lane": "give each lane the word that the metadata layout asks of it",
    "metadata bytes": "keep the order of bytes and halves in a word of metadata",
    "metadata rows": "give each block of rows its own metadata",
    "order": "give every element its place in the fragment's layout",
    "scattered": "",
    "unused": "check the bounds and strides of the loops and of the tiles of warps and CTAs",
}
_WMMA_TRANSPOSED = "load it with the other of .row and .col (row_major and col_major)"
_AT_INSTRUCTION = ("repeated", "unused")  # kinds whose fault is the matrix instruction's own
BY_TAGS = "each element was traced from its source by a key beside its data"
_LINES = 4  # that a warning names
_ORDERS = 16  # an output is that much farther off at most than the orders of two schedules differ


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What is wrong: ``kind``, the sentence, the statement at fault, what to do, and what shows it.

    ``also`` are other statements on the way of the data, with what they do.
    """

    kind: str
    message: str
    location: Location | None
    evidence: str
    operand: str = ""
    fix: str = ""
    also: tuple[tuple[str, Location], ...] = ()
    symptoms: tuple[str, ...] = ()


# --- checks, errors and schedules ------------------------------------------------------------------


def order_cause(launch: RepeatedLaunch, first: Attempt) -> Cause | None:
    """Return the most specific finding or error of a launch under its own and up to six more schedules."""
    found = _reported(first)
    if not found:
        return None
    opcodes = {record.statement.opcode for record in launch.kernel._entry.code}
    least, others = (0 if opcodes & _WAITED_FOR else 1), _attempts(launch, first, SCHEDULES)
    with launch.budget.search(_FURTHER):  # until another schedule shows the same mistake in other words
        while not any(rank <= least and cause.fix for rank, cause in found) and (other := next(others, None)):
            found += _reported(other)
    best = min(found, key=lambda item: item[0])
    return replace(best[1], symptoms=_others(best[1], [cause for _, cause in found]))


def _attempts(launch: RepeatedLaunch, first: Attempt, schedules: Sequence[str]) -> Iterator[Attempt]:
    for schedule in schedules:
        if schedule != first.schedule and launch.budget.allows():
            attempt = launch.again(checks="warn", schedule=schedule)
            if not attempt.cut:
                yield attempt


def _others(best: Cause, found: Sequence[Cause]) -> tuple[str, ...]:
    """Return the messages of others, the first of each statement and kind."""
    firsts: dict[tuple[str, str], str] = {(best.kind, str(best.location)): best.message}
    for cause in found:
        firsts.setdefault((cause.kind, str(cause.location)), cause.message)
    return tuple(firsts.values())[1:]


def _reported(attempt: Attempt) -> list[tuple[int, Cause]]:
    """Return the errors of one execution, each with how little it says about the mistake."""
    report, error = attempt.report, attempt.error
    findings = [*(report.hazards if report else ()), *getattr(error, "earlier", ())]
    found = [_of_finding(item, attempt) for item in findings if item.severity == "error"]
    if isinstance(error, FindingError):
        found.append(_of_finding(error.finding, attempt))
    elif error is not None:
        found.append((4 if isinstance(error, Deadlock) else 2, _of_error(error, attempt)))
    return found


def _of_finding(finding: LaunchFinding, attempt: Attempt) -> tuple[int, Cause]:
    also = () if finding.other is None else ((finding.note, finding.other),)
    cause = Cause(
        kind=finding.kind,
        message=finding.message,
        location=finding.location,
        evidence=f"found by a check (schedule: {attempt.schedule})",
        fix=fix_of(finding),
        also=also,
    )
    return (0 if finding.fix else 1), cause


def _of_error(error: WarpsimError, attempt: Attempt) -> Cause:
    return Cause(
        kind=type(error).__name__,
        message=error.message,
        location=error.location,
        evidence=f"the launch stopped here (schedule: {attempt.schedule})",
    )


def unwritten_causes(attempt: Attempt) -> Iterator[Cause]:
    """Yield reads of bytes that nothing has written; those that seem not to matter are notes by now."""
    for finding in _warned(attempt):
        if finding.kind == "uninitialised":
            yield _of_finding(finding, attempt)[1]


def broken_rules(attempt: Attempt) -> Iterator[Cause]:
    """Yield warnings about what PTX leaves undefined, though ptxas or chips may make something of it.

    What several statements do in the same words is named once.
    """
    found: dict[str, list[LaunchFinding]] = {}
    for finding in _warned(attempt):
        if not finding.legal:
            found.setdefault(finding.message, []).append(finding)
    for findings in found.values():
        cause = _of_finding(findings[0], attempt)[1]
        yield replace(cause, message=f"{cause.message}{elsewhere(findings)}")


def elsewhere(findings: Sequence[LaunchFinding]) -> str:
    """Return in which lines but that of the first the same finding stands."""
    _, *lines = dict.fromkeys(str(item.location.line) for item in findings)
    more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return f" (also line{'s'[: len(lines) != 1]} {', '.join(lines[:_LINES])}{more})" if lines else ""


def _warned(attempt: Attempt) -> Iterator[LaunchFinding]:
    hazards = attempt.report.hazards if attempt.report is not None else ()
    return (finding for finding in hazards if finding.severity == "warning")


def schedule_cause(
    launch: RepeatedLaunch, first: Attempt, expected: Mapping[int, npt.ArrayLike], tolerance: float
) -> Cause | None:
    """Return what other schedules show: a finding, an error, or an output that is wrong under one schedule
    and another, or right, under others.
    """
    with launch.budget.search(_FURTHER):
        for other in _attempts(launch, first, ("latest", "random:1")):
            found = order_cause(launch, other) if _reported(other) else None
            found = found or _differing(launch, (first, other), expected, tolerance)
            if found is not None:
                return found
    return None


def _differing(
    launch: RepeatedLaunch,
    attempts: tuple[Attempt, Attempt],
    expected: Mapping[int, npt.ArrayLike],
    tolerance: float,
) -> Cause | None:
    first, other = attempts
    for index, wanted in expected.items():
        name, both = launch.name(index), (first.arrays[index], other.arrays[index])
        errors = [output_error(index, name, array, wanted, tolerance) for array in both]
        if not any(errors) or both[0].tobytes() == both[1].tobytes():
            continue
        adding = first.report.fidelity[SCHEDULED] if first.report else ()
        if adding:
            open_order = _open_order(name, both, np.asarray(wanted), (first.schedule, other.schedule))
            if open_order is not None:
                return replace(open_order, location=adding[0].location)
        else:
            return Cause(
                kind="schedule",
                message=f"{name} is another under schedule {other.schedule} than under {first.schedule}",
                location=None,
                evidence="both were executed",
                fix="order the statements that write it, or what they read",
            )
    return None


def _open_order(
    name: str, both: tuple[Array, Array], wanted: Array, schedules: tuple[str | int, str | int]
) -> Cause | None:
    """Return sums in an order that PTX leaves open as the cause; None where they do not explain the rest:
    where elements are farther off than other orders move them.
    """
    values = [array.astype(np.float64) for array in (*both, wanted)]
    wide = np.abs(values[0] - values[1])
    if np.abs(values[0] - values[2]).max() > _ORDERS * wide.max():
        return None
    worst = int(wide.argmax())
    pair = " or ".join(
        f"{array.flat[worst]!s} ({which})" for array, which in zip(both, schedules, strict=True)
    )
    return Cause(
        kind="open order",
        message=f"{name} has sums of floats by several threads, whose order PTX leaves open: {pair}",
        location=None,
        evidence="executed under both schedules: what differs has the size of what is wrong",
        fix="compare with a tolerance, or add in one order",
    )


# --- origins ---------------------------------------------------------------------------------------


def traced(launch: RepeatedLaunch, outputs: Sequence[int]) -> Origins | None:
    """Return the origins of the operands in all input arrays, None where no array can be traced.

    Where the kernel takes addresses or bounds from wide integers, only the other arrays are traced.
    """
    arrays = {index: array for index, array in launch.arrays.items() if index not in outputs}
    wide = {
        index: array for index, array in arrays.items() if array.dtype.kind not in "iu" or array.itemsize < 4
    }
    for chosen in (arrays, wide):
        if not chosen:
            continue
        names: Names = {launch.name(index): index for index in chosen}
        sizes = {name: launch.sizes[name] for name in ("shared_bytes", "cluster") if name in launch.sizes}
        most = {"most_statements": launch.most_statements}
        try:
            with launch.restored():
                found = find_origins(
                    launch.kernel,
                    launch.sizes["grid"],
                    launch.sizes["block"],
                    launch.args,
                    names,
                    **sizes,
                    **most,
                )
        except WarpsimError:
            continue
        if found.operands or not found.dependences:
            return found
    return None


def origin_causes(launch: RepeatedLaunch, origins: Origins, evidence: str = BY_TAGS) -> Iterator[Cause]:
    """Yield what does not fit of the operands, the most significant first, each mistake once, with what
    brings the operand.
    """
    ranks = {kind: rank for rank, kind in enumerate(_FIXES)}
    findings = sorted(origins.findings, key=lambda finding: ranks.get(finding.kind, len(ranks)))
    seen = set[tuple[str, str, str]]()
    for finding in findings:
        tensor = _of_tensor(finding)
        chain = chain_to(launch, finding.location, finding.operand, origins, tensor=tensor)
        key = finding.kind, finding.operand, str(chain.nearest or finding.location)
        if key not in seen:  # else it is the same mistake at another instruction or in another turn
            seen.add(key)
            yield replace(_of_origin(finding, chain), evidence=evidence)


def _of_origin(finding: PackingFinding, chain: Chain) -> Cause:
    at_instruction = finding.kind in _AT_INSTRUCTION or _of_tensor(finding)
    return Cause(
        kind=finding.kind,
        message=f"operand {finding.operand} of the matrix instruction: {finding.message} [{finding.where}]",
        location=finding.location if at_instruction else chain.nearest or finding.location,
        evidence=BY_TAGS,
        operand=finding.operand,
        fix=_fix(finding),
        also=tuple(along(chain, finding.location, tensor=_of_tensor(finding))),
    )


def _of_tensor(finding: PackingFinding) -> bool:
    """Return whether it is of tcgen05.mma, whose registers are descriptors and addresses."""
    return "tcgen05.mma" in finding.location.text


def _fix(finding: PackingFinding) -> str:
    """Return what to do; a fragment of wmma has a load of its own, and no ldmatrix."""
    fault = finding.fault
    if fault is None or finding.kind != "transposed":
        return _FIXES.get(finding.kind, "")
    wmma = fault.tiles.tiles.operand.given.record.statement.opcode == "wmma"
    return _WMMA_TRANSPOSED if wmma else _FIXES[finding.kind]


def number_of(launch: RepeatedLaunch, location: Location) -> int:
    """Return the number of the statement at a place."""
    code = launch.kernel._entry.code
    return next(pc for pc, record in enumerate(code) if record.statement.location() == location)


_REGISTER = re.compile(r"(?<![\w.$%])%?[A-Za-z_$][\w$]*")  # inline assembly has names without %


class Chain(NamedTuple):
    """Statements that bring an operand, as places in the text: ``loads`` fill its registers, ``writers`` the
    shared memory that those read, or the instruction itself."""

    loads: tuple[Location, ...]
    writers: tuple[Location, ...]

    @property
    def nearest(self) -> Location | None:
        """The load, or the writer where the instruction reads shared memory itself."""
        return next(iter((*self.loads, *self.writers)), None)


def chain_to(
    launch: RepeatedLaunch, at: Location, role: str, origins: Origins | None, *, tensor: bool = False
) -> Chain:
    """Return what brings the registers of an operand to the matrix instruction at a place; without registers,
    what that operand is read from in shared memory.
    """
    code, number = launch.kernel._entry.code, number_of(launch, at)
    registers = [] if tensor else operand_registers(code[number].statement.operand_text or "", role)
    loads = sorted(set(loads_of(code, number, registers)), reverse=True)
    written = {} if origins is None else origins.movement.written_by
    reads = [(load, "") for load in loads] or [(number, role)]
    writers = sorted({pc for each in reads for pc in written.get(each, ())})
    both = (tuple(code[pc].statement.location() for pc in pcs) for pcs in (loads, writers))
    return Chain(*both)


def operand_registers(text: str, role: str) -> list[str]:
    """Return the registers of operand a, b, c, e, scale_a or scale_b of a matrix instruction, from the text
    of its operands.
    """
    groups = re.findall(r"\{[^}]*\}|[^,\s{}][^,{}]*", text)
    places: Mapping[str, int] = {"a": 1, "b": 2, "c": 3, "e": 4, "scale_a": -4, "scale_b": -2}
    place = places.get(role)
    inside = place is not None and -len(groups) <= place < len(groups)
    return _REGISTER.findall(groups[place]) if place is not None and inside else []


def along(chain: Chain, at: Location, *, tensor: bool = False) -> Iterator[tuple[str, Location]]:
    """Yield the other statements on the way of an operand to the matrix instruction at a place."""
    yield from (("another load of the operand", place) for place in chain.loads[1:])
    if chain.loads or tensor:
        yield from (("writes the shared memory that is read", place) for place in chain.writers)
    yield "the matrix instruction", at


# --- what to do about a finding of order --------------------------------------------------------------


def fix_of(finding: LaunchFinding) -> str:
    """Return what to do; empty where the finding names no other access, or says it itself."""
    if finding.fix or finding.other is None:
        return finding.fix
    before, after = finding.other.short, finding.location.short
    if finding.kind == "in flight":
        return (
            f"put cp.async.wait_group, with fewer groups that may be in flight, and then bar.sync "
            f"(__syncthreads()) between {before} and {after}"
        )
    if finding.kind != "race":
        return ""
    turn = ", in every turn of the loop" if finding.location.line < finding.other.line else ""
    if finding.location.quoted().startswith("wgmma"):
        return f"put fence.proxy.async and then bar.sync (__syncthreads()) between {before} and {after}{turn}"
    return f"put bar.sync (__syncthreads()) between {before} and {after}{turn}"
