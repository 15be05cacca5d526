"""``warpsim exec``: run host programs, with no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from . import exec_runs as runs
from .host_looking import HostLooking, Observation
from .options import FOLDER, Resident, Schedule, Scheduler, Schedules, Target
from .output import UNREADABLE, complain
from .progress import cluster
from .verbs import Option, stated, verb

_GIB, _PAGE = 1 << 30, 4096
_HIDDEN = "\0"  # before a word that is no option here
_Seconds = Annotated[float | None, Option(type=click.FloatRange(0, min_open=True), metavar="SECONDS")]


class _Wrapper(click.Command):
    """A command that leaves --target to the program where it stands after it, unlike other options."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. Raises UsageError."""
        parser = self.make_parser(context)
        parser.allow_interspersed_args = False
        program = parser.parse_args(list(args))[0].get("command")
        first = len(args) - (len(program) if isinstance(program, (list, tuple)) else 0)
        hidden = [_HIDDEN * (word.partition("=")[0] == "--target") + word for word in args[first:]]
        rest = super().parse_args(context, [*args[:first], *hidden])
        command = context.params["command"]
        context.params["command"] = tuple(word.removeprefix(_HIDDEN) for word in command)
        return rest


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The device, how programs run on it, and what is reported."""

    target: Annotated[Target, Option(older="--chip"), "The chip of the device.  [default: sm_90a]"]
    checks: Annotated[
        Literal["warn", "off"], "Races and reads of uninitialised bytes: list them, or do not check."
    ] = "warn"
    schedule: Annotated[
        Schedule,
        "The order of CTAs and warps, of work of several streams, and when asynchronous copies complete.",
    ] = "program"
    schedules: Annotated[
        Schedules,
        "Run the program again under N - 1 other schedules; what the host is given otherwise is an error.",
    ] = 1
    limit: Annotated[_Seconds, "End a launch that takes longer, as a watchdog does: cudaErrorLaunchTimeout."]
    program_limit: Annotated[
        _Seconds, "End a program that takes longer, with what it has started: exit code 124."
    ]
    memory: Annotated[
        float, Option(type=click.FloatRange(0, 256, min_open=True), metavar="GIB"), "Memory of the device."
    ] = 16
    multiprocessors: Annotated[
        int,
        Option(type=click.IntRange(1, 1024), metavar="N"),
        "Multiprocessors of the device, which programs size their grids by; fewer are less work here.",
    ] = 16
    resident: Resident = 1
    report: Annotated[Path | None, Option(metavar="FILE.json"), "Write the report as JSON, too."]
    error_exitcode: Annotated[
        int | None,
        Option(type=click.IntRange(0, 255), metavar="N"),
        "The exit code where the report has errors or no call of CUDA, and the program's own is 0.",
    ]
    undefined: Annotated[
        Literal["fallback", "error"],
        "--refuse-undefined",
        Option(flag=True),
        "Stop at metadata and descriptors that PTX leaves undefined; else each field is read literally.",
    ]
    torch_on_cpu: Annotated[
        bool,
        "PyTorch's own kernels, which have no PTX: let the CPU compute them, and count them in the report.",
    ]
    scheduler: Scheduler
    trace_calls: Annotated[bool, "Show every call of CUDA on stderr."]
    quiet: Annotated[bool, "No report on stderr."]
    serve: Annotated[bool, "Stay, and serve the programs that --connect runs, until interrupted."]
    connect: Annotated[bool, "Run with the server that --serve has started."]
    server: Annotated[
        Path | None,
        FOLDER,
        Option(beside=("serve", "connect")),
        "The folder of that server, of mode 700.  [default: a folder of the user]",
    ]


@verb(json=False, kind=_Wrapper, ignore_unknown_options=True)
def exec(
    command: Annotated[tuple[str, ...], Option(type=click.UNPROCESSED)] = (),
    *,
    options: _Options,
    observed: Observation,
) -> int:
    """Run a host program that uses CUDA, unmodified, with no GPU; or each program of a folder.

    Calls of the CUDA runtime and driver are answered here, kernels are executed here from the PTX in the
    program, and a report follows on stderr: findings by kernel and source line, launches, seconds, fidelity.
    The exit code is the program's; of a folder, 1 where a program's is not 0.

    \b
    nvcc -cudart shared -lineinfo -o test_gemm test_gemm.cu
    warpsim exec --target sm_80 ./test_gemm --size 256
    warpsim exec --target sm_80 build/tests

    The program must load the CUDA runtime as a shared library (nvcc -cudart shared) and contain PTX.
    """
    from ...base.errors import ClusterError, OperandError
    from ...programs.exec.libraries import HostError

    _check(command, options, observed)
    try:
        if options.serve:
            runs.serve(options.server)
        run = _folder if Path(command[0]).is_dir() else _program
        with cluster(options.scheduler) as client:
            asked, looking = _asked(options, observed, client)
            return run(command, options, asked, looking)
    except (HostError, ClusterError, OperandError) as error:
        complain(f"warpsim exec: error: {error}")
        return UNREADABLE


def _check(command: tuple[str, ...], options: _Options, observed: Observation) -> None:
    """Raise UsageError for what does not go together."""
    serve, given = options.serve, stated() - {"command"}  # which older click counts where it is empty
    if serve and (command or given - {"serve", "server"}):
        raise click.UsageError(
            "--serve goes with --server alone: what a run is asked for goes with --connect"
        )
    if not serve and not command:
        raise click.UsageError("a program is missing, or a folder of programs")
    if options.scheduler and options.connect:
        raise click.UsageError("--scheduler goes with a run of this process, without --connect")
    alone = observed.trace_mma or observed.breaks or observed.origins or observed.references
    if alone and (options.connect or Path(command[0]).is_dir()):
        raise click.UsageError(
            "--trace-mma, --break, --origins and --reference go with one program, without --connect"
        )


def _program(command: tuple[str, ...], options: _Options, asked: runs.Asked, looking: HostLooking) -> int:
    """Run a program. Raises HostError."""
    from ..views.host_programs import summary_lines

    with runs.runner(options.connect, options.server) as to:
        code, tally = runs.run_one(to, command, asked)
    chip = asked.settings.chip
    if options.report is not None:
        own = {"chip": chip, "command": list(command), "exit_code": code, **looking.document()}
        runs.write_report(options.report, {**own, **tally.document()})
    if not asked.quiet:
        complain("\n".join([*summary_lines(tally, chip), *looking.lines()]))
    wanted = options.error_exitcode
    if wanted is not None and code == 0 and (tally.errors or tally.calls_nothing):
        return int(wanted)
    return code or looking.code


def _folder(command: tuple[str, ...], options: _Options, asked: runs.Asked, _: HostLooking) -> int:
    """Run the programs of a folder. Raises HostError."""
    from ...programs.exec.serving.suites import programs_of
    from ..views.host_programs import suite_lines

    programs = programs_of(Path(command[0]))
    with runs.runner(options.connect, options.server) as to:
        results = list(runs.run_folder(to, programs, command[1:], asked))
    errors = sum(result.tally.errors + result.tally.calls_nothing for result in results)
    code = runs.code_of([result.code for result in results], errors, options.error_exitcode)
    if options.report is not None:
        own = {"chip": asked.settings.chip, "command": list(command), "exit_code": code}
        runs.write_report(options.report, {**own, "programs": [each.document() for each in results]})
    if not asked.quiet:
        complain("\n".join(suite_lines(results, asked.settings.chip)))
    return code


def _asked(options: _Options, observed: Observation, client: Any) -> tuple[runs.Asked, HostLooking]:
    """Return what options ask for. Raises UsageError, OperandError."""
    from ...programs.exec.settings import DEFAULT_CHIP, Settings, Unobserved

    looking = observed.begun()
    settings = Settings(
        chip=options.target or DEFAULT_CHIP,
        checks=options.checks,
        schedule=options.schedule,
        undefined=options.undefined,
        limit=options.limit,
        trace_calls=options.trace_calls,
        compares=options.schedules > 1,
        multiprocessors=options.multiprocessors,
        resident=options.resident,
        torch_on_cpu=options.torch_on_cpu,
        looking=looking if looking.observes else Unobserved(),
        scheduler=client,
        memory_bytes=int(options.memory * _GIB) // _PAGE * _PAGE,
    )
    asked = runs.Asked(
        settings=settings,
        schedules=options.schedules,
        limit=options.program_limit,
        quiet=options.quiet,
    )
    return asked, looking
