"""The command line, a module a verb. The only part that prints."""

from __future__ import annotations

from importlib import import_module

import click

from ..environment import default_environment
from ..files.version import __version__
from .output import CONTEXT, INTERRUPTED, UNREADABLE, complain, prepare_streams

_MODULES = {  # of each verb, in the order of --help; imported when the verb is used
    "run": "run",
    "launch": "launch",
    "check": "check",
    "gemm": "gemm",
    "vectors": "vectors",
    "verify": "verify",
    "convert": "convert",
    "replay": "replay",
    "info": "info",
    "desc": "desc",
    "layout": "layout",
    "view": "view",
    "explain": "explain",
    "diff": "diff",
    "lint": "lint",
    "metadata": "metadata",
    "unpack": "registers",
    "pack": "registers",
    "compress": "registers",
    "warmup": "warmup",
}


class _Verbs(click.Group):
    """Verbs that are imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        return command


@click.group(cls=_Verbs, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="warpsim")
def cli() -> None:
    """Run PTX tensor-core instructions bit for bit, without a GPU.

    Exit codes: 0 as expected, 1 a bit differs or lint found an error, 2 usage, 3 input not readable or not
    legal PTX, 4 could not check.
    """


def main(arguments: list[str] | None = None) -> None:
    """The entry point of the ``warpsim`` command; raises SystemExit."""
    prepare_streams()
    try:
        with default_environment():
            raise SystemExit(cli.main(arguments, prog_name="warpsim", standalone_mode=False))
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    except click.Abort:
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:  # files have been dealt with: this is stdout, on a full disk
        complain(f"warpsim: error: cannot write the output: {error.strerror or error}")
        raise SystemExit(UNREADABLE) from None
