"""Capturing many sets on one device in a limited time, and going on where the last run stopped.

A set that has its file is done, and one that is only compared, its record. Every record goes to report.json
beside the files as soon as it is known, so that a run that is cut off loses nothing. Knows files and
time; does not know what to capture.
"""

from __future__ import annotations

import json
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.base.errors import WarpsimError
from warpsim.workbench.vectors.formats import write_vectors
from warpsim.workbench.vectors.sets import VectorSet

from .capturing import captured
from .driver import Device, Driver, DriverError
from .experiments import decide
from .experiments.experiment import elements
from .sources import Item

REPORT = "report.json"
_MOST_FAILURES = 3  # of the device in a row: then its context is lost


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of one set. ``differences`` counts elements of D that the model has otherwise."""

    path: str
    mnemonic: str
    cases: int = 0
    outputs: int = 0
    differences: int = 0
    first: str = ""
    error: str = ""
    verdict: dict[str, Any] | None = None
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """For machines; what is empty is left out."""
        return {name: value for name, value in vars(self).items() if value not in ("", None)}


@dataclass(kw_only=True)
class Campaign:
    """A folder, the device that fills it, and the time there is (None: no limit)."""

    folder: Path
    driver: Driver
    seconds: float | None = None
    capture: Callable[[VectorSet, Driver], VectorSet] = captured
    records: list[Record] = field(default_factory=list)
    skipped: int = 0
    unfinished: int = 0

    def run(self, items: Iterable[Item]) -> Iterator[Record]:
        """Capture item after item; the records of those that are new.

        Raises DriverError for a lost device.
        """
        known, end = read_report(self.folder), None
        if self.seconds is not None:
            end = time.monotonic() + self.seconds
        failures = 0
        for item in items:
            if (self.folder / item.path).exists() or (not item.kept and item.path in known):
                self.skipped += 1
            elif end is not None and time.monotonic() > end:
                self.unfinished += 1
            else:
                record = self.one(item)
                self.records.append(record)
                known[record.path] = record.document()
                write_report(self.folder, self.driver.device, known)
                yield record
                failures = failures + 1 if record.error else 0
                if failures == _MOST_FAILURES:
                    raise DriverError(f"{failures} sets in a row failed, the last with: {record.error}")

    def one(self, item: Item) -> Record:
        """Capture one set, compare it with the model, and write it."""
        start = time.monotonic()
        try:
            vectors = item.make()
            outputs = self.capture(vectors, self.driver)
        except (WarpsimError, DriverError) as error:
            return Record(path=item.path, mnemonic=item.mnemonic, error=str(error))
        return keep(self.folder, item, vectors, outputs, time.monotonic() - start)


def keep(folder: Path, item: Item, vectors: VectorSet, outputs: VectorSet, seconds: float = 0.0) -> Record:
    """Write captured outputs; their record: differences from the model, what an experiment decides."""
    target = folder / item.path
    target.parent.mkdir(parents=True, exist_ok=True)
    verdict = decide(item.experiment, item.trial, outputs) if item.trial else None
    if verdict is not None:
        stem = target.with_suffix(".json")
        stem.write_text(json.dumps(verdict.document(), indent=1) + "\n", encoding="utf-8")
    wrong = elements(vectors.instruction, vectors.d) != elements(vectors.instruction, outputs.d)
    if item.kept or wrong.any():
        write_vectors(target, outputs)
    return Record(
        path=item.path,
        mnemonic=item.mnemonic,
        cases=len(vectors),
        outputs=wrong.size,
        differences=int(wrong.sum()),
        first=_first(vectors, outputs, wrong),
        verdict=verdict.document() if verdict else None,
        seconds=round(seconds, 3),
    )


def _first(vectors: VectorSet, outputs: VectorSet, wrong: Any) -> str:
    """Return the first element that differs, in words."""
    if not wrong.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    model, found = (int(elements(vectors.instruction, vector.d)[place]) for vector in (vectors, outputs))
    label = f" ({vectors.labels[place[0]]})" if vectors.labels else ""
    digits = 2 + vectors.instruction.d.bits // 4
    return (
        f"case {place[0]}{label}, D{list(place[1:])}: the device has {found:#0{digits}x}, "
        f"the model {model:#0{digits}x}"
    )


# --- files -----------------------------------------------------------------------------------------


def chip_folder(folder: Path, device: Device) -> Path:
    """Return where the files of a chip go."""
    return folder / re.sub(r"\W+", "_", device.chip).strip("_")


def read_report(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records of former runs by their paths; those that failed are left out, to be tried again."""
    path = folder / REPORT
    if not path.is_file():
        return {}
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    return {record["path"]: record for record in records if "error" not in record}


def write_report(folder: Path, device: Device, records: dict[str, dict[str, Any]]) -> None:
    """Write the report, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "chip": device.chip,
        "compute_capability": device.compute_capability,
        "driver": device.driver,
        "records": list(records.values()),
    }
    partial = folder / f".{REPORT}.partial"
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(folder / REPORT)


def pack(folder: Path, archive: Path) -> None:
    """Write a .tar.gz of a folder, which replaces an older file."""
    partial = archive.with_name(f".{archive.name}.partial")
    with tarfile.open(partial, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    partial.replace(archive)
