"""Commands about where lanes are: ``info``, the focus, calls, and what lanes wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....base.errors import OperandError
from ....isa.numerals import whole_number
from ....isa.warps import WARP
from ....machine.bind.variable_names import place_name
from ....machine.opcodes.asynchronous.cp_async import Flight, closed_groups, flights
from ....machine.run.asynchronous import ASYNCHRONY
from ....machine.run.barriers.cta_barriers import Barriers
from ....machine.run.barriers.mbarrier import Object, known_objects
from ....machine.run.barriers.waits import BarrierWait, waiting_record
from ....machine.run.convergence import in_words
from ....machine.run.pending import Stretches
from ....machine.run.wave import Wave
from ....machine.state.lanes import DivergentPath
from ....observe.stops.contexts import names_in, registers_of, standing, written_registers
from ....observe.stops.stop_places import line_name
from ....observe.stops.values import shown
from ....ptx.symbols import shown as shown_name
from .memory_commands import allocations
from .moving import where_lines

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel


def info(session: Travel, text: str) -> str:
    """Print about a topic."""
    topic = text.strip()
    found = [name for name in TOPICS if topic and name.startswith(topic)]
    if topic in TOPICS:
        found = [topic]
    if len(found) > 1:
        raise OperandError(f"info {topic} may be {', '.join(found)}")
    if not found:
        raise OperandError(f"info {topic or 'what?'}: topics are {', '.join(TOPICS)}")
    return "\n".join(_TOPICS[found[0]](session)) or "none"


# --- topics ------------------------------------------------------------------------------------------


def _breakpoints(session: Travel) -> Iterator[str]:
    for point in session.breakpoints:
        state = "" if point.enabled else ", disabled"
        log = "" if point.log is None else f", logs {point.log!r}"
        yield f"{point}: {_some(len(point.place.pcs), 'statement')}, {_times(point.hits)}{state}{log}"
    for watch in session.watchpoints:
        yield f"{watch}: {_times(watch.hits)}{'' if watch.enabled else ', disabled'}"


def _times(count: int) -> str:
    return f"hit {_some(count, 'time')}"


def _some(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _warps(session: Travel) -> Iterator[str]:
    """Yield where the warps of the CTA stand; several lines for a warp whose lanes have diverged."""
    _, wave, lane = session.wave()
    first = lane // WARP - session.focus.warp
    for warp in range(wave.warps):
        mark = "*" if warp == session.focus.warp else " "
        part = slice(WARP * (first + warp), WARP * (first + warp + 1))
        groups = [*_groups(session, wave, part)]
        for mask, text in groups or [(0, "has exited")]:
            lanes = f" lanes {in_words(mask)}:" if mask else ""
            yield f"{mark} warp {warp}:{lanes} {text}"


def _groups(session: Travel, wave: Wave, part: slice) -> Iterator[tuple[int, str]]:
    moment = session.moment
    for path in (*wave.scheduler.paths, *wave.scheduler.waiting):
        mask = path.lanes.mask[part]
        if not mask.any():
            continue
        bits = int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
        record = waiting_record(wave, path) if path.waits is not None else wave.code[path.pc]
        state = f"waits for {path.waits} at" if path.waits is not None else "at"
        following = " (next)" if moment is not None and moment.path is path else ""
        yield (
            bits,
            f"{state} {line_name(record.statement.location())}{following}: {record.statement.mnemonic}",
        )


def _lanes(session: Travel) -> Iterator[str]:
    """Yield where the lanes of the warp stand, together where they stand together."""
    _, wave, lane = session.wave()
    start = lane // WARP * WARP
    part = slice(start, start + WARP)
    yield f"CTA ({', '.join(map(str, session.focus.cta))}), warp {session.focus.warp}:"
    for mask, text in _groups(session, wave, part):
        yield f"  lanes {in_words(mask)}: {text}"
    gone = ~wave.alive_mask[part]
    bits = int.from_bytes(np.packbits(gone, bitorder="little").tobytes(), "little")
    if bits:
        yield f"  lanes {in_words(bits)}: have exited, or were never started"


def _barriers(session: Travel) -> Iterator[str]:
    """Yield the barriers of the CTA at which lanes have arrived, and the mbarriers of its shared memory."""
    _, wave, lane = session.wave()
    cta = int(wave.cta[lane])
    yield from Barriers.of(wave).counts(wave, cta)
    for path in wave.scheduler.waiting:
        if isinstance(path.waits, BarrierWait) and (wave.cta[path.lanes.index] == cta).any():
            yield f"  {wave.describe_lanes(path.lanes)} at {_line_name(wave, path)}"
    base = int(wave.memories.shared_base[lane])
    for offset in known_objects(wave):
        if base <= offset < base + wave.memories.shared_stride:
            content = wave.memories.shared[offset : offset + 8].tobytes()
            yield _mbarrier_line(wave, offset - base, Object.of(int.from_bytes(content, "little")))


def _mbarrier_line(wave: Wave, address: int, barrier: Object) -> str:
    """Return what an mbarrier waits for, in words."""
    name = place_name(wave.entry.shared, address, mbarrier=True)
    where = f"mbarrier{f' {name}' if name else ''} at shared {address:#x}"
    if not barrier.valid:
        return f"{where}: invalidated"
    tx = f" and {_some(barrier.tx, 'byte')}" if barrier.tx else ""
    left = f"{barrier.pending} of {_some(barrier.expected, 'arrival')}{tx} to come"
    return f"{where}: phase of parity {barrier.parity}, {left}"


def _async(session: Travel) -> Iterator[str]:
    """Yield what is in flight."""
    _, wave, _ = session.wave()
    for pending in ASYNCHRONY.of(wave).flying:
        group = f", group {pending.number} of {pending.group}" if pending.group else ""
        place = line_name(pending.record.statement.location())
        writes = ", ".join(_span(stretches) for stretches in pending.writes if len(stretches.ranges))
        to = f", to bytes {writes}" if writes else ""
        for offset in pending.barriers:
            address = offset % wave.memories.shared_stride
            name = place_name(wave.entry.shared, address, mbarrier=True) or f"at shared {address:#x}"
            to += f", arrives at mbarrier {name}"
        yield f"{pending.kind} of {wave.describe_lane(pending.lane)}, issued at {place}{group}{to}"
    for flight in flights(wave):
        yield _flight_line(wave, flight)


def _flight_line(wave: Wave, flight: Flight) -> str:
    """Return a cp.async of lanes that has not landed."""
    place = line_name(wave.code[flight.pc].statement.location())
    closed = closed_groups(wave)[flight.lanes.index]
    groups = ", ".join(map(str, np.unique(flight.groups).tolist()))
    group = f"group {groups} of cp.async" if (flight.groups < closed).all() else "not yet in a closed group"
    first, last = int(flight.offsets.min()), int(flight.offsets.max()) + flight.size - 1
    stride = wave.memories.shared_stride
    span = f"{first % stride:#x} to {last % stride:#x}" if first // stride == last // stride else "of CTAs"
    return (
        f"cp.async of {wave.describe_lanes(flight.lanes)}, issued at {place}, {group}, "
        f"{flight.size} bytes a lane, to shared {span}"
    )


def _line_name(wave: Wave, path: DivergentPath) -> str:
    """Return file and line of the statement that lanes wait at."""
    return line_name(waiting_record(wave, path).statement.location())


def _span(stretches: Stretches) -> str:
    """Return the first byte of some stretches and the last."""
    first, last = int(stretches.ranges[:, 0].min()), int(stretches.ranges[:, 1].max()) - 1
    return f"{stretches.space} {first:#x} to {last:#x}"


def _registers(session: Travel) -> Iterator[str]:
    """Yield the registers that the statement names, at the lane of the focus."""
    here, at = session.standing(), session.at()
    names = [*dict.fromkeys(registers_of(at.record))]
    yield f"{session.focus}, at {line_name(at.record.statement.location())}: {at.record.statement}"
    for name in names:
        value = at.named(name)
        yield f"  {name:<8} .{value.type:<5} {shown(value.lane(here.lane), value.type)}"


def _locals(session: Travel) -> Iterator[str]:
    """Yield every register of the function that has been written in the lane of the focus."""
    here, at = session.standing(), session.at()
    for name, kind, word in written_registers(at, names_in(at.record.scope), here.lane):
        yield f"  {name:<8} .{kind:<5} {shown(word, kind)}"


def _time(session: Travel) -> Iterator[str]:
    yield f"time {session.time}, {_some(len(session.history), 'statement')} known"
    if session.checkpoints.positions:
        yield f"  checkpoints at {', '.join(map(str, session.checkpoints.positions))}"
    if session.execution is not None:
        for number, wave in enumerate(session.execution.waves):
            if wave is not None:
                ran = f"{_some(wave.alive, 'lane')} run, {_some(wave.scheduler.statements, 'statement')}"
                yield f"  wave {number}: {_some(len(wave.ctas), 'CTA')}, {ran}"


def _kernels(session: Travel) -> Iterator[str]:
    sizes = session.shape
    name = shown_name(session.kernel.name)
    yield f"{name} on {session.module.target}: grid {sizes.grid}, block {sizes.block}"
    for index, parameter in enumerate(session.kernel.parameters):
        yield f"  arg{index} {parameter.name}: .{parameter.kind}, {parameter.bytes} bytes"


_TOPICS: dict[str, Callable[[Travel], Iterator[str]]] = {
    "breakpoints": _breakpoints,
    "warps": _warps,
    "lanes": _lanes,
    "barriers": _barriers,
    "async": _async,
    "tmem": allocations,
    "locals": _locals,
    "registers": _registers,
    "findings": lambda session: map(str, session.findings),
    "kernel": _kernels,
    "time": _time,
}
TOPICS = tuple(_TOPICS)


# --- focus -------------------------------------------------------------------------------------------


def _number(text: str, name: str, limit: int) -> int:
    number = whole_number(text)
    if number is None or number >= limit:
        raise OperandError(f"{name} {text}: expected a number from 0 to {limit - 1}")
    return number


def cta(session: Travel, text: str) -> str:
    """Look at another CTA."""
    if text:
        _, wave, _ = session.wave()
        parts = [whole_number(part.strip()) for part in text.strip("()").split(",")]
        if not 1 <= len(parts) <= 3 or None in parts:
            raise OperandError(f"cta {text}: expected one to three numbers, as in 0,1")
        x, y, z = (*(part or 0 for part in parts), 0, 0)[:3]
        outside = any(part >= size for part, size in zip((x, y, z), wave.grid, strict=True))
        if outside:
            raise OperandError(f"cta {text}: the grid is {' x '.join(map(str, wave.grid))} CTAs")
        before, session.focus = session.focus, replace(session.focus, cta=(x, y, z))
        try:
            session.wave()
        except OperandError:
            session.focus = before
            raise
    return "\n".join(where_lines(session))


def warp(session: Travel, text: str) -> str:
    """Look at another warp."""
    _, wave, _ = session.wave()
    if text:
        session.focus = replace(session.focus, warp=_number(text, "warp", wave.warps))
    return "\n".join(where_lines(session))


def lane(session: Travel, text: str) -> str:
    """Look at another lane."""
    if text:
        session.focus = replace(session.focus, lane=_number(text, "lane", WARP))
    return "\n".join(where_lines(session))


# --- waiting ---------------------------------------------------------------------------------------


def why(session: Travel, text: str) -> str:
    """Print what the lane of the focus waits for, or why the launch has stopped."""
    if session.last.error is not None:
        return str(session.last.error)
    here = session.standing()
    path = _waiting(here.wave, here.lane)
    if path is None:
        moment = session.moment
        if moment is not None and moment.path.lanes.mask[here.lane] and moment.wave is here.wave:
            return f"{session.focus} does not wait: it executes the next statement"
        turn = "" if moment is None else f": {moment.wave.describe_lanes(moment.path.lanes)} are next"
        return f"{session.focus} does not wait: it can run, and others have their turn{turn}"
    explain = getattr(path.waits, "explain", None)
    reason = explain(here.wave, path) if explain else path.waits
    counts = ", ".join(Barriers.of(here.wave).counts(here.wave, int(here.wave.cta[here.lane])))
    lines = [f"{session.focus} waits for {reason}" + (f" ({counts})" if counts else "")]
    if isinstance(path.waits, BarrierWait):
        lines += [*_absent(session, here.wave, here.lane, path.waits)]
    return "\n".join(lines)


def _waiting(wave: Wave, lane_number: int) -> DivergentPath | None:
    return next((path for path in wave.scheduler.waiting if path.lanes.mask[lane_number]), None)


def _absent(session: Travel, wave: Wave, lane_number: int, reason: BarrierWait) -> Iterator[str]:
    """Yield where the lanes of the CTA are that have not come to a barrier."""
    own = wave.cta == wave.cta[lane_number]
    away = wave.alive_mask & own & ~Barriers.of(wave).here[reason.number]
    for warp_number in np.unique(np.flatnonzero(away) // WARP).tolist()[:8]:
        first = int(np.flatnonzero(away[warp_number * WARP : (warp_number + 1) * WARP])[0])
        there = standing(wave, warp_number * WARP + first)
        if there is not None:
            place = line_name(there.record.statement.location())
            absent = wave.describe_lane(there.lane)
            yield f"  {absent} has not come: it stands at {place}: {there.record.statement}"


def schedule(session: Travel, text: str) -> str:
    """Print how the launch is scheduled, and which lanes are next."""
    lines = [f"schedule {session.given.schedule}: paths of lanes run in this order; the first is next"]
    _, wave, _ = session.wave()
    moment = session.moment
    paths = sorted(
        wave.scheduler.paths, key=lambda path: (moment is None or path is not moment.path, path.pc)
    )
    for path in paths:
        place = line_name(wave.code[path.pc].statement.location())
        lines.append(f"  {path.lanes.count} lanes, from {wave.describe_lanes(path.lanes)}: at {place}")
    for path in wave.scheduler.waiting:
        lanes = f"{path.lanes.count} lanes, from {wave.describe_lanes(path.lanes)}"
        lines.append(f"  {lanes}: wait for {path.waits} at {_line_name(wave, path)}")
    return "\n".join(lines)
