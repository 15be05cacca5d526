"""Connections to a Dask cluster, and what may be wrong with one.

Knows addresses, clients and patience; does not know what a cluster is used for. Dask is imported when first
used (``pip install 'warpsim[distributed]'``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    try:
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        raise ClusterError(f"no Dask scheduler answers: {error}") from None


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
    """Threads of all workers."""
    return sum(client.nthreads().values())
