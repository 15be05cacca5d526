"""``warpsim layout``: draw which lane holds which element."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from ...base.errors import present
from .options import ElementOrNone, Idesc, Json, Mnemonic, Out, Selector, Target
from .output import EXPECTED, attempt, colourful, deliver, perform
from .verbs import verb

if TYPE_CHECKING:
    from ...isa.instruction import Instruction
    from ..views.layouts.shared_tiles import SharedTile

_PAGE = ".html"


@dataclass(frozen=True, kw_only=True)
class _Choices:
    """What is drawn, or asked."""

    operand: Annotated[Literal["a", "b", "c", "d", "e", "scale_a", "scale_b"] | None, "This operand only."]
    target: Target
    selector: Selector = 0
    notation: Annotated[Literal["ptx", "cute"], "T0:{a0,a1}, or shape:stride."] = "ptx"
    element: Annotated[ElementOrNone, "Where one element of --operand lies; of d also what feeds it."]
    lane: Annotated[int | None, "What one lane holds, of --operand or of all."]
    register: Annotated[int | None, "With --lane and --operand: only this register."]
    swizzle: Annotated[
        Literal["none", "32B", "64B", "128B"] | None,
        "Of wgmma's a or b: the tile in shared memory, packed at address 0.",
    ]
    idesc: Idesc
    major: Annotated[Literal["K", "MN"], "With --swizzle."] = "K"
    as_json: Json
    out: Annotated[
        Out,
        "Write the figures to FILE.svg, .png, .pdf or .tex (TikZ), or figures and formulas to FILE.html.",
    ]

    @property
    def is_question(self) -> bool:
        """Whether an element or a lane is asked for."""
        return self.element is not None or self.lane is not None

    def check(self) -> None:
        """Raise UsageError for options that do not go together."""
        if self.element is not None and self.lane is not None:
            raise click.UsageError("--element and --lane are two questions: give one of them")
        if self.element is not None and self.operand is None:
            raise click.UsageError("--element needs --operand")
        if self.register is not None and (self.lane is None or self.operand is None):
            raise click.UsageError("--register needs --lane and --operand")
        if self.swizzle and (self.operand not in ("a", "b") or self.lane is not None):
            raise click.UsageError(
                "--swizzle goes with --operand a or b: a tile in shared memory, without lanes"
            )
        if self.out and (self.is_question or self.as_json or self.notation != "ptx"):
            raise click.UsageError(
                "--out writes all figures: leave --element, --lane, --json and --notation out"
            )
        if self.out:
            _check_name(self.out)


@verb
def layout(mnemonic: Mnemonic, *, choices: _Choices) -> int:
    """Draw which lane and register hold which element, and which metadata bits describe what."""
    choices.check()
    if choices.out:
        perform(_write, choices.out, mnemonic, choices)
        return EXPECTED
    found = perform(_layout, Path("MNEMONIC"), mnemonic, choices)
    drawn = not choices.is_question and choices.notation == "ptx"
    if drawn and not choices.as_json and sys.stdout.isatty() and colourful():
        attempt(_show, Path("MNEMONIC"), mnemonic, choices)
        return EXPECTED
    return deliver(found, found)


def _check_name(out: Path) -> None:
    from ..views.drawings.figure_files import FIGURES

    known = (*FIGURES, _PAGE)
    if out.suffix.lower() not in known:
        raise click.UsageError(f"--out {out}: its name ends in {', '.join(known)}")


def _form(mnemonic: str, choices: _Choices) -> Instruction:
    from ...sums.execution.interface import decode

    return decode(mnemonic, target=choices.target, idesc=choices.idesc)


# --- figures ---------------------------------------------------------------------------------------


def _write(out: Path, mnemonic: str, choices: _Choices) -> None:
    from ...base.files.archives import write_lines
    from ..views.drawings.figure_files import check_figure, save_figure
    from ..views.layouts.layout import layout_page, layout_svg
    from ..views.layouts.shared_tiles import tile_page, tile_svg

    form, paged = _form(mnemonic, choices), out.suffix.lower() == _PAGE
    if not paged:
        check_figure(out)
    if choices.swizzle:
        drawn = (tile_page if paged else tile_svg)(_tile(form, choices))
    else:
        draw = layout_page if paged else layout_svg
        drawn = draw(form, choices.operand, selector=choices.selector)
    if paged:
        write_lines(out, [drawn])
    else:
        save_figure(drawn, out)


def _show(_: Path, mnemonic: str, choices: _Choices) -> None:
    """Print the figures in colour, in panels as wide as the terminal."""
    from rich.console import Console

    from ..views.layouts.layout import layout_markup
    from ..views.layouts.shared_tiles import tile_markup

    console, form = Console(highlight=False), _form(mnemonic, choices)
    if choices.swizzle:
        lines = tile_markup(_tile(form, choices), console.width)
    else:
        operand, selector = choices.operand, choices.selector
        lines = layout_markup(form, operand, selector=selector, width=console.width)
    for line in lines:
        console.print(line, soft_wrap=True)


def _layout(_: Path, mnemonic: str, choices: _Choices) -> Any:
    """Return the answer as lines, or as JSON-ready data."""
    from ..views.layouts.layout import layout_document, layout_lines

    form, operand, selector = _form(mnemonic, choices), choices.operand, choices.selector
    as_json = choices.as_json
    if choices.swizzle:
        return _shared(_tile(form, choices), choices.element, as_json)
    if choices.element is not None:
        return _element(form, present(operand, "operand"), selector, choices.element, as_json)
    if choices.lane is not None:
        return _lane(form, operand, selector, choices.lane, choices.register, as_json)
    if as_json:
        return layout_document(form, operand, selector=selector)
    return layout_lines(form, operand, selector=selector, notation=choices.notation)


def _tile(form: Instruction, choices: _Choices) -> SharedTile:
    from ..views.layouts.shared_tiles import shared_tile

    return shared_tile(
        form, present(choices.operand, "operand"), present(choices.swizzle, "swizzle"), choices.major
    )


# --- questions -------------------------------------------------------------------------------------


def _shared(tile: SharedTile, element: tuple[int, int] | None, as_json: bool) -> Any:
    """Return a tile in shared memory, or the place of one of its elements."""
    from ..views.layouts.shared_tiles import tile_document, tile_lines

    if element is None:
        return tile_document(tile) if as_json else tile_lines(tile)
    row, column = element
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
