"""``warpsim exec``: run host programs, with no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from . import exec_runs as runs
from .cluster import cluster, scheduler_option
from .host_looking import HostLooking, host_looking_options
from .host_origins import HostOrigins
from .output import CONTEXT, UNREADABLE, check_target, complain

if TYPE_CHECKING:
    from ...programs.exec.references.decisions import References

_GIB, _PAGE = 1 << 30, 4096
_GIVEN = ParameterSource.COMMANDLINE


def _check_schedule(context: click.Context, parameter: click.Parameter, schedule: str) -> str:
    """Return a schedule that there is."""
    from ...base.errors import OperandError
    from ...machine.run.schedules import Schedule

    try:
        Schedule(schedule)
    except OperandError as error:
        raise click.BadParameter(error.message) from None
    return schedule


@click.command(name="exec", context_settings={**CONTEXT, "ignore_unknown_options": True})
@click.option(
    "--chip", metavar="SM", callback=check_target, help="The chip of the device.  [default: sm_90a]"
)
@click.option(
    "--checks",
    type=click.Choice(["warn", "off"]),
    default="warn",
    show_default=True,
    help="Races and reads of uninitialised bytes: list them, or do not check.",
)
@click.option(
    "--schedule",
    default="program",
    show_default=True,
    callback=_check_schedule,
    metavar="program|earliest|latest|random:SEED",
    help="The order of CTAs and warps, of work of several streams, and when asynchronous copies complete.",
)
@click.option(
    "--schedules",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Run the program again under N - 1 other schedules; what the host is given otherwise is an error.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End a launch that takes longer, as a watchdog does: cudaErrorLaunchTimeout.",
)
@click.option(
    "--program-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End a program that takes longer, with what it has started: exit code 124.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0, 256, min_open=True),
    default=16,
    show_default=True,
    metavar="GIB",
    help="Memory of the device.",
)
@click.option(
    "--multiprocessors",
    type=click.IntRange(1, 1024),
    default=16,
    show_default=True,
    metavar="N",
    help="Multiprocessors of the device, which programs size their grids by; fewer are less work here.",
)
@click.option(
    "--resident",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="CTAS",
    help="CTAs that a multiprocessor has at a time: they share its tensor memory, and wait for its columns.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the report as JSON, too.",
)
@click.option(
    "--error-exitcode",
    type=click.IntRange(0, 255),
    metavar="N",
    help="The exit code where the report has errors or no call of CUDA, and the program's own is 0.",
)
@click.option(
    "--refuse-undefined",
    is_flag=True,
    help="Stop at metadata and descriptors that PTX leaves undefined; else each field is read literally.",
)
@click.option(
    "--torch-on-cpu",
    is_flag=True,
    help="PyTorch's own kernels, which have no PTX: let the CPU compute them, and count them in the report.",
)
@scheduler_option
@host_looking_options
@click.option("--trace-calls", is_flag=True, help="Show every call of CUDA on stderr.")
@click.option("--quiet", is_flag=True, help="No report on stderr.")
@click.option(
    "--serve", is_flag=True, help="Stay, and serve the programs that --connect runs, until interrupted."
)
@click.option("--connect", is_flag=True, help="Run with the server that --serve has started.")
@click.option(
    "--server",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="The folder of that server, of mode 700.  [default: a folder of the user]",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def exec(context: click.Context, /, command: tuple[str, ...], serve: bool, **options: Any) -> int:
    """Run a host program that uses CUDA, unmodified, with no GPU; or each program of a folder.

    Calls of the CUDA runtime and driver are answered here, kernels are executed here from the PTX in the
    program, and a report follows on stderr: findings by kernel and source line, launches, seconds, fidelity.
    The exit code is the program's; of a folder, 1 where a program's is not 0.

    \b
    nvcc -cudart shared -lineinfo -o test_gemm test_gemm.cu
    warpsim exec --chip sm_80 ./test_gemm --size 256
    warpsim exec --chip sm_80 build/tests

    The program must load the CUDA runtime as a shared library (nvcc -cudart shared) and contain PTX.
    """
    from ...base.errors import ClusterError, OperandError
    from ...programs.exec.libraries import HostError

    _check(context, command, serve, options)
    try:
        if serve:
            runs.serve(options["server"])
        run = _folder if Path(command[0]).is_dir() else _program
        with cluster(options["scheduler"]) as client:
            return run(command, {**options, "scheduler": client})
    except (HostError, ClusterError, OperandError) as error:
        complain(f"warpsim exec: error: {error}")
        return UNREADABLE


def _check(context: click.Context, command: tuple[str, ...], serve: bool, options: dict[str, Any]) -> None:
    """Raise UsageError for what does not go together."""
    given = {name for name in context.params if context.get_parameter_source(name) == _GIVEN}
    given.discard("command")  # which older click counts as given where it is empty
    if serve and (command or given - {"serve", "server"}):
        raise click.UsageError(
            "--serve goes with --server alone: what a run is asked for goes with --connect"
        )
    if not serve and not command:
        raise click.UsageError("a program is missing, or a folder of programs")
    if options["server"] is not None and not (serve or options["connect"]):
        raise click.UsageError("--server goes with --serve or --connect")
    if options["scheduler"] and options["connect"]:
        raise click.UsageError("--scheduler goes with a run of this process, without --connect")
    alone = [name for name in ("trace_mma", "breaks", "origins", "references") if options[name]]
    if alone and (options["connect"] or Path(command[0]).is_dir()):
        raise click.UsageError(
            "--trace-mma, --break, --origins and --reference go with one program, without --connect"
        )


def _program(command: tuple[str, ...], options: dict[str, Any]) -> int:
    """Run a program. Raises HostError."""
    from ..views.host_programs import summary_lines

    asked, looking = _asked(options)
    with runs.runner(options["connect"], options["server"]) as to:
        code, tally = runs.run_one(to, command, asked)
    chip = asked.settings.chip
    if options["report"] is not None:
        own = {"chip": chip, "command": list(command), "exit_code": code, **looking.document()}
        runs.write_report(options["report"], {**own, **tally.document()})
    if not asked.quiet:
        complain("\n".join([*summary_lines(tally, chip), *looking.lines()]))
    wanted = options["error_exitcode"]
    if wanted is not None and code == 0 and (tally.errors or tally.calls_nothing):
        return int(wanted)
    return code or looking.code


def _folder(command: tuple[str, ...], options: dict[str, Any]) -> int:
    """Run the programs of a folder. Raises HostError."""
    from ...programs.exec.serving.suites import programs_of
    from ..views.host_programs import suite_lines

    asked, _ = _asked(options)
    programs = programs_of(Path(command[0]))
    with runs.runner(options["connect"], options["server"]) as to:
        results = list(runs.run_folder(to, programs, command[1:], asked))
    errors = sum(result.tally.errors + result.tally.calls_nothing for result in results)
    code = runs.code_of([result.code for result in results], errors, options["error_exitcode"])
    if options["report"] is not None:
        own = {"chip": asked.settings.chip, "command": list(command), "exit_code": code}
        runs.write_report(options["report"], {**own, "programs": [each.document() for each in results]})
    if not asked.quiet:
        complain("\n".join(suite_lines(results, asked.settings.chip)))
    return code


def _references(texts: tuple[str, ...]) -> References | None:
    """Return the references that are asked for. Raises OperandError."""
    if not texts:
        return None
    from ...programs.exec.references.decisions import References

    return References.named(texts)


def _asked(options: dict[str, Any]) -> tuple[runs.Asked, HostLooking]:
    """Return what options ask for. Raises UsageError."""
    from ...programs.exec.settings import DEFAULT_CHIP, Settings, Unobserved

    names = ("trace_mma", "breaks", "selection", "kernel", "launch")
    origins = HostOrigins.given(options["origins"], options["fragment"], once=not options["launch"])
    references = _references(options["references"])
    looking = HostLooking(**{name: options[name] for name in names}, origins=origins, references=references)
    looking.check()
    settings = Settings(
        chip=options["chip"] or DEFAULT_CHIP,
        checks=options["checks"],
        schedule=options["schedule"],
        undefined="error" if options["refuse_undefined"] else "fallback",
        limit=options["limit"],
        trace_calls=options["trace_calls"],
        compares=options["schedules"] > 1,
        multiprocessors=options["multiprocessors"],
        resident=options["resident"],
        torch_on_cpu=options["torch_on_cpu"],
        looking=looking if looking.observes else Unobserved(),
        scheduler=options["scheduler"],
        memory_bytes=int(options["memory"] * _GIB) // _PAGE * _PAGE,
    )
    asked = runs.Asked(
        settings=settings,
        schedules=options["schedules"],
        limit=options["program_limit"],
        quiet=options["quiet"],
    )
    return asked, looking
