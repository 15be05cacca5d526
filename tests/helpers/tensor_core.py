"""One statement of tcgen05 in a launched kernel: what lies where, by the manual's formulas, and the kernel.

The formulas are written out for one element at a time and share nothing with the package. The kernel loads
shared memory by a bulk copy and tensor memory by tcgen05.st, issues one statement, and stores all of tensor
memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.programs.launch.launching import LoadedModule, load_text

Array = npt.NDArray[Any]
SWIZZLES = {0: "none", 1: "128B_ATOM_32B", 2: "128B", 4: "64B", 6: "32B"}
BASE = 1024  # where the kernel's shared memory begins, behind its barriers
WIDTH = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B_ATOM_32B": 128}


# --- where things lie --------------------------------------------------------------------------------


def tile_address(start: int, lbo: int, sbo: int, mode: str, m: int, byte: int, size: int, major: str) -> int:
    """The address of a byte of a row of a tile: canonical layouts, then the exclusive-or."""
    t, k = 16 // size, byte // size
    w = WIDTH[mode]
    if major == "K" and mode == "none":
        place = (m // 8) * sbo + (m % 8) * 16 + (byte // 16) * lbo + byte % 16
    elif major == "K":
        place = (m // 8) * sbo + (m % 8) * w + byte
    else:
        inner = byte % size
        if mode == "none":
            place = (m // t) * sbo + (k // 8) * lbo + (k % 8) * 16 + (m % t) * size + inner
        elif mode == "128B_ATOM_32B":
            place = (m // (8 * t)) * lbo + (k // 4) * sbo + (k % 4) * 128 + (m % (8 * t)) * size + inner
        else:
            run = t * w // 16
            place = (m // run) * lbo + (k // 8) * sbo + (k % 8) * w + (m % run) * size + inner
    address = start + place
    if mode == "128B_ATOM_32B":
        return address ^ ((address >> 7) & 3) << 5
    return address ^ ((address >> 7) & (w // 16 - 1)) << 4


def d_cell(letter: str, r: int, n: int, count: int) -> tuple[int, int, int]:
    """(CTA, lane, column) of D[r, n] with N columns, as the manual's figures have it."""
    rows = {"A": 128, "B": 64, "C": 64}.get(letter, 1 << 20)  # of a CTA
    cta, r = divmod(r, rows)
    if letter in "AD":
        return cta, r, n
    if letter in "BE":
        return cta, r + 64 * (n >= count // 2), n % (count // 2)
    if letter in "CF":
        return cta, 32 * (r // 16) + r % 16, n
    return cta, r + 32 * (n // (count // 4)), n % (count // 4)


def metadata_field(letter: str, bits: int, r: int, chunk: int) -> tuple[int, int, int, int]:
    """(CTA, lane, column, lowest bit) of a metadata field; others lie again in further lanes."""
    cta, r = divmod(r, {"A": 128, "C": 64}.get(letter, 1 << 20))
    spread = 2 if letter in "CF" else 1  # groups of 16 rows lie in every second half of a quarter
    if bits >= 16:
        lane = 16 * spread * (r // 16) + r % 8 + 8 * (chunk // 4)
        return cta, lane, 0, 16 * (r // 8 % 2) + 4 * (chunk % 4)
    return cta, 16 * spread * (r // 16) + r % 16, chunk // 8, 4 * (chunk % 8)


def transfer_cell(shape: str, t: int, number: int, offset: int = 0) -> tuple[int, int]:
    """(lane, column) that register ``number`` of thread ``t`` of tcgen05.ld or st holds, from the address."""
    if shape == "32x32b":
        return t, number
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), 2 * number + t // 2 % 2
    if shape == "16x128b":
        i, j = divmod(number, 2)
        return t // 4 + 8 * j, 4 * i + t % 4
    if shape == "16x256b":
        i, j = divmod(number, 4)
        return t // 4 + 8 * (j // 2), 8 * i + 2 * (t % 4) + j % 2
    return t % 16, number + (offset if t >= 16 else 0)


def copied_lanes(shape: str, multicast: str, row: int) -> tuple[int, ...]:
    """The lanes to which tcgen05.cp copies a row."""
    if shape.startswith("128"):
        return (row,)
    if shape == "4x256b":
        return (32 * row,)
    if multicast == "warpx2::02_13":
        return (row, row + 64)
    if multicast == "warpx2::01_23":
        return (row, row + 32) if row < 32 else (row + 32, row + 64)
    return (row, row + 32, row + 64, row + 96)


# --- bytes of rows -----------------------------------------------------------------------------------


def row_bytes(codes: Array, bits: int, *, padded: bool) -> Array:
    """Rows of codes as the bytes of a tile: 16 codes to a chunk of 16 bytes where ``padded``."""
    rows = []
    for row in codes.tolist():
        if bits >= 8:
            rows.append(b"".join(int(code).to_bytes(bits // 8, "little") for code in row))
            continue
        each = 16 if padded else 32
        chunks = [row[first : first + each] for first in range(0, len(row), each)]
        words = [sum(int(code) << bits * place for place, code in enumerate(chunk)) for chunk in chunks]
        rows.append(b"".join(word.to_bytes(16, "little") for word in words))
    return np.array([list(row) for row in rows], np.uint8)


@dataclass
class Tile:
    """A tile in shared memory: its descriptor's fields, and its bytes, row by row."""

    rows: Array
    size: int = 2  # bytes of an element
    start: int = BASE
    lbo: int = 16
    sbo: int = 1024
    code: int = 2  # of the swizzle
    major: str = "K"
    base: int = 0  # where the swizzle pattern begins, in lines of 128 bytes
    second: int = 0  # where rows go on that reach the end of their 128 bytes

    @property
    def word(self) -> int:
        low = self.start >> 4 | (self.second or self.lbo) >> 4 << 16 | (self.second > 0) << 52
        return low | self.sbo >> 4 << 32 | 1 << 46 | self.base << 49 | self.code << 61

    def address(self, row: int, byte: int) -> int:
        start, mode = self.start, SWIZZLES[self.code]
        if self.second and start % 128 + byte >= 128:
            start, byte = self.second, start % 128 + byte - 128
        start -= 128 * self.base
        address = tile_address(start, self.lbo, self.sbo, mode, row, byte, self.size, self.major)
        return address + 128 * self.base

    def put(self, image: Array) -> None:
        for row, data in enumerate(self.rows.tolist()):
            for byte, value in enumerate(data):
                place = self.address(row, byte) - BASE
                assert image[place] == 0, "two bytes at one address"
                image[place] = value


# --- the kernel --------------------------------------------------------------------------------------

IMAGE, LANES, COLUMNS = 64 * 1024, 128, 512
_HEAD = """.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry k(.param .u64 image, .param .u64 cells, .param .u64 results, .param .u64 numbers) {
.reg .b32 r<20>, v<128>, at, tid, cta, low, where, base, rank;
.reg .b64 q<20>;
.reg .pred p, first, leader, enable, over;
.shared .align 8 .b64 loaded;
.shared .align 8 .b64 done;
.shared .b32 address;
mov.u32 tid, %tid.x;
mov.u32 cta, %ctaid.x;
setp.eq.u32 first, tid, 0;
ld.param.u64 q0, [image];
ld.param.u64 q1, [cells];
ld.param.u64 q2, [results];
ld.param.u64 q3, [numbers];
mad.wide.u32 q0, cta, 65536, q0;
mad.wide.u32 q1, cta, 262144, q1;
mad.wide.u32 q2, cta, 262144, q2;
mad.wide.u32 q1, tid, 2048, q1;
mad.wide.u32 q2, tid, 2048, q2;
mov.u32 r18, memory;
@first mbarrier.init.shared::cta.b64 [loaded], 1;
@first mbarrier.init.shared::cta.b64 [done], 1;
@first fence.mbarrier_init.release.cluster;
bar.sync 0;
@!first bra bring;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [loaded], 65536;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r18], [q0], 65536, [loaded];
bring:
mbarrier.try_wait.parity.shared::cta.b64 over, [loaded], 0;
@!over bra bring;
setp.lt.u32 p, tid, 32;
@p tcgen05.alloc.cta_group::GROUP.sync.aligned.shared::cta.b32 [address], 512;
bar.sync 0;
ld.shared.b32 base, [address];
and.b32 where, tid, 96;
shl.b32 where, where, 16;
add.u32 where, where, base;
"""
_NUMBERS = (
    "q4",
    "q5",
    "q6",
    "r0",
    "r1",
    "r2",
    "r3",
    "r4",
    "r5",
    "r6",
    "r7",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13",
)


def _all_columns(load: str, move: str) -> str:
    text = ""
    for first in range(0, COLUMNS, 128):
        for four in range(0, 128, 4):
            registers = ", ".join(f"v{four + each}" for each in range(4))
            text += load.format(registers=registers, offset=4 * (first + four))
        registers = ", ".join(f"v{each}" for each in range(128))
        text += move.format(registers=registers, first=first)
    return text


@cache
def kernel(statement: str, ctas: int = 1, target: str = "sm_100a") -> LoadedModule:
    """The kernel that executes a statement: q4 to q6 and r0 to r13 are numbers, ``enable`` is r5."""
    brought = _all_columns(
        "ld.global.v4.b32 {{{registers}}}, [q1+{offset}];\n",
        "tcgen05.st.sync.aligned.32x32b.x128.b32 [where], {{{registers}}};\n"
        "tcgen05.wait::st.sync.aligned;\nadd.u32 where, where, 128;\n",
    )
    taken = ""
    for first in range(0, COLUMNS, 128):
        registers = ", ".join(f"v{each}" for each in range(128))
        taken += f"tcgen05.ld.sync.aligned.32x32b.x128.b32 {{{registers}}}, [where];\n"
        taken += "tcgen05.wait::ld.sync.aligned;\nadd.u32 where, where, 128;\n"
        for four in range(0, 128, 4):
            registers = ", ".join(f"v{four + each}" for each in range(4))
            taken += f"st.global.v4.b32 [q2+{4 * (first + four)}], {{{registers}}};\n"
    numbers = "".join(
        f"ld.global.b{'64' if name[0] == 'q' else '32'} {name}, [q3+{8 * place}];\n"
        for place, name in enumerate(_NUMBERS)
    )
    cluster = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" if ctas > 1 else ""
    text = (
        _HEAD
        + brought
        + numbers
        + "setp.ne.b32 enable, r5, 0;\nbar.sync 0;\n"
        + cluster
        + "setp.eq.and.u32 leader, cta, 0, first;\n@!leader bra idle;\n"
        + f"{statement}\n"
        + "tcgen05.commit.cta_group::GROUP.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
        + "idle:\nsetp.ne.u32 p, cta, 0;\n@p bra taken;\n"
        + "again:\nmbarrier.try_wait.parity.shared::cta.b64 over, [done], 0;\n@!over bra again;\ntaken:\n"
        + cluster
        + "sub.u32 where, where, 512;\n"
        + taken
        + "bar.sync 0;\nsetp.lt.u32 p, tid, 32;\n"
        + cluster
        + "@p tcgen05.dealloc.cta_group::GROUP.sync.aligned.b32 base, 512;\nret;\n}\n"
    )
    return load_text(text.replace("GROUP", str(ctas)).replace("sm_100a", target))


@dataclass
class Run:
    """One statement: shared and tensor memories before it, and the numbers that registers hold."""

    statement: str
    ctas: int = 1
    target: str = "sm_100a"
    a: int = 0
    b: int = 0
    words: dict[str, int] = field(default_factory=dict)  # r0 ... r13
    image: Array = field(default_factory=lambda: np.zeros((2, IMAGE), np.uint8))
    cells: Array = field(default_factory=lambda: np.zeros((2, LANES, COLUMNS), np.uint32))

    def results(self, **options: Any) -> Array:
        """Tensor memory afterwards, ``(CTAs, lanes, columns)``."""
        self.report(**options)
        return self.after[: self.ctas]

    def report(self, **options: Any) -> Any:
        """The report of the launch; ``after`` is tensor memory then."""
        values = {"q4": self.a, "q5": self.b, **self.words}
        numbers = np.array([values.get(name, 0) for name in _NUMBERS], np.uint64)
        self.after = np.zeros_like(self.cells)
        made = kernel(self.statement, self.ctas, self.target)
        given = [self.image, self.cells, self.after, numbers]
        options |= {"shared_bytes": IMAGE, "cluster": self.ctas if self.ctas > 1 else None}
        return made["k"](self.ctas, LANES, given, **options)
