"""The parts of ``warpsim exec``: names, fat binaries, memory, the order of streams, nonsense."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.machine.grid import Launch, run
from warpsim.programs.exec.calls import ROWS, row_of
from warpsim.programs.exec.clients.client import Process
from warpsim.programs.exec.clients.client_launches import LaunchRequest, execute
from warpsim.programs.exec.clients.client_memory import DEVICE, MANAGED, PINNED, ClientMemory, OutOfMemory
from warpsim.programs.exec.clients.client_modules import Kernel
from warpsim.programs.exec.clients.pending_work import Pending, PendingWork
from warpsim.programs.exec.error_codes import code, driver_name, runtime_name, words
from warpsim.programs.exec.fatbinary import MAGIC, Entry, FatBinaryError, best_ptx, entries_of
from warpsim.programs.exec.functions.device_calls import properties, property_bytes
from warpsim.programs.exec.functions.launch_calls import declared_shared_bytes
from warpsim.programs.exec.graphs import GraphNode
from warpsim.programs.exec.libraries import driver_place, function_named, table
from warpsim.programs.exec.memory_transfers import copy
from warpsim.programs.exec.settings import Settings
from warpsim.programs.exec.streams import LEGACY, Order, Touches
from warpsim.programs.exec.tally import Tally

TEXT = b".version 8.0\n.target sm_80\n.address_size 64\n"


def test_every_row_is_a_function_of_cuda() -> None:
    names = ("driver", "runtime_12", "runtime_13", "jit_linker_12", "jit_linker_13", "own")
    exported = set(chain(*map(table, names)))
    assert not ROWS.keys() - exported


def test_functions_have_numbers() -> None:
    assert function_named(0) == ("driver", table("driver")[0])
    assert function_named((2 << 16) + 5) == ("runtime_13", table("runtime_13")[5])
    assert driver_place("cuInit") == 16 * table("driver").index("cuInit")
    with pytest.raises(IndexError):
        function_named(99 << 16)


def test_forms_of_a_function_for_the_stream_of_a_thread() -> None:
    assert row_of("cudaMemcpyAsync_ptsz") == (ROWS["cudaMemcpyAsync"], True)
    assert row_of("cudaMemcpyAsync") == (ROWS["cudaMemcpyAsync"], False)
    assert row_of("cudaNothing") == (None, False)


def test_errors_have_names_and_words() -> None:
    assert (code("MemoryAllocation"), code("IllegalAddress")) == (2, 700)
    assert [runtime_name(number) for number in (0, 2, 12345)] == [
        "cudaSuccess",
        "cudaErrorMemoryAllocation",
        None,
    ]
    assert [driver_name(number) for number in (0, 2, 700)] == [
        "CUDA_SUCCESS",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
    ]
    assert [words(number) for number in (0, 2, 700, 11)] == [
        *("no error", "out of memory", "an illegal memory access was encountered"),
        "unrecognized error code",
    ]


# --- fat binaries ----------------------------------------------------------------------------------


def container(*entries: tuple[int, int, int, bytes, int]) -> bytes:
    """A fat binary of entries (kind, chip, flags, payload, unpacked bytes)."""
    parts = b""
    for kind, chip, flags, payload, unpacked in entries:
        padded = payload + bytes(-len(payload) % 8)
        header = bytearray(64)
        struct.pack_into("<HxxIQI", header, 0, kind, 64, len(padded), len(payload) if flags else 0)
        struct.pack_into("<I8xQ8xQ", header, 28, chip, flags, unpacked)
        parts += bytes(header) + padded
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(parts)) + parts


def test_the_best_ptx_of_a_fat_binary() -> None:
    content = container(
        (1, 75, 0, b"old", 0), (2, 90, 0, b"\x7fELF", 0), (1, 80, 0, TEXT, 0), (1, 120, 0, b"new", 0)
    )
    entries = list(entries_of(content))
    assert [(entry.ptx, entry.chip) for entry in entries] == [
        (True, 75),
        (False, 90),
        (True, 80),
        (True, 120),
    ]
    assert found(entries, 86) == TEXT
    assert found(entries, 79) == b"old"
    assert best_ptx(entries, 70) is None


def found(entries: list[Entry], chip: int) -> bytes:
    entry = best_ptx(entries, chip)
    assert entry is not None
    return entry.text()


@pytest.mark.parametrize(("flag", "module"), [(0x2000, "lz4.block"), (0x8000, "zstandard")])
def test_packed_ptx(flag: int, module: str) -> None:
    library = pytest.importorskip(module)
    packed = (
        library.compress(TEXT, store_size=False)
        if flag == 0x2000
        else library.ZstdCompressor().compress(TEXT)
    )
    (entry,) = entries_of(container((1, 80, flag, packed, len(TEXT))))
    assert entry.text() == TEXT


def test_what_is_no_fat_binary() -> None:
    with pytest.raises(FatBinaryError, match="no fat binary begins with"):
        list(entries_of(bytes(64)))
    cut = container((1, 80, 0, TEXT, 0))[:90]
    with pytest.raises(FatBinaryError, match="leaves its container"):
        list(entries_of(cut))


# --- memory ----------------------------------------------------------------------------------------


def test_memory_is_handed_out_again_and_is_zero() -> None:
    memory = ClientMemory(256 << 20)
    size = 40 << 20
    first = memory.host_allocate(size, "first")
    memory.bytes_of(first)[:] = 7
    memory.written(first)
    second = memory.host_allocate(64, "second", PINNED)
    assert second.address % 4096 == 0
    memory.host_free(first.address)
    assert memory.find(first.address) is None
    third = memory.host_allocate(size, "third")
    assert third.address == first.address, "there is no room behind the others"
    assert not memory.bytes_of(third).any()
    assert memory.fresh is not None
    assert memory.used == size + 64
    assert memory.find(third.address + size - 1) is third
    assert memory.find(third.address + size - 1, 2) is None
    memory.close()


def test_memory_ends() -> None:
    memory = ClientMemory(1 << 20)
    with pytest.raises(OutOfMemory):
        memory.host_allocate((1 << 20) + 1, "all", DEVICE)
    memory.host_allocate(1000, "some", DEVICE)
    with pytest.raises(KeyError):
        memory.host_free(0x1234)
    memory.close()


# --- the order of streams --------------------------------------------------------------------------


def touch(order: Order, handle: int, first: int, past: int, *, write: bool = True) -> bool:
    """Do work of a stream; return whether it is in conflict."""
    stream = order.streams[handle]
    clock = order.begin(stream)
    stretch = ((first, past),)
    touches = Touches(writes=stretch) if write else Touches(reads=stretch)
    return order.done(stream.line, clock, "work", touches) is not None


def streams(*, blocking: bool) -> Order:
    order = Order()
    for handle in (10, 11):
        order.create(handle, blocking=blocking)
    return order


def test_streams_without_an_order_are_in_conflict() -> None:
    order = streams(blocking=True)
    assert not touch(order, 10, 0, 8)
    assert touch(order, 11, 7, 9)
    assert not touch(order, 11, 20, 30)
    assert not touch(order, 10, 40, 50, write=False)
    assert not touch(order, 11, 40, 50, write=False)


def test_the_legacy_stream_orders_blocking_streams_only() -> None:
    for blocking in (True, False):
        order = streams(blocking=blocking)
        assert not touch(order, 10, 0, 8)
        assert touch(order, LEGACY, 0, 8) is not blocking
        assert touch(order, 11, 0, 8) is not blocking


def test_what_the_host_has_waited_for_comes_before() -> None:
    order = streams(blocking=False)
    touch(order, 10, 0, 8)
    order.wait(order.streams[10].clock)
    assert not touch(order, 11, 0, 8)
    order.wait_for_all()
    assert not touch(order, 10, 0, 8)


@pytest.mark.parametrize(
    ("schedule", "expected"), [("earliest", ["a1", "a2"]), ("latest", ["b1", "a1", "b2", "a2"])]
)
def test_pending_work_is_done_as_far_as_the_host_waits(schedule: str, expected: list[str]) -> None:
    """Of b2, which comes after a1, and a2: the second stream waits for an event of the first."""
    pending = PendingWork(schedule)
    clocks: list[dict[int, int]] = [{1: 1}, {1: 2}, {2: 1}, {2: 2, 1: 1}]
    for number, (name, clock) in enumerate(zip(("a1", "a2", "b1", "b2"), clocks, strict=True)):
        pending.add(Pending(GraphNode(name), 1 if name[0] == "a" else 2, clock, name, number))
    done = []
    while (each := pending.next({1: 2})) is not None:
        done.append(each.name)
        pending.ended(each)
    assert done == expected
    assert bool(pending) == (len(expected) < 4)
    for each in iter(lambda: pending.next(None), None):
        done.append(each.name)
        pending.ended(each)
    assert sorted(done) == ["a1", "a2", "b1", "b2"]


def test_the_choice_of_work_does_not_look_through_all_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 streams with work took 0.12 s for each piece of it."""
    looks = list[Pending]()
    usual = Pending.before
    monkeypatch.setattr(Pending, "before", lambda self, clock: looks.append(self) or usual(self, clock))
    pending, many = PendingWork("random:0"), 500
    for number in range(2 * many):
        line = number % many + 1
        pending.add(Pending(GraphNode("one"), line, {line: number // many + 1}, "one", number))
    for each in iter(lambda: pending.next(None), None):
        pending.ended(each)
    assert not pending
    assert len(looks) <= 4 * many


def test_work_that_is_running_holds_back_what_comes_after() -> None:
    pending = PendingWork("latest")
    pending.add(Pending(GraphNode("first"), 1, {1: 1}, "first", 0))
    pending.add(Pending(GraphNode("second"), 1, {1: 2}, "second", 1))
    first = pending.next(None)
    assert first is not None
    assert first.name == "first"
    assert pending.next(None) is None
    pending.ended(first)
    second = pending.next(None)
    assert second is not None
    assert second.name == "second"


def test_a_stream_that_is_no_more_is_waited_for() -> None:
    for blocking in (True, False):
        order = streams(blocking=blocking)
        touch(order, 10, 0, 8)
        order.end(10)
        assert touch(order, 11, 0, 8)
        order.wait_for_all()
        assert not touch(order, 11, 0, 8)
        assert not touch(order, LEGACY, 20, 30)


# --- the device ------------------------------------------------------------------------------------


def test_properties_lie_where_the_headers_say() -> None:
    from warpsim.programs.exec.clients.client import Process
    from warpsim.programs.exec.settings import Settings
    from warpsim.programs.exec.tally import Tally

    tally = Tally(program="p", notice=print, progress=print)
    process = Process(0, 0, Settings(chip="sm_90a", memory_bytes=1 << 20), tally)
    raw = property_bytes(process, "13")
    assert len(raw) == 1008
    assert raw[:15] == b"warpsim sm_90a\0"
    assert struct.unpack_from("<2i", raw, 360) == (9, 0)
    assert struct.unpack_from("<Q", raw, 288) == (1 << 20,)
    assert len(property_bytes(process, "12")) == 1032
    assert properties(process)["clusterLaunch"] == 1
    process.close()


# --- clients that misbehave ------------------------------------------------------------------------

NONSENSE = """
import os, socket, sys
for content in (b"", b"x", b"GET / HTTP/1.1\\r\\n" * 40, bytes(200), b"\\xff" * 400):
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.environ["WARPSIM_EXEC_SOCKET"])
    client.sendall(content)
    client.close()
"""


@pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and cc"
)
def test_nonsense_on_the_socket_takes_no_client_down() -> None:
    from warpsim.programs.exec.serving.runs import Run
    from warpsim.programs.exec.serving.server import Server
    from warpsim.programs.exec.settings import Settings
    from warpsim.programs.exec.tally import Tally

    said = list[str]()
    tally = Tally(program="p", notice=said.append, progress=said.append)
    use = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuDeviceGetCount(ctypes.byref(ctypes.c_int())))"
    run = Run(settings=Settings(memory_bytes=1 << 20), tally=tally, trace=said.append)
    with Server(said.append) as server:
        assert server.folder.stat().st_mode & 0o777 == 0o700
        assert server.run(run, [sys.executable, "-c", NONSENSE]) == 0
        assert server.run(run, [sys.executable, "-c", use], quiet=True) == 0
        assert server.run(run, [sys.executable, "-c", use + "; import os; os.abort()"], quiet=True) == 128 + 6
        assert not server.clients, "what a client had is forgotten when it has left"
    assert tally.calls["cuDeviceGetCount"] == 2
    assert not tally.broken
    assert not np.any([("mistake" in text) for text in said])
    assert not server.folder.exists()


@pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and cc"
)
def test_a_client_of_the_driver(tmp_path: Path) -> None:
    """Modules, links, libraries, functions by name and tensor maps, asked for by ctypes."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "warpsim", "exec", "--chip", "sm_90a", "--report", str(report)]
    done = subprocess.run(
        [*command, sys.executable, str(Path(__file__).parent / "driver_client.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    lines = ["201", "True", "500", "4 160", "True 2", "4 1", "1 500", "0 True", "1 218"]
    assert done.stdout.splitlines() == lines, done.stderr
    found = json.loads(report.read_text())
    assert [(kernel["kernel"], kernel["launches"]) for kernel in found["kernels"]] == [("scale", 3)]
    texts = [each["message"] for each in found["findings"] if each["severity"] == "error"]
    assert any("0x200000000040 is in no allocation" in text for text in texts)


@pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and cc"
)
def test_a_runtime_beside_a_python_package_is_ours(tmp_path: Path) -> None:
    """A package names the folder of its runtime before all others; here that has no functions."""
    other = tmp_path / "libcudart.so.13"
    make = ["cc", "-shared", "-x", "c", os.devnull, "-o", str(other), f"-Wl,-soname,{other.name}"]
    subprocess.run(make, check=True)
    package = tmp_path / "libpackage.so"
    make = ["cc", "-shared", "-x", "c", os.devnull, "-x", "none", "-o", str(package)]
    paths = f"-Wl,--no-as-needed,--disable-new-dtags,-rpath,{tmp_path}"
    subprocess.run([*make, paths, str(other)], check=True)
    program = (
        f"import ctypes; runtime = ctypes.CDLL({str(package)!r}); count = ctypes.c_int(); "
        "print(runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "warpsim", "exec", "--quiet", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout == "0 1\n", done.stderr


@pytest.mark.skipif(
    shutil.which("cc") is None or not sys.platform.startswith("linux"), reason="needs Linux and cc"
)
def test_what_asks_for_private_tables_is_told_apart(tmp_path: Path) -> None:
    """A runtime of NVIDIA's is not a static runtime, and a library may be of others."""
    asks = tmp_path / "asks.c"
    asks.write_text(
        "int cuGetExportTable(const void **, const void *);\nint ask(void) { const void *p; "
        'return cuGetExportTable(&p, "0123456789abcdef"); }\n'
    )
    libraries = [tmp_path / name for name in ("libcudart.so.13.0.96", "libother.so")]
    for library in libraries:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(asks)], check=True)
    main = tmp_path / "main.c"
    main.write_text(asks.read_text() + "int main(void) { return ask() != 801; }\n")
    program = tmp_path / "program"
    from warpsim.programs.exec.libraries import libraries as ours

    subprocess.run(["cc", "-o", str(program), str(main), str(ours() / "libcuda.so.1")], check=True)
    calls = "; ".join(f"ctypes.CDLL({str(library)!r}).ask()" for library in libraries)
    load = f"import ctypes; ctypes.CDLL('libcuda.so.1', ctypes.RTLD_GLOBAL); {calls}"
    script = f'{program} && {sys.executable} -c "{load}"'
    done = subprocess.run(
        [sys.executable, "-m", "warpsim", "exec", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 0, done.stderr
    static = "asks the driver for a private table, as a CUDA runtime that is linked statically does:"
    assert f"{program} {static} link with nvcc -cudart shared" in done.stderr
    assert f"{libraries[1]} {static} if the library is yours, link it with nvcc" in done.stderr
    assert f"{libraries[0]} asks the driver for a private table, as NVIDIA's runtime does" in done.stderr
    assert "run it with warpsim exec env LD_PRELOAD=libcudart.so.13\n" in done.stderr


# --- copies ----------------------------------------------------------------------------------------


def test_memory_that_the_host_writes_is_never_unwritten() -> None:
    """Unwritten bytes of the device go to pinned memory, which the host fills and copies back."""
    tally = Tally(program="copies", notice=print, progress=print)
    process = Process(os.getpid(), 0, Settings(chip="sm_80", memory_bytes=1 << 20), tally)
    device, pinned, managed, other = (
        process.allocate(64, "words", kind).address for kind in (DEVICE, PINNED, MANAGED, DEVICE)
    )
    call: Any = SimpleNamespace(process=process, connection=SimpleNamespace(channel=None), name="cudaMemcpy")
    for target in (pinned, managed):
        copy(call, target, device, 64)
        process.bytes_at(target, 64)[:] = 7
        copy(call, other, target, 64)
        fresh = process.fresh_at(other, 64)
        assert fresh is not None
        assert not fresh.any()
    (finding,) = tally.findings.values()
    assert "cudaMemcpy copies 64 bytes of 64 to the host that nothing has written" in finding.message
    copy(call, other, device, 64)
    fresh = process.fresh_at(other, 64)
    assert fresh is not None
    assert fresh.all()
    process.close()


# --- launches --------------------------------------------------------------------------------------

STORES = """.version 8.0
.target sm_80
.address_size 64
.visible .entry ranks(.param .u64 p)
{ .reg .b64 %d<2>; .reg .b32 %r; ld.param.u64 %d0, [p]; mov.u32 %r, %ctaid.x; mad.wide.u32 %d0, %r, 4, %d0;
st.global.u32 [%d0], %r; ret; }
.visible .entry counted(.param .u64 p)
{ .reg .b64 %d<2>; .reg .b32 %r; ld.param.u64 %d0, [p]; atom.global.add.u32 %r, [%d0], 1; ret; }
"""


def test_launches_of_many_ctas_go_to_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a small launch, nor CTAs that may wait for each other, nor where streams are compared."""
    sent = list[tuple[str, object]]()

    def here(launch: Launch, job: object, scheduler: object, *others: object) -> np.ndarray:
        sent.append((launch.entry.name, scheduler))
        return run(launch)

    monkeypatch.setattr("warpsim.programs.launch.spreading.run_spread", here)
    settings = Settings(chip="sm_80", scheduler="a cluster", memory_bytes=1 << 20)
    process = Process(os.getpid(), 0, settings, Tally(program="stores", notice=print, progress=print))
    image = process.modules.image(STORES.encode, "stores")
    place = process.allocate(4 * 300, "words").address
    for name, ctas in (("ranks", 100), ("counted", 300), ("ranks", 300)):
        execute(process, stores(image.kernel(name), ctas, place))
    assert sent == [("ranks", "a cluster")]
    assert (process.bytes_at(place, 1200).view(np.uint32) == np.arange(300)).all()
    process.order.several = True
    execute(process, stores(image.kernel("ranks"), 300, place))
    assert len(sent) == 1
    assert not process.tally.findings
    process.close()


def stores(kernel: Kernel, ctas: int, place: int) -> LaunchRequest:
    parameters = [place.to_bytes(8, "little")]
    return LaunchRequest(kernel=kernel, grid=(ctas, 1, 1), block=(1, 1, 1), parameters=parameters)


@pytest.mark.parametrize(("declared", "size"), [(".shared .align 4 .b8 s[40];", 40), ("", 0)])
def test_shared_memory_of_a_kernel_is_what_it_declares(declared: str, size: int) -> None:
    """As ptxas -v counts it, whatever the alignment of dynamic shared memory behind it."""
    text = f".version 8.0\n.target sm_80\n.address_size 64\n{declared}\n.extern .shared .align 16 .b8 d[];\n"
    body = f"mov.u32 %r, {'s' if declared else 'd'}; ret;"
    kernel = warpsim.load(f"{text}.visible .entry k()\n{{ .reg .b32 %r; {body} }}")["k"]
    assert declared_shared_bytes(kernel.entry) == size
