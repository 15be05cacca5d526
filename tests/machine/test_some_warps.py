"""Words of several bytes in memory, and matrix instructions that some warps of several execute."""

from __future__ import annotations

import numpy as np
import pytest

import warpsim
from warpsim.machine.state.spaces import put_words, words_at
from warpsim.programs.launch.launching import load_text


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("step", [0, 1])
def test_vectors_are_words_side_by_side(size: int, count: int, step: int) -> None:
    """Vectors that are aligned as a whole, and those that are aligned as their words are."""
    random = np.random.default_rng(size * count)
    memory = random.integers(0, 256, 1024, np.uint8)
    vector = size * count
    offsets = np.array([3, 0, 5, 1]) * vector + size * step
    found = words_at(memory, offsets, size, count)
    bytes_ = memory[offsets[:, None] + np.arange(vector)]
    assert found.dtype.itemsize == size
    assert found.tobytes() == bytes_.tobytes()
    words = random.integers(0, 256, (4, vector), np.uint8)
    expected = memory.copy()
    expected[offsets[:, None] + np.arange(vector)] = words
    put_words(memory, offsets, words.view(found.dtype))
    assert np.array_equal(memory, expected)
    put_words(memory, offsets[[0, 0]], words[:2].view(found.dtype))
    assert np.array_equal(memory[offsets[0] : offsets[0] + vector], words[1])  # of two, the last


_MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_TEXT = f""".version 8.0\n.target sm_80\n.address_size 64
.visible .entry k(.param .u64 out, .param .u32 chosen) {{
.reg .b32 %r<9>, %d<4>, %x; .reg .b64 %o, %t; .reg .pred %p;
mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; ld.param.u32 %r2, [chosen];
shr.u32 %r3, %r2, %r1; and.b32 %r3, %r3, 1; setp.eq.u32 %p, %r3, 0;
mad.lo.u32 %r4, %r0, 65537, 0x30013003;
BEFORE
@%p bra DONE;
{_MMA} {{%d0, %d1, %d2, %d3}}, {{%r4, %r4, %r4, %r4}}, {{%r4, %r4}}, {{%r4, %r4, %r4, %r4}};
{_MMA} {{%d2, _, %x, %d0}}, {{%r4, %r4, %r4, %r4}}, {{%r4, %r4}}, {{%d0, %d1, %d2, %d3}};
DONE:
ld.param.u64 %o, [out]; mul.wide.u32 %t, %r0, 16; add.u64 %o, %o, %t;
st.global.v4.b32 [%o], {{%d0, %d1, %d2, %d3}};
ret; }}
"""


@pytest.mark.parametrize("chosen", [0b010, 0b101, 0b111, 0b110])
@pytest.mark.parametrize("written", [True, False])
def test_other_warps_keep_their_registers(chosen: int, written: bool) -> None:
    before = " ".join(f"mov.b32 %d{i}, {i + 7};" for i in range(4)) if written else ""
    out = np.zeros((96, 4), np.uint32)
    found = load_text(_TEXT.replace("BEFORE", before))["k"](1, 96, [out, chosen], checks="warn").hazards
    word = (np.arange(96, dtype=np.uint32) * 65537 + 0x30013003).reshape(3, 32, 1)
    a, b = np.repeat(word, 4, axis=2), np.repeat(word, 2, axis=2)
    first = warpsim.execute(_MMA, target="sm_80", a=a, b=b, c=a)
    second = warpsim.execute(_MMA, target="sm_80", a=a, b=b, c=first)
    expected = np.broadcast_to(
        np.arange(7, 11, dtype=np.uint32) if written else np.uint32(0), (3, 32, 4)
    ).copy()
    executed = [warp for warp in range(3) if chosen >> warp & 1]
    changed = np.stack([second[..., 3], first[..., 1], second[..., 0], first[..., 3]], axis=-1)
    expected[executed] = changed[executed]
    assert np.array_equal(out.reshape(3, 32, 4), expected)
    assert bool(found) == (not written and chosen != 0b111)
