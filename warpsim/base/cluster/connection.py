"""Connections to a Dask cluster, and their errors.

Knows addresses, clients and timeouts; does not know what a cluster is used for. Dask is imported at its first
use (``pip install 'warpsim[distributed]'``).
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
    """Yield a client of an address such as ``"tcp://host:8786"``, or the caller's own client, which stays
    open.

    The client has workers. Raises ClusterError within some seconds where there is no Dask, no scheduler or no
    worker.
    """
    if not isinstance(scheduler, str):
        _check_client(scheduler)
        _await_worker(scheduler)
        yield scheduler
        return
    with _open_client(scheduler) as client:
        _await_worker(client)
        yield client


def _open_client(address: str) -> Client:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ClusterError(
            "a scheduler needs dask.distributed, which is not installed: pip install 'warpsim[distributed]'"
        ) from None
    try:
        get_address_host_port(address)  # a partly constructed Client would still be there at exit
    except ValueError as error:
        raise ClusterError(
            f"{address!r} is not an address of a Dask scheduler, such as tcp://host:8786: {error}"
        ) from None
    _check_scheduler(address)
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # an error of any library that speaks a protocol
        raise ClusterError(f"no Dask scheduler answers: {_reason(error)}") from None


def _check_scheduler(address: str) -> None:
    """Raise ClusterError where no scheduler answers, after PATIENCE at most.

    A Client waits longer for a server that accepts a connection and does not answer, and a partly constructed
    Client would stay: an interrupted program would wait for it again at its end. So the first request is made
    without a Client, in a daemon thread.
    """
    answer: SimpleQueue[Exception | None] = SimpleQueue()
    Thread(target=lambda: answer.put(_identity_error(address)), daemon=True).start()
    try:
        error = answer.get(timeout=PATIENCE + 1.0)
    except Empty:
        error = TimeoutError()
    if isinstance(error, TimeoutError) and not str(error):
        raise ClusterError(f"no Dask scheduler answers: {address} says nothing in {PATIENCE:g} s")
    if error is not None:
        raise ClusterError(f"no Dask scheduler answers: {_reason(error)}")


def _identity_error(address: str) -> Exception | None:
    """Return the error of an identity request to an address; None if a scheduler answers."""
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
        None
        if kind == "Scheduler"
        else OSError(f"{address} is not a scheduler, but {kind or 'something else'}")
    )


def _reason(error: Exception) -> str:
    """Return the first line of an error, or its class name where it has no text."""
    text = str(error).partition("\n")[0]
    return text if isinstance(error, OSError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _check_client(client: Any) -> None:
    if not hasattr(client, "scatter") or not hasattr(client, "submit"):
        given = type(client).__name__
        raise ClusterError(
            f"scheduler is an address ('tcp://host:8786') or a distributed.Client, not {given}"
        )
    if client.asynchronous:
        raise ClusterError("the client is asynchronous; a job needs a client that waits (asynchronous=False)")
    if client.status != "running":
        raise ClusterError(f"the client is {client.status}, not running")


def _await_worker(client: Client) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        address = client.scheduler.address
        raise ClusterError(f"the Dask scheduler {address} has no workers after {PATIENCE:g} s") from None


def thread_total(client: Client) -> int:
    """Return the threads of all workers; raises TimeoutError where the scheduler does not answer."""
    workers: dict[str, int] = client.sync(client.scheduler.ncores, callback_timeout=PATIENCE)
    return sum(workers.values())
