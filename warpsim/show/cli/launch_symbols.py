"""Variables of a module on the command line of ``launch``: NAME=FILE.npy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...machine.host.device import Symbol
    from ...programs.launch.launching import LoadedModule


def set_symbols(module: LoadedModule, texts: tuple[str, ...]) -> None:
    """Set every variable to the content of its file. Raises UsageError, TraceError."""
    from ...base.errors import OperandError
    from ...base.files.archives import read_array

    for symbol, path in named_symbols(module, texts, "--symbol"):
        try:
            symbol.set(read_array(path))
        except OperandError as error:
            raise click.UsageError(f"--symbol {symbol.name}={path}: {error.message}") from None


def named_symbols(
    module: LoadedModule, texts: tuple[str, ...], option: str = "--save-symbol"
) -> list[tuple[Symbol, Path]]:
    """Find the variables and files that texts name. Raises UsageError, which lists the variables."""
    from ...base.errors import OperandError

    found = []
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not (name and equals and path):
            raise click.UsageError(f"{option} {text}: expected NAME=FILE.npy")
        try:
            found.append((module.symbol(name), Path(path)))
        except OperandError as error:
            raise click.UsageError(f"{option} {text}: {error.message}") from None
    return found
