"""``warpsim vectors``: make vector sets, and report their coverage."""

from __future__ import annotations

import errno
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import click

from ...base.errors import present
from .options import Idesc, Json, Mnemonic, Out, Scheduler, Seed, SomeOrNone, Target, VectorFormat
from .output import EXPECTED, MISMATCH, colourful, deliver, perform, print_json, say
from .progress import cluster
from .verbs import Option, stated, verb

if TYPE_CHECKING:
    from ...workbench.generation.coverage.vector_coverage import Coverage
    from ...workbench.vectors.benches import Written
    from ...workbench.vectors.parted import SetInParts
    from ...workbench.vectors.sets import VectorSet


@dataclass(kw_only=True)
class Request:
    """The request: the options of the verb, and the instruction or the file that it names."""

    target: Target
    kind: Annotated[Literal["corner", "random", "exhaustive", "separate"], "How the cases are chosen."] = (
        "corner"
    )
    count: Annotated[
        SomeOrNone,
        "-n",
        "Cases. [default: corner until every reachable bin is hit, random 1000, separate 8]",
    ]
    seed: Seed = 0
    between: Annotated[
        tuple[str, str] | None,
        Option(metavar="A B"),
        "Of separate: two models, SM or SM:PARAMETER=NUMBER,... such as sm_80:length=16.",
    ]
    a_in: Annotated[
        Literal["shared", "registers"], "Where wgmma has A; of tcgen05.mma registers stand for tensor memory."
    ] = "shared"
    idesc: Idesc
    out: Annotated[Out, "Write the set to this file."]
    format: Annotated[VectorFormat, "Format of FILE, if not that of its suffix."]
    bench: Annotated[
        Literal["sv"] | None, "Beside FILE, a .hex or .mem, write a bench that Icarus Verilog runs."
    ]
    coverage: Annotated[bool, "Print which bins the cases hit, miss and cannot reach."]
    scheduler: Scheduler
    as_json: Json
    source: str = field(default="", init=False)

    @property
    def form(self) -> Any:
        """The instruction that is spelled; decoded where it has an instruction descriptor."""
        from ...sums.execution.interface import decode

        if self.idesc is None:
            return self.source
        return decode(self.source, target=self.target, idesc=self.idesc)

    @property
    def is_file(self) -> bool:
        """Whether the cases already exist."""
        return os.path.exists(self.source)


@verb
def vectors(source: Annotated[Mnemonic, Option(metavar="MNEMONIC")], *, request: Request) -> int:
    """Make a vector set: cases of one instruction, and the D that the chip computes.

    \b
    corner      directed at the arithmetic: alignment, ties, cancellation, carries,
                subnormal numbers, overflow, infinities and NaNs, metadata, selectors
    random      normal, narrow and wide distributions, without infinities and NaNs
    exhaustive  all pairs of codes of formats of at most 8 bits, in every position
    separate    the shortest inputs found on which two models differ; beside FILE
                also a trace that asks a GPU (FILE.ptx and its data)

    --bench sv writes beside NAME.hex and NAME.svh (the places of the words) three files of SystemVerilog:
    NAME_layout.sv, a package with the places of elements, metadata and scales in the registers (or in tensor
    memory and behind descriptors); NAME_dut.sv, the device under test, to be filled in (an existing file is
    kept); and NAME_bench.sv, which runs it on every case and compares D bit for bit. The command that runs
    them is printed.

    A set of -n cases is written as it is made: 8 GiB at most, and in little memory.

    Instead of a mnemonic, the file of a vector set may be given, with --coverage or -o. FILE may have any
    format of 'warpsim convert'. Exit code 1: a reachable bin was missed, or nothing separates the models.
    """
    request.source = source
    _check(request)
    return perform(_done, Path("vectors"), request)


def _check(request: Request) -> None:
    if request.between and request.kind != "separate":
        raise click.UsageError("--between belongs to --kind separate")
    if request.kind == "separate":
        _check_separate(request)
    elif not (request.out or request.coverage):
        raise click.UsageError("nothing to do: give -o FILE, --coverage, or both")
    if request.is_file and (stated() - {"source", "out", "format", "bench", "coverage", "as_json"}):
        raise click.UsageError(
            f"{request.source} is a file: it takes -o, --format, --bench, --coverage and --json alone"
        )
    if request.bench and not request.out:
        raise click.UsageError("--bench goes beside a file of vectors: give -o FILE.hex")


def _check_separate(request: Request) -> None:
    if not request.between:
        raise click.UsageError("--kind separate needs --between A B, the two models")
    if request.scheduler:
        raise click.UsageError("--scheduler is for the other kinds: separate has no work to share out")
    if request.coverage:
        raise click.UsageError("--coverage is for the other kinds, or for the file that separate writes")
    if request.target not in (None, request.between[0].partition(":")[0]):
        raise click.UsageError(
            f"--target {request.target}: a set of separate is for the chip of the first model"
        )


def _done(_: Path, request: Request) -> int:
    if request.bench:
        _check_bench(request)
    if request.kind == "separate":
        return _separated(request)
    with ExitStack() as stack:
        return _written(request, *_cases(request, stack))


def _cases(request: Request, stack: ExitStack) -> tuple[SetInParts, Coverage | None]:
    """Return the set, and what it covers if that is known; files behind it are closed with the stack.

    A set of a given number of cases is in memory only where a bench is made of it.
    """
    from ...workbench.vectors.formats import format_of, read_vectors
    from ...workbench.vectors.formats.npz import NpzFormat
    from ...workbench.vectors.parted import SpooledSet

    if request.is_file:
        path = Path(request.source)
        return (read_vectors(path) if request.bench else format_of(path).in_parts(path)), None
    if request.bench or (request.kind == "corner" and request.count is None):
        return _made(request)
    folder = None if request.out is None else request.out.parent
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(request.out))
    made = stack.enter_context(SpooledSet(folder))
    written = None if request.out is None else format_of(request.out, request.format)
    try:
        for part in _parts(request):
            if isinstance(written, NpzFormat) and not len(made) and request.count:
                written.check_labels(part.labels, request.count)  # the labels of further parts are as long
            made.add(part)
    except OSError as error:  # of a file without a name
        raise OSError(error.errno, error.strerror, str(request.out or tempfile.gettempdir())) from None
    return made, None


def _written(request: Request, made: SetInParts, covered: Coverage | None) -> int:
    if request.coverage and covered is None:
        from ...workbench.generation.coverage.vector_coverage import coverage_of

        covered = coverage_of(made)
    bench = perform(_write, request.out, made, request) if request.out else None
    _report(request, made, covered, bench)
    return MISMATCH if request.coverage and covered and not covered.complete else EXPECTED


def _made(request: Request) -> tuple[VectorSet, Coverage | None]:
    from ...workbench.generation.cases.assembly import joined_sets
    from ...workbench.generation.generate import corner_vectors

    if request.kind != "corner" or request.count is not None:
        return joined_sets([*_parts(request)]), None
    choice: dict[str, Any] = {"seed": request.seed, "target": request.target, "a_in": request.a_in}
    with cluster(request.scheduler) as client, _progress(request.kind) as watch:
        return corner_vectors(request.form, watch=watch, scheduler=client, **choice)


def _parts(request: Request) -> Iterator[VectorSet]:
    from ...workbench.generation.generate import targeted, vector_parts

    choice: dict[str, Any] = {"kind": request.kind, "count": request.count}
    choice |= {"seed": request.seed, "a_in": request.a_in}
    with cluster(request.scheduler) as client, _progress(request.kind) as watch:
        cases = 0
        for part in vector_parts(targeted(request.form, request.target), scheduler=client, **choice):
            cases += len(part)
            watch(cases, None)
            yield part


def _check_bench(request: Request) -> None:
    """Raise OperandError, before any work, where no bench can read the requested file."""
    from ...workbench.vectors.benches import check_bench

    check_bench(present(request.out, "out"), request.format)


def _write(path: Path, made: SetInParts, request: Request) -> Written | None:
    """Write the set and, if it is requested, its bench."""
    if request.bench:
        from ...workbench.vectors.benches import write_bench

        return write_bench(path, cast("VectorSet", made), request.bench, request.format)
    from ...workbench.vectors.formats import format_of

    format_of(path, request.format).write(path, made)
    return None


def _report(request: Request, made: SetInParts, covered: Coverage | None, bench: Written | None) -> None:
    from ..views.coverage import coverage_document, coverage_lines

    form = made.instruction
    if request.as_json:
        document: dict[str, Any] = {
            "mnemonic": form.mnemonic,
            "target": form.target,
            "kind": made.title,
            "seed": made.seed,
            "cases": len(made),
            "file": str(request.out) if request.out else None,
        }
        document |= _bench_document(bench) if bench else {}
        print_json(document | ({"coverage": coverage_document(covered)} if covered else {}))
        return
    if request.out:
        say(f"{request.out}: {len(made):,} {made.title} cases of {form.mnemonic} on {form.target}")
    if bench:
        say("\n".join(_bench_lines(bench, present(request.out, "out").parent)))
    if covered and request.coverage:
        say("\n".join(coverage_lines(covered)))
    elif covered:
        hit = len(covered.reachable) - len(covered.missed)
        say(f"coverage: {hit} of {len(covered.reachable)} reachable bins hit (--coverage lists them)")


def _bench_lines(bench: Written, folder: Path) -> Iterator[str]:
    yield from (f"wrote {path}" for path in bench.made)
    yield from (f"kept {path}, which was there already" for path in bench.kept)
    entered = f"cd {shlex.quote(str(folder))} && " if folder != Path() else ""
    yield f"run: {entered}{bench.command}"


def _bench_document(bench: Written) -> dict[str, Any]:
    made, kept = ([str(path) for path in paths] for paths in (bench.made, bench.kept))
    return {"bench": {"files": made, "kept": kept, "command": bench.command}}


# --- separate --------------------------------------------------------------------------------------


def _separated(request: Request) -> int:
    from ...workbench.generation.separation import separate
    from ..views.coverage import separation_document, separation_lines

    between = present(request.between, "between")
    given: dict[str, Any] = {"count": request.count or 8, "seed": request.seed, "a_in": request.a_in}
    found = separate(request.form, *between, **given)
    if found is None:
        line = f"no corner case separates {between[0]} and {between[1]}"
        return deliver({"models": list(between), "cases": []}, line, MISMATCH)
    files, bench = perform(_write_probe, request.out, found, request) if request.out else ([], None)
    folder = Path() if request.out is None else request.out.parent
    return deliver(
        lambda: separation_document(found) | {"files": files} | (_bench_document(bench) if bench else {}),
        lambda: [
            *separation_lines(found),
            *(f"wrote {name}" for name in files),
            *(_bench_lines(bench, folder) if bench else ()),
        ],
    )


def _write_probe(out: Path, found: Any, request: Request) -> tuple[list[str], Written | None]:
    """Write the set, its bench and a trace with its data; return the files' names, and the kind of bench."""
    from ...base.files.archives import write_arrays, write_lines
    from ...base.files.replacing import together
    from ...workbench.generation.probes import probe
    from ..views.coverage import separation_comments

    trace, data = out.with_suffix(".ptx"), out.with_suffix(".ptx.npz")
    text, arrays = probe(found.vectors, data.name, separation_comments(found))
    with together():
        bench = _write(out, found.vectors, request)
        write_arrays(data, arrays)
        write_lines(trace, text.splitlines())
    return [str(out), str(trace), str(data)], bench


@contextmanager
def _progress(kind: str) -> Iterator[Callable[..., object]]:
    """Yield the function to call after every chunk: it prints a line on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda cases, covered: None
        return
    from rich.console import Console

    console = Console(stderr=True, no_color=not colourful())
    with console.status(kind) as status:

        def watch(cases: int, covered: Coverage | None) -> None:
            left = f", {len(covered.missed)} bins left" if covered else ""
            status.update(f"{kind}: {cases:,} cases{left}")

        yield watch
