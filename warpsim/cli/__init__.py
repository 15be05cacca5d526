"""The command line: a module for each verb. Only this package prints."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from traceback import format_exc

import click

from ..environment import default_environment
from ..errors import WarpsimError
from ..files.read_files import inputs_kept
from ..files.version import __version__
from .interrupts import INTERRUPTED, interruptible
from .output import (
    BROKEN,
    CONTEXT,
    UNCHECKED,
    UNREADABLE,
    complain,
    complain_of_usage,
    give_up,
    prepare_streams,
)

_MODULES = {  # modules of each verb, in the order of --help; imported when the verb is used
    "run": "run",
    "launch": "launch",
    "debug": "debug",
    "exec": "exec",
    "check": "check",
    "gemm": "gemm",
    "vectors": "vectors",
    "verify": "verify",
    "convert": "convert",
    "replay": "replay",
    "info": "info",
    "desc": "desc",
    "layout": "layout",
    "explore": "explore",
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
    """Verbs that are imported at their first use."""

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
    legal PTX, 4 could not check, 70 a mistake of warpsim itself.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the ``warpsim`` command; raises SystemExit."""
    prepare_streams()
    warnings.showwarning = _show
    try:
        with interruptible(), inputs_kept(), default_environment():
            raise SystemExit(cli.main(arguments, prog_name="warpsim", standalone_mode=False))
    except click.ClickException as error:
        complain_of_usage(error)
        raise SystemExit(error.exit_code) from None
    except (click.Abort, KeyboardInterrupt):
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:
        raise SystemExit(_unwritten(error)) from None
    except MemoryError as error:
        complain(f"warpsim: error: not enough memory: {error or 'no more could be had'}")
        raise SystemExit(UNCHECKED) from None
    except WarpsimError as error:  # without a file: verbs report errors of files
        complain(f"warpsim: error: {error}")
        raise SystemExit(UNREADABLE) from None
    except Exception:
        complain(
            f"{format_exc()}warpsim {__version__}: error: this is a mistake of warpsim: please report it"
        )
        raise SystemExit(BROKEN) from None


def _show(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a diagnostic, without the line of the library that raised it."""
    complain(f"warpsim: warning: {message}")


def _unwritten(error: OSError) -> int:
    """Return the exit code of an error of a file or a stream, such as stdout on a full disk."""
    reason = error.strerror or str(error)
    if error.filename is None:
        complain(f"warpsim: error: cannot write the output: {reason}")
        give_up(sys.stdout)  # flushing the rest would fail again at exit
    else:
        complain(f"{os.fsdecode(error.filename)}: error: {reason}")
    return UNREADABLE
