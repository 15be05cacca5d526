"""``warpsim launch --origins``: find which element of which array each element of a fragment is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from ...isa.numerals import whole_number
from ...ptx.symbols import shown_variable
from .output import EXPECTED, MISMATCH, deliver, perform
from .verbs import Option

if TYPE_CHECKING:
    from ...programs.launch.launching import LaunchableKernel
    from ...workbench.diagnosis.origins.element_origins import OperandOrigins
    from ...workbench.diagnosis.origins.element_origins import Origins as Found
    from ...workbench.vectors.recordings import PackingNote


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A launch to trace operands in: a function that returns the kernel, and its arguments."""

    kernel: Callable[[], LaunchableKernel]
    grid: Sequence[int]
    block: Sequence[int]
    arguments: Sequence[Any]
    shared_bytes: int
    cluster: Sequence[int] | None = None
    most_statements: int | None = None


Fragment = Annotated[
    str | None,
    Option(metavar="LINE:OPERAND[:N]"),
    "With --origins: show every element of an operand, as in 62:a, in its N-th execution.",
]
Origins = Annotated[
    str | None,
    Option(metavar="NAME,..."),
    "Do not compute: show which elements of these array parameters the matrix instructions "
    "are given, and what of it does not fit together. By name or index; A=0 gives 0 the name A. With "
    "--trace-mma compute, too, and keep in the recording what does not fit, for diff and lint.",
]


def check_options(origins: str | None, fragment: str | None, *, keeps: bool, computed: Sequence[str]) -> None:
    """Raise UsageError for options that do not go together.

    ``computed`` options need a launch that computes, as does a recording that keeps findings.
    """
    if fragment is not None and (origins is None or keeps):
        raise click.UsageError("--fragment goes with --origins, without --trace-mma")
    if origins is not None and computed and not keeps:
        raise click.UsageError("--origins computes nothing: --save and --expect do not go with it")


def notes(file: Path, launched: Launched, names: str) -> tuple[PackingNote, ...]:
    """Return the findings on the operands, to be kept in a recording. Raises Ended."""
    from ...workbench.vectors.recordings import PackingNote

    found = perform(_traced, file, launched, names_of(names))
    return tuple(
        PackingNote(
            line=finding.location.line,
            source=str(finding.location.source or ""),
            operand=finding.operand,
            kind=finding.kind,
            message=finding.message,
            where=finding.where,
        )
        for finding in found.findings
    )


def names_of(text: str) -> dict[str, str]:
    """Return the names in --origins, and the argument of each. Raises UsageError."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, key = (item.strip() for item in part.partition("="))
        if not name or (equals and not key) or name in found:
            raise click.UsageError(f"--origins {text}: expected names, as in A,B,E or A=0,B=2")
        found[name] = key if equals else name
    return found


def trace(file: Path, launched: Launched, names: str, fragment: str | None) -> int:
    """Find origins and print the findings; the exit code is 1 where an operand does not fit."""
    from ..views.origins import fragment_document, fragment_lines, origin_lines, origins_document

    found = perform(_traced, file, launched, names_of(names))
    shown = chosen(found, fragment)
    return deliver(
        lambda: {
            **origins_document(found),
            "fragment": fragment_document(*shown) if shown else None,
            "errors": [],
        },
        lambda: [*origin_lines(found), *(fragment_lines(*shown) if shown else ())],
        MISMATCH if found.findings else EXPECTED,
    )


def _traced(_: Path, launched: Launched, names: Mapping[str, str]) -> Found:
    from ...base.errors import OperandError
    from ...workbench.diagnosis.origins.element_origins import find_origins

    kernel = launched.kernel()
    try:
        return find_origins(
            kernel,
            launched.grid,
            launched.block,
            launched.arguments,
            {_display(kernel, name, key): key for name, key in names.items()},
            shared_bytes=launched.shared_bytes,
            cluster=launched.cluster,
            most_statements=launched.most_statements,
        )
    except OperandError as error:
        raise click.UsageError(error.message) from None


def _display(kernel: LaunchableKernel, name: str, key: str) -> str:
    """Return the name to show for an argument: that of its parameter where the key is a bare index."""
    index = whole_number(key, len(kernel.parameters) - 1) if name == key else None
    return name if index is None else shown_variable(kernel.parameters[index].name)


def chosen(origins: Found, fragment: str | None) -> tuple[OperandOrigins, int] | None:
    """Return the operand and execution to show: the requested, else that of the first finding."""
    if fragment is not None:
        return _asked(origins, fragment)
    for finding in origins.findings[:1]:
        for operand in origins.operands:
            if operand.role == finding.operand and operand.operand.given.location == finding.location:
                place = finding.places[0]
                return operand, int((operand.operand.places == place).all(axis=1).argmax())
    return (origins.operands[0], 0) if origins.operands else None


def _asked(origins: Found, fragment: str) -> tuple[OperandOrigins, int]:
    place, _, rest = fragment.partition(":")
    role, _, number = rest.partition(":")
    line, execution = whole_number(place), whole_number(number or "0")
    if line is None or not role or execution is None:
        raise click.UsageError(
            f"--fragment {fragment}: expected LINE:OPERAND or LINE:OPERAND:N, as in 62:a:0"
        )
    for operand in origins.operands:
        if operand.operand.given.location.line == line and operand.role == role:
            count = len(operand.operand.places)
            if execution >= count:
                raise click.UsageError(f"--fragment {fragment}: there are {count} executions, from 0 on")
            return operand, execution
    known = ", ".join(f"{operand.operand.given.location.line}:{operand.role}" for operand in origins.operands)
    raise click.UsageError(f"--fragment {fragment}: the operands are {known or 'none'}")
