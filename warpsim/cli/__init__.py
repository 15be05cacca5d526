"""The command line, a module a verb. The only part that prints."""

from __future__ import annotations

import click

from .. import __version__
from .convert import convert
from .desc import desc
from .diff import diff
from .explain import explain
from .gemm import gemm
from .info import info
from .layout import layout
from .lint import lint
from .metadata import metadata
from .output import CONTEXT, INTERRUPTED, UNREADABLE, complain, prepare_streams
from .registers import compress, pack, unpack
from .replay import replay
from .run import run
from .vectors import vectors
from .verify import verify
from .view import view
from .warmup import warmup

VERBS = (
    run,
    gemm,
    vectors,
    verify,
    convert,
    replay,
    info,
    desc,
    layout,
    view,
    explain,
    diff,
    lint,
    metadata,
    unpack,
    pack,
    compress,
    warmup,
)


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="warpsim")
def cli() -> None:
    """Run PTX tensor-core instructions bit for bit, without a GPU.

    Exit codes: 0 as expected, 1 a bit differs or lint found an error, 2 usage, 3 input not readable or not
    legal PTX, 4 could not check.
    """


for verb in VERBS:
    cli.add_command(verb)


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the ``warpsim`` command; raises SystemExit."""
    prepare_streams()
    try:
        raise SystemExit(cli.main(arguments, prog_name="warpsim", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:  # files have been dealt with: this is stdout, on a full disk
        complain(f"warpsim: error: cannot write the output: {error.strerror or error}")
        raise SystemExit(UNREADABLE) from None
