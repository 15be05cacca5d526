"""Run a command beside a Dask cluster on this machine: ``python -m tools.local_cluster WORKERS COMMAND...``.

The cluster is WORKERS processes of one thread. The word SCHEDULER in the command becomes its address.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys

from distributed import LocalCluster


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.local_cluster",
        description="Run a command beside a Dask cluster on this machine.",
    )
    parser.add_argument("workers", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    with LocalCluster(
        n_workers=given.workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",  # any free port
        silence_logs=logging.CRITICAL,
    ) as cluster:
        command = [cluster.scheduler_address if word == "SCHEDULER" else word for word in given.command]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
