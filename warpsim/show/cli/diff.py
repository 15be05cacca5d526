"""``warpsim diff``: find the mistake that explains a wrong D; compare two dumps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from ...isa.warps import WARP
from .contradictions import check_sources
from .operand_values import operands_from, read_decimals, read_dump
from .options import Json, Operands, Select, Target
from .output import EXPECTED, MISMATCH, deliver, perform, print_json, say
from .progress import Watch, watching
from .sources import (
    check_unselected,
    decoded,
    is_file,
    is_recording,
    is_vectors,
    open_set,
    read_set,
    recorded,
)
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...observe.recording.selection import Selection
    from ...workbench.vectors.recordings import Recording

Diagnosed = list[tuple[str, Any]]

_PART = 1 << 13  # cases of two sets that are compared at a time


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """How operands are read, and what is looked for."""

    target: Annotated[Target, "Of a mnemonic: the chip, such as sm_90a."]
    singles: Annotated[bool, "Look for single mistakes only, not for two at once."]
    layout: Annotated[
        str | None,
        Option(names=("--format", "--type"), metavar="TYPE|TEXT"),
        "Of two dumps of words: what their elements are; f32 if left out. Arrays of numbers know. Of D.npy: "
        "the type of a byte in which D was stored, e4m3 or e5m2. Of texts of "
        "registers in a form of your own: 'lane {lane} {name}[{reg}] = {hex}', or with {value}. Of numbers "
        "without rows: row-major or column-major.",
    ]
    selection: Select

    @property
    def most(self) -> int:
        """How many mistakes at once are looked for."""
        return 1 if self.singles else 2


@verb
def diff(
    source: Annotated[str, Option(metavar="TRACE|VECTORS|RECORDING|DUMP|MNEMONIC")],
    operands: Operands = (),
    *,
    asked: _Asked,
    as_json: Json,
) -> int:
    """Find the mistake that explains a wrong D bit for bit, or compare two dumps.

    \b
    MNEMONIC a=a.txt b=b.txt c=c.txt d=d.txt   what the instruction should read, and the D that came out
    MNEMONIC A=a.npy B=b.npy C=c.npy D=d.npy   the same as matrices; larger matrices are a loop along k
    MNEMONIC A=a.npy a=a.txt                   does this dump hold this matrix? also e=, and of B and C;
                                               block scales: SCALE_A=s.npy scale_a=dump.txt
    TRACE                                      a D that it expects and does not get; instructions that add
                                               to one D together
    VECTORS                                    the cases whose D the model does not give
    VECTORS d=unit.log                         the results of a unit under test: lines of the generated bench
                                               or another, CSV, JSON lines, $writememh, hex words, .npy
    RECORDING                                  the same, of a launch
    RECORDING D=d.npy                          the D of its events against expected matrices, or registers d=
    DUMP DUMP                                  two register dumps, or the D of two vector sets
    RECORDING RECORDING                        what differs, the first instruction that does so by itself, and
                                               why

    Operands are the arguments of warpsim.execute by name, or matrices A, B, C and D. Exit code 1: D differs.
    """
    if is_file(source) and len(operands) == 1 and "=" not in operands[0]:
        if is_recording(source) and is_recording(operands[0]):
            return _compare_recordings(source, operands[0], asked)
        return _compare(source, operands[0], asked.layout)
    check_unselected(source, asked.selection)
    traced = is_file(source) and not is_recording(source) and not is_vectors(source)
    if is_file(source) and (asked.target or (operands and traced)):
        raise click.UsageError("operands and --target go with a mnemonic; two dumps are two files")
    subject = Path(source) if is_file(source) else Path("OPERANDS")
    with watching("explanations") as watch:
        found = perform(_diagnosed, subject, source, operands, asked, watch)
    _report(found, as_json)
    return EXPECTED if all(_is_right(item) for _, item in found) else MISMATCH


def _is_right(found: Any) -> bool:
    from ...workbench.diagnosis import Holding

    return bool(found.holds if isinstance(found, Holding) else found.as_expected)


def _report(found: Diagnosed, as_json: bool) -> None:
    if as_json:
        subjects = [{"subject": title} | _shown(item)[1]() for title, item in found]
        print_json({"subjects": subjects, "errors": []})
        return
    for title, item in found:
        lines = [f"  {line}" if title else line for line in _shown(item)[0]()]
        say("\n".join([*([title] if title else []), *lines]))
    if not found:
        say("every D is as expected, bit for bit")


def _shown(found: Any) -> tuple[Any, Any]:
    """Return the lines and the document of a diagnosis as functions."""
    from ...workbench.diagnosis import Holding, LoopDiagnosis, StepLog
    from ...workbench.diagnosis.search.tensor_search import TensorDiagnosis
    from ..views import findings as views
    from ..views import held_operands
    from ..views.recordings import Followed, Misplaced
    from ..views.units import UnitReport

    if isinstance(found, Misplaced | Followed | UnitReport | TensorDiagnosis):
        return found.lines, found.document
    if isinstance(found, Holding):
        return lambda: held_operands.holding_lines(found), lambda: held_operands.holding_document(found)
    if isinstance(found, StepLog):
        return lambda: held_operands.step_lines(found), lambda: held_operands.step_document(found)
    if isinstance(found, LoopDiagnosis):
        return lambda: views.product_lines(found), lambda: views.product_document(found)
    return lambda: views.diagnosis_lines(found), lambda: views.diagnosis_document(found)


# --- the search ------------------------------------------------------------------------------------


def _diagnosed(
    _: Path, source: str, operands: tuple[str, ...], asked: _Asked, watch: Watch | None
) -> Diagnosed:
    """Return the subjects and their diagnoses; of a trace, vector set or recording only what differs."""
    from .differing import of_recording, of_set, of_trace, of_unit

    most = asked.most
    if is_recording(source):
        found = recorded(source, asked.selection)
        return list(_against(found, operands, most) if operands else of_recording(found, most))
    if operands and is_file(source) and is_vectors(source):
        if len(operands) > 1:
            raise click.UsageError("of a vector set give the results of one unit: d=FILE")
        order = asked.layout or ""
        return list(of_unit(read_set(source), source, operands[0], order, most, watch))
    if is_file(source):
        return list(of_set(open_set(source), source, most) if is_vectors(source) else of_trace(source, most))
    return _of_operands(source, operands, asked, watch)


def _of_operands(source: str, operands: tuple[str, ...], asked: _Asked, watch: Watch | None) -> Diagnosed:
    """Diagnose an instruction with its operands, a product of whole matrices, or
    operands given in two forms.
    """
    from ...workbench.diagnosis import diagnose, diagnose_product

    form, given = decoded(source, asked.target, operands, asked.layout)
    if form.descriptor is not None:
        return [("", _in_tensor_memory(form, given))]
    printed = given.pop("printed", None)
    if asked.layout is None:
        check_sources(form, given, operands)
    logged = _logged(form, given, printed, watch)
    held = [*_held_scales(form, given), *_held(form, given, printed)]
    if logged:
        return [*(pair for pair in held if pair[1].operand not in "cd"), *logged]
    if held and not (given.keys() & {"d", "D"} and _has_operands(given)):
        return held
    if not given.keys() & {"d", "D"}:
        raise click.UsageError("give the D that came out: d=FILE (registers) or D=FILE (matrix)")
    _unpack_results(form, given)
    if _is_product(form, given):
        return [*held, ("", diagnose_product(form, **given, printed=printed, watch=watch))]
    given |= _packed(form, given)
    return [*held, ("", diagnose(form, most=asked.most, printed=printed, watch=watch, **given))]


def _in_tensor_memory(form: Any, given: dict[str, Any]) -> Any:
    """Return the diagnosis of a tcgen05.mma: words of tensor memory, or matrices in their place."""
    from ...isa.fragments import pack
    from ...sums.execution.inputs import inputs_by_name
    from ...workbench.diagnosis.search.tensor_search import diagnose_tensor

    matrices = {name.lower(): given.pop(name) for name in "ABCD" if name in given}
    words = {name: pack(form, name, matrix) for name, matrix in matrices.items() if name in "cd"}
    given |= words | {name: matrix for name, matrix in matrices.items() if name in "ab"}
    if "d" not in given:
        raise click.UsageError("give the D that came out: d=FILE (words of tensor memory) or D=FILE (matrix)")
    if "c" not in given:
        given["enable_input_d"] = 0
    d = given.pop("d")
    return diagnose_tensor(form, inputs_by_name(given), d)


def _logged(form: Any, given: dict[str, Any], printed: Any, watch: Watch | None) -> Diagnosed:
    """Return the steps of a log of accumulators, which leaves ``given``, beside A and B: whole matrices, or
    registers of every step.
    """
    from ...workbench.diagnosis import diagnose_steps
    from ...workbench.diagnosis.contents.dump_contents import Operands
    from ...workbench.diagnosis.loops.step_logs import is_one_loop

    dumps = {name: given[name] for name in "abcde" if getattr(given.get(name), "ndim", 0) == 3}
    matrices = {name: given[name] for name in "ABC" if name in given}
    read = {"a": "A", "b": "B", "e": "A"}
    known = all(name in dumps or own in matrices for name, own in read.items() if name in form.registers)
    if not known or not dumps.keys() & {"c", "d"} or form.lanes > WARP:
        return []
    if any(matrix.ndim != 2 for matrix in matrices.values()):
        return []
    selector = given.get("selector", 0)
    if not matrices.keys() & {"A", "B"}:
        alone = dumps.keys() >= {"c", "d"} or "c" in given or "d" not in dumps
        if alone or not is_one_loop(form, dumps, selector):
            return []
    found = diagnose_steps(Operands(form, matrices, selector=selector), dumps, printed, watch)
    for name in dumps.keys() & {"c", "d"}:
        del given[name]
    return [("", found)]


def _unpack_results(form: Any, given: dict[str, Any]) -> None:
    """Make matrices of C and D in registers, where A and B are those of a whole product."""
    from ...sums.execution.interface import unpack

    if not {"A", "B"} <= given.keys() or given["A"].ndim != 2 or given["A"].shape[1] <= form.shape.k:
        return
    for name in "cd":
        if getattr(given.get(name), "ndim", 0) == 2 and name.upper() not in given:
            given[name.upper()] = unpack(form, name, given.pop(name))


def _has_operands(given: dict[str, Any]) -> bool:
    """Return whether A and B are there, in whatever form, so that D can be computed."""
    return bool(given.keys() & {"a", "A", "a_desc"}) and bool(given.keys() & {"b", "B", "b_desc"})


def _is_product(form: Any, given: dict[str, Any]) -> bool:
    """Return whether there are matrices larger than those of one instruction."""
    if not {"A", "B", "D"} <= given.keys() <= {"A", "B", "C", "D", "scale_a", "scale_b"}:
        return False
    shapes = {
        "A": (form.shape.m, form.shape.k),
        "B": (form.shape.k, form.shape.n),
        "D": (form.shape.m, form.shape.n),
    }
    scales = "scale_a" in given and getattr(given["scale_a"], "shape", ())[-2:] != (WARP, 1)
    return all(given[name].ndim == 2 for name in shapes) and (
        scales or any(given[name].shape != shape for name, shape in shapes.items())
    )


def _held(form: Any, given: dict[str, Any], printed: Any = None) -> Diagnosed:
    """Return whether dumps hold the matrices of their operands; such dumps leave ``given``.

    Metadata keep the words that the selector does not read.
    """
    import numpy as np

    from ...workbench.diagnosis import held
    from ...workbench.diagnosis.contents.dump_contents import words_read

    selector = given.get("selector", 0)
    names = "ACD" if form.lanes > WARP else "ABCD"
    matrices = {name: given[name] for name in names if name in given}
    dumps = {name: given[name] for name in "abcde" if name in given}
    if printed is not None and {"D"} <= matrices.keys() and "d" in dumps:
        dumps["d"] = _to_the_digits(form, matrices["D"], dumps["d"], printed)
    if _has_operands(given):  # D is computed, and not looked up
        matrices.pop("D", None)
    found = held(form, matrices, dumps, selector=selector)
    for item in found:
        dump = given.pop("D" if item.operand == "d" else item.operand)
        if item.operand == "e" and dump.ndim == 2:
            given["e_unread"] = np.where(words_read(form, "e", dump.shape, selector), 0, dump)
    return [("", item) for item in found]


def _held_scales(form: Any, given: dict[str, Any]) -> Diagnosed:
    """Return whether dumps of scales hold their matrices; a matrix without a dump is the scales."""
    from ...isa.operand_places.placements import ScaleSelectors
    from ...workbench.diagnosis import held_scales

    found: Diagnosed = []
    ids = ScaleSelectors(**{name: given[name] for name in ScaleSelectors._fields if name in given})
    for name in ("scale_a", "scale_b"):
        if name.upper() not in given:
            continue
        matrix = given.pop(name.upper())
        if name in given:
            found.append(("", held_scales(form, name, matrix, given.pop(name), ids)))
        else:
            given[name] = matrix
    return found


def _to_the_digits(form: Any, D: Any, dump: Any, printed: Any) -> Any:
    """Return registers of D in which numbers that print as those of the matrix are these."""
    import numpy as np

    from ...isa.codes import codes_of
    from ...isa.fragments import codes_from, registers_of

    codes = codes_of(D, form.d, "D")
    if codes.shape != form.matrix_shape("d") or dump.ndim != 2:
        return dump
    wanted = codes_from(dump, form, "d")
    settled = printed.settled(codes, wanted, form.d) == wanted
    return registers_of(np.where(settled, codes, wanted), form, "d")


def _packed(form: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the registers of matrices, which leave ``given``."""
    from ...sums.execution.interface import compress, pack, pack_metadata

    made: dict[str, Any] = {}
    unread = given.pop("e_unread", None)
    if form.lanes > WARP and "B" in given:
        made |= _in_shared(form, given.pop("B"), given)
    if "A" in given:
        values = given.pop("A")
        if form.sparse:
            values, indices = compress(values, form)
            made["e"] = pack_metadata(form, indices, given.get("selector", 0))
            made["e"] = made["e"] if unread is None else made["e"] | unread
        made["a"] = pack(form, "a", values)
    for name in "BCD":
        if name in given:
            made[name.lower()] = pack(form, name.lower(), given.pop(name))
    twice = sorted(made.keys() & given.keys())
    if twice:
        raise click.UsageError(f"{twice[0]} is given as registers and by a matrix")
    return made


def _in_shared(form: Any, B: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return shared memory with B as a wgmma reads it, packed without swizzle, and its descriptor.

    Where both are given they stay, if they hold B; otherwise raises OperandError.
    """
    import numpy as np

    from ...base.errors import OperandError
    from ...isa.codes import codes_of
    from ...isa.descriptors.matrix_descriptor import MAJORS, Descriptor
    from ...isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
    from ...isa.descriptors.tile_addresses import load_tile, store_tile
    from ...isa.descriptors.tile_shape import TileShape

    tile = np.ascontiguousarray(np.swapaxes(codes_of(B, form.b, "B"), -1, -2))
    if tile.ndim != 2:
        raise OperandError("B of a wgmma is one matrix: give shared= and b_desc= for several tiles")
    shape = TileShape.of(tile, "K")
    word = canonical_descriptor(0, shape, swizzle="none").encode()
    if "shared" not in given and "b_desc" not in given:
        memory = np.zeros(canonical_bytes(shape, swizzle="none"), np.uint8)
        store_tile(memory, Descriptor.decode(word), tile, major="K")
        return {"shared": memory, "b_desc": word}
    if not {"shared", "b_desc"} <= given.keys():
        raise OperandError(
            f"B lies in shared memory by its descriptor: give shared= and b_desc= (0x{word:016x} where it is "
            f"packed from address 0 on without swizzle), or B alone"
        )
    shape = TileShape.of(tile, MAJORS[bool(given.get("imm_trans_b"))])
    held = load_tile(given["shared"], Descriptor.decode(int(given["b_desc"])), shape)
    if not np.array_equal(held, tile):
        count = int((held == tile).sum())
        raise OperandError(
            f"shared memory does not hold B by b_desc: {count} of {tile.size} elements are B's"
        )
    return {}


def _against(recording: Recording, operands: tuple[str, ...], most: int) -> Iterator[tuple[str, Any]]:
    """Return the events whose D is not as expected, by an operand."""
    from .differing import against_expected

    (form, *others) = dict.fromkeys(event.instruction for event in recording.events)
    if others:
        raise click.UsageError(f"D is of one instruction: select a line; there are {form} and {others[0]}")
    given = operands_from(form, operands)
    if not given.keys() <= {"d", "D"} or len(given) != 1:
        raise click.UsageError(
            "of a recording give the D that was expected: d=FILE (registers) or D=FILE (matrix)"
        )
    given |= _packed(form, given)
    return against_expected(recording, form, given["d"], most)


# --- two dumps -------------------------------------------------------------------------------------


def _compare(first: str, second: str, element: str | None) -> int:
    from ..views.findings import comparison_document, comparison_lines

    comparison, x, y, printed = perform(_compared, Path(first), first, second, element)

    def lines() -> Any:
        if printed is not None and comparison.equal:
            return f"equal {printed.reach}, {printed}"
        return comparison_lines(comparison, x, y)

    return deliver(lambda: comparison_document(comparison), lines, EXPECTED if comparison.equal else MISMATCH)


def _compared(_: Path, first: str, second: str, element: str | None) -> tuple[Any, Any, Any, Any]:
    from ...workbench.diagnosis import compare
    from ...workbench.inputs.decimals import Decimals

    if all(map(_is_set, (first, second))):
        return *_sets_compared(first, second), None
    sides = [_dumped(source) for source in (first, second)]
    if any(isinstance(side, Decimals) for side, _ in sides):
        return _compared_digits(sides, (first, second))
    formats = [side for _, side in sides if side]
    x, y = (_typed(side, element) for side, _ in sides)
    typed = x.dtype.kind == "V" or x.dtype != sides[0][0].dtype
    return compare(x, y, formats[0] if formats else None if typed else element), x, y, None


def _is_set(source: str) -> bool:
    from ...workbench.vectors.formats.npz import is_set

    return source.endswith(".npz") and is_set(Path(source))


def _sets_compared(first: str, second: str) -> tuple[Any, Any, Any]:
    """Return the comparison of D of two sets, and the first words of each that differ, by their place.

    A part of D is in memory at a time, and the class of each element.
    """
    import numpy as np

    from ...workbench.diagnosis.dumps.dump_comparison import DumpComparison, check_alike, compare
    from ...workbench.vectors.formats.npz import NpzFormat
    from ..views.findings import SHOWN

    left, right = (NpzFormat().in_parts(Path(source)) for source in (first, second))
    check_alike(left.specs()["d"], right.specs()["d"])
    x, y, elements, start = dict[Any, Any](), dict[Any, Any](), list[Any](), 0
    for a, b in zip(left.blocks("d", _PART), right.blocks("d", _PART), strict=True):
        found = compare(a, b, left.instruction.d)
        elements.append(found.elements)
        for case, *place in np.argwhere(found.words)[: SHOWN - len(x)].tolist():
            x[start + case, *place], y[start + case, *place] = a[case, *place], b[case, *place]
        start += len(a)
    return DumpComparison(elements=np.concatenate(elements), format=left.instruction.d), x, y


def _compared_digits(sides: Any, sources: tuple[str, str]) -> tuple[Any, Any, Any, Any]:
    """Return the comparison of an array of floating point with a text of decimals, to the digits printed.

    Raises OperandError for two texts, and for other sizes.
    """
    from ...base.errors import OperandError
    from ...isa.codes import codes_of
    from ...isa.formats import FORMATS
    from ...workbench.diagnosis import compare
    from ...workbench.inputs.decimals import Decimals, nearest

    texts = [isinstance(side, Decimals) for side, _ in sides]
    text, (array, _) = sides[texts.index(True)][0], sides[texts.index(False) if not all(texts) else 0]
    element = next((item for item in FORMATS.values() if not all(texts) and item.dtype == array.dtype), None)
    if element is None or not element.is_float:
        raise OperandError("a text of decimals is compared with an array of floating-point numbers, .npy")
    if array.size != text.values.size:
        raise OperandError(f"{sources[0]} and {sources[1]}: {array.size} against {text.values.size} numbers")
    wanted, codes = nearest(text.values.reshape(array.shape), element), codes_of(array, element, "the array")
    equal = text.printed.settled(codes, wanted, element) == wanted
    digits = wanted.copy()
    digits[equal] = codes[equal]
    made = digits.view(element.dtype)
    x, y = (made, array) if texts[0] else (array, made)
    return compare(x, y, None), x, y, text.printed


def _typed(array: Any, element: str | None) -> Any:
    """Return arrays whose dtype NumPy has no name for, such as fp8 of ml_dtypes, in the
    dtype of ``--type``.
    """
    from ...base.errors import OperandError
    from ...isa.formats import FORMATS

    if (
        array.dtype.kind != "V"
        or array.dtype.fields
        or array.dtype.name in {item.dtype.name for item in FORMATS.values()}
    ):
        return array
    if element not in FORMATS or FORMATS[element].dtype.itemsize != array.dtype.itemsize:
        fitting = [name for name, item in FORMATS.items() if item.dtype.itemsize == array.dtype.itemsize]
        raise OperandError(
            f"an array of {array.dtype}: state its type by --type, one of {', '.join(fitting)}"
        )
    return array.view(FORMATS[element].dtype)


def _compare_recordings(first: str, second: str, asked: _Asked) -> int:
    from ..views.recordings import (
        comparison_document,
        comparison_lines,
        divergence_document,
        divergence_lines,
    )

    found, parted = perform(_recordings_compared, Path(first), second, asked.selection, asked.most)
    return deliver(
        lambda: comparison_document(found) | {"first": parted and divergence_document(parted)},
        lambda: [
            *comparison_lines(found),
            *(() if parted is None else divergence_lines(parted, (first, second))),
        ],
        EXPECTED if found.equal else MISMATCH,
    )


def _recordings_compared(first: Path, second: str, selection: Selection | None, most: int) -> Any:
    """Return what differs, and where two recordings diverge."""
    from ...workbench.diagnosis.recordings.divergence import compare_recordings, first_divergence

    left, right = (recorded(source, selection) for source in (str(first), second))
    found = compare_recordings(left, right)
    return found, first_divergence(found, left, right, most)


def _dumped(source: str) -> tuple[Any, Any]:
    """Return words, and the format of their elements where the file states it: D of a vector set."""
    from ...base.errors import TraceError

    if _is_set(source):
        import numpy as np

        vectors = open_set(source)
        return np.concatenate([*vectors.blocks("d")]), vectors.instruction.d

    try:
        return read_dump(source), None
    except TraceError:
        if (found := read_decimals(source)) is None:
            raise
        return found, None
