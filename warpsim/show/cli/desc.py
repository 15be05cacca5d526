"""``warpsim desc``: explain descriptors of wgmma and of tcgen05, and tensor maps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from .options import number_of
from .output import EXPECTED, MISMATCH, deliver, perform
from .verbs import Option, verb

_NUMBER = Option(parse=number_of, metavar="INTEGER")
_Array = Annotated[Path | None, Option(metavar="FILE.npy")]


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """The fields of a matrix descriptor, to build it of."""

    start_address: Annotated[int | None, "--start", _NUMBER, "Start address in bytes, to build a descriptor."]
    leading_byte_offset: Annotated[int | None, "--lbo", _NUMBER, "Leading dimension byte offset, in bytes."]
    stride_byte_offset: Annotated[int | None, "--sbo", _NUMBER, "Stride dimension byte offset, in bytes."]
    swizzle: Annotated[
        Literal["none", "32B", "64B", "128B", "128B_ATOM_32B"] | None,
        "Swizzle mode; that of 32-byte atoms is tcgen05's.",
    ]


@dataclass(frozen=True, kw_only=True)
class _Questions:
    """What is asked about a matrix descriptor, or the other descriptor that is meant."""

    major: Annotated[Literal["K", "MN"], "imm-trans 0 or 1."] = "K"
    touches: Annotated[
        tuple[int, int, int] | None,
        Option(metavar="MN K BITS"),
        "List the bytes of a tile of MN x K elements of so many bits.",
    ]
    shared: Annotated[_Array, "Shared memory as bytes (uint8), to read the tile from."]
    tile: Annotated[_Array, "The tile (MN, K) that --shared should hold; says what is wrong if it does not."]
    tensor_map: Annotated[
        str | None,
        "--map",
        Option(metavar="FILE|TYPE:SHAPE:box=64x64..."),
        "A tensor map instead: a file of its 128 bytes, or TYPE:SHAPE and fields; "
        "--start is where its box lands.",
    ]
    tcgen05: Annotated[bool, "A shared-memory descriptor of tcgen05 (bits 48:46 are 1)."]
    kind: Annotated[
        Literal["f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"] | None,
        "An instruction descriptor of this kind of tcgen05.mma (32 bits) instead.",
    ]
    fields: Annotated[
        tuple[str, ...], "--field", Option(metavar="NAME=VALUE"), "With --kind: a field, as m=128."
    ]


@verb
def desc(word: Annotated[int | None, Option(parse=number_of)], *, built: _Fields, asked: _Questions) -> int:
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
    given = {name: value for name, value in asdict(built).items() if value is not None}
    if asked.kind is not None or asked.fields:
        return _instruction(word, asked.kind, asked.fields)
    if asked.tcgen05 or (word is not None and word >> 46 & 7 == 1):
        return _tensor(word, given, asked.major)
    if asked.tensor_map is not None:
        return _map(asked.tensor_map, word, given)
    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 256 --swizzle 128B")
    if (asked.shared is None) != (asked.tile is None):
        raise click.UsageError("--shared and --tile go together")
    return _shown(perform(_described, Path("WORD"), word, given, asked))


def _described(_: Path, word: int | None, fields: dict[str, Any], asked: _Questions) -> dict[str, Any]:
    from ...base.files.archives import read_array
    from ..views.layouts.descriptors import compared, explained, touched

    document = explained(word, fields, asked.major)
    if asked.touches:
        touched(document, *asked.touches)
    if asked.shared and asked.tile:
        compared(document, read_array(asked.shared), read_array(asked.tile))
    return document


def _instruction(word: int | None, kind: str | None, fields: tuple[str, ...]) -> int:
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
    return _shown(perform(lambda _: instruction_explained(word, values, kind), Path("WORD")))


def _tensor(word: int | None, given: dict[str, Any], major: Any) -> int:
    """Explain a shared-memory descriptor of tcgen05; return the exit code."""
    from ..views.layouts.descriptors import tensor_explained

    if (word is None) == (not given):
        raise click.UsageError("give either WORD, or fields such as --start 1024 --sbo 1024 --swizzle 128B")
    return _shown(perform(lambda _: tensor_explained(word, given, major), Path("WORD")))


def _shown(document: dict[str, Any]) -> int:
    """Print what is explained; return the exit code."""
    data = {name: value for name, value in document.items() if name != "lines"}
    return deliver(data, document["lines"], MISMATCH if document.get("differs") else EXPECTED)


def _map(text: str, word: int | None, given: dict[str, Any]) -> int:
    """Run --map; return the exit code."""
    if word is not None or set(given) - {"start_address"}:
        raise click.UsageError("--map goes with --start and --json only")
    return _shown(perform(_map_described, Path(text), text, given.get("start_address", 0)))


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
