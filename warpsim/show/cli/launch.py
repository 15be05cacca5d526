"""``warpsim launch``: execute a kernel of a PTX module or a CUDA source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...isa.numerals import whole_number
from ...ptx.symbols import matching, names_shown, shown
from .cluster import cluster, scheduler_option
from .launch_arguments import KINDS, ArrayCheck, argument, compared, placed
from .launch_maps import SPELLING, array_of, with_maps
from .launch_symbols import named_symbols, set_symbols
from .looking import Looking, looking_options
from .options import engine_option, json_option, mangled_option, undefined_option
from .origins import Launched, check_options, notes, origins_options, trace
from .output import (
    CONTEXT,
    EXPECTED,
    MISMATCH,
    Failure,
    attempt,
    check_target,
    fail,
    pass_on,
    print_json,
    say,
)
from .progress import watching

if TYPE_CHECKING:
    from ...machine.host.device import Symbol
    from ...programs.launch.launching import LaunchableKernel, LaunchReport, LoadedModule
    from ...workbench.diagnosis.verdicts import Verdict


_LARGEST_SIZE = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The options of a launch, as they are written."""

    entry: str | None
    grid: str
    block: str
    cluster: str | None
    shared: int
    arguments: tuple[str, ...]
    save: tuple[str, ...]
    expect: tuple[str, ...]
    tolerance: float
    reference: str | None
    why: bool
    target: str | None
    checks: str
    schedule: str
    schedules: int
    nvcc: tuple[str, ...]
    keep: Path | None
    cooperative: bool
    resident: int
    symbols: tuple[str, ...]
    save_symbols: tuple[str, ...]
    looking: Looking
    origins: str | None
    fragment: str | None
    engine: str
    allow_undefined: bool
    limit: int | None
    processes: int | None
    scheduler: str | None

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


@click.command(context_settings=CONTEXT)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--entry",
    metavar="NAME",
    help="Which kernel, where there are several; without it and --arg, kernels and parameters are listed.",
)
@click.option("--grid", default="1", show_default=True, metavar="X,Y,Z", help="CTAs.")
@click.option("--block", default="1", show_default=True, metavar="X,Y,Z", help="Threads of a CTA.")
@click.option("--cluster", metavar="X,Y,Z", help="CTAs of a cluster.")
@click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory of a CTA.")
@click.option(
    "--arg", "arguments", multiple=True, metavar="VALUE", help=f"In parameter order: {KINDS}, {SPELLING}."
)
@click.option(
    "--save", multiple=True, metavar="INDEX=FILE.npy", help="Write the array of that argument afterwards."
)
@click.option("--expect", multiple=True, metavar="INDEX=FILE.npy", help="Compare it afterwards, bit by bit.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    metavar="RELATIVE",
    help="Compare values with --expect, not bits: relative, such as 1e-2.",
)
@click.option(
    "--reference",
    metavar="FILE.py:FUNCTION|NAME",
    help="Decide whether the kernel computes this NumPy function of its arguments, which returns the output, "
    "or {argument: array}. Built-in references go by name: gemm, sparse_gemm, attention, and others that an "
    "unknown name lists.",
)
@click.option(
    "--why",
    is_flag=True,
    help="Where something is wrong, say why: the cause first, with the statement at fault. The launch is "
    "executed again and again, under other schedules and on tags in place of data; nothing is written.",
)
@click.option(
    "--target", metavar="SM", callback=check_target, help="Run on this chip instead of the module's own."
)
@click.option(
    "--checks",
    type=click.Choice(["error", "warn", "off"]),
    default="error",
    show_default=True,
    help="Races and reads of uninitialised bytes: stop at the first error, list them, or do not check.",
)
@click.option(
    "--schedule",
    default="program",
    show_default=True,
    metavar="program|earliest|latest|random:SEED",
    help="The order of CTAs and warps, and when asynchronous copies complete.",
)
@click.option(
    "--schedules",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Repeat the launch under N - 1 other schedules: bounds of sums whose order PTX leaves open, and an "
    "error where anything else is another.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="STATEMENTS",
    help="So many are executed, each by all threads at hand together, before the kernel is said not to end. "
    "[default: a thousand million for each 4096 threads]",
)
@click.option(
    "--nvcc", multiple=True, metavar="OPTION", help="An option for nvcc, which compiles a .cu FILE."
)
@click.option(
    "--symbol",
    "symbols",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="Set a variable of the module, such as __constant__ memory, before the launch.",
)
@click.option(
    "--save-symbol",
    "save_symbols",
    multiple=True,
    metavar="NAME=FILE.npy",
    help="Write a variable of the module afterwards.",
)
@click.option("--cooperative", is_flag=True, help="Allow grid.sync() of cooperative groups.")
@click.option(
    "--resident",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="CTAS",
    help="CTAs that a multiprocessor has at a time: they share its tensor memory, and wait for its columns.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    metavar="NUMBER",
    help="Execute CTAs that are independent in so many processes of this machine, with the same results. "
    "[default: as many as there are processors, once a launch takes long]",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.ptx",
    help="Write the PTX that nvcc makes of a .cu FILE.",
)
@looking_options
@origins_options
@engine_option
@undefined_option
@scheduler_option
@mangled_option
@json_option
def launch(file: Path, as_json: bool, mangled: bool, **options: Any) -> int:
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
    with names_shown(mangled=mangled):
        return _launch(file, as_json, options)


def _launch(file: Path, as_json: bool, options: dict[str, Any]) -> int:
    """Launch as the options say; return the exit code."""
    names = ("trace_mma", "timeline", "breaks", "watches", "lane", "selection")
    looking = Looking(**{name: options.pop(name) for name in names}, as_json=as_json)
    looking.check()
    asked = _Asked(**options, looking=looking)
    sizes = {name: size_of(name, getattr(asked, name)) for name in ("grid", "block", "cluster")}
    if asked.lists:
        return _list(file, asked, as_json)
    values = attempt(argument_values, file, asked.arguments)
    if isinstance(values, Failure):
        return fail(values, as_json)
    keeps = looking.trace_mma is not None
    check_options(asked.origins, asked.fragment, keeps=keeps, computed=[*asked.save, *asked.expect])
    if asked.why or asked.reference is not None:
        return _why(file, asked, sizes, values)
    if asked.origins is not None and not keeps and looking.timeline is not None:
        raise click.UsageError("--origins draws nothing: --timeline does not go with it")
    if asked.origins is not None:
        traced = _to_trace(file, asked, sizes, values)
        if not keeps:
            return trace(file, traced, asked.origins, asked.fragment, as_json)
        found = notes(file, traced, asked.origins)
        if isinstance(found, Failure):
            return fail(found, as_json)
        looking.packing = found
    done = attempt(_launched, file, asked, sizes, values)
    if isinstance(done, Failure):
        return fail(done, as_json)
    _report(file, done, as_json)
    return MISMATCH if looking.packing or any(check.first for check in done.checks) else EXPECTED


def size_of(name: str, text: str | None) -> list[int] | None:
    """Return up to three numbers; raises UsageError."""
    if text is None:
        return None
    sizes = [whole_number(part.strip(), _LARGEST_SIZE) for part in text.split(",")]
    known = [size for size in sizes if size is not None]
    if not 1 <= len(sizes) <= 3 or len(known) < len(sizes):
        raise click.UsageError(f"--{name} {text}: expected one to three numbers, as in 4,4")
    return known


def argument_values(_: Path, texts: tuple[str, ...]) -> list[Any]:
    """Return the value of every --arg; the error of a file names its argument."""
    from ...base.errors import TraceError

    def value(text: str) -> Any:
        try:
            return argument(text)
        except OSError as error:
            raise TraceError(f"--arg {text}: {error.strerror or error}") from None

    return with_maps(texts, value)


def _launched(file: Path, asked: _Asked, sizes: dict[str, Any], values: list[Any]) -> _Done:
    """Load, launch, write and compare. Raises UsageError for what does not fit the kernel."""
    from ...base.errors import present
    from ...base.files.read_files import note_input
    from ...programs.launch.loading import load

    module = load(file, asked.target, asked.nvcc, asked.keep)
    name = entry_of(module, asked.entry, alone=bool(asked.arguments))
    saves, expects = (
        [placed(option, text, len(values)) for text in texts]
        for option, texts in (("--save", asked.save), ("--expect", asked.expect))
    )
    for index, path in [*saves, *expects]:
        if array_of(values[index]) is None:
            raise click.UsageError(
                f"{index}={path}: argument {index}, {asked.arguments[index]}, is not an array"
            )
    set_symbols(module, asked.symbols)
    symbols = named_symbols(module, asked.save_symbols)
    report = _run(module, name, asked, sizes, values)
    for _, path in expects:
        note_input(path)  # read below: a file saved over it would always equal it
    arrays = [array_of(value) for value in values]
    _write(saves, arrays, symbols)
    checks = [
        compared(index, path, present(arrays[index], path.name), asked.tolerance) for index, path in expects
    ]
    return _Done(
        kernel=name, target=module.target, report=report, saved=saves, checks=checks, looking=asked.looking
    )


def _run(
    module: LoadedModule, name: str, asked: _Asked, sizes: dict[str, Any], values: list[Any]
) -> LaunchReport:
    """Launch the kernel, observed as asked. Raises UsageError for arguments that do not fit it."""
    from ...base.errors import OperandError

    try:
        with (
            asked.looking.at(module, name, sizes["grid"], sizes["block"], asked.schedule) as observers,
            watching("CTAs") as watch,
            cluster(asked.scheduler) as client,
        ):
            return module[name](
                args=values,
                shared_bytes=asked.shared,
                checks=asked.checks,  # type: ignore[arg-type]
                schedule=asked.schedule,
                schedules=asked.schedules,
                engine=asked.engine,  # type: ignore[arg-type]
                undefined="fallback" if asked.allow_undefined else "error",
                progress=watch,
                observers=observers,
                scheduler=client,
                processes=asked.processes,
                most_statements=asked.limit,
                cooperative=asked.cooperative,
                resident=asked.resident,
                output=None if asked.looking.as_json else pass_on,
                **sizes,
            )
    except OperandError as error:
        if error.location is not None:  # an error of a statement, not of an argument
            raise
        raise click.UsageError(f"{error.message}\n{_listing(module)}") from None


def _why(file: Path, asked: _Asked, sizes: dict[str, Any], values: list[Any]) -> int:
    """Print why the launch is wrong; the exit code is 1 where it is."""
    looking = asked.looking
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
    found = attempt(_verdict, file, asked, sizes, values)
    if isinstance(found, Failure):
        return fail(found, looking.as_json)
    if looking.as_json:
        print_json({"file": str(file), **found.document(), "errors": []})
    else:
        say("\n".join(found.lines()))
    return EXPECTED if found.as_expected else MISMATCH


def _verdict(file: Path, asked: _Asked, sizes: dict[str, Any], values: list[Any]) -> Verdict:
    from ...base.errors import OperandError
    from ...base.files.archives import LARGEST_ARRAY, read_array
    from ...observe.algebra.shadow_arrays import ReferenceError as Refused
    from ...programs.launch.loading import load
    from ...workbench.diagnosis.verdicts import why

    module = load(file, asked.target, asked.nvcc, asked.keep)
    name = entry_of(module, asked.entry, alone=bool(asked.arguments))
    set_symbols(module, asked.symbols)
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
                **sizes,
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


def _list(file: Path, asked: _Asked, as_json: bool) -> int:
    """Print the kernels of a file; return the exit code."""
    from ...programs.launch.loading import load
    from ..views.launches import kernel_documents, kernel_lines

    module = attempt(load, file, asked.target, asked.nvcc, asked.keep)
    if isinstance(module, Failure):
        return fail(module, as_json)
    if as_json:
        kernels = list(kernel_documents(module))
        print_json({"file": str(file), "target": module.target, "kernels": kernels, "errors": []})
    else:
        say(
            "\n".join(
                [f"{file}: kernels for {module.target}", *(f"  {line}" for line in kernel_lines(module))]
            )
        )
    return EXPECTED


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
