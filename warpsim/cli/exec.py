"""``warpsim exec``: run a host program, with no GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .host_looking import HostLooking, host_looking_options
from .host_origins import HostOrigins
from .output import CONTEXT, UNREADABLE, check_target, complain

if TYPE_CHECKING:
    from ..exec.tally import Tally

_GIB, _PAGE = 1 << 30, 4096


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
    metavar="program|earliest|latest|random:SEED",
    help="The order of CTAs and warps, and when asynchronous copies complete.",
)
@click.option(
    "--schedules",
    type=click.IntRange(1, 64),
    default=1,
    metavar="N",
    help="Run the program again under N - 1 other schedules; copies to the host that differ are an error.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End a launch that takes longer, as a watchdog does: cudaErrorLaunchTimeout.",
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
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the report as JSON, too.",
)
@click.option(
    "--error-exitcode",
    type=click.IntRange(0, 255),
    metavar="N",
    help="The exit code where the report has errors and the program's own is 0.",
)
@click.option(
    "--refuse-undefined",
    is_flag=True,
    help="Stop at metadata and descriptors that PTX leaves undefined; else each field is read literally.",
)
@host_looking_options
@click.option("--trace-calls", is_flag=True, help="Show every call of CUDA on stderr.")
@click.option("--quiet", is_flag=True, help="No report on stderr.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec(command: tuple[str, ...], quiet: bool, report: Path | None, **options: Any) -> int:
    """Run a host program that uses CUDA, unmodified, with no GPU.

    Calls of the CUDA runtime and driver are answered here, kernels are executed here from the PTX in the
    program, and a report follows on stderr: findings by kernel and source line, launches, seconds, fidelity.
    The exit code is the program's.

    \b
    nvcc -cudart shared -lineinfo -o test_gemm test_gemm.cu
    warpsim exec --chip sm_80 ./test_gemm --size 256

    The program must load the CUDA runtime as a shared library (nvcc -cudart shared) and contain PTX.
    """
    from ..exec.libraries import HostError
    from ..exec.tally import Tally

    names = ("trace_mma", "breaks", "selection", "kernel", "launch")
    origins = HostOrigins.given(options.pop("origins"), options.pop("fragment"), once=not options["launch"])
    looking = HostLooking(**{name: options.pop(name) for name in names}, origins=origins)
    looking.check()
    tally = Tally(
        program=Path(command[0]).name,
        notice=lambda text: complain(f"warpsim exec: {text}"),
        progress=lambda text: complain(f"warpsim exec: {text}"),
    )
    try:
        code, chip = _run(command, tally, looking, options)
    except HostError as error:
        complain(f"warpsim exec: error: {error}")
        return UNREADABLE
    if report is not None:
        _write(
            report, tally, {"chip": chip, "command": list(command), "exit_code": code, **looking.document()}
        )
    if not quiet:
        from ..views.host_programs import summary_lines

        complain("\n".join([*summary_lines(tally, chip), *looking.lines()]))
    wanted = options["error_exitcode"]
    return wanted if wanted is not None and code == 0 and tally.errors else code


def _run(
    command: tuple[str, ...], tally: Tally, looking: HostLooking, options: dict[str, Any]
) -> tuple[int, str]:
    """Run the program; return its exit code, and the chip."""
    from ..exec.server import Server
    from ..exec.settings import DEFAULT_CHIP, Settings, Unobserved

    settings = Settings(
        chip=options["chip"] or DEFAULT_CHIP,
        checks=options["checks"],
        schedule=options["schedule"],
        undefined="error" if options["refuse_undefined"] else "fallback",
        limit=options["limit"],
        trace_calls=options["trace_calls"],
        compares=options["schedules"] > 1,
        multiprocessors=options["multiprocessors"],
        looking=looking,
        memory_bytes=int(options["memory"] * _GIB) // _PAGE * _PAGE,
    )
    with Server(settings, tally, complain) as server:
        code = server.run(command)
    for schedule in _schedules(options["schedules"]):
        other = type(tally)(program=tally.program, notice=_unshown, progress=tally.progress)
        with Server(replace(settings, schedule=schedule, looking=Unobserved()), other, _unshown) as server:
            server.run(command, quiet=True)
        tally.compare(other, schedule)
    return code, settings.chip


def _schedules(count: int) -> list[str]:
    """Return other schedules than that of the program."""
    seeds = (f"random:{seed}" for seed in range(2, count))
    return ["random:1", "latest", "earliest", *seeds][: count - 1]


def _unshown(text: str) -> None:
    """Show nothing: the first run has said it."""


def _write(path: Path, tally: Tally, more: dict[str, Any]) -> None:
    from ..files.replacing import replacing

    with replacing(path) as temporary:
        temporary.write_text(json.dumps({**more, **tally.document()}, indent=1) + "\n", encoding="utf-8")
