"""``warpsim desc``: matrix descriptors of wgmma."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import json_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, print_json, say

if TYPE_CHECKING:
    _TypeOfInteger = click.ParamType[int]
else:
    _TypeOfInteger = click.ParamType  # which takes no parameter before click 8.4


class _Number(_TypeOfInteger):
    """An integer, decimal or with 0x."""

    name = "integer"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            return int(str(value), 0)
        except ValueError:
            self.fail(f"{value!r} is no integer, decimal or with 0x", parameter, context)


_NUMBER = _Number()
_FIELDS = ("start_address", "leading_byte_offset", "stride_byte_offset", "swizzle")


@click.command(context_settings=CONTEXT)
@click.argument("word", required=False, type=_NUMBER)
@click.option("--start", "start_address", type=_NUMBER, help="Start address in bytes, to build a descriptor.")
@click.option("--lbo", "leading_byte_offset", type=_NUMBER, help="Leading dimension byte offset, in bytes.")
@click.option("--sbo", "stride_byte_offset", type=_NUMBER, help="Stride dimension byte offset, in bytes.")
@click.option("--swizzle", type=click.Choice(["none", "32B", "64B", "128B"]), help="Swizzle mode.")
@click.option(
    "--major",
    type=click.Choice(["K", "MN"]),
    default="K",
    show_default=True,
    help="imm-trans 0 or 1.",
)
@click.option(
    "--touches",
    nargs=3,
    type=int,
    metavar="MN K BITS",
    help="List the bytes of a tile of MN x K elements of so many bits.",
)
@click.option(
    "--shared",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npy",
    help="Shared memory as bytes (uint8), to read the tile from.",
)
@click.option(
    "--tile",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npy",
    help="The tile (MN, K) that --shared should hold; says what is wrong if it does not.",
)
@json_option
def desc(
    word: int | None,
    major: Any,
    touches: tuple[int, int, int] | None,
    shared: Path | None,
    tile: Path | None,
    as_json: bool,
    **fields: Any,
) -> int:
    """Explain a wgmma matrix descriptor: WORD (64 bits), or one built from its fields.

    With --shared and --tile, compare the tile that the descriptor reads with the one expected and, where
    they differ, propose what would read it. Exit code 1: they differ.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 256 --swizzle 128B")
    if (shared is None) != (tile is None):
        raise click.UsageError("--shared and --tile go together")
    document = attempt(_described, Path("WORD"), word, given, major, touches, shared, tile)
    if isinstance(document, Failure):
        return document.code()
    if as_json:
        print_json({name: value for name, value in document.items() if name != "lines"})
    else:
        say("\n".join(document["lines"]))
    return MISMATCH if document.get("differs") else EXPECTED


def _described(
    _: Path,
    word: int | None,
    fields: dict[str, Any],
    major: Any,
    touches: tuple[int, int, int] | None,
    shared: Path | None,
    tile: Path | None,
) -> dict[str, Any]:
    from ..files.archives import read_array
    from ..views.descriptors import compared, explained, touched

    document = explained(word, fields, major)
    if touches:
        touched(document, *touches)
    if shared and tile:
        compared(document, read_array(shared), read_array(tile))
    return document
