"""Structures of ctypes as arguments: by value, by address, with arrays and tensor maps as fields."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim import OperandError, structure
from warpsim.machine.host.tensor_maps import whole


class Inner(ctypes.Structure):
    _fields_ = [("scale", ctypes.c_float * 3), ("bias", ctypes.c_void_p)]


class Base(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int)]


class Params(Base):  # n 0, out 8, ins 16, inner 32, map 64, total 192
    _fields_ = [
        ("out", ctypes.POINTER(ctypes.c_float)),
        ("ins", ctypes.c_uint64 * 2),
        ("inner", Inner),
        ("padding", ctypes.c_uint8 * 8),
        ("map", ctypes.c_uint8 * 128),
        ("total", ctypes.c_uint32),
    ]


# out[i] = scale[1] * ins[0][i] + ins[1][i] + bias[i] for i < n; in memory, total = n + 5
BODY = """
    mov.u32 %r1, %tid.x; ld.{space}.u32 %r2, [{p}]; setp.ge.u32 %p1, %r1, %r2; @%p1 ret;
    mul.wide.u32 %rd9, %r1, 4;
    ld.{space}.u64 %rd2, [{p}+8]; ld.{space}.u64 %rd3, [{p}+16]; ld.{space}.u64 %rd4, [{p}+24];
    ld.{space}.u64 %rd5, [{p}+48]; ld.{space}.f32 %f1, [{p}+36];
    add.u64 %rd2, %rd2, %rd9; add.u64 %rd3, %rd3, %rd9; add.u64 %rd4, %rd4, %rd9; add.u64 %rd5, %rd5, %rd9;
    ld.global.f32 %f2, [%rd3]; ld.global.f32 %f3, [%rd4]; ld.global.f32 %f4, [%rd5];
    fma.rn.f32 %f2, %f1, %f2, %f3; add.f32 %f2, %f2, %f4; st.global.f32 [%rd2], %f2;
"""
HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k({parameter}) {{
    .reg .b32 %r<9>; .reg .b64 %rd<12>; .reg .f32 %f<9>; .reg .pred %p<2>;
"""
BY_VALUE = HEAD.format(parameter=".param .align 8 .b8 p[200]") + BODY.format(space="param", p="p") + "ret; }"
BY_ADDRESS = (
    HEAD.format(parameter=".param .u64 p")
    + "ld.param.u64 %rd1, [p];"
    + BODY.format(space="global", p="%rd1")
    + "setp.ne.u32 %p1, %r1, 0; @%p1 ret; add.u32 %r2, %r2, 5; st.global.u32 [%rd1+192], %r2; ret; }"
)
A, B, BIAS = (np.arange(8, dtype=np.float32) * factor for factor in (1, 10, 100))
WANTED = np.where(np.arange(8) < 6, np.float32(2) * A + B + BIAS, 0).astype(np.float32)


def params(out: Any, **changed: Any) -> Any:
    inner = {"scale": [1, 2, 3], "bias": BIAS.copy()}
    return structure(Params, **{"n": 6, "out": out, "ins": [A.copy(), B.copy()], "inner": inner, **changed})


@pytest.mark.parametrize("text", [BY_VALUE, BY_ADDRESS], ids=["by value", "by address"])
def test_arrays_are_fields(text: str) -> None:
    out = np.zeros(8, np.float32)
    given = params(out)
    warpsim.load(text)["k"](1, 8, [given])
    assert out.tobytes() == WANTED.tobytes()
    assert given.value.total == (11 if text is BY_ADDRESS else 0)
    assert not given.value.out, "an address of the device means nothing here"
    assert list(given.value.inner.scale) == [1, 2, 3]


@pytest.mark.parametrize("pointed", [ctypes.pointer, ctypes.byref, lambda value: value])
def test_a_structure_behind_a_pointer_comes_back(pointed: Any) -> None:
    device = warpsim.Device("sm_90")
    out, a, b, bias = (device.array(each) for each in (np.zeros(8, np.float32), A, B, BIAS))
    own = Params(n=6)
    own.out = ctypes.cast(out.address, ctypes.POINTER(ctypes.c_float))
    own.ins[:] = [a.address, b.address]
    own.inner = Inner((1, 2, 3), bias.address)
    warpsim.load(BY_ADDRESS)["k"](1, 8, [pointed(own)], device=device)
    assert out.get().tobytes() == WANTED.tobytes()
    assert own.total == 11


def test_buffers_of_fields_name_the_device() -> None:
    device = warpsim.Device("sm_90")
    out = device.array(np.zeros(8, np.float32))
    warpsim.load(BY_VALUE)["k"](1, 8, [params(out)])
    assert out.get().tobytes() == WANTED.tobytes()


def test_an_instance_keeps_its_values() -> None:
    own, out = Params(n=3), np.zeros(8, np.float32)
    given = structure(own, out=out, ins=(A, B), inner={"bias": BIAS, "scale": np.array([1, 2, 3], np.int8)})
    warpsim.load(BY_VALUE)["k"](1, 8, [given])
    assert given.value is own
    assert out.tolist() == [*WANTED[:3].tolist(), 0, 0, 0, 0, 0]


MAP = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 p[200], .param .u64 out) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p1;
    .shared .align 128 .b8 tile[64]; .shared .align 8 .b64 full;
    mov.u32 %r1, full; mov.u32 %r2, tile; mov.b64 %rd1, p; cvta.param.u64 %rd1, %rd1; add.u64 %rd1, %rd1, 64;
    mbarrier.init.shared.b64 [%r1], 1; fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 64; mov.u32 %r3, 4; mov.u32 %r4, 8;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2],
    [%rd1, {%r3, %r4}], [%r1];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
    ld.param.u64 %rd2, [out]; ld.shared.u32 %r5, [tile+36]; st.global.u32 [%rd2], %r5; ret;
}
"""


@pytest.mark.parametrize("place", ["host", "device"])
def test_a_tensor_map_is_a_field(place: str) -> None:
    data, out = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros(1, np.float32)
    source = data if place == "host" else warpsim.Device("sm_90").array(data)
    given = structure(Params, map=warpsim.tensor_map(source, box=(4, 4)))
    warpsim.load(MAP)["k"](1, 1, [given, out])
    assert out[0] == data[10, 5]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"m": 1}, "m: Params has no such field: it has n, out, ins, inner, padding, map, total"),
        ({"inner": {"gain": 1}}, "inner.gain: Inner has no such field: it has scale, bias"),
        ({"n": 1.5}, "n: "),
        ({"inner": {"scale": [1, 2, 3, 4]}}, "inner.scale: 4 values for 3 elements"),
        ({"ins": [A, B, A]}, "ins: 3 values for 2 pointers"),
        ({"padding": bytes(9)}, "padding: 9 bytes for 8"),
    ],
)
def test_fields_that_do_not_fit(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as caught:
        structure(Params, **fields)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            structure(Params, out="text"),
            "parameter 0, p (.b8, 200 bytes): field out: expected an array, a number",
        ),
        (
            structure(Params, ins=[A.tolist()]),
            "parameter 0, p (.b8, 200 bytes): field ins[0]: a list is not an array",
        ),
        (structure(Inner), "parameter 0, p (.b8, 200 bytes): expected 200 bytes, given 24"),
        (ctypes.byref(Inner()), "parameter 0, p (.b8, 200 bytes): expected 200 bytes, given 24"),
    ],
)
def test_what_a_launch_cannot_give(given: Any, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        warpsim.load(BY_VALUE)["k"](1, 8, [given])
    assert caught.value.message.startswith(message)


def test_what_is_no_structure() -> None:
    with pytest.raises(OperandError, match=r"^a structure is made of a class of ctypes.Structure, not of 3$"):
        structure(3)  # type: ignore[arg-type]


def test_a_view_of_a_whole_array_keeps_its_shape() -> None:
    flat = np.arange(48, dtype=np.float32)
    table = flat.reshape(6, 8)
    assert whole(table).shape == (6, 8)
    assert whole(table.view(np.uint32)).dtype == np.uint32
    for part in (table[1:], table[:, 2:], table.T):
        assert whole(part).shape == (48,)
    with pytest.raises(OperandError, match="a view with gaps, and part of no array without gaps"):
        whole(np.asfortranarray(table)[1:, ::2])
