"""Long actions: a progress bar on stderr, after a second, on a terminal; a Dask cluster (``--scheduler``).

WARPSIM_PROGRESS_AFTER is another number of seconds.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .output import colourful

if TYPE_CHECKING:
    from distributed import Client

Watch = Callable[[int, int], None]  # called with the work done, and the whole work; 0 if that is not known
_PATIENCE = "1"  # seconds without a bar


@contextmanager
def watching(description: str) -> Iterator[Watch | None]:
    """Yield the function to call with progress; None where stderr is no terminal. The bar is erased at the
    end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, no_color=not colourful())
    progress = Progress(console=console, transient=True, redirect_stdout=False)
    task = progress.add_task(description, total=None)
    start = time.monotonic() + float(os.environ.get("WARPSIM_PROGRESS_AFTER", _PATIENCE))

    def watch(done: int, total: int) -> None:
        if not progress.live.is_started and time.monotonic() >= start:
            progress.start()
        progress.update(task, completed=done, total=total or None)

    try:
        yield watch
    finally:
        if progress.live.is_started:
            progress.stop()


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
