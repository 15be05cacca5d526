"""The command line: a module for each verb. Only this package prints."""

from __future__ import annotations

import os
import sys
import warnings
from difflib import get_close_matches
from importlib import import_module
from traceback import format_exc

import click

from ...base.environment import default_environment
from ...base.errors import WarpsimError
from ...base.files.escaping import note_names
from ...base.files.read_files import inputs_kept
from ...base.files.version import __version__
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

_VERBS = {  # what people come for: verbs, with the module of each, imported when it is used, and what it does
    "Run": {
        "run": ("run", "execute PTX with data, and compare every bit"),
        "launch": ("launch", "execute a kernel on arrays; --why says why it is wrong"),
        "debug": ("debug", "the same in a debugger that goes backwards, too"),
        "exec": ("exec", "run a program that uses CUDA as it is"),
        "check": ("check", "check a whole module without running it"),
        "gemm": ("gemm", "multiply whole matrices as one instruction along k does"),
        "replay": ("replay", "execute the instructions of a GPU's register trace"),
        "demo": ("demo", "a first look: the verdict on a wrong kernel, and its page"),
    },
    "Find a mistake": {
        "diff": ("diff", "find the mistake that gives exactly this wrong D"),
        "explain": ("explain", "show how an element of D comes about, chips side by side"),
        "lint": ("lint", "look for mistakes in sparse operands"),
    },
    "Look": {
        "view": ("view", "write a page of a trace, a launch or a vector set"),
        "explore": ("view", "write a page with the layouts of all instructions"),
        "layout": ("layout", "draw which lane and register hold which element"),
        "desc": ("desc", "explain a matrix descriptor, and what is wrong with it"),
        "info": ("info", "list the instructions or the rules of a chip, or describe a form"),
    },
    "Convert": {
        "pack": ("registers", "turn a matrix into registers"),
        "unpack": ("registers", "turn registers into the matrix that they hold"),
        "compress": ("registers", "turn a sparse A into registers and metadata"),
        "metadata": ("metadata", "convert metadata: registers, indices, CUTLASS, PyTorch"),
    },
    "Test hardware and models": {
        "vectors": ("vectors", "make cases that hit the corners of an instruction"),
        "model": ("model", "write a golden model in C, to link without Python"),
        "verify": ("verify", "execute vector sets and traces again"),
        "convert": ("convert", "a vector set for $readmemh, TestFloat, C, CSV"),
        "warmup": ("warmup", "compile every kernel ahead of use"),
    },
}
_KNOWN = {name: verb for verbs in _VERBS.values() for name, verb in verbs.items()}


class _Verbs(click.Group):
    """Verbs that are imported at their first use, and listed in groups."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_KNOWN)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _KNOWN:
            return None
        command: click.Command = getattr(import_module(f".{_KNOWN[name][0]}", __name__), name)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; of a name that is none, the error says which verb is nearest."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], _KNOWN, n=1)
            hint = f" Is it {near[0]}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", context) from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups; no verb is imported."""
        for title, verbs in _VERBS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in verbs.items()])


@click.group(cls=_Verbs, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="warpsim")
def cli() -> None:
    """Run tensor-core instructions and whole CUDA kernels bit for bit, without a GPU, and find what is wrong.

    `warpsim VERB --help` has examples and options.

    Exit codes: 0 as expected, 1 a bit differs or lint found an error, 2 usage, 3 input not readable or not
    legal PTX, 4 could not check, 70 an internal error.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the ``warpsim`` command; raises SystemExit."""
    prepare_streams()
    note_names(sys.argv[1:] if arguments is None else arguments)
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
