"""Connections to a Dask cluster, and what may be wrong with one.

Knows addresses, clients and patience; does not know what a cluster is used for. Dask is imported when first
used (``pip install 'warpsim[distributed]'``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 10.0  # seconds for a scheduler to answer and for a first worker to come


@contextmanager
def connected(scheduler: str | Client) -> Iterator[Client]:
    """A client of an address such as ``"tcp://host:8786"``, or the caller's own, which stays open.

    It has workers. Raises ClusterError within some seconds where there is no Dask, no scheduler or no worker.
    """
    if not isinstance(scheduler, str):
        _check_client(scheduler)
        _await_worker(scheduler)
        yield scheduler
        return
    with _opened(scheduler) as client:
        _await_worker(client)
        yield client


def _opened(address: str) -> Client:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ClusterError(
            "a scheduler needs dask.distributed, which is not installed: pip install 'warpsim[distributed]'"
        ) from None
    try:
        get_address_host_port(address)  # a Client only half made would still be there at exit
    except ValueError as error:
        raise ClusterError(
            f"{address!r} is no address of a Dask scheduler, such as tcp://host:8786: {error}"
        ) from None
    _check_scheduler(address)
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # of any library that speaks a protocol
        raise ClusterError(f"no Dask scheduler answers: {_reason(error)}") from None


def _check_scheduler(address: str) -> None:
    """Raise ClusterError where no scheduler answers, after PATIENCE at most.

    A Client waits longer for who accepts a connection and says nothing, and half made it would stay: whoever
    is interrupted would wait for it again. So the first question is asked without one, in a thread that
    nobody waits for.
    """
    answer: SimpleQueue[Exception | None] = SimpleQueue()
    Thread(target=lambda: answer.put(_asked(address)), daemon=True).start()
    try:
        error = answer.get(timeout=PATIENCE + 1.0)
    except Empty:
        error = TimeoutError()
    if isinstance(error, TimeoutError) and not str(error):
        raise ClusterError(f"no Dask scheduler answers: {address} says nothing in {PATIENCE:g} s")
    if error is not None:
        raise ClusterError(f"no Dask scheduler answers: {_reason(error)}")


def _asked(address: str) -> Exception | None:
    """What goes wrong when whoever is at an address is asked who it is; None if it is a scheduler."""
    import asyncio

    try:
        return asyncio.run(asyncio.wait_for(_identity(address), PATIENCE))
    except Exception as error:
        return error


async def _identity(address: str) -> Exception | None:
    from distributed.core import connect

    comm = await connect(address, timeout=PATIENCE)
    try:
        await comm.write({"op": "identity", "reply": True})
        found = await comm.read()
    finally:
        comm.abort()
    kind = found.get("type") if isinstance(found, dict) else None
    return (
        None if kind == "Scheduler" else OSError(f"{address} is no scheduler, but {kind or 'something else'}")
    )


def _reason(error: Exception) -> str:
    """The first line of an error, or its kind where it says nothing."""
    text = str(error).partition("\n")[0]
    return text if isinstance(error, OSError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _check_client(client: Any) -> None:
    if not hasattr(client, "scatter") or not hasattr(client, "submit"):
        given = type(client).__name__
        raise ClusterError(
            f"scheduler is an address ('tcp://host:8786') or a distributed.Client, not {given}"
        )
    if client.asynchronous:
        raise ClusterError("the client is asynchronous; a job needs one that waits (asynchronous=False)")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}, not running")


def _await_worker(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        address = client.scheduler.address
        raise ClusterError(f"the Dask scheduler {address} has no workers after {PATIENCE:g} s") from None


def thread_total(client: Client) -> int:
    """Threads of all workers; raises TimeoutError where the scheduler does not answer."""
    workers: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=PATIENCE)
    return sum(workers.values())
