"""``warpsim desc``: explain descriptors of wgmma and of tcgen05, and tensor maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import json_option
from .output import CONTEXT, EXPECTED, MISMATCH, Failure, attempt, print_json, say

if TYPE_CHECKING:
    _TypeOfInteger = click.ParamType[int]
else:
    _TypeOfInteger = click.ParamType  # before click 8.4, click.Choice takes no parameter


class _Number(_TypeOfInteger):
    """An integer, decimal or with 0x."""

    name = "integer"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            return int(str(value), 0)
        except ValueError:
            self.fail(f"{value!r} is not an integer, decimal or with 0x", parameter, context)


_NUMBER = _Number()
_FIELDS = ("start_address", "leading_byte_offset", "stride_byte_offset", "swizzle")


@click.command(context_settings=CONTEXT)
@click.argument("word", required=False, type=_NUMBER)
@click.option("--start", "start_address", type=_NUMBER, help="Start address in bytes, to build a descriptor.")
@click.option("--lbo", "leading_byte_offset", type=_NUMBER, help="Leading dimension byte offset, in bytes.")
@click.option("--sbo", "stride_byte_offset", type=_NUMBER, help="Stride dimension byte offset, in bytes.")
@click.option(
    "--swizzle",
    type=click.Choice(["none", "32B", "64B", "128B", "128B_ATOM_32B"]),
    help="Swizzle mode; that of 32-byte atoms is tcgen05's.",
)
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
@click.option(
    "--map",
    "tensor_map",
    metavar="FILE|TYPE:SHAPE:box=64x64...",
    help="A tensor map instead: a file of its 128 bytes, or TYPE:SHAPE and fields; "
    "--start is where its box lands.",
)
@click.option("--tcgen05", is_flag=True, help="A shared-memory descriptor of tcgen05 (bits 48:46 are 1).")
@click.option(
    "--kind",
    type=click.Choice(["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"]),
    help="An instruction descriptor of this kind of tcgen05.mma (32 bits) instead.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --kind: a field, as m=128.",
)
@json_option
def desc(word: int | None, major: Any, tensor_map: str | None, as_json: bool, **options: Any) -> int:
    """Explain a descriptor: WORD, or the descriptor of given fields; or a tensor map.

    A WORD of 64 bits is a matrix descriptor of wgmma or, where bits 48:46 are 1, a shared-memory
    descriptor of tcgen05; with --kind it is an instruction descriptor of 32 bits.

    With --shared and --tile, compare the tile that the descriptor reads with the expected tile and, where
    they differ, propose what would read it. Exit code 1: they differ.

    \b
    warpsim desc 0x4000404000010800
    warpsim desc --kind f16 0x08100010
    warpsim desc --kind f16 --field m=128 --field n=64 --field d_type=1
    warpsim desc --map f16:4096x4096:box=64x64:swizzle=128B
    warpsim desc --map s8:8x30x30x64:lower=-1x-1:upper=-1x-1:channels=64:pixels=128

    Maps have their dimensions as NumPy orders them; fields are those of warpsim.tensor_map.
    """
    questions = {name: options.pop(name) for name in ("touches", "shared", "tile")}
    tensor, kind, fields = options.pop("tcgen05"), options.pop("kind"), options.pop("fields")
    given = {name: value for name, value in options.items() if value is not None}
    if kind is not None or fields:
        return _instruction(word, kind, fields, as_json)
    if tensor or (word is not None and word >> 46 & 7 == 1):
        return _tensor(word, given, major, as_json)
    if tensor_map is not None:
        return _map(tensor_map, word, given, as_json)
    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 256 --swizzle 128B")
    if (questions["shared"] is None) != (questions["tile"] is None):
        raise click.UsageError("--shared and --tile go together")
    document = attempt(_described, Path("WORD"), word, given, major, questions)
    if isinstance(document, Failure):
        return document.code()
    if as_json:
        print_json({name: value for name, value in document.items() if name != "lines"})
    else:
        say("\n".join(document["lines"]))
    return MISMATCH if document.get("differs") else EXPECTED


def _described(
    _: Path, word: int | None, fields: dict[str, Any], major: Any, questions: dict[str, Any]
) -> dict[str, Any]:
    from ...base.files.archives import read_array
    from ..views.layouts.descriptors import compared, explained, touched

    document = explained(word, fields, major)
    if questions["touches"]:
        touched(document, *questions["touches"])
    if questions["shared"] and questions["tile"]:
        compared(document, read_array(questions["shared"]), read_array(questions["tile"]))
    return document


def _instruction(word: int | None, kind: str | None, fields: tuple[str, ...], as_json: bool) -> int:
    """Explain an instruction descriptor; return the exit code."""
    from ..views.layouts.descriptors import instruction_explained

    if kind is None:
        raise click.UsageError("--field goes with --kind")
    if (word is None) == (not fields):
        raise click.UsageError("give either WORD, or fields such as --field m=128 --field n=64")
    values = dict[str, int]()
    for text in fields:
        name, equals, value = text.partition("=")
        if not equals or not value.isdigit():
            raise click.UsageError(f"--field {text}: expected NAME=VALUE with a decimal value")
        values[name] = int(value)
    return _shown(attempt(lambda _: instruction_explained(word, values, kind), Path("WORD")), as_json)


def _tensor(word: int | None, given: dict[str, Any], major: Any, as_json: bool) -> int:
    """Explain a shared-memory descriptor of tcgen05; return the exit code."""
    from ..views.layouts.descriptors import tensor_explained

    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 1024 --swizzle 128B")
    return _shown(attempt(lambda _: tensor_explained(word, given, major), Path("WORD")), as_json)


def _shown(document: Any, as_json: bool) -> int:
    """Print a document, or the reason why there is none; return the exit code."""
    if isinstance(document, Failure):
        return document.code()
    if as_json:
        print_json({name: value for name, value in document.items() if name != "lines"})
    else:
        say("\n".join(document["lines"]))
    return EXPECTED


def _map(text: str, word: int | None, given: dict[str, Any], as_json: bool) -> int:
    """Run --map; return the exit code."""
    if word is not None or set(given) - {"start_address"}:
        raise click.UsageError("--map goes with --start and --json only")
    return _shown(attempt(_map_described, Path(text), text, given.get("start_address", 0)), as_json)


def _map_described(path: Path, text: str, start: int) -> dict[str, Any]:
    from ...base.files.archives import read_content
    from ...isa.tensor_maps.tensor_map import decode
    from ..views.layouts.tensor_maps import explained

    if "=" not in text and (path.exists() or ":" not in text):
        return explained(decode(read_content(path)), start)
    return explained(_map_of(text), start)


def _map_of(text: str) -> Any:
    """Return the map of TYPE:SHAPE and fields. Raises UsageError."""
    from ...machine.host.tensor_maps import shaped_map
    from .launch_arguments import shape_of, typed
    from .launch_maps import spelled

    source, fields = spelled(f"tensor_map:{text}", "--map")
    name, colon, shape = source.partition(":")
    if not colon:
        raise click.UsageError(f"--map {text}: expected TYPE:SHAPE:box=64x64 or a file")
    return shaped_map(typed(text, name, "--map"), shape_of(text, shape, "--map"), **fields)
