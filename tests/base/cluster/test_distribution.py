"""Jobs on a real cluster of separate worker processes, some of which are killed while they work."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

import warpsim
from warpsim.base.cluster import connection, distribution
from warpsim.base.cluster.connection import thread_total
from warpsim.base.cluster.distribution import Sent, in_order, run_tasks, spread
from warpsim.base.cluster.versions import versions
from warpsim.sums.execution.logical_matrices import Matrices
from warpsim.sums.products import gemm as matrix_products
from warpsim.workbench.generation.generate import generate_vectors
from warpsim.workbench.vectors import sets as vectors
from warpsim.workbench.vectors.formats import write_vectors

distributed = pytest.importorskip("distributed", reason="the extra warpsim[distributed] is not installed")

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90a")
Matrix = Any

QUIET = {"host": "127.0.0.1", "dashboard_address": ":0", "silence_logs": logging.CRITICAL}  # 0: any free port


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers of one thread, each a process under a nanny that replaces it when it dies."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, memory_limit=None, **QUIET
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client of both workers."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


def kill_a_worker(client: Any) -> None:
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def killing(client: Any, after: int) -> Callable[..., None]:
    """Something to call with every result: kills a worker when there are so many."""
    calls = iter(range(1, 1 << 20))
    return lambda *_: kill_a_worker(client) if next(calls) == after else None


# --- tasks, as workers import them -------------------------------------------------------------------


def squared(number: int) -> int:
    return number * number


def noted(index: int, data: Matrix, folder: Path) -> tuple[int, int]:
    """Takes a while, and leaves a note that it has begun."""
    (folder / f"{index}-{uuid4()}").touch()
    time.sleep(0.05)
    return index, int(data.sum())


def failing(index: int) -> int:
    """The third piece fails late, all later ones at once."""
    if index < 3:
        return index
    time.sleep(0.3 * (index == 3))
    raise warpsim.OperandError(f"piece {index} is wrong")


def lagging(index: int, start: Path) -> int:
    """The first piece waits until a file is there, and a little longer."""
    deadline = time.monotonic() + 20
    while index == 0 and not start.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3 * (index == 0))
    return index


def dividing(number: int) -> float:
    return 1 / number


def dying() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# --- every result, once ------------------------------------------------------------------------------


def test_every_piece_has_one_result(client: Any) -> None:
    results = list(run_tasks(squared, ((number,) for number in range(50)), client))
    assert sorted(results) == [(number, number * number) for number in range(50)]


def test_an_address_will_do(cluster: Any) -> None:
    assert list(run_tasks(squared, [(3,)], cluster.scheduler_address)) == [(0, 9)]


def test_no_pieces_no_results(client: Any) -> None:
    assert list(run_tasks(squared, [], client)) == []


def test_spread_maps(client: Any) -> None:
    assert sorted(spread(client)(squared, range(20))) == [number * number for number in range(20)]


def test_results_in_order(client: Any, tmp_path: Path) -> None:
    """However long the first one takes, and however many there are: the others wait, but not many of them."""
    most, newest = 0, 16 * thread_total(client) - 1

    def pieces() -> Iterator[tuple[int, Path]]:
        nonlocal most
        for most in count():
            if most == newest:
                (tmp_path / "start").touch()
            yield most, tmp_path / "start"

    results = in_order(lagging, pieces(), client)
    assert next(results) == 0
    assert most == newest
    assert list(islice(results, 40)) == list(range(1, 41))
    results.close()


def test_in_order_without_a_scheduler() -> None:
    assert list(in_order(squared, [(2,), (3,)], None)) == [4, 9]


def test_tasks_of_a_killed_worker_run_again(client: Any, tmp_path: Path) -> None:
    """Tasks and the data they share go away with the worker; no result is lost, none comes twice."""
    data = [Sent(np.full(1000, number)) for number in range(4)]
    pieces = ((index, data[index % 4], tmp_path) for index in range(40))
    watch = killing(client, after=6)
    results = []
    for result in run_tasks(noted, pieces, client):
        results.append(result)
        watch()
    assert sorted(results) == [(index, (index, index % 4 * 1000)) for index in range(40)]
    begun = [int(path.name.partition("-")[0]) for path in tmp_path.iterdir()]
    assert set(begun) == set(range(40))
    assert len(begun) > 40


def test_all_workers_may_die(client: Any, tmp_path: Path) -> None:
    data = Sent(np.arange(3))
    results = []
    for result in run_tasks(noted, ((index, data, tmp_path) for index in range(12)), client):
        results.append(result)
        if len(results) == 3:
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
    assert sorted(results) == [(index, (index, 3)) for index in range(12)]


def test_pieces_are_taken_as_the_cluster_keeps_up(client: Any) -> None:
    taken, most = 0, 0

    def pieces() -> Iterator[tuple[int]]:
        nonlocal taken
        for number in range(60):
            taken += 1
            yield (number,)

    for received, _ in enumerate(run_tasks(squared, pieces(), client)):
        most = max(most, taken - received)
    assert most == 2 * thread_total(client)


def test_shared_data_are_sent_once_and_let_go(
    client: Any, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda data, **how: sent.append(data) or scatter(data, **how))
    data = [Sent(np.full(10, number)) for number in range(2)]
    results = list(run_tasks(noted, [(index, data[index % 2], tmp_path) for index in range(8)], client))
    assert len(results) == 8
    assert sent[0] == [noted]
    assert sorted(int(batch[0][0]) for batch in sent[1:]) == [0, 1]
    deadline = time.monotonic() + 10
    while cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not cluster.scheduler.tasks


def test_who_stops_early_leaves_nothing_behind(client: Any, cluster: Any, tmp_path: Path) -> None:
    results = run_tasks(noted, ((index, np.arange(2), tmp_path) for index in range(100)), client)
    next(results)
    results.close()
    deadline = time.monotonic() + 10
    while cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not cluster.scheduler.tasks
    assert len(list(tmp_path.iterdir())) < 10


# --- what goes wrong ---------------------------------------------------------------------------------


def refusal(
    scheduler: Any,
    function: Any = squared,
    pieces: Any = ((1,),),
    kind: type[warpsim.WarpsimError] = warpsim.ClusterError,
) -> str:
    """The message of the error that a job ends in."""
    with pytest.raises(kind) as caught:
        list(run_tasks(function, pieces, scheduler))
    assert type(caught.value) is kind
    return caught.value.message


def test_the_first_failure_is_the_one_reported(client: Any) -> None:
    """Whatever the order in which tasks end: the fourth piece fails later than the fifth."""
    pieces = ((index,) for index in range(20))
    assert refusal(client, failing, pieces, warpsim.OperandError) == "piece 3 is wrong"


def test_a_failure_of_the_pieces_counts_where_it_stands(client: Any) -> None:
    def pieces(stop: int) -> Iterator[tuple[int]]:
        yield from ((index,) for index in range(stop))
        raise warpsim.TraceError("the file ends here")

    assert refusal(client, failing, pieces(2), warpsim.TraceError) == "the file ends here"
    assert refusal(client, failing, pieces(4), warpsim.OperandError) == "piece 3 is wrong"


def test_other_exceptions_are_errors_of_the_cluster(client: Any) -> None:
    message = "task 1 failed on the Dask cluster: ZeroDivisionError: division by zero"
    assert refusal(client, dividing, [(2,), (0,)]) == message


def test_a_task_that_kills_workers_is_given_up(
    client: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    message = "task 0 failed on the Dask cluster: every worker that took it died, perhaps for want of memory"
    assert refusal(client, dying, [()]) == message


def test_a_task_whose_data_keep_vanishing_is_given_up(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = distribution._Job(client, squared, [])
    monkeypatch.setattr(distribution, "ATTEMPTS", 0)
    message = "task 5 was sent 0 times, and each time a worker died that held its data"
    with pytest.raises(warpsim.ClusterError, match=f"^{message}$"):
        job._send(distribution._Task(index=5, arguments=(1,)))


def test_a_task_is_sent_again_when_the_scheduler_knows_who_is_there(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all its attempts would go to a worker that has just died; its data are sent again, too."""
    pauses: list[float] = []
    monkeypatch.setattr(distribution, "sleep", pauses.append)
    job, data = distribution._Job(client, squared, []), Sent(3)
    task = distribution._Task(index=0, arguments=(data,))
    job._send(task)
    first = job.sent[data]
    job._send_again(task)
    assert job.sent[data] is first
    job._send_again(task)
    assert job.sent[data] is not first
    assert pauses == [distribution._PAUSE] * 2
    assert task.future.result(timeout=30) == 9


def test_tasks_that_no_worker_has_are_sent_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here because the scheduler has lost them: a task waits for data that are nowhere."""
    monkeypatch.setattr(distribution, "STALL", 0.0)
    monkeypatch.setattr(distribution, "_WATCH", 0.2)
    job = distribution._Job(client, squared, [(2,), (3,)])
    send, lost = job._send, [True, True]

    def losing(task: Any) -> None:
        send(task)
        if lost and lost.pop():
            del job.running[task.future.key]
            task.future = client.submit(squared, distributed.Future("never", client), pure=False)
            job.running[task.future.key] = task

    monkeypatch.setattr(job, "_send", losing)
    assert sorted(job.results()) == [(0, 4), (1, 9)]


@pytest.mark.parametrize("name", ["warpsim", "numpy", "ml_dtypes"])
def test_other_versions_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    here = versions()
    monkeypatch.setattr(distribution, "versions", lambda: here | {name: "9.9"})
    assert re.sub(r":\d+ ", ":PORT ", refusal(client)) == (
        f"worker tcp://127.0.0.1:PORT has {name} {here[name]}, but the client has 9.9: "
        "their bits could differ; install the same on both"
    )


def test_versions_know_the_source() -> None:
    assert re.fullmatch(rf"{re.escape(warpsim.__version__)} \(source [0-9a-f]{{12}}\)", versions()["warpsim"])
    assert versions()["numpy"] == np.__version__


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert refusal("tcp://127.0.0.1:8786") == (
        "a scheduler needs dask.distributed, which is not installed: pip install 'warpsim[distributed]'"
    )


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    with socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"tcp://127.0.0.1:{idle.getsockname()[1]}"
        assert refusal(address) in (  # whose patience ends first is open
            f"no Dask scheduler answers: Timed out trying to connect to {address} after 0.5 s",
            f"no Dask scheduler answers: {address} says nothing in 0.5 s",
        )


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("nonsense", "missing port number in address 'nonsense'"),
        ("tcp://host:x", "invalid literal for int()"),
    ],
)
def test_an_address_that_is_none(address: str, reason: str) -> None:
    message = refusal(address)
    assert message.startswith(
        f"{address!r} is not an address of a Dask scheduler, such as tcp://host:8786: {reason}"
    )


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    with distributed.LocalCluster(n_workers=0, processes=True, **QUIET) as empty:
        address = empty.scheduler_address
        with distributed.Client(address, set_as_default=False) as client:
            assert refusal(client) == f"the Dask scheduler {address} has no workers after 0.5 s"


def test_what_is_no_scheduler(cluster: Any) -> None:
    assert refusal(8786) == "scheduler is an address ('tcp://host:8786') or a distributed.Client, not int"
    with distributed.Client(cluster, set_as_default=False) as client:
        pass
    assert refusal(client) == "the client is closed, not running"


# --- products ----------------------------------------------------------------------------------------

_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_BLOCK = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"


def codes(element: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Matrix:
    """Random bits: some infinities and NaNs are among them."""
    return rng.integers(0, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)


def product(form: Any, m: int, n: int, k: int) -> tuple[list[Matrix], dict[str, Matrix]]:
    """Operands of a product, and its scales."""
    rng = np.random.default_rng(5)
    a = codes(form.a, (m, k), rng)
    operands = [warpsim.prune(a, form) if form.sparse else a, codes(form.b, (k, n), rng)]
    chunks = k * form.scale_chunks // form.shape.k
    shapes = {"scale_a": (m, chunks), "scale_b": (chunks, n)} if form.scale else {}
    scales = {name: rng.integers(50, 60, shape).astype(np.uint8) for name, shape in shapes.items()}
    return [*operands, codes(form.c, (m, n), rng)], scales


@pytest.mark.parametrize(
    ("mnemonic", "target", "options", "side"),
    [
        (F16.mnemonic, "sm_90a", {}, 16),
        (F16.mnemonic, "sm_90a", {}, 37),
        (_SPARSE, "sm_90a", {"split_k": 2}, 37),
        (_BLOCK, "sm_120a", {}, 16),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89", {"promote_every": 2}, 37),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_80", {}, 16),
    ],
)
def test_bits_do_not_depend_on_the_tiles(
    client: Any, monkeypatch: pytest.MonkeyPatch, mnemonic: str, target: str, options: Any, side: int
) -> None:
    form = warpsim.decode(mnemonic, target=target)
    operands, scales = product(form, 50, 40, 128)
    here = warpsim.gemm(form, *operands, **options, **scales)
    monkeypatch.setattr(matrix_products, "_SIDES", (side,))
    monkeypatch.setattr(matrix_products, "_GROUP", 40 * operands[1][:, 0].nbytes)  # 2 columns of tiles of 16
    steps: list[tuple[int, int]] = []
    there = warpsim.gemm(
        form, *operands, **options, **scales, scheduler=client, progress=lambda *step: steps.append(step)
    )
    assert there.dtype == here.dtype
    assert there.tobytes() == here.tobytes()
    assert len(steps) == -(-50 // side) * -(-40 // side)
    assert steps[-1] == (2000, 2000)


def test_a_killed_worker_leaves_no_trace_in_the_product(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    operands, _ = product(F16, 300, 300, 256)
    monkeypatch.setattr(matrix_products, "_SIDES", (32,))
    steps: list[tuple[int, int]] = []
    watch = killing(client, after=20)

    def progress(done: int, total: int) -> None:
        steps.append((done, total))
        watch()

    there = warpsim.gemm(F16, *operands, scheduler=client, progress=progress)
    assert there.tobytes() == warpsim.gemm(F16, *operands).tobytes()
    assert len(steps) == 100
    assert steps[-1] == (90_000, 90_000)


def test_sparse_operands_go_to_the_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    form = warpsim.decode(_SPARSE, target="sm_90a")
    (a, b, c), _ = product(form, 40, 24, 64)
    values, indices = warpsim.compress(a.reshape(40, 2, 32).swapaxes(0, 1), form)
    stored = [np.concatenate(list(part), axis=1) for part in (values, indices)]
    monkeypatch.setattr(matrix_products, "_SIDES", (16,))
    there = warpsim.gemm_sparse(form, *stored, b, c, scheduler=client)
    assert there.tobytes() == warpsim.gemm(form, a, b, c).tobytes()


def test_operands_are_checked_before_anything_is_sent() -> None:
    with pytest.raises(warpsim.OperandError, match=r"^A has 3 columns, but B has 4 rows$"):
        warpsim.gemm(F16, np.zeros((2, 3), np.float16), np.zeros((4, 2), np.float16), scheduler="nowhere")


@pytest.mark.parametrize("shape", [(0, 8, 16), (8, 0, 16), (8, 8, 0)])
def test_empty_products(client: Any, shape: tuple[int, int, int]) -> None:
    operands, _ = product(F16, *shape)
    there = warpsim.gemm(F16, *operands, scheduler=client)
    assert there.tobytes() == warpsim.gemm(F16, *operands).tobytes()
    assert there.shape == shape[:2]


def test_tiles_are_large_but_enough_for_all_threads() -> None:
    def side(m: int, n: int, k: int, threads: int) -> int:
        operands = np.zeros((m, k), np.uint16), np.zeros((k, n), np.uint16)
        return matrix_products._side(matrix_products.checked(F16, Matrices(*operands), "error"), threads)

    assert side(4096, 4096, 512, 2) == 1024
    assert side(4096, 4096, 512, 16) == 512
    assert side(64, 64, 64, 64) == 64
    assert side(1024, 1024, 1 << 15, 1) == 512


# --- vector sets -------------------------------------------------------------------------------------

_WGMMA = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
_E2M1 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32"


@pytest.mark.parametrize(
    ("mnemonic", "target", "options"),
    [
        (F16.mnemonic, "sm_90a", {"kind": "corner", "count": 600}),
        (_WGMMA, "sm_90a", {"kind": "random", "count": 150}),
        (_E2M1, "sm_120a", {"kind": "exhaustive"}),
    ],
)
def test_vector_sets_do_not_depend_on_who_makes_them(
    client: Any, mnemonic: str, target: str, options: Any
) -> None:
    here = generate_vectors(mnemonic, target=target, **options)
    there = generate_vectors(mnemonic, target=target, **options, scheduler=client)
    assert there.instruction == here.instruction
    assert (there.labels, there.title, there.seed) == (here.labels, here.title, here.seed)
    for name, array in here.arrays().items():
        assert there.arrays()[name].tobytes() == array.tobytes(), name


def test_instructions_survive_the_way() -> None:
    forms = {(form.family.name, form.pattern): form for form in warpsim.instructions("sm_90a")}
    assert len(forms) > 4
    for form in forms.values():
        assert pickle.loads(pickle.dumps(form)) == form


# --- the command line --------------------------------------------------------------------------------


def started(*arguments: str | int | Path) -> tuple[int, str, str]:
    """What ``warpsim`` returns and prints, as a process of its own."""
    command = [sys.executable, "-m", "warpsim", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A vector set, and a copy in which one bit is wrong."""
    rng = np.random.default_rng(0)
    registers = {
        name: rng.integers(0, 1 << 32, (4000, 32, F16.registers[name]), np.uint64).astype(np.uint32)
        for name in "abc"
    }
    good = vectors.make_vectors(F16, **registers)
    bad = replace(good, d=good.d.copy())
    bad.d[3210, 7, 1] ^= 1
    paths = [tmp_path_factory.mktemp("sets") / name for name in ("good.npz", "bad.npz")]
    for path, one in zip(paths, (good, bad), strict=True):
        write_vectors(path, one)
    return paths


def timeless(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what differs from run to run."""
    return {name: value for name, value in document.items() if name != "seconds"}


def test_verify_on_the_command_line(cluster: Any, client: Any, sets: list[Path]) -> None:
    here = started("verify", *sets, "--json")
    there = started("verify", *sets, "--json", "--scheduler", cluster.scheduler_address)
    assert here[0] == there[0] == 1
    documents = [json.loads(out, object_hook=timeless) for _, out, _ in (here, there)]
    assert documents[0] == documents[1]
    assert [one["passed"] for one in documents[1]["files"]] == [True, False]


def test_verify_without_a_cluster(sets: list[Path]) -> None:
    code, out, err = started("verify", *sets, "--scheduler", "nowhere")
    assert (code, out) == (4, "")
    assert err == (
        "warpsim verify: error: 'nowhere' is not an address of a Dask scheduler, such as tcp://host:8786: "
        "missing port number in address 'nowhere'\n"
    )


def test_vectors_on_the_command_line(cluster: Any, client: Any, tmp_path: Path) -> None:
    there = tmp_path / "there.npz"
    made = started(
        "vectors",
        F16.mnemonic,
        "--target",
        "sm_90a",
        "--kind",
        "random",
        "-n",
        300,
        "-o",
        there,
        "--scheduler",
        cluster.scheduler_address,
    )
    assert (made[0], made[2]) == (0, "")
    write_vectors(tmp_path / "here.npz", generate_vectors(F16, kind="random", count=300))
    assert there.read_bytes() == (tmp_path / "here.npz").read_bytes()


def test_gemm_on_the_command_line(cluster: Any, client: Any, tmp_path: Path) -> None:
    (a, b, c), _ = product(F16, 70, 90, 48)
    paths = {name: tmp_path / f"{name}.npy" for name in "abcd"}
    for path, matrix in zip(paths.values(), (a, b, c), strict=False):
        np.save(path, matrix)
    given = [F16.mnemonic, paths["a"], paths["b"], "--c", paths["c"], "--target", "sm_90a"]
    there = started("gemm", *given, "-o", paths["d"], "--scheduler", cluster.scheduler_address)
    assert (there[0], there[2]) == (0, "")
    assert np.load(paths["d"]).tobytes() == warpsim.gemm(F16, a, b, c).tobytes()


# --- peers that are not schedulers --------------------------------------------------------------------


@contextmanager
def peer(greeting: bytes | None) -> Iterator[int]:
    """The port of something that accepts connections, and says that or, for ever, nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    kept.append(connection)
                    if greeting is not None:
                        connection.sendall(greeting)

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        for connection in kept:
            connection.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Dask leaves sockets open
@pytest.mark.parametrize("protocol", ["tcp", "tls"])
@pytest.mark.parametrize("greeting", [None, b"SSH-2.0-OpenSSH_9.6\r\n", b""])
def test_who_answers_is_no_scheduler(
    greeting: bytes | None, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who said nothing held a job for more than a hundred seconds, others ended it with a traceback."""
    monkeypatch.setattr(connection, "PATIENCE", 0.5)
    start = time.monotonic()
    with peer(greeting) as port:
        message = refusal(f"{protocol}://127.0.0.1:{port}")
    gc.collect()
    assert message.startswith("no Dask scheduler answers: ")
    assert "\n" not in message
    assert time.monotonic() - start < 10


def test_a_worker_is_no_scheduler(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 5.0)
    address = min(client.scheduler_info()["workers"])
    assert refusal(address) == f"no Dask scheduler answers: {address} is not a scheduler, but Worker"


def test_workers_that_are_all_gone_are_missed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending data waited for new ones eight times, for half a minute each."""
    monkeypatch.setattr(distribution, "ABSENCE", 2.0)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        results = run_tasks(squared, ((Sent(number),) for number in count()), client)
        next(results)
        cluster.scale(0)
        start = time.monotonic()
        with pytest.raises(warpsim.ClusterError, match="has had no workers for 2 s"):
            list(results)
        assert time.monotonic() - start < 30
