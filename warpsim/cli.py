"""The command line: ``warpsim run`` and ``warpsim info``. The only module that prints.

Exit codes: 0 as expected, 1 a bit differs, 2 usage, 3 input not readable or not legal PTX, 4 could not
check (legal PTX that is not modelled). Results go to stdout, progress and diagnostics to stderr.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from .instruction import Instruction
    from .pipeline import Engine, Undefined
    from .traces import Run

EXPECTED, MISMATCH, USAGE, UNREADABLE, UNCHECKED = range(5)

_CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="warpsim")
def cli() -> None:
    """Run PTX tensor-core instructions bit for bit, without a GPU.

    Exit codes: 0 as expected, 1 a bit differs, 2 usage, 3 input not readable or not legal PTX, 4 could
    not check.
    """


def main() -> None:
    """The entry point of the ``warpsim`` command."""
    cli(prog_name="warpsim")


def _console(*, stderr: bool = False) -> Console:
    """A console that never wraps what is piped into a file."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=200)


def _complain(message: str) -> None:
    click.echo(message, err=True)


# --- run -------------------------------------------------------------------------------------------


@cli.command(context_settings=_CONTEXT)
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...", type=click.Path(path_type=Path))
@click.option("--target", metavar="SM", help="Run on this chip instead of the trace's own, such as sm_80.")
@click.option(
    "--engine",
    type=click.Choice(["kernel", "reference"]),
    default="kernel",
    show_default=True,
    help="The compiled kernels, or plain Python integers.",
)
@click.option(
    "--allow-undefined",
    is_flag=True,
    help="Execute metadata that PTX leaves undefined or that is not modelled, reading each field literally.",
)
@click.option(
    "--show",
    type=click.Choice(["last", "all", "none"]),
    default="last",
    show_default=True,
    help="Which D matrices to print.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="Write all registers after the run of a single trace.",
)
def run(
    traces: tuple[Path, ...],
    target: str | None,
    engine: Engine,
    allow_undefined: bool,
    show: str,
    as_json: bool,
    out: Path | None,
) -> None:
    """Execute traces and compare every bit they expect.

    A trace is PTX text with '//!' lines that load registers and state what they must hold afterwards.
    """
    if out and len(traces) > 1:
        raise click.UsageError("--out takes the registers of one trace, but several traces are given")
    undefined: Undefined = "fallback" if allow_undefined else "error"
    codes, documents = [], []
    for path in _tracked(traces):
        result, code = _run_one(path, target, engine, undefined)
        codes.append(code)
        if result is None:
            continue
        if as_json:
            documents.append(_document(result))
        else:
            _print_run(result, show)
        if out:
            codes.append(_write_registers(result, out))
    if as_json:
        click.echo(json.dumps({"runs": documents}, indent=1))
    elif len(traces) > 1:
        _print_total(codes)
    raise SystemExit(_worst(codes))


def _tracked(traces: tuple[Path, ...]) -> Iterable[Path]:
    """The traces, behind a progress bar on stderr where there are several and someone is watching."""
    from rich.progress import track

    console = _console(stderr=True)
    hidden = len(traces) < 2 or not console.is_terminal
    return track(traces, "running", console=console, disable=hidden, transient=True)


def _run_one(
    path: Path, target: str | None, engine: Engine, undefined: Undefined
) -> tuple[Run | None, int]:
    from .errors import NotModelled, WarpsimError
    from .traces import read_trace, run_trace

    try:
        result = run_trace(read_trace(path), target=target, engine=engine, undefined=undefined)
    except NotModelled as error:
        _complain(str(error))
        return None, UNCHECKED
    except WarpsimError as error:
        _complain(str(error) if error.location else f"{path}: error: {error.message}")
        return None, UNREADABLE
    except OSError as error:
        _complain(f"{path}: error: {error.strerror or error}")
        return None, UNREADABLE
    return result, EXPECTED if result.passed else MISMATCH


def _worst(codes: Iterable[int]) -> int:
    """The exit code that says most: unreadable, then unchecked, then a mismatch."""
    severity = (EXPECTED, MISMATCH, UNCHECKED, UNREADABLE)
    return max(codes, key=severity.index, default=EXPECTED)


def _document(result: Run) -> Any:
    from .views.report import run_document

    return run_document(result)


def _print_run(result: Run, show: str) -> None:
    console = _console()
    count = len(result.executed)
    console.print(
        f"{result.trace.path}: {result.warp.target}, {count} matrix instruction{'s'[: count != 1]}"
    )
    shown = {"all": result.executed, "last": result.executed[-1:], "none": []}[show]
    for event, words in shown:
        _print_matrices(console, event, words)
    for check in result.checks:
        place = f"  line {check.location.line}: {check.registers}"
        if check.first is None:
            console.print(f"{place}: {check.compared} words as expected", markup=False)
        else:
            console.print(f"{place}: {check.different} of {check.compared} words differ", markup=False)
            console.print(f"    first: {check.first}", markup=False)
    compared = sum(check.compared for check in result.checks)
    verdict = "passed" if result.passed else "FAILED"
    console.print(f"  {verdict}: {len(result.checks)} checks, {compared} words compared bit by bit")


def _print_matrices(console: Console, event: Any, words: Any) -> None:
    from .pipeline import evidence
    from .views.report import cells, result_matrices

    form = event.instruction
    console.print(f"  line {event.statement.location().line}: {form.mnemonic}", markup=False)
    console.print(f"  {evidence(form)}", markup=False)
    for index, matrix in enumerate(result_matrices(event, words)):
        product = f" of product {index}" if form.products > 1 else ""
        console.print(f"  D{product} ({form.shape.m} x {form.shape.n}, {form.d}):")
        console.print(_table(cells(matrix)))


def _table(rows: list[list[str]]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1), show_edge=False)
    table.add_column("", justify="right", style="dim")
    for column in range(len(rows[0])):
        table.add_column(str(column), justify="right", header_style="dim")
    for index, row in enumerate(rows):
        table.add_row(str(index), *row)
    return table


def _print_total(codes: list[int]) -> None:
    passed = sum(code == EXPECTED for code in codes)
    click.echo(f"{passed} of {len(codes)} traces passed")


def _write_registers(result: Run, out: Path) -> int:
    from .traces import write_arrays

    try:
        write_arrays(out, result.warp.registers())
    except OSError as error:
        _complain(f"{out}: error: {error.strerror or error}")
        return UNREADABLE
    return EXPECTED


# --- info ------------------------------------------------------------------------------------------


@cli.command(context_settings=_CONTEXT)
@click.argument("mnemonic", required=False)
@click.option("--target", metavar="SM", help="Only this chip, such as sm_90a.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(mnemonic: str | None, target: str | None, as_json: bool) -> None:
    """List the instruction forms, or describe the one that MNEMONIC spells."""
    from .errors import WarpsimError

    try:
        forms = list(_forms(mnemonic, target))
    except WarpsimError as error:
        _complain(str(error))
        raise SystemExit(UNREADABLE) from None
    if as_json:
        from .views.information import form_document

        click.echo(json.dumps([form_document(form) for form in forms], indent=1))
    elif mnemonic:
        _print_form(forms[0])
    else:
        _print_forms(forms)


def _forms(mnemonic: str | None, target: str | None) -> Iterator[Instruction]:
    from .interface import decode, instructions

    return iter([decode(mnemonic, target=target)]) if mnemonic else instructions(target)


def _print_forms(forms: list[Instruction]) -> None:
    from rich.table import Table

    from .views.information import targets_text, version_text

    table = Table(box=None, padding=(0, 1), show_edge=False)
    for name in ("form", "registers d/a/b/c", "PTX", "targets"):
        table.add_column(name, no_wrap=name != "targets")
    if forms and forms[0].target:
        table.add_column("evidence", no_wrap=True)
    for form in forms:
        counts = "/".join(str(form.registers[operand]) for operand in "dabc")
        cells = [form.mnemonic, counts, version_text(form.since), targets_text(form.targets)]
        if form.target:
            cells.append(_evidence_label(form))
        table.add_row(*cells)
    _console().print(table)
    click.echo(f"{len(forms)} forms")


def _evidence_label(form: Instruction) -> str:
    from .pipeline import evidence

    return evidence(form).label


def _print_form(form: Instruction) -> None:
    from .views.information import rule_on, rule_text, targets_text, version_text

    lines = [form.mnemonic]
    lines.append(f"  shape      {form.shape}" + (f", {form.stored_k} stored columns" if form.sparse else ""))
    for operand in "dabc":
        rows, columns = form.matrix_shape(operand)
        storage = form.storage(operand)
        lines.append(
            f"  {operand}          {form.registers[operand]} registers of {form.register_bits} bits: "
            f"{rows} x {columns} {form.format(operand)}, {storage.bits} bits an element"
        )
    if form.pattern:
        lines.append(
            f"  metadata   1 register, {form.pattern} sparsity, selector {', '.join(map(str, form.selectors))}"
        )
    if form.scale:
        lines.append(f"  scales     {form.scale_chunks} of {form.scale} a row of A and a column of B")
    lines.append(f"  PTX        {version_text(form.since)}, on {targets_text(form.targets)}")
    for target in [form.target] if form.target else sorted(form.targets, key=_number):
        rule = rule_on(form, target)
        lines += [f"  {target:10} {rule_text(rule)}", f"             {rule.evidence}"]
    click.echo("\n".join(lines))


def _number(target: str) -> int:
    from .architectures import ARCHITECTURES

    return list(ARCHITECTURES).index(target)
