"""``warpsim launch``: execute a kernel of a PTX module or a CUDA source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from ...isa.numerals import whole_number
from ...ptx.symbols import matching, names_shown, shown
from .launch_arguments import KINDS, ArrayCheck, argument, compared, named_symbols, placed, set_symbols
from .launch_maps import SPELLING, array_of, with_maps
from .looking import Looking
from .options import (
    Engine,
    Entry,
    Mangled,
    Nvcc,
    Processes,
    Resident,
    Schedule,
    Scheduler,
    Schedules,
    Target,
    Tolerance,
    Undefined,
)
from .origins import Fragment, Launched, Origins, check_options, notes, trace
from .output import EXPECTED, MISMATCH, deliver, pass_on, perform, print_json, say
from .progress import cluster, watching
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...machine.host.device import Symbol
    from ...programs.launch.launching import LaunchableKernel, LaunchReport, LoadedModule
    from ...workbench.diagnosis.verdicts import Verdict


_LARGEST_SIZE = (1 << 31) - 1


_Sizes = Option(metavar="X,Y,Z")
_NameFile, _IndexFile = Option(metavar="NAME=FILE.npy"), Option(metavar="INDEX=FILE.npy")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What is launched, and how: the options of launch and debug, as they are written."""

    entry: Annotated[
        Entry,
        "Which kernel, where there are several; without it and --arg, kernels and parameters are listed.",
    ]
    grid: Annotated[str, _Sizes, "CTAs."] = "1"
    block: Annotated[str, _Sizes, "Threads of a CTA."] = "1"
    cluster: Annotated[str | None, _Sizes, "CTAs of a cluster."]
    shared: Annotated[int, Option(metavar="BYTES"), "Dynamic shared memory of a CTA."] = 0
    arguments: Annotated[
        tuple[str, ...],
        "--arg",
        Option(metavar="VALUE", help=f"In parameter order: {KINDS}, {SPELLING}."),
    ]
    expect: Annotated[
        tuple[str, ...], _IndexFile, "Compare the array of that argument afterwards, bit by bit."
    ]
    tolerance: Annotated[Tolerance, "Compare values with --expect, not bits: relative, such as 1e-2."] = 0.0
    target: Annotated[Target, "Run on this chip instead of the module's own."]
    checks: Annotated[
        Literal["error", "warn", "off"],
        "Races and reads of uninitialised bytes: stop at the first error, list them, or do not check.",
    ] = "error"
    schedule: Annotated[Schedule, "The order of CTAs and warps, and when asynchronous copies complete."] = (
        "program"
    )
    limit: Annotated[
        int | None,
        Option(type=click.IntRange(1), metavar="STATEMENTS"),
        "So many are executed, each by all threads at hand together, before the kernel is said not to end. "
        "[default: a thousand million for each 4096 threads]",
    ]
    nvcc: Nvcc
    symbols: Annotated[
        tuple[str, ...],
        "--symbol",
        _NameFile,
        "Set a variable of the module, such as __constant__ memory, before the launch.",
    ]
    cooperative: Annotated[bool, "Allow grid.sync() of cooperative groups."]
    resident: Resident = 1
    keep: Annotated[Path | None, Option(metavar="FILE.ptx"), "Write the PTX that nvcc makes of a .cu FILE."]
    engine: Engine = "kernel"
    undefined: Undefined
    mangled: Mangled

    @property
    def sizes(self) -> dict[str, Any]:
        """The sizes of grid, block and cluster. Raises UsageError."""
        return {name: _size(name, getattr(self, name)) for name in ("grid", "block", "cluster")}

    def module(self, file: Path) -> LoadedModule:
        """Return the module of a file, its variables set. Raises UsageError, WarpsimError, OSError."""
        from ...programs.launch.loading import load

        module = load(file, self.target, self.nvcc, self.keep)
        set_symbols(module, self.symbols)
        return module

    def values(self, file: Path) -> list[Any]:
        """Return the value of every --arg; the error of a file names its argument. Raises UsageError."""
        from ...base.errors import TraceError

        def value(text: str) -> Any:
            try:
                return argument(text)
            except OSError as error:
                raise TraceError(f"--arg {text}: {error.strerror or error}") from None

        return with_maps(self.arguments, value)

    def expected(self, values: list[Any]) -> list[tuple[int, Path]]:
        """Return the arguments that are compared, and their files. Raises UsageError."""
        return self.placed("--expect", self.expect, values)

    def placed(self, option: str, texts: tuple[str, ...], values: list[Any]) -> list[tuple[int, Path]]:
        """Return the arguments and files of an option. Raises UsageError, also for what is not an array."""
        pairs = [placed(option, text, len(values)) for text in texts]
        for index, path in pairs:
            if array_of(values[index]) is None:
                given = f"argument {index}, {self.arguments[index]}, is not an array"
                raise click.UsageError(f"{index}={path}: {given}")
        return pairs


@dataclass(frozen=True, kw_only=True)
class _Asked(Launch):
    """The options that debug does not have."""

    save: Annotated[tuple[str, ...], _IndexFile, "Write the array of that argument afterwards."]
    reference: Annotated[
        str | None,
        Option(metavar="FILE.py:FUNCTION|NAME"),
        "Decide whether the kernel computes this NumPy function of its arguments, which returns the output, "
        "or {argument: array}. Built-in references go by name: gemm, sparse_gemm, attention, and others that "
        "an unknown name lists.",
    ]
    why: Annotated[
        bool,
        "Where something is wrong, say why: the cause first, with the statement at fault. The launch is "
        "executed again and again, under other schedules and on tags in place of data; nothing is written.",
    ]
    schedules: Annotated[
        Schedules,
        "Repeat the launch under N - 1 other schedules: bounds of sums whose order PTX leaves open, and an "
        "error where anything else is another.",
    ] = 1
    save_symbols: Annotated[
        tuple[str, ...], "--save-symbol", _NameFile, "Write a variable of the module afterwards."
    ]
    processes: Annotated[
        Processes,
        "Execute CTAs that are independent in so many processes of this machine, with the same results. "
        "[default: as many as there are processors, once a launch takes long]",
    ]
    origins: Origins
    fragment: Fragment
    scheduler: Scheduler

    @property
    def lists(self) -> bool:
        """Whether nothing is asked but which kernels there are."""
        work = self.arguments or self.save or self.expect or self.symbols or self.save_symbols
        return self.entry is None and not work and not self.why and self.origins is None


@dataclass(frozen=True, kw_only=True)
class _Done:
    """The result of a launch: its report, the arrays that were written, and those that were compared."""

    kernel: str
    target: str
    report: LaunchReport
    saved: list[tuple[int, Path]]
    checks: list[ArrayCheck]
    looking: Looking


@verb
def launch(file: Path, *, asked: _Asked, looking: Looking) -> int:
    """Execute a kernel and write or compare the arrays that it leaves.

    FILE is PTX, or a .cu file where nvcc is on the path. Arguments are arrays, which go to global memory, and
    values:

    \b
    warpsim launch gemm.ptx --entry gemm --grid 4,4 --block 128 \\
        --arg A.npy --arg B.npy --arg zeros:f32:512x512 --arg i32:512 \\
        --save 2=C.npy --expect 2=reference.npy

    Tensor maps are made of another argument, by its number, or of an array that is none: --arg A.npy
    --arg tensor_map:0:box=64x128:swizzle=128B, --arg tensor_map:zeros:f32:512x512:box=64x32. Fields are box,
    element_strides, swizzle, interleave, fill, l2_promotion, element, shape and strides, or lower, upper,
    channels, pixels and mode for im2col, with dimensions as NumPy orders them. --save and --expect take the
    array of a map.
    """
    with names_shown(mangled=asked.mangled):
        return _launch(file, asked, looking)


def _launch(file: Path, asked: _Asked, looking: Looking) -> int:
    """Launch as the options say; return the exit code."""
    looking.check()
    sizes, keeps = asked.sizes, looking.trace_mma is not None
    if asked.lists:
        return _list(file, asked)
    values = perform(asked.values, file)
    computed = [*asked.save, *asked.expect]
    check_options(asked.origins, asked.fragment, keeps=keeps, computed=computed)
    if asked.why or asked.reference is not None:
        return _why(file, asked, looking, values)
    if asked.origins is not None and not keeps and looking.timeline is not None:
        raise click.UsageError("--origins draws nothing: --timeline does not go with it")
    if asked.origins is not None:
        traced = _to_trace(file, asked, sizes, values)
        if not keeps:
            return trace(file, traced, asked.origins, asked.fragment)
        looking.packing = notes(file, traced, asked.origins)
    done = perform(_launched, file, asked, looking, values)
    _report(file, done, looking.as_json)
    return MISMATCH if looking.packing or any(check.first for check in done.checks) else EXPECTED


def _size(name: str, text: str | None) -> list[int] | None:
    """Return up to three numbers; raises UsageError."""
    if text is None:
        return None
    sizes = [whole_number(part.strip(), _LARGEST_SIZE) for part in text.split(",")]
    known = [size for size in sizes if size is not None]
    if not 1 <= len(sizes) <= 3 or len(known) < len(sizes):
        raise click.UsageError(f"--{name} {text}: expected one to three numbers, as in 4,4")
    return known


def _launched(file: Path, asked: _Asked, looking: Looking, values: list[Any]) -> _Done:
    """Load, launch, write and compare. Raises UsageError for what does not fit the kernel."""
    from ...base.errors import present
    from ...base.files.read_files import note_input

    module = asked.module(file)
    name = entry_of(module, asked.entry, alone=bool(asked.arguments))
    saves, expects = asked.placed("--save", asked.save, values), asked.expected(values)
    symbols = named_symbols(module, asked.save_symbols)
    report = _run(module, name, asked, looking, values)
    for _, path in expects:
        note_input(path)  # read below: a file saved over it would always equal it
    arrays = [array_of(value) for value in values]
    _write(saves, arrays, symbols)
    checks = [
        compared(index, path, present(arrays[index], path.name), asked.tolerance) for index, path in expects
    ]
    return _Done(
        kernel=name, target=module.target, report=report, saved=saves, checks=checks, looking=looking
    )


def _run(module: LoadedModule, name: str, asked: _Asked, looking: Looking, values: list[Any]) -> LaunchReport:
    """Launch the kernel, observed as asked. Raises UsageError for arguments that do not fit it."""
    from ...base.errors import OperandError

    sizes = asked.sizes
    try:
        with (
            looking.at(module, name, sizes["grid"], sizes["block"], asked.schedule) as observers,
            watching("CTAs") as watch,
            cluster(asked.scheduler) as client,
        ):
            return module[name](
                args=values,
                shared_bytes=asked.shared,
                checks=asked.checks,
                schedule=asked.schedule,
                schedules=asked.schedules,
                engine=asked.engine,
                undefined=asked.undefined,
                progress=watch,
                observers=observers,
                scheduler=client,
                processes=asked.processes,
                most_statements=asked.limit,
                cooperative=asked.cooperative,
                resident=asked.resident,
                output=None if looking.as_json else pass_on,
                **sizes,
            )
    except OperandError as error:
        if error.location is not None:  # an error of a statement, not of an argument
            raise
        raise click.UsageError(f"{error.message}\n{_listing(module)}") from None


def _why(file: Path, asked: _Asked, looking: Looking, values: list[Any]) -> int:
    """Print why the launch is wrong; the exit code is 1 where it is."""
    computed = (
        *asked.save,
        *asked.save_symbols,
        asked.scheduler,
        asked.schedules > 1,
        asked.origins,
        looking.trace_mma,
        looking.timeline,
    )
    if any(computed):
        name = "--why" if asked.why else "--reference"
        raise click.UsageError(f"{name} writes nothing and looks by itself: it goes with --expect alone")
    found = perform(_verdict, file, asked, values)
    return deliver(
        lambda: {"file": str(file), **found.document(), "errors": []},
        found.lines,
        EXPECTED if found.as_expected else MISMATCH,
    )


def _verdict(file: Path, asked: _Asked, values: list[Any]) -> Verdict:
    from ...base.errors import OperandError
    from ...base.files.archives import LARGEST_ARRAY, read_array
    from ...observe.algebra.shadow_arrays import ReferenceError as Refused
    from ...workbench.diagnosis.verdicts import why

    module = asked.module(file)
    name = entry_of(module, asked.entry, alone=bool(asked.arguments))
    pairs = [placed("--expect", text, len(values)) for text in asked.expect]
    try:
        with watching("executing again: CTAs") as watch:
            return why(
                module[name],
                args=values,
                expected={index: read_array(path, LARGEST_ARRAY) for index, path in pairs},
                tolerance=asked.tolerance,
                reference=asked.reference,
                shared_bytes=asked.shared,
                cooperative=asked.cooperative,
                resident=asked.resident,
                schedule=asked.schedule,
                most_statements=asked.limit,
                progress=watch,
                **asked.sizes,
            )
    except Refused:
        raise
    except OperandError as error:
        if error.location is not None:
            raise
        raise click.UsageError(error.message) from None


def _to_trace(file: Path, asked: _Asked, sizes: dict[str, Any], values: list[Any]) -> Launched:
    """Return the launch, for --origins."""

    def kernel() -> LaunchableKernel:
        from ...programs.launch.loading import load

        module = load(file, asked.target, asked.nvcc)
        return module[entry_of(module, asked.entry, alone=True)]

    return Launched(
        kernel=kernel,
        grid=sizes["grid"],
        block=sizes["block"],
        arguments=values,
        shared_bytes=asked.shared,
        cluster=sizes["cluster"],
        most_statements=asked.limit,
    )


def _list(file: Path, asked: _Asked) -> int:
    """Print the kernels of a file; return the exit code."""
    from ..views.launches import kernel_documents, kernel_lines

    module = perform(asked.module, file)
    return deliver(
        lambda: {
            "file": str(file),
            "target": module.target,
            "kernels": list(kernel_documents(module)),
            "errors": [],
        },
        lambda: [f"{file}: kernels for {module.target}", *(f"  {line}" for line in kernel_lines(module))],
    )


def entry_of(module: LoadedModule, name: str | None, *, alone: bool) -> str:
    """Find the kernel, by its symbol or its C++ name, or ``alone``: the only kernel where no name is given.

    Raises UsageError, which lists all.
    """
    if name is None and alone and len(module.entries) == 1:
        return module.entries[0]
    found = [] if name is None else matching(name, module.entries)
    if len(found) == 1:
        return found[0]
    problem = f"--entry {name}: {'several kernels have that name' if found else 'there is no such kernel'}"
    raise click.UsageError(f"{'--entry is missing' if name is None else problem}\n{_listing(module)}")


def _listing(module: LoadedModule) -> str:
    """Return the kernels with their parameters."""
    from ..views.launches import kernel_lines

    return "\n".join(["kernels:", *(f"  {line}" for line in kernel_lines(module))])


def _write(saves: list[tuple[int, Path]], values: list[Any], symbols: list[tuple[Symbol, Path]]) -> None:
    from ...base.files.archives import write_array
    from ...base.files.replacing import together

    with together():
        for index, path in saves:
            write_array(path, values[index])
        for symbol, path in symbols:
            write_array(path, symbol.get())


def _report(file: Path, done: _Done, as_json: bool) -> None:
    from ..views.launches import fidelity_lines, hazard_lines, report_document

    if as_json:
        print_json(
            {
                "file": str(file),
                "kernel": done.kernel,
                "target": done.target,
                "saved": [{"index": index, "file": str(path)} for index, path in done.saved],
                "checks": [_check_document(check) for check in done.checks],
                **report_document(done.report),
                **done.looking.document(),
                "errors": [],
            }
        )
        return
    say(f"{file}: {shown(done.kernel)} on {done.target}")
    report = done.report
    for line in (*hazard_lines(report.hazards), *fidelity_lines(report.fidelity), *report.notes):
        say(f"  {line}")
    for line in done.looking.lines():
        say(f"  {line}")
    for index, path in done.saved:
        say(f"  argument {index} written to {path}")
    for check in done.checks:
        say(_check_line(check))


def _check_line(check: ArrayCheck) -> str:
    line = f"  argument {check.index} and {check.file}: {check.agreement}"
    if check.first is None:
        return line
    place, given, wanted = check.first
    where = ", ".join(map(str, place))
    return f"{line}\n    first: [{where}] is {given}, expected {wanted}"


def _check_document(check: ArrayCheck) -> dict[str, Any]:
    first = check.first
    return {
        "index": check.index,
        "file": check.file,
        **check.agreement.document(),
        "first": None if first is None else {"place": first[0], "is": first[1], "expected": first[2]},
    }
