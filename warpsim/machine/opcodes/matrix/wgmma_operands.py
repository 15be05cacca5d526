"""What warpgroups multiply: registers, descriptors and shared memory as the inputs of wgmma, and D back.

Knows the registers of a statement, and warpgroups that have descriptors in common; forms and arithmetic are
those of isa and execution. Does not know when anything is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from ....base.errors import WarpsimError
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs, tile_bytes
from ....isa.warps import WARP, WARPGROUP
from ....ptx.binding import WarpgroupBound
from ...run.convergence import Warpgroups
from ...run.events import Groups, MatrixExecution, Observer, Ranges, Share, mention_pattern, observers_of
from ...run.wave import Wave
from ...state.lanes import DivergentPath, Values
from ...state.undefined_metadata import MetadataOperand
from ..statement_binder import Reader
from .mma import computed
from .warpwide import Columns, Warps, write_registers

_WARPS = WARPGROUP // WARP
_NO_RANGES: Ranges = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Multiplication:
    """A statement wgmma.mma_async: the registers that it names, by number, and how their values are got.

    ``sources`` are A and the metadata, ``accumulators`` and ``targets`` D; a descriptor or scale-d is a
    reader, of which all lanes of a warpgroup should have the same value.
    """

    bound: WarpgroupBound
    sources: dict[str, Columns]
    accumulators: Columns
    targets: list[int | None]
    descriptors: dict[str, Reader]
    scale_d: Reader
    registers: dict[str, tuple[int, ...]] = field(default_factory=dict)  # numbers, by "D", "A", "metadata"

    @property
    def form(self) -> Instruction:
        """The instruction on the module's target."""
        return self.bound.instruction


def shares_of(wave: Wave, path: DivergentPath, wgmma: Multiplication, groups: Groups) -> list[Share]:
    """Return the warpgroups by what they have in common; raises what reading their tiles would."""
    settings = np.zeros((len(groups), 3), np.uint64)
    for place, (name, read) in enumerate((*wgmma.descriptors.items(), ("scale_d", wgmma.scale_d))):
        role = "scale-d" if name == "scale_d" else f"{name}-desc"
        settings[:, place] = _common(wave, path, groups, role, read)
        if wave.modes.interposed is not None and name != "scale_d":
            settings[:, place] = wave.modes.interposed.descriptors(path.pc, name, settings[:, place])
    if len(groups) == 1:
        return [_share(wave, path, wgmma, groups, _named_settings(wgmma, settings[0].tolist()))]
    rows = settings.tolist()
    each = sorted(rows) if rows.count(rows[0]) < len(rows) else rows[:1]
    return [
        _share(wave, path, wgmma, groups[[other == row for other in rows]], _named_settings(wgmma, row))
        for place, row in enumerate(each)
        if not place or row != each[place - 1]
    ]


def _named_settings(wgmma: Multiplication, settings: list[int]) -> dict[str, int]:
    """Return descriptors and scale-d by name."""
    return dict(zip((*wgmma.descriptors, "scale_d"), settings, strict=False))


def _common(wave: Wave, path: DivergentPath, groups: Groups, role: str, read: Reader) -> Values:
    """Return ``(groups,)``: the value of the first lane of each; where others differ, observers are
    notified.
    """
    values = read(wave, path)
    if not values.ndim:
        return values
    places = Warpgroups.of(wave)
    first = values[places.first]
    if observers_of(wave):
        differing = values != first[places.number]
        numbers = places.number[differing & places.lanes_of(groups).mask] if differing.any() else groups[:0]
        for group in np.unique(numbers).tolist() if numbers.size else ():
            start = int(places.first[group])
            observers_of(wave).differing(wave, path, group, role, values[start : start + WARPGROUP])
    return first[groups]


def _share(
    wave: Wave, path: DivergentPath, wgmma: Multiplication, groups: Groups, named: dict[str, int]
) -> Share:
    literal = wave.modes.literal
    ranges = [_NO_RANGES]
    for side, name in enumerate("ab"):
        if name in named:
            tile, transposed = wgmma.form.in_shared_memory(name), bool(wgmma.bound.imm_trans[side])
            try:
                found = tile_bytes(tile, named[name], wave.memories.shared_bytes, literal, transposed)
            except WarpsimError as error:
                raise _placed(wave, path, groups, error, wgmma.bound.places[f"{name}_descriptor"]) from None
            ranges.append(found)
            if pattern := _unusual_pattern(named[name]):
                mention_pattern(wave, path, int(Warpgroups.of(wave).first[groups[0]]), *pattern)
    return Share(
        groups=groups,
        a=named.get("a"),
        b=named["b"],
        scale_d=bool(named["scale_d"]),
        ranges=np.concatenate(ranges),
    )


@lru_cache(maxsize=1024)
def _unusual_pattern(word: int) -> tuple[str, int] | None:
    """Return what is unusual of where a swizzle pattern lies, and its base offset."""
    descriptor = Descriptor.decode(word)
    return (descriptor.unusual, descriptor.base_offset) if descriptor.unusual else None


def _placed(
    wave: Wave, path: DivergentPath, groups: Groups, error: WarpsimError, operand: int
) -> WarpsimError:
    """Return the error of a descriptor, with its place and the first warpgroup that has it."""
    found = wave.operand_error(error, Warpgroups.of(wave).place(wave, int(groups[0])))
    return found.at(wave.code[path.pc].statement.operand_location(operand))


def multiply(wave: Wave, path: DivergentPath, wgmma: Multiplication, share: Share) -> None:
    """Read registers and memory as they are now, compute, and write D, of some warpgroups.

    Raises UndefinedBehavior and NotModelled for metadata.
    """
    places = Warpgroups.of(wave)
    first = places.warps[share.groups]
    warps = (first[:, None] + np.arange(_WARPS)).reshape(-1)
    inputs = _inputs(wave, path, wgmma, share, warps)
    metadata = partial(wave.code[path.pc].statement.operand_location, wgmma.bound.places.get("e", 0))
    d = computed(
        wave, wgmma.form, inputs, first, MetadataOperand(path.pc, metadata)
    )  # (groups, 128, registers)
    lanes = places.lanes_of(share.groups)
    write_registers(wave, path, lanes, warps, wgmma.targets, d.reshape(-1, WARP, d.shape[-1]))
    if observers_of(wave).hear(Observer.matrix):
        execution = MatrixExecution(
            pc=path.pc,
            record=wave.code[path.pc],
            instruction=wgmma.form,
            inputs=inputs.by_rows(),
            d=np.ascontiguousarray(d),
            warps=first,
            whole=path.lanes.whole,
        )
        observers_of(wave).matrix(wave, execution)


def _inputs(wave: Wave, path: DivergentPath, wgmma: Multiplication, share: Share, warps: Warps) -> Inputs:
    """Return what the warpgroups read; the shared memory is not always a copy."""
    sources = wgmma.sources
    wave.adds_c(path.pc, share.scale_d)
    if share.scale_d:
        sources = sources | {"c": wgmma.accumulators}
    elif wave.modes.given:
        sources = sources | {"c": _whatever_is_there(wgmma)}
    registers = {
        role: columns.by_warp(wave, path, warps).reshape(-1, WARPGROUP, len(columns))
        for role, columns in sources.items()
    }
    count = len(share.groups)
    bound = wgmma.bound
    return Inputs(
        registers=registers,
        selector=bound.selector,
        literal=wave.modes.literal,
        shared=_memories(wave, share.groups),
        a_descriptor=None if share.a is None else np.full(count, share.a, np.uint64),
        b_descriptor=np.full(count, share.b, np.uint64),
        scale_d=share.scale_d,
        negate=(bound.imm_scale[0] < 0, bound.imm_scale[1] < 0),
        transposed=(bool(bound.imm_trans[0]), bool(bound.imm_trans[1])),
    )


def _whatever_is_there(wgmma: Multiplication) -> Columns:
    """Return readers of D as it was, 0 where it was never written: nothing is said about that."""

    def read(number: int, wave: Wave, path: DivergentPath) -> Values:
        value = path.frame.values[number]
        return np.zeros(wave.lanes, np.uint32) if value is None else value

    return Columns([partial(read, number) for number in wgmma.registers["D"]], np.dtype(np.uint32))


def _memories(wave: Wave, groups: Groups) -> npt.NDArray[np.uint8]:
    """Return ``(groups, bytes)``: the shared memory of the CTA of each."""
    memories = wave.memories.shared[: len(wave.ctas) * wave.memories.shared_stride].reshape(
        len(wave.ctas), -1
    )
    ctas = Warpgroups.of(wave).cta[groups]
    return memories if np.array_equal(ctas, np.arange(len(wave.ctas))) else memories[ctas]
