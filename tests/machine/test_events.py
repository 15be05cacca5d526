"""Observers: every event is documented and sent; mistakes in observers are errors."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import warpsim
import warpsim.observe.checks
from tests.helpers import kernel_cases
from tests.helpers.described_products import Product, mnemonic
from warpsim.base.errors import OperandError
from warpsim.machine.run.events import EVENTS, Observer, Observers, helper
from warpsim.programs.launch.launching import load_text

PAGE = warpsim.observe.checks.__doc__ or ""
STORES = """.version 8.0
.target sm_80
.visible .entry k(.param .u64 out)
{
    .reg .b64 %a; .reg .b32 %r;
    ld.param.u64 %a, [out];
    mov.u32 %r, %tid.x;
    mad.wide.u32 %a, %r, 4, %a;
    st.global.u32 [%a], %r;
    ret;
}
"""


def documented() -> dict[str, tuple[str, ...]]:
    """The events of the page with their parameters after the wave."""
    rows = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*) \(([a-z_, ]*)\)  ", PAGE, re.M)
    return {name: tuple(taken.split(", ")) for names, taken in rows for name in names.split(", ")}


def test_the_page_has_every_event_with_its_parameters() -> None:
    assert documented() == {name: taken[1:] for name, taken in EVENTS.items()}


def test_an_observer_written_from_the_page_runs() -> None:
    example = inspect.cleandoc(
        PAGE.partition("observers=[StoredBytes()]``:")[2].partition("\nThe events,")[0]
    )
    names: dict[str, Any] = {}
    exec(compile(example, "page", "exec"), names)
    observer = names["StoredBytes"]()
    load_text(STORES)["k"](2, 32, [np.zeros(64, np.uint32)], observers=[observer])
    assert observer.bytes == 2 * 32 * 4


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_can_be_observed(name: str) -> None:
    """An observer of one event with the documented parameters is heard for it, and for nothing else."""
    taken = ", ".join(EVENTS[name])
    names: dict[str, Any] = {"Observer": Observer}
    exec(f"class One(Observer):\n    def {name}(self, {taken}): self.seen = ({taken},)", names)
    one = names["One"]()
    observers = Observers([one])
    assert [event for event in EVENTS if observers.hear(getattr(Observer, event))] == [name]
    news = tuple(range(len(EVENTS[name])))
    getattr(observers, name)(*news)
    assert one.seen == news


def test_a_misspelt_event_is_an_error() -> None:
    with pytest.raises(OperandError, match=r"Wrong.stores: no event has this name; the nearest is store\. "):
        type("Wrong", (Observer,), {"stores": lambda self, wave, access: None})


def test_an_event_with_other_parameters_is_an_error() -> None:
    message = r"Old.store takes \(wave, path, lanes, memory\): the event has \(wave, access\)"
    with pytest.raises(OperandError, match=message):
        type("Old", (Observer,), {"store": lambda self, wave, path, lanes, memory: None})


def test_helpers_are_marked_or_private() -> None:
    marked = helper(lambda self, wave: None)
    made = type("Helped", (Observer,), {"count": marked, "_count": lambda self, wave: None})
    assert not Observers([made()]).hear(Observer.store)


def test_what_is_no_observer_is_an_error() -> None:
    class Counting:
        def store(self, wave: Any, access: Any) -> None: ...

    with pytest.raises(OperandError, match=r"Counting is not an observer: it derives from .*events.Observer"):
        load_text(STORES)["k"](1, 32, [np.zeros(32, np.uint32)], observers=[Counting()])


def test_observers_are_called_in_their_order() -> None:
    seen = list[tuple[str, object]]()

    class First(Observer):
        def met(self, wave: Any, lanes: Any, members: Any, orders: bool) -> None:
            seen.append(("first", lanes))

    class Second(First):
        def met(self, wave: Any, lanes: Any, members: Any, orders: bool) -> None:
            super().met(wave, lanes, members, orders)
            seen.append(("second", lanes))

    wave: Any = None
    lanes: Any = 7
    Observers([Second(), Observer(), First()]).met(wave, lanes, None, True)
    assert seen == [("first", 7), ("second", 7), ("first", 7)]
    Observers([]).met(wave, lanes, None, True)
    assert len(seen) == 3


# --- every event is sent -------------------------------------------------------------------------------

RARE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 map) {
    .reg .b32 %r<9>, %own; .reg .b64 %map, %desc, %new; .reg .f32 %d<4>; .reg .pred %p, %q;
    .shared .align 1024 .b8 tile[8192];
    .shared .align 8 .b64 bar;
    mov.u32 %own, %tid.x;
    setp.lt.u32 %p, %own, 16;
    mov.u32 %r1, %r2;
    @%p shfl.sync.idx.b32 %r3, %own, 20, 31, 0xffff;
    setp.eq.u32 %q, %own, 0;
    @%q mbarrier.init.shared.b64 [bar], 1;
    @%q mbarrier.inval.shared.b64 [bar];
    ld.param.u64 %map, [map];
    mov.u64 %new, 32;
    @%q tensormap.replace.tile.box_dim.global.b1024.b32 [%map], 0, 4;
    bar.sync 0;
    cvt.u64.u32 %desc, %own;
    wgmma.fence.sync.aligned;
    mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc, %desc, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ret;
}
.visible .entry alike() .maxntid 128 .maxnreg 64 {
    .reg .b32 %own; .reg .pred %p;
    mov.u32 %own, %tid.x;
    setp.lt.u32 %p, %own, 64;
    @%p bra FIRST;
    setmaxnreg.dec.sync.aligned.u32 40;
    bra.uni OVER;
FIRST:
    setmaxnreg.dec.sync.aligned.u32 40;
OVER:
    ret;
}
.func (.param .b32 result) doubled(.param .b32 given) {
    .reg .b32 %r;
    ld.param.u32 %r, [given];
    add.u32 %r, %r, %r;
    st.param.b32 [result], %r;
    ret;
}
.visible .entry calling() {
    .reg .b32 %r;
    .param .b32 back; .param .b32 to;
    mov.u32 %r, %tid.x;
    st.param.b32 [to], %r;
    call (back), doubled, (to);
    ld.param.b32 %r, [back];
    ret;
}
.visible .entry ignored() {
    setmaxnreg.dec.sync.aligned.u32 40;
    ret;
}
"""
KERNELS = (
    *("cluster_sum", "softmax", "tensor_ring of parts of tiles", "warpgroup_f16 normal"),
    *("sparse_product normal", "pingpong_f16", "sum_all", "tensor_mxf8"),
)


def _recorder(seen: set[str]) -> Observer:
    """Return an observer that keeps the names of all events."""
    lines = [
        f"    def {name}(self, {', '.join(taken)}): seen.add('{name}')" for name, taken in EVENTS.items()
    ]
    names: dict[str, Any] = {"Observer": Observer, "seen": seen}
    exec("\n".join(["class Every(Observer):", *lines]), names)
    made: Observer = names["Every"]()
    return made


def test_every_event_is_sent_by_some_kernel() -> None:
    seen = set[str]()
    for name in KERNELS:
        one = kernel_cases.case(name)
        kernel = load_text((kernel_cases.FOLDER / one.file).read_text())[one.entry]
        kernel(
            *(one.grid, one.block, one.passed(one.arguments), one.shared_bytes),
            cluster=one.cluster,
            schedule="latest",
            checks="off",
            observers=[_recorder(seen)],
        )
    rare, device = load_text(RARE), warpsim.Device("sm_90a")
    made = warpsim.tensor_map(device.array(np.zeros((64, 64), np.float16)), box=(8, 64), swizzle="128B")
    for entry in ("k", "alike", "ignored", "calling"):
        arguments = [device.array(made)] if entry == "k" else []
        rare[entry](1, 128, arguments, device=device, checks="warn", observers=[_recorder(seen)])
    moved = Product(mnemonic("f16"), tiles=(2, 2), settings={"start": 128, "base": 1}, n=16)
    moved.run().report(checks="off", observers=[_recorder(seen)])
    assert set(EVENTS) - seen == set()
