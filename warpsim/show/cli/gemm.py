"""``warpsim gemm``: multiply whole matrices in files."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .cluster import cluster, scheduler_option
from .options import json_option, undefined_option
from .output import CONTEXT, EXPECTED, Failure, attempt, check_target, fail, print_json, say
from .progress import watching

if TYPE_CHECKING:
    from ...isa.formats import Format
    from ...isa.instruction import Instruction
    from ...sums.execution.pipeline import Undefined

_FILE = click.Path(path_type=Path, dir_okay=False)
_VERB = Path("warpsim gemm")  # the subject of a failure that concerns no file


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of the operands and of D."""

    a: Path
    b: Path
    c: Path | None
    indices: Path | None
    metadata: Path | None
    scale_a: Path | None
    scale_b: Path | None
    out: Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a product is computed, in the terms of warpsim.gemm."""

    split_k: int
    promote_every: int | None
    threads: int | None
    undefined: Undefined
    arrangement: str | None = None


@click.command(context_settings=CONTEXT)
@click.argument("mnemonic")
@click.argument("a", type=_FILE, metavar="A.npy")
@click.argument("b", type=_FILE, metavar="B.npy")
@click.option("--c", "c", type=_FILE, metavar="C.npy", help="The matrix to add to; zero if left out.")
@click.option("-o", "--out", type=_FILE, metavar="D.npy", required=True, help="Where to write D.")
@click.option(
    "--target", metavar="SM", callback=check_target, required=True, help="The chip, such as sm_90a."
)
@click.option(
    "--indices",
    type=_FILE,
    metavar="I.npy",
    help="A is compressed, and these are the indices of its units; without, a sparse A obeys the pattern.",
)
@click.option(
    "--metadata",
    type=_FILE,
    metavar="E.npy",
    help="A is compressed, and this is its metadata in the order of --arrangement.",
)
@click.option(
    "--arrangement",
    metavar="NAME",
    help="Of --metadata: fields, words, cutlass, torch, cutlass3 or 'lanes …', as in warpsim metadata.",
)
@click.option("--scale-a", type=_FILE, metavar="FILE.npy", help="Block scales of A, (m, chunks along k).")
@click.option("--scale-b", type=_FILE, metavar="FILE.npy", help="Block scales of B, (chunks along k, n).")
@click.option(
    "--split-k",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Cut the instructions along k into so many runs, each from zero, whose results are added.",
)
@click.option(
    "--promote-every",
    type=click.IntRange(1),
    metavar="N",
    help="Add the accumulator to a main accumulator in f32 after every N instructions, as fp8 kernels do.",
)
@undefined_option
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads here (default: number of cores); with --scheduler, threads of a task (default: 1).",
)
@scheduler_option
@json_option
def gemm(
    mnemonic: str, target: str, allow_undefined: bool, scheduler: str | None, as_json: bool, **given: Any
) -> int:
    """Multiply whole matrices, bit for bit as a kernel that issues MNEMONIC along k.

    D (m, n) of A (m, k), B (k, n) and C for any m, n and k. Elements have the type of the instruction, or
    are unsigned integers, which are taken as its raw codes: numpy.save(file, fp8.view(numpy.uint8)).
    The bits depend neither on --threads nor on the cluster of --scheduler.
    """
    if (given["metadata"] is None) != (given["arrangement"] is None):
        raise click.UsageError("--metadata and --arrangement go together")
    if given["metadata"] is not None and given["indices"] is not None:
        raise click.UsageError("--indices and --metadata say the same: give one of them")
    chosen = {name: given.pop(name) for name in ("arrangement", "split_k", "promote_every", "threads")}
    options = Options(undefined="fallback" if allow_undefined else "error", **chosen)
    document = _computed(mnemonic, target, Files(**given), options, scheduler)
    if isinstance(document, Failure):
        return fail(document, as_json)
    if as_json:
        print_json(document)
    else:
        say("\n".join(_lines(document)))
    return EXPECTED


def _computed(
    mnemonic: str, target: str, files: Files, options: Options, scheduler: str | None
) -> dict[str, Any] | Failure:
    """Read, multiply, write; return the summary, or the failure that ended the product."""
    form = attempt(_form, _VERB, mnemonic, target)
    if isinstance(form, Failure):
        return form
    if failure := attempt(_check_place, files.out):
        return failure
    operands = _operands(form, files)
    if isinstance(operands, Failure):
        return operands
    d = attempt(_product, _VERB, form, operands, options, scheduler)
    if isinstance(d, Failure):
        return d
    failure = attempt(_write, files.out, d)
    return failure or _document(form, files.out, d, operands["B"].shape[0], options)


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


def _operands(form: Instruction, files: Files) -> dict[str, Any] | Failure:
    """Return the operands as warpsim.gemm names them, or the failure of the first bad file."""
    sources = {
        "A": (files.a, form.a),
        "B": (files.b, form.b),
        "C": (files.c, form.c),
        "indices": (files.indices, None),
        "metadata": (files.metadata, None),
        "scale_a": (files.scale_a, form.scale),
        "scale_b": (files.scale_b, form.scale),
    }
    operands: dict[str, Any] = {}
    for name, (path, element) in sources.items():
        operand = attempt(_read, path, element) if path else None
        if isinstance(operand, Failure):
            return operand
        operands[name] = operand
    return operands


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


def _product(
    _: Path, form: Instruction, operands: dict[str, Any], options: Options, scheduler: str | None
) -> Any:
    from ...base.errors import OperandError
    from ...sums.products.gemm import gemm, gemm_sparse

    arguments, chosen = dict(operands), asdict(options)
    indices, metadata = arguments.pop("indices"), arguments.pop("metadata")
    arrangement = chosen.pop("arrangement")
    if not form.sparse and (indices is not None or metadata is not None):
        raise OperandError(f"{form} is dense; it takes no {'indices' if metadata is None else 'metadata'}")
    with cluster(scheduler) as client, watching("multiplying") as watch:
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
