"""``warpsim gemm``: multiply whole matrices in files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from .options import Mnemonic, NeededOut, NeededTarget, Scheduler, Some, SomeOrNone, Threads, Undefined
from .output import deliver, perform
from .progress import cluster, watching
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...isa.formats import Format
    from ...isa.instruction import Instruction

_Array = Annotated[Path | None, Option(metavar="FILE.npy")]
_VERB = Path("warpsim gemm")  # the subject of a failure that concerns no file


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of the operands beside A and B, and that of D."""

    c: Annotated[_Array, Option(metavar="C.npy"), "The matrix to add to; zero if left out."]
    out: Annotated[NeededOut, Option(metavar="D.npy"), "Where to write D."]
    indices: Annotated[
        _Array,
        Option(metavar="I.npy"),
        "A is compressed, and these are the indices of its units; without, a sparse A obeys the pattern.",
    ]
    metadata: Annotated[
        _Array,
        Option(metavar="E.npy"),
        "A is compressed, and this is its metadata in the order of --arrangement.",
    ]
    scale_a: Annotated[_Array, "Block scales of A, (m, chunks along k)."]
    scale_b: Annotated[_Array, "Block scales of B, (chunks along k, n)."]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a product is computed, in the terms of warpsim.gemm."""

    target: NeededTarget
    arrangement: Annotated[
        str | None,
        Option(metavar="NAME"),
        "Of --metadata: fields, words, cutlass, torch, cutlass3 or 'lanes …', as in warpsim metadata.",
    ]
    split_k: Annotated[
        Some,
        "Cut the instructions along k into so many runs, each from zero, whose results are added.",
    ] = 1
    promote_every: Annotated[
        SomeOrNone,
        "Add the accumulator to a main accumulator in f32 after every N instructions, as fp8 kernels do.",
    ]
    undefined: Undefined
    threads: Annotated[
        Threads,
        "Threads here (default: number of cores); with --scheduler, threads of a task (default: 1).",
    ]
    scheduler: Scheduler


@verb
def gemm(
    mnemonic: Mnemonic,
    a: Annotated[Path, Option(metavar="A.npy")],
    b: Annotated[Path, Option(metavar="B.npy")],
    *,
    files: Files,
    options: Options,
) -> int:
    """Multiply whole matrices, bit for bit as a kernel that issues MNEMONIC along k.

    D (m, n) of A (m, k), B (k, n) and C for any m, n and k. Elements have the type of the instruction, or
    are unsigned integers, which are taken as its raw codes: numpy.save(file, fp8.view(numpy.uint8)).
    The bits depend neither on --threads nor on the cluster of --scheduler.
    """
    if (files.metadata is None) != (options.arrangement is None):
        raise click.UsageError("--metadata and --arrangement go together")
    if files.metadata is not None and files.indices is not None:
        raise click.UsageError("--indices and --metadata say the same: give one of them")
    form = perform(_form, _VERB, mnemonic, options.target)
    perform(_check_place, files.out)
    operands = _operands(form, a, b, files)
    d = perform(_product, _VERB, form, operands, options)
    perform(_write, files.out, d)
    document = _document(form, files.out, d, operands["B"].shape[0], options)
    return deliver(document, lambda: _lines(document))


def _form(_: Path, mnemonic: str, target: str) -> Instruction:
    from ...sums.execution.interface import decode

    return decode(mnemonic, target=target)


# --- files -------------------------------------------------------------------------------------------


def _check_place(out: Path) -> None:
    """Raise OSError where D could not be written, before it is computed."""
    folder = out.parent
    if not folder.is_dir():
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    if not os.access(folder, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def _operands(form: Instruction, a: Path, b: Path, files: Files) -> dict[str, Any]:
    """Return the operands as warpsim.gemm names them. Raises Ended for the first bad file."""
    sources = {
        "A": (a, form.a),
        "B": (b, form.b),
        "C": (files.c, form.c),
        "indices": (files.indices, None),
        "metadata": (files.metadata, None),
        "scale_a": (files.scale_a, form.scale),
        "scale_b": (files.scale_b, form.scale),
    }
    return {name: path and perform(_read, path, element) for name, (path, element) in sources.items()}


def _read(path: Path, element: Format | None) -> Any:
    """Return the array of an ``.npy`` file, mapped and not read. Raises TraceError, OSError."""
    import numpy as np

    from ...base.files.archives import map_array

    array = map_array(path)  # copy on write: kernels are compiled for writable arrays
    if element is None or element.dtype.kind != "V":
        return array
    anonymous = np.dtype(f"V{element.dtype.itemsize}")  # as files hold the types that NumPy has no names for
    return array.view(element.dtype) if array.dtype == anonymous else array


def _write(out: Path, d: Any) -> None:
    from ...base.files.archives import write_array

    write_array(out, d)


# --- the product -------------------------------------------------------------------------------------


def _product(_: Path, form: Instruction, operands: dict[str, Any], options: Options) -> Any:
    from ...base.errors import OperandError
    from ...sums.products.gemm import gemm, gemm_sparse

    arguments, chosen = dict(operands), asdict(options)
    indices, metadata = arguments.pop("indices"), arguments.pop("metadata")
    arrangement, _ = chosen.pop("arrangement"), chosen.pop("target")
    if not form.sparse and (indices is not None or metadata is not None):
        raise OperandError(f"{form} is dense; it takes no {'indices' if metadata is None else 'metadata'}")
    with cluster(options.scheduler) as client, watching("multiplying") as watch:
        chosen |= {"scheduler": client, "progress": watch}
        if metadata is not None:
            values = arguments.pop("A")
            return gemm_sparse(form, values, metadata, **arguments, arrangement=arrangement, **chosen)
        if indices is not None:
            arguments["A"] = arguments["A"], indices
        return gemm(form, **arguments, **chosen)


# --- output ------------------------------------------------------------------------------------------


def _document(form: Instruction, out: Path, d: Any, k: int, options: Options) -> dict[str, Any]:
    from ...sums.execution.pipeline import evidence
    from ...workbench.explanation.information import evidence_document

    return {
        "file": str(out),
        "sha256": sha256(d).hexdigest(),
        "shape": list(d.shape),
        "type": form.d.name,
        "mnemonic": form.mnemonic,
        "target": form.target,
        "k": k,
        "instructions": -(-k // form.shape.k),
        "split_k": options.split_k,
        "promote_every": options.promote_every,
        "undefined": options.undefined,
        "evidence": {**evidence_document(evidence(form)), "text": str(evidence(form))},
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    rows, columns = document["shape"]
    count = document["instructions"]
    yield f"{document['file']}: {rows} x {columns} {document['type']}, sha256 {document['sha256']}"
    yield f"  {document['mnemonic']}"
    yield f"  on {document['target']}, {count} instruction{'s' * (count != 1)} along k = {document['k']}"
    yield f"  {document['evidence']['text']}"
