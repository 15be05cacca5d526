"""The types of options and arguments that verbs share: names, help, checks, completions, each in one place.

A verb annotates a parameter with one of them; a text in Annotated is a help of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import click

from ...isa.numerals import integer_in, whole_number
from .verbs import Json as Json
from .verbs import Option

if TYPE_CHECKING:
    from ...observe.recording.selection import Selection as _Selection
    from ...observe.stops.stop_places import Break

Value = TypeVar("Value")

# --- values ----------------------------------------------------------------------------------------


def target_of(text: str) -> str:
    """Return a known chip, by its name or by that of a card. Raises ValueError, which says the nearest."""
    from ...isa.architectures import ARCHITECTURES, near_target, target_of_card

    found = text if text in ARCHITECTURES else target_of_card(text)
    if found is None:
        near = near_target(text)
        hint = f"; is it {near}?" if near else ""
        raise ValueError(f"unknown target {text!r}; known are {', '.join(ARCHITECTURES)}{hint}")
    return found


def idesc_of(text: str) -> int:
    """Return the word of an instruction descriptor; raises UsageError."""
    word = integer_in(text)
    if word is None or word < 0:
        raise click.UsageError(f"--idesc {text!r}: expected a word such as 0x08100010")
    return word


def place_of(text: str) -> tuple[int, int]:
    """Return row and column of ``3,17``; raises UsageError."""
    row, comma, column = text.partition(",")
    place = whole_number(row.strip()), whole_number(column.strip())
    if not comma or place[0] is None or place[1] is None:
        raise click.UsageError(f"--element {text!r}: expected ROW,COLUMN such as 3,17")
    return place[0], place[1]


def number_of(text: str) -> int:
    """Return an integer, decimal or with 0x. Raises ValueError."""
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer, decimal or with 0x") from None


def _version_of(text: str) -> str:
    """Return a version of PTX that is two numbers. Raises IllegalInstruction."""
    from ...ptx.decode import version_of

    version_of(text)
    return text


def _schedule_of(text: str) -> str:
    """Return a schedule that there is. Raises OperandError."""
    from ...machine.run.schedules import Schedule as Known

    Known(text)
    return text


def _selection_of(text: str) -> Any:
    """Return ``cta=0,0 warp=1 line=120 step=3`` as a selection. Raises OperandError."""
    from ...observe.recording.selection import selection_of

    return selection_of(text)


def _break_of(text: str) -> Any:
    """Return a line of the PTX, or of a source. Raises OperandError."""
    from ...observe.stops.stop_places import break_of

    return break_of(text)


# --- completions -----------------------------------------------------------------------------------


def _targets(context: click.Context, text: str) -> Iterator[str]:
    from ...isa.architectures import ARCHITECTURES

    done, comma, last = text.rpartition(",")
    yield from (done + comma + name for name in ARCHITECTURES if name.startswith(last))


def _mnemonics(context: click.Context, text: str) -> Iterator[str]:
    """Yield forms up to the next modifier, so that a list fits on a screen."""
    from ...sums.execution.interface import instructions

    found = (form.mnemonic for form in instructions(context.params.get("target")))
    ends = re.compile(re.escape(text) + r"[^.]*\.?")
    yield from sorted({match[0] for match in map(ends.match, found) if match})


def _entries(context: click.Context, text: str) -> Iterator[str]:
    """Yield the entries of the PTX that stands before, perhaps among words that click could not place."""
    from ...base.errors import WarpsimError
    from ...base.files.archives import read_text

    files = [Path(word) for word in (context.params.get("file"), *context.args) if word]
    for file in files:
        with suppress(OSError, WarpsimError):
            text_of_file = read_text(file) if file.suffix == ".ptx" and file.is_file() else ""
            names = re.findall(r"\.entry\s+([\w$]+)", text_of_file)
            yield from (name for name in dict.fromkeys(names) if name.startswith(text))


# --- arguments -------------------------------------------------------------------------------------

_ANY_PATH = click.Path(path_type=Path)  # reading says what is wrong with a folder
Mnemonic = Annotated[str, Option(suggest=_mnemonics)]
MnemonicOrNone = Annotated[str | None, Option(suggest=_mnemonics)]
InputFile = Annotated[Path, Option(type=_ANY_PATH)]
InputFiles = Annotated[tuple[Path, ...], Option(type=_ANY_PATH)]
Operands = Annotated[tuple[str, ...], Option(metavar="[NAME=VALUE | FILE]...")]

# --- files that are written ------------------------------------------------------------------------

_OUT = Option(names=("-o", "--out"), metavar="FILE")
Out = Annotated[Path | None, _OUT]
NeededOut = Annotated[Path, _OUT]
Converted = Annotated[Out, "Write FILE.npy, FILE.npz or text instead of printing."]
FOLDER = Option(type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER")
VectorFormat = Annotated[str | None, Option(metavar="FORMAT")]

# --- the instruction -------------------------------------------------------------------------------

_CHIP = Option(names=("--target",), metavar="SM", parse=target_of, suggest=_targets)
Target = Annotated[str | None, _CHIP, "The chip, such as sm_90a, or a card, such as H100."]
NeededTarget = Annotated[str, _CHIP, "The chip, such as sm_90a, or a card, such as H100."]
PtxVersion = Annotated[str | None, "--ptx-version", Option(metavar="VERSION", parse=_version_of)]
Idesc = Annotated[
    int | None,
    Option(metavar="HEX", parse=idesc_of),
    "The instruction descriptor of a tcgen05.mma: shape and types.",
]
Selector = Annotated[int, "Sparsity selector."]
Operand = Literal["a", "b", "c", "d", "e"]
Engine = Annotated[Literal["kernel", "reference"], "The compiled kernels, or plain Python integers."]
Undefined = Annotated[
    Literal["error", "fallback"],
    "--allow-undefined",
    Option(flag=True),
    "Execute metadata that PTX leaves undefined or that is not modelled, reading each field literally.",
]

# --- how it is executed ----------------------------------------------------------------------------

_SOME = Option(type=click.IntRange(1), metavar="N")
Some = Annotated[int, _SOME]
SomeOrNone = Annotated[int | None, _SOME]
Threads = Annotated[int | None, _SOME, Option(shown="number of cores"), "Threads of this process."]
Processes = Annotated[int | None, Option(type=click.IntRange(1, 256), metavar="N")]
Differences = Annotated[int, "--show", Option(type=click.IntRange(0)), "Differences to explain of each set."]
Seed = Annotated[int, Option(type=click.IntRange(0)), "Same seed, same set."]
Scheduler = Annotated[
    str | None,
    Option(metavar="ADDRESS"),
    "Share the work out over the Dask cluster of this scheduler, such as tcp://host:8786.",
]
Mangled = Annotated[bool, "Names as the PTX has them, not C++ names."]

# --- launches --------------------------------------------------------------------------------------

Entry = Annotated[str | None, Option(metavar="NAME", suggest=_entries)]
Nvcc = Annotated[tuple[str, ...], Option(metavar="OPTION"), "An option for nvcc, which compiles a .cu FILE."]
Schedule = Annotated[str, Option(metavar="program|earliest|latest|random:SEED", parse=_schedule_of)]
Schedules = Annotated[int, Option(type=click.IntRange(1, 64), metavar="N")]
Resident = Annotated[
    int,
    Option(type=click.IntRange(1), metavar="CTAS"),
    "CTAs that a multiprocessor has at a time: they share its tensor memory, and wait for its columns.",
]
Tolerance = Annotated[float, Option(type=click.FloatRange(0, 1, max_open=True), metavar="RELATIVE")]

# --- which execution -------------------------------------------------------------------------------

Event = Annotated[int | None, "Of a trace or recording: which instruction, from 0; the last if left out."]
Warp = Annotated[int | None, "Of a warpgroup's mma: which warp; the first if left out."]
Case = Annotated[int, "Of a vector set: which case."]
_PLACE = Option(metavar="ROW,COLUMN", parse=place_of)
Element = Annotated[tuple[int, int], _PLACE]
ElementOrNone = Annotated[tuple[int, int] | None, _PLACE]
if TYPE_CHECKING:
    Targets = tuple[str, ...] | None
    Select = _Selection | None
    Breaks = tuple[Break, ...]
else:
    Targets = Annotated[
        Any | None,
        "--target",
        Option(
            metavar="SM[,SM...]",
            parse=lambda text: tuple(target_of(name.strip()) for name in text.split(",") if name.strip()),
            suggest=_targets,
        ),
        "One chip, or several side by side.",
    ]
    Select = Annotated[
        Any | None,
        "--select",
        Option(metavar='"cta=X,Y warp=N line=N step=N"', parse=_selection_of),
        "Of a recording: executions by a CTA, by a warp of it, of a line, the so many-th of each warp.",
    ]
    Breaks = Annotated[tuple[Any, ...], "--break", Option(parse=_break_of)]
