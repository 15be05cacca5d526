"""Calls with arguments that mean nothing: every function answers with a code of CUDA."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warpsim.programs.exec.calls import row_of
from warpsim.programs.exec.clients.client import Process
from warpsim.programs.exec.clients.client_modules import Library
from warpsim.programs.exec.clients.client_threads import Connection
from warpsim.programs.exec.error_codes import code, driver_name, runtime_name
from warpsim.programs.exec.fatbinary import FatBinaryError, containers
from warpsim.programs.exec.functions.graphs.graph_calls import Executable
from warpsim.programs.exec.graphs import Graph, GraphNode
from warpsim.programs.exec.libraries import _LIBRARY_SHIFT, _TABLES, libraries, table
from warpsim.programs.exec.messages import Message
from warpsim.programs.exec.settings import Settings
from warpsim.programs.exec.streams import Event
from warpsim.programs.exec.tally import Tally

HERE = Path(__file__).parent
SIZE = 1 << 16
WORDS = (
    0,
    1,
    2,
    3,
    4,
    7,
    16,
    255,
    4096,
    0xFFFF_FFFF,
    1 << 31,
    1 << 40,
    1 << 63,
    (1 << 64) - 8,
    (1 << 64) - 1,
)
ENDS_ALL = ("cudaDeviceReset", "cuCtxDestroy")
MODULE = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry nothing(.param .u64 p) { ret; }\n\0"


class Nowhere:
    """A channel whose client does all that it is asked for."""

    descriptor = -1

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **options: 0


@pytest.fixture
def room() -> Iterator[tuple[int, int]]:
    """A process that waits, and the address of its words, which mean nothing; nothing is behind them."""
    memory = mmap.mmap(-1, SIZE + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    chosen = random.Random(1)
    pointers = [place + 8 * index for index in range(0, SIZE // 8, 100)]
    words = chosen.choices([*WORDS, *[0] * 20, *pointers], k=SIZE // 8)
    memory[:SIZE] = struct.pack(f"<{len(words)}Q", *words)
    unmap, behind = ctypes.CDLL(None).munmap, ctypes.c_void_p(place + SIZE)
    process = os.fork()
    if process == 0:
        unmap(behind, mmap.PAGESIZE)  # else gigabytes of the tests' own memory are read
        while True:
            signal.pause()
    yield process, place
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def client(number: int, place: int, said: list[str]) -> Connection:
    tally = Tally(program="p", notice=said.append, progress=said.append)
    process = Process(number, place, Settings(chip="sm_90a", memory_bytes=64 << 20), tally)
    process.uses_runtime = True
    connection = Connection(threading.Lock(), said.append, Nowhere(), process)  # type: ignore[arg-type]
    connection.call_host = lambda *_: 0  # type: ignore[method-assign]
    return connection


def objects_of(process: Process) -> list[int]:
    """Handles of one object of each kind, and an address of the device."""
    image = process.modules.image(lambda: MODULE, "p")
    graph = Graph(nodes=[GraphNode("nothing")])
    copied = graph.copy()
    kinds = (Library(image), image.kernel("nothing"), Event(), graph, graph.nodes[0])
    handles = [process.handle(each) for each in (*kinds, Executable(copied, dict(copied.origins)))]
    stream = process.handle(None)
    process.handles[stream] = process.order.create(stream, blocking=True)
    return [*handles, stream, process.allocate(4096, "allocation").address]


def test_arguments_that_mean_nothing(room: tuple[int, int]) -> None:
    """Null pointers, sizes that overflow, addresses of nothing, handles of other kinds."""
    number, place = room
    said, chosen = list[str](), random.Random(2)
    functions = [
        (library << _LIBRARY_SHIFT) + index
        for library, name in enumerate(_TABLES)
        for index, function in enumerate(table(name))
        if row_of(function)[0] is not None and not function.startswith(ENDS_ALL)
    ]
    chosen.shuffle(functions)
    for first in range(0, len(functions), 100):
        connection = client(number, place, said)
        known = objects_of(connection.process)
        pointers = [place + 8 * chosen.randrange(SIZE // 8) for _ in range(16)]
        for function in functions[first : first + 100]:
            words = chosen.choices([*WORDS, *known * 2, *pointers], k=18)
            connection._answer(Message(function, tuple(words[:6]), (0.0,) * 4, tuple(words[6:]), 0))
            connection.process.failed = None
        connection.process.close()
        assert not connection.process.tally.broken, said


def call(connection: Connection, name: str, *arguments: int) -> int:
    """Call a function of the driver or of runtime 13; return its code."""
    library = next(index for index in (0, 2) if name in table(_TABLES[index]))
    function = (library << _LIBRARY_SHIFT) + table(_TABLES[library]).index(name)
    words = (*(argument & (1 << 64) - 1 for argument in arguments), *[0] * 18)
    return connection._answer(Message(function, words[:6], (0.0,) * 4, words[6:18], 0))


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("cudaMallocPitch", ("room", "room", -1, 1), "InvalidValue"),
        ("cudaMallocPitch", ("room", "room", 1 << 40, 1 << 40), "MemoryAllocation"),
        ("cudaMemcpy2D", ("device", 16, "room", 16, 0, -1, 1), None),
        ("cudaMemcpy2D", ("device", 16, "room", 16, 16, -1, 1), "InvalidValue"),
        ("cudaMemcpy2D", ("device", 8, "room", 16, 16, 2, 1), "InvalidPitchValue"),
        ("cudaMemset2D", ("device", 16, 0, 32, 4), "InvalidValue"),
        ("cudaMemset2D", ("device", 16, 0, 16, -1), "InvalidValue"),
        ("cudaMemcpy", ("device", "room", -1, 1), "InvalidValue"),
        ("cudaStreamCreateWithFlags", ("room", 99), "InvalidValue"),
        ("cudaEventCreateWithFlags", ("room", 4096), "InvalidValue"),
        ("cudaHostAlloc", ("room", 16, 4096), "InvalidValue"),
        ("cudaHostRegister", ("room", -1, 0), "InvalidValue"),
        ("cudaHostRegister", (16, 4096, 0), "InvalidValue"),
        ("cudaLaunchHostFunc", (0, 0, 0), "InvalidValue"),
        ("cudaDeviceCanAccessPeer", ("room", 0, 3), "InvalidDevice"),
        ("cudaMemPoolCreate", ("room", 0), "InvalidValue"),
        ("cudaFreeHost", ("device",), "InvalidValue"),
        ("cudaGraphAddEmptyNode", ("room", 0, 8, -1, 0), "InvalidResourceHandle"),
        ("cuDeviceGetName", ("room", -1, 0), "InvalidValue"),
        ("cuInit", (5,), "InvalidValue"),
        ("cuMemsetD32_v2", ("device + 1", 0, 4), "InvalidValue"),
        ("cuMemsetD2D32_v2", ("device", 3, 0, 0, 4), "InvalidValue"),
        ("cuCtxSetCurrent", (5,), "DeviceUninitialized"),
        ("cuModuleLoadFatBinary", ("room", "room + 8"), "InvalidPtx"),
    ],
)
def test_codes_of_mistakes(
    room: tuple[int, int], name: str, arguments: tuple[int | str, ...], error: str | None
) -> None:
    number, place = room
    said = list[str]()
    connection = client(number, place, said)
    device = connection.process.allocate(4096, "allocation").address
    places = {"room": place, "room + 8": place + 8, "device": device, "device + 1": device + 1}
    given = [places[each] if isinstance(each, str) else each for each in arguments]
    assert call(connection, name, *given) == (code(error) if error else 0), said
    assert not connection.process.tally.broken, said
    connection.process.close()


def test_the_driver_has_no_codes_of_the_runtime_alone(room: tuple[int, int]) -> None:
    connection = client(*room, [])
    assert runtime_name(12) == "cudaErrorInvalidPitchValue"
    assert driver_name(12) is None
    connection.process.current = connection.process.primary.handle
    connection.contexts.append(connection.process.primary.handle)
    image = connection.process.modules.image(lambda: MODULE, "p")
    kernel = connection.process.handle(image.kernel("nothing"))
    sizes = [1, 1, 1, 4096, 1, 1, 0, 0]
    assert call(connection, "cuLaunchKernel", kernel, *sizes, room[1]) == code("InvalidValue")
    connection.process.close()


@pytest.mark.parametrize("content", [b"", b"\x50\xed\x55\xba\1\0\0\0" + bytes(8)])
def test_containers_that_have_no_end(content: bytes) -> None:
    with pytest.raises(FatBinaryError):
        list(containers(content))


# --- processes that send nonsense ------------------------------------------------------------------


def test_processes_that_send_nonsense(run: Callable[..., Any], programs: Path) -> None:
    """They take neither the server nor another client down, and what dies is not a finding."""
    done = run(command=(sys.executable, str(HERE / "nonsense_client.py"), str(programs)))
    right = run("threads")
    assert (done.code, done.stdout) == (0, 2 * right.stdout)
    assert "mistake of warpsim" not in done.stderr
    assert not [message for _, message in done.findings() if "has not mapped" in message]


def test_a_server_that_is_gone(programs: Path, tmp_path: Path) -> None:
    """Calls give an error, and texts of errors are texts."""
    found = {"LD_LIBRARY_PATH": str(libraries()), "WARPSIM_EXEC_SOCKET": str(tmp_path / "socket")}
    done = subprocess.run(
        [programs, "race"], env={**os.environ, **found}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stdout.count("no device: the server of warpsim exec does not answer") == 2
