"""Sentences of findings: a template for each, which facts fill.

Besides its own facts a template may name ``now`` and ``then``, the mnemonics of the statement and of the
other, and ``here`` and ``other``, their locations. Knows wording; does not know when something is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .findings import Findings, LaunchFinding, Severity

if TYPE_CHECKING:
    from ...machine.run.wave import Record, Wave


@dataclass(frozen=True)
class Template:
    """Finding ``kind``, message, note and fix; how grave it is, and whether PTX allows it."""

    kind: str
    message: str
    severity: Severity = "error"
    note: str = "the other access"
    fix: str = ""
    legal: bool = False


# fmt: off
CATALOGUE: dict[str, Template] = {
    # --- barriers ---
    "divergent barrier": Template(
        "divergent barrier",
        "lanes {lanes} of a warp execute {now}{elsewhere}: all lanes of a warp execute an aligned barrier "
        "together",
        "warning",
    ),
    "barrier reuse": Template(
        "barrier reuse",
        "{now} comes to barrier {number} in the phase after that to which {warp} comes by {then} of line "
        "{other.line}, but nothing says that {warp} has come: this warp may be counted there instead, and"
        " others go on without {warp}; give one of the two another barrier, or put a wait for something "
        "that {warp} does behind line {other.line} before line {here.line}",
        note="the phase before",
    ),
    "valid mbarrier": Template(
        "mbarrier",
        "{now} {verb} the mbarrier at {offset:#x} of shared memory, which that of line {other.line} has "
        "begun and mbarrier.inval has not ended: PTX leaves open what comes of it",
        "warning", note="where it begins",
    ),
    "phase split": Template(
        "phase split",
        "{now} ends a phase of the mbarrier {mbarrier} before all lanes of the warp have arrived: the "
        "next phase has {late} of its arrivals",
        "warning",
        fix="let the count of mbarrier.init be the number of threads that arrive in a phase",
        legal=True,
    ),
    # --- setmaxnreg ---
    "setmaxnreg ignored": Template(
        "registers",
        "{now} may have no effect: it needs .maxnreg, or .minnctapersm with .maxntid or .reqntid",
        "warning", legal=True,
    ),
    "setmaxnreg twice": Template(
        "registers",
        "{now} follows that of line {other.line} with no barrier between, at which the warps of the "
        "warpgroup meet: put bar.sync before line {here.line}",
    ),
    "setmaxnreg twice without a move": Template(
        "registers",
        "{now} follows that of line {other.line} with no barrier between, at which the warps of the "
        "warpgroup meet: put bar.sync before line {here.line}; no registers move, as the warp has so many",
        "warning",
    ),
    "setmaxnreg apart": Template(
        "registers",
        "{now} is executed while warp {warp} of the warpgroup has executed that of line {other.line}, "
        "which {asks}: all warps of a warpgroup execute one statement",
        "warning",
    ),
    # --- tensor maps and tensor memory ---
    "changed map": Template(
        "proxy fence",
        "{now} reads the tensor map at {address:#x}, which {then} of line {other.line} has changed, and "
        "nothing says that copies see it; put {fences} before line {here.line}",
    ),
    "collector buffer": Template(
        "collector buffer",
        "{now} may read {operand} from its buffer, but {why}: PTX does not define what it reads then",
        "warning",
        fix="write {word}::fill at the tcgen05.mma before it that reads the same {operand}, or leave "
        "{word}::{usage} away",
        note="the buffer may be emptied here",
    ),
    # --- clusters ---
    "CTA not begun": Template(
        "not begun",
        "{now} reaches {place}, and nothing says that this CTA has begun: put barrier.cluster.arrive and "
        "barrier.cluster.wait before line {here.line}",
    ),
    "mbarrier of another CTA": Template(
        "mbarrier init",
        "{now} reaches the mbarrier at {place}, whose initialisation at line {other.line} it need not "
        "see: put fence.mbarrier_init.release.cluster and barrier.cluster.arrive behind that line, and "
        "barrier.cluster.wait before line {here.line}",
    ),
    "CTA ends early": Template(
        "lifetime",
        "{cta}, ends while {user}, may still use its shared memory: nothing says that {then} of line "
        "{other.line} is done; put barrier.cluster.arrive behind line {other.line}, and "
        "barrier.cluster.wait before this end",
    ),
    # --- memory ---
    "uninitialised bytes": Template(
        "uninitialised",
        "{now} reads {bytes} that were never written",
        "warning",
    ),
    "uninitialised tile": Template(
        "uninitialised",
        "{now} reads byte {byte:#x} of shared memory, which was never written",
        "warning",
    ),
    "constant not set": Template(
        "uninitialised",
        "{now} reads {size} bytes of {variable}, a .{space} variable without an initial value that was never "
        "set",
        "warning",
        fix='set it before the launch: module.symbol("{variable}").set(...), or --symbol',
        legal=True,
    ),
    # A compiler writes ``= 0`` as no initial value.
    "variable not set": Template(
        "uninitialised",
        "{now} reads {size} bytes of {variable}, a .{space} variable without an initial value that was never "
        "set",
        "note", legal=True,
    ),
    "unwritten register": Template(
        "register",
        "{now} reads a register that was never written, as 0",
        "warning",
    ),
    "unspecified": Template(
        "unspecified",
        "{now} {what}: PTX leaves the result open",
        "warning",
    ),
    "unusual": Template(
        "descriptor",
        "{now} {what}",
        "warning", legal=True,
    ),
    "copy in flight": Template(
        "in flight",
        "{now} reads byte {byte} while the cp.async of line {other.line} is in flight: no "
        "cp.async.wait_group that covers it has come between",
    ),
    "tile in flight": Template(
        "in flight",
        "{now} reads byte {byte:#x} of shared memory while the cp.async of {other.short} is in flight",
    ),
    "out of bounds": Template(
        "out of bounds",
        "{now} {verb} byte {byte} of the {there} through a pointer to the {own}, {where}",
    ),
    # --- races ---
    "race of warps": Template(
        "race",
        "race: {now} {verb} byte {byte}, which another warp has {done} at {other.short} without a barrier"
        " in between",
    ),
    "race of a tile": Template(
        "race",
        "race: wgmma reads byte {byte:#x} of shared memory, which another warp has written at "
        "{other.short} without a barrier in between",
    ),
    "race of lanes": Template(
        "race",
        "race: {now} {verb} byte {byte}, which {lanes} {done} at {other.short} without a bar.warp.sync in"
        " between",
        fix="put bar.warp.sync (__syncwarp()) between {other.short} and {here.short}{turn}",
    ),
    "race of lanes that met": Template(
        "race",
        "race: {now} {verb} byte {byte}, which {lanes} {done} at {other.short} with only .sync statements"
        " in between that PTX does not promise to order memory",
        "warning",
        fix="put bar.warp.sync (__syncwarp()) between {other.short} and {here.short}{turn}",
    ),
    "race of CTAs": Template(
        "race",
        "race: {now} {verb} byte {byte}, which {cta}, has {done} at {other.short}, and nothing orders the"
        " two: put barrier.cluster.arrive behind {other.short}, and barrier.cluster.wait before this",
    ),
    "race of CTAs that met": Template(
        "race",
        "race: {now} {verb} byte {byte}, which {cta}, has {done} at {other.short}, and nothing orders the"
        " two: barrier.cluster.arrive.relaxed at {arrival} orders nothing: leave out .relaxed",
    ),
}
# fmt: on


@dataclass(frozen=True)
class Site:
    """Where a finding is: the statement ``at`` a place of the wave's code, or a record; ``by`` a lane, or
    words ("" for none); the ``other`` statement; and how grave it is, if not as the template says.
    """

    wave: Wave
    at: int | Record
    by: int | str
    other: int | None = None
    severity: Severity | None = None


def report(findings: Findings, name: str, site: Site, *, key: tuple[object, ...] = (), **facts: Any) -> None:
    """Add the finding of a template at a site.

    Nothing is added where the ``key`` is known: kind and places, where it is not given. Raises
    UndefinedBehavior for an error in mode "error".
    """
    template, wave = CATALOGUE[name], site.wave
    key = key or (template.kind, site.at, site.other)
    if key in findings.known:
        return
    statement = (wave.code[site.at] if isinstance(site.at, int) else site.at).statement
    words: dict[str, object] = {"now": statement.mnemonic, "here": statement.location(), **facts}
    other = None
    if site.other is not None:
        other = wave.code[site.other].statement.location()
        words |= {"then": wave.code[site.other].statement.mnemonic, "other": other}
    by = wave.describe_lane(site.by) if isinstance(site.by, int) else site.by
    finding = LaunchFinding(
        kind=template.kind,
        severity=site.severity or template.severity,
        message=template.message.format(**words) + (f" [{by}]" if by else ""),
        location=statement.location(),
        other=other,
        note=template.note,
        fix=template.fix.format(**words),
        legal=template.legal,
    )
    findings.add(key, finding)
