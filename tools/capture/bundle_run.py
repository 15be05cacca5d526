"""Runs the kernels of this bundle on a GPU. Needs Python 3.11, NumPy and a CUDA driver; nothing else.

    python3 run.py [--minutes 9] [--device 0]

Outputs go to outputs/, one file a set; a set that has its file is skipped, so that a run that was cut off can
be repeated. Bring the folder back and give it to ``python -m tools.capture --fold FOLDER``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from capture.driver import CudaDriver, Driver, DriverError
from capture.jobs import Job, pack_cases, run_job

HERE = Path(__file__).resolve().parent
MOST_FAILURES = 3  # in a row: then the device is lost


def main(arguments: list[str] | None = None, driver: Driver | None = None) -> int:
    """Exit code: 0 where everything has run, 1 where not, 4 without a GPU."""
    parser = argparse.ArgumentParser(description="run the kernels of this bundle on a GPU")
    parser.add_argument("--minutes", type=float, default=9.0, help="stop before the next set after so many")
    parser.add_argument("--device", type=int, default=0, help="which GPU")
    options = parser.parse_args(arguments)
    try:
        device = driver or CudaDriver(options.device)
    except DriverError as error:
        print(f"cannot run: {error}", file=sys.stderr)
        return 4
    print(f"{device.device.chip}, compute capability {device.device.compute_capability}", file=sys.stderr)
    described = {"device": asdict(device.device), "date": datetime.now(UTC).date().isoformat()}
    (HERE / "outputs" / "device.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return _run(device, time.monotonic() + 60 * options.minutes)


def _run(driver: Driver, end: float) -> int:
    done = failed = late = in_a_row = 0
    for path in sorted((HERE / "sets").glob("*.npz")):
        target = HERE / "outputs" / path.name
        if target.exists():
            continue
        if time.monotonic() > end or in_a_row == MOST_FAILURES:
            late += 1
            continue
        try:
            _write(target, _outputs(driver, path))
            done, in_a_row = done + 1, 0
        except DriverError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            failed, in_a_row = failed + 1, in_a_row + 1
    print(f"{done} sets done, {failed} failed, {late} left for another run")
    return int(bool(failed or late))


def _outputs(driver: Driver, path: Path) -> dict[str, Any]:
    """Return the outputs of every kernel of a set."""
    kernels = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    outputs: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as file:
        for index, kernel in enumerate(kernels):
            arrays = {name: file[name][kernel["cases"]] for name in kernel["offsets"]}
            job = Job(
                ptx=kernel["ptx"],
                entry=kernel["entry"],
                threads=kernel["threads"],
                shared_bytes=kernel["shared_bytes"],
                output_bytes=kernel["output_bytes"],
                inputs=pack_cases(arrays, kernel["offsets"], kernel["input_bytes"]),
            )
            outputs[f"outputs{index}"] = run_job(driver, job)
    return outputs


def _write(path: Path, arrays: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
