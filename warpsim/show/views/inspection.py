"""The results of the verbs layout, explain and metadata, from Python: text and data about an instruction.

A thin layer, as interface.py is: each function resolves its instruction and calls the module that knows. See
also warpsim.lint, warpsim.diagnose and warpsim.compare_registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.metadata import arrangements, detection
from ...isa.metadata.detection import Detection
from ...isa.operand_places.places import Feeds, Place
from ...isa.operand_places.places import element_place as _element_place
from ...isa.operand_places.places import feeds as _feeds
from ...isa.operand_places.places import lane_places as _lane_places
from ...ptx.decode import Form, decode, resolved
from ...workbench.diagnosis import compare as compare_registers
from ...workbench.explanation.explain import compare_dot, compare_matrices, explain_dot, explain_matrices
from ...workbench.explanation.records import Explanation, TargetComparison
from .drawings.figure_files import Drawing
from .layouts.layout import Notation, layout_lines, layout_page, layout_svg

__all__ = [
    "compare_registers",
    "compare_targets",
    "convert_metadata",
    "detect_metadata",
    "draw_layout",
    "explain",
    "find_element",
    "find_lane",
    "find_sources",
]

# --- layouts ---------------------------------------------------------------------------------------


@in_default_environment
def draw_layout(
    instruction: Form,
    operand: str | None = None,
    *,
    selector: int = 0,
    notation: Notation = "ptx",
    format: Literal["text", "svg", "html"] = "text",
) -> Drawing:
    """Return the figures of one operand (a, b, c, d, e, scale_a, scale_b) or of all, with their formulas.

    ``notation`` "cute" gives shape:stride text instead; "svg" has figures only. The text is a str with
    ``svg``, which notebooks show, and ``save("x.png")``, .svg, .pdf or .tex. Raises OperandError,
    UndefinedBehavior (selector).
    """
    form = resolved(instruction)
    if format not in ("text", "svg", "html"):
        raise OperandError(f"format {format!r}: expected 'text', 'svg' or 'html'")
    draw = partial(layout_svg, form, operand, selector=selector)
    if format == "svg":
        text = draw()
    elif format == "html":
        text = layout_page(form, operand, selector=selector)
    else:
        text = "\n".join(layout_lines(form, operand, selector=selector, notation=notation))
    return Drawing(text, draw)


def find_element(instruction: Form, operand: str, row: int, column: int) -> Place:
    """Return lane, register and bits of an element of a, b, c or d (of sparse A: stored column)."""
    return _element_place(resolved(instruction), operand, row, column)


def find_lane(
    instruction: Form, operand: str, lane: int, register: int | None = None, *, selector: int = 0
) -> tuple[Place, ...]:
    """Return what a lane, or a register of it, holds of an operand."""
    return _lane_places(resolved(instruction), operand, lane, register, selector=selector)


def find_sources(instruction: Form, row: int, column: int, *, selector: int = 0) -> Feeds:
    """Return which registers, lanes and metadata bits D[row, column] is computed from."""
    return _feeds(resolved(instruction), row, column, selector=selector)


# --- explanations ----------------------------------------------------------------------------------


@in_default_environment
def explain(
    instruction: Form, row: int, column: int, *, target: str | None = None, product: int = 0, **operands: Any
) -> Explanation:
    """Return how D[row, column] is computed, product by product; ``print`` it to read it.

    ``operands`` are the keyword arguments of warpsim.execute, or the matrices ``A``, ``B`` and perhaps ``C``,
    ``scale_a`` and ``scale_b`` of warpsim.matmul. ``product`` chooses one of the four products of m8n8k4 f16.
    Raises as those functions do, and OperandError for an element that does not exist or operands with batch
    axes.
    """
    if operands.keys() & {"A", "B"}:
        return explain_matrices(instruction, row, column, **operands, target=target)
    return explain_dot(instruction, row, column, target=target, product=product, **operands)


@in_default_environment
def compare_targets(
    instruction: Form, row: int, column: int, targets: Sequence[str], *, product: int = 0, **operands: Any
) -> TargetComparison:
    """Explain on each of several targets, and find the first step that differs."""
    if operands.keys() & {"A", "B"}:
        names = ("A", "B", "C", "scale_a", "scale_b")
        matrices = [operands.pop(name, None) for name in names]
        return compare_matrices(instruction, row, column, targets, *matrices, **operands)
    return compare_dot(instruction, row, column, targets, product=product, **operands)


# --- metadata of whole matrices --------------------------------------------------------------------


def convert_metadata(
    blob: npt.ArrayLike, rows: int, k: int, element: Form, *, source: str, target: str
) -> npt.NDArray[Any]:
    """Convert metadata of an A of ``rows x k`` from one arrangement to another.

    ``element`` is a format ("f16") or an instruction. Arrangements are "fields", "indices", "words" (E before
    reordering), "cutlass" (CUTLASS 2.x reordered E), "torch" (meta_reordered) and "lanes" (registers, as in
    "lanes m16n8k32 selector 1"). Raises OperandError.
    """
    return arrangements.convert(blob, rows, k, _element(element), source=source, target=target)


@in_default_environment
def detect_metadata(
    blob: npt.ArrayLike, rows: int, k: int, element: Form, matrix: npt.ArrayLike | None = None
) -> Detection:
    """Return the arrangements that metadata can be in; ``matrix``, logical A, excludes more of them."""
    return detection.detect(blob, rows, k, _element(element), matrix)


def _element(element: Form) -> Form:
    """Return the decoded instruction of a mnemonic; the name of a format is returned as it is."""
    return decode(element) if isinstance(element, str) and "." in element else element
