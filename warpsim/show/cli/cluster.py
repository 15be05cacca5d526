"""``--scheduler``: run the verbs with long jobs on a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client


@contextmanager
def cluster(address: str | None) -> Iterator[Client | None]:
    """Yield a client of a scheduler for as long as a verb needs it; None where there is no address.

    Dask's log on stderr, tracebacks included, is suppressed: a ClusterError reports every error that matters.
    """
    if address is None:
        yield None
        return
    from ...base.cluster.connection import connected

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with connected(address) as client:
            yield client
    finally:
        logging.disable(before)
