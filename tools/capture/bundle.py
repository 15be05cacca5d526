"""The same work on a computer that has no warpsim: a folder to carry there, and what comes back.

``emit`` writes sets, their kernels, and a program that needs Python, NumPy and a CUDA driver; that program
writes outputs beside them; ``fold`` makes captured sets of those. Knows files;
does not know what to capture.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from warpsim.base.errors import TraceError, WarpsimError
from warpsim.base.files.archives import read_arrays
from warpsim.workbench.vectors.formats import read_vectors, write_vectors

from .campaign import Record, chip_folder, keep, read_report, write_report
from .capturing import folded, parts_of, provenance
from .driver import Device
from .sources import Item, experiment_items

_HERE = Path(__file__).parent
_CARRIED = ("driver.py", "jobs.py")
_INDEX = "index.json"


def emit(folder: Path, target: str, items: Iterable[Item]) -> Iterator[Record]:
    """Write a bundle; the records of the sets in it. What would only be compared is left out.

    Raises OSError.
    """
    (folder / "capture").mkdir(parents=True, exist_ok=True)
    (folder / "capture" / "__init__.py").write_text(
        '"""Running kernels; from warpsim."""\n', encoding="utf-8"
    )
    for name in _CARRIED:
        shutil.copyfile(_HERE / name, folder / "capture" / name)
    shutil.copyfile(_HERE / "bundle_run.py", folder / "run.py")
    for part in ("sets", "outputs"):
        (folder / part).mkdir(exist_ok=True)
    index: list[dict[str, Any]] = []
    for item in (item for item in items if item.kept):
        try:
            record = _emitted(folder / "sets" / f"{len(index):05}", item)
            index.append({"path": item.path, "mnemonic": item.mnemonic, "experiment": item.experiment})
        except WarpsimError as error:
            record = Record(path=item.path, mnemonic=item.mnemonic, error=str(error))
        yield record
    _write_json(folder / _INDEX, {"target": target, "items": index})


def _emitted(stem: Path, item: Item) -> Record:
    """Return the set of one item, and beside it its kernels, each with the cases that it takes."""
    vectors = item.make()
    write_vectors(stem.with_suffix(".npz"), vectors)
    kernels = [asdict(part.kernel) | {"cases": part.cases.tolist()} for part in parts_of(vectors)]
    _write_json(stem.with_suffix(".json"), kernels)
    return Record(path=item.path, mnemonic=item.mnemonic, cases=len(vectors))


def fold(folder: Path, out: Path) -> Iterator[Record]:
    """Return captured sets of a bundle's outputs, below ``out``, without those that have not run yet.

    Raises TraceError for what is no bundle, or one of another version; OSError.
    """
    document = _json(folder / _INDEX)
    described = _json(folder / "outputs" / "device.json")
    device = Device(**(described["device"] | {"capability": tuple(described["device"]["capability"])}))
    target = chip_folder(out, device)
    names = list(dict.fromkeys(member["experiment"] for member in document["items"] if member["experiment"]))
    trials = {item.path: item for item in experiment_items(document["target"], names)}
    known = read_report(target)
    for number, member in enumerate(document["items"]):
        outputs = folder / "outputs" / f"{number:05}.npz"
        if not outputs.is_file():
            continue
        record = _folded(
            folder, number, member, trials.get(member["path"]), target, provenance(device, described["date"])
        )
        known[record.path] = record.document()
        write_report(target, device, known)
        yield record


def _folded(
    folder: Path, number: int, one: dict[str, Any], trial: Item | None, target: Path, origin: Any
) -> Record:
    vectors = read_vectors(folder / "sets" / f"{number:05}.npz")
    outputs = read_arrays(folder / "outputs" / f"{number:05}.npz")
    kernels = _json(folder / "sets" / f"{number:05}.json")
    parts = list(parts_of(vectors))
    if [kernel["ptx"] for kernel in kernels] != [part.kernel.ptx for part in parts]:
        raise TraceError(f"{folder}: set {number} has other kernels than this version of warpsim writes")
    if trial is not None:
        _check_same(folder, number, trial, vectors)
    item = trial or Item(path=one["path"], mnemonic=one["mnemonic"], make=lambda: vectors)
    d = folded(vectors, parts, [outputs[f"outputs{index}"] for index in range(len(parts))], origin)
    return keep(target, item, vectors, d)


def _check_same(folder: Path, number: int, trial: Item, vectors: Any) -> None:
    """Check that the experiment has not changed since the bundle was written."""
    ours = trial.make().arrays()
    same = ours.keys() == vectors.arrays().keys() and all(
        np.array_equal(ours[name], array) for name, array in vectors.arrays().items() if name != "d"
    )
    if not same:
        raise TraceError(f"{folder}: set {number} is not what the experiment {trial.experiment} has now")


def _json(path: Path) -> Any:
    if not path.is_file():
        raise TraceError(f"{path}: no such file; a bundle has it once it has been run")
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
