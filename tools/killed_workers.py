"""Kill workers of a Dask cluster while ``gemm`` uses them, each time at another moment.

    python -m tools.killed_workers [--moments N] [--span SECONDS] [--limit SECONDS] [--side N] [--seed N]

Each case starts a cluster of two workers with an empty cache of compiled kernels, so that data are sent and
kernels compiled while workers die: one is killed at its moment, in every third case both. Prints a line for
each case: its moment, who was killed, how it ended and after how long. A product that ends must have the bits
of one that was computed here. The exit code is 0 where every case ended within the limit with those bits, or
with a ClusterError; otherwise 1.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from tempfile import TemporaryDirectory
from threading import Timer
from time import monotonic
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import warpsim
from warpsim import ClusterError

FORM = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90a")


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.killed_workers", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--moments", type=int, default=20, help="cases")
    parser.add_argument("--span", type=float, default=12.0, help="seconds over which the moments are spread")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds within which each case must end")
    parser.add_argument("--side", type=int, default=700, help="rows and columns of the product; k is 512")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    rng = np.random.default_rng(given.seed)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((given.side, 512), (512, given.side)))
    expected = warpsim.gemm(FORM, a, b).tobytes()
    bad = 0
    for case in range(given.moments):
        moment, both = given.span * (case + rng.random()) / given.moments, case % 3 == 2
        outcome, seconds = _case(a, b, expected, moment, both, given.limit)
        bad += outcome != "right" and not outcome.startswith("ClusterError")
        sys.stdout.write(f"{moment:6.2f} s  {'both' if both else 'one ':<4}  {seconds:6.1f} s  {outcome}\n")
        sys.stdout.flush()
    return min(bad, 1)


def _case(a: Any, b: Any, expected: bytes, moment: float, both: bool, limit: float) -> tuple[str, float]:
    """Return how a product ended whose workers were killed, and after how many seconds."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as cache, _cluster(cache) as cluster:
        with Client(cluster, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            pids = list(client.run(os.getpid).values())
        timer = Timer(moment, _kill, [pids if both else pids[:1]])
        pool, begin = ThreadPoolExecutor(1), monotonic()
        timer.start()
        work = pool.submit(warpsim.gemm, FORM, a, b, scheduler=cluster.scheduler_address)
        try:
            outcome = "right" if work.result(limit).tobytes() == expected else "other bits"
        except TooLate:
            outcome = f"no result after {limit:g} s"
        except ClusterError as error:
            outcome = f"ClusterError: {error}"
        timer.cancel()
        pool.shutdown(wait=False)
        return outcome, monotonic() - begin


def _cluster(cache: str) -> LocalCluster:
    os.environ["NUMBA_CACHE_DIR"] = cache
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


def _kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
