"""``warpsim layout``: draw which lane holds which element."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...isa.numerals import whole_number
from .options import idesc_of, json_option
from .output import CONTEXT, EXPECTED, Failure, attempt, colourful, fail, print_json, say

if TYPE_CHECKING:
    from ...isa.instruction import Instruction
    from ..views.layouts.shared_tiles import SharedTile

_PAGE = ".html"


@click.command(context_settings=CONTEXT)
@click.argument("mnemonic")
@click.option(
    "--operand", type=click.Choice(["a", "b", "c", "d", "e", "scale_a", "scale_b"]), help="This operand only."
)
@click.option("--selector", type=int, default=0, show_default=True, help="Sparsity selector.")
@click.option(
    "--notation",
    type=click.Choice(["ptx", "cute"]),
    default="ptx",
    show_default=True,
    help="T0:{a0,a1}, or shape:stride.",
)
@click.option(
    "--element", metavar="ROW,COLUMN", help="Where one element of --operand lies; of d also what feeds it."
)
@click.option("--lane", type=int, help="What one lane holds, of --operand or of all.")
@click.option("--register", type=int, help="With --lane and --operand: only this register.")
@click.option(
    "--swizzle",
    type=click.Choice(["none", "32B", "64B", "128B"]),
    help="Of wgmma's a or b: the tile in shared memory, packed at address 0.",
)
@click.option("--idesc", metavar="HEX", help="The instruction descriptor of a tcgen05.mma: shape and types.")
@click.option(
    "--major", type=click.Choice(["K", "MN"]), default="K", show_default=True, help="With --swizzle."
)
@json_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the figures to FILE.svg, .png, .pdf or .tex (TikZ), or figures and formulas to FILE.html.",
)
def layout(mnemonic: str, as_json: bool, out: Path | None, **choices: Any) -> int:
    """Draw which lane and register hold which element, and which metadata bits describe what."""
    _check(as_json, out, **choices)
    if out:
        failure = attempt(_write, out, mnemonic, choices)
        return failure.code() if failure else EXPECTED
    done = attempt(_layout, Path("MNEMONIC"), mnemonic, as_json, choices)
    if isinstance(done, Failure):
        return fail(done, as_json)
    drawn = not _is_question(choices) and choices["notation"] == "ptx"
    if as_json:
        print_json(done)
    elif drawn and sys.stdout.isatty() and colourful():
        attempt(_show, Path("MNEMONIC"), mnemonic, choices)
    else:
        say("\n".join(done))
    return EXPECTED


def _is_question(choices: dict[str, Any]) -> bool:
    return choices["element"] is not None or choices["lane"] is not None


def _check(as_json: bool, out: Path | None, **choices: Any) -> None:
    """Raise UsageError for options that do not go together."""
    if choices["element"] is not None and choices["lane"] is not None:
        raise click.UsageError("--element and --lane are two questions: give one of them")
    if choices["element"] is not None and choices["operand"] is None:
        raise click.UsageError("--element needs --operand")
    if choices["register"] is not None and (choices["lane"] is None or choices["operand"] is None):
        raise click.UsageError("--register needs --lane and --operand")
    if choices["swizzle"] and (choices["operand"] not in ("a", "b") or choices["lane"] is not None):
        raise click.UsageError("--swizzle goes with --operand a or b: a tile in shared memory, without lanes")
    if out and (_is_question(choices) or as_json or choices["notation"] != "ptx"):
        raise click.UsageError("--out writes all figures: leave --element, --lane, --json and --notation out")
    if out:
        _check_name(out)


def _check_name(out: Path) -> None:
    from ..views.drawings.figure_files import FIGURES

    known = (*FIGURES, _PAGE)
    if out.suffix.lower() not in known:
        raise click.UsageError(f"--out {out}: its name ends in {', '.join(known)}")


def _form(mnemonic: str, choices: dict[str, Any]) -> Instruction:
    from ...sums.execution.interface import decode

    return decode(mnemonic, idesc=idesc_of(choices["idesc"]))


# --- figures ---------------------------------------------------------------------------------------


def _write(out: Path, mnemonic: str, choices: dict[str, Any]) -> None:
    from ...base.files.archives import write_lines
    from ..views.drawings.figure_files import check_figure, save_figure
    from ..views.layouts.layout import layout_page, layout_svg
    from ..views.layouts.shared_tiles import tile_page, tile_svg

    form, paged = _form(mnemonic, choices), out.suffix.lower() == _PAGE
    if not paged:
        check_figure(out)
    if choices["swizzle"]:
        drawn = (tile_page if paged else tile_svg)(_tile(form, choices))
    else:
        draw = layout_page if paged else layout_svg
        drawn = draw(form, choices["operand"], selector=choices["selector"])
    if paged:
        write_lines(out, [drawn])
    else:
        save_figure(drawn, out)


def _show(_: Path, mnemonic: str, choices: dict[str, Any]) -> None:
    """Print the figures in colour, in panels as wide as the terminal."""
    from rich.console import Console

    from ..views.layouts.layout import layout_markup
    from ..views.layouts.shared_tiles import tile_markup

    console, form = Console(highlight=False), _form(mnemonic, choices)
    if choices["swizzle"]:
        lines = tile_markup(_tile(form, choices), console.width)
    else:
        operand, selector = choices["operand"], choices["selector"]
        lines = layout_markup(form, operand, selector=selector, width=console.width)
    for line in lines:
        console.print(line, soft_wrap=True)


def _layout(_: Path, mnemonic: str, as_json: bool, choices: dict[str, Any]) -> Any:
    """Return the answer as lines, or as JSON-ready data."""
    from ..views.layouts.layout import layout_document, layout_lines

    form, operand, selector = _form(mnemonic, choices), choices["operand"], choices["selector"]
    if choices["swizzle"]:
        return _shared(_tile(form, choices), choices["element"], as_json)
    if choices["element"] is not None:
        return _element(form, operand, selector, place_of(choices["element"]), as_json)
    if choices["lane"] is not None:
        return _lane(form, operand, selector, choices["lane"], choices["register"], as_json)
    if as_json:
        return layout_document(form, operand, selector=selector)
    return layout_lines(form, operand, selector=selector, notation=choices["notation"])


def _tile(form: Instruction, choices: dict[str, Any]) -> SharedTile:
    from ..views.layouts.shared_tiles import shared_tile

    return shared_tile(form, choices["operand"], choices["swizzle"], choices["major"])


# --- questions -------------------------------------------------------------------------------------


def _shared(tile: SharedTile, element: str | None, as_json: bool) -> Any:
    """Return a tile in shared memory, or the place of one of its elements."""
    from ..views.layouts.shared_tiles import tile_document, tile_lines

    if element is None:
        return tile_document(tile) if as_json else tile_lines(tile)
    row, column = place_of(element)
    address = tile.address(row, column)
    if as_json:
        return {"mnemonic": tile.instruction.mnemonic, "operand": tile.operand, "address": address}
    return [f"{tile.operand.upper()}[{row},{column}]: byte {address:#06x} from the start of the tile"]


def _element(form: Instruction, operand: str, selector: int, place: tuple[int, int], as_json: bool) -> Any:
    from ..views.layouts.lookups import element_document, element_lines, feeds_lines

    if as_json:
        return element_document(form, operand, *place, selector=selector)
    lines = element_lines(form, operand, *place)
    return lines + feeds_lines(form, *place, selector=selector) if operand == "d" else lines


def _lane(
    form: Instruction, operand: str | None, selector: int, lane: int, register: int | None, as_json: bool
) -> Any:
    """Return what a lane holds of an operand, or of all operands."""
    from ...isa.operand_places.places import lane_places, register_operands
    from ..views.layouts.figures import place_document
    from ..views.layouts.lookups import lane_lines

    names = (operand,) if operand else register_operands(form)
    if as_json:
        held = [lane_places(form, name, lane, register, selector=selector) for name in names]
        places = [place_document(item) for part in held for item in part]
        return {"mnemonic": form.mnemonic, "operand": operand, "places": places}
    return [line for name in names for line in lane_lines(form, name, lane, register, selector=selector)]


def place_of(text: str) -> tuple[int, int]:
    """Return row and column of ``3,17``; raises UsageError."""
    row, comma, column = text.partition(",")
    place = whole_number(row.strip()), whole_number(column.strip())
    if not comma or place[0] is None or place[1] is None:
        raise click.UsageError(f"--element {text!r}: expected ROW,COLUMN such as 3,17")
    return place[0], place[1]
