"""The effect of atomic operations on memory: new values of old values, and many lanes at one address.

Lanes update one address in turn, in the order of their numbers, each with its own rounding. add.f32 flushes
subnormals in global memory and keeps them in shared memory, as the manual says of "current implementations"
(PTX ISA 9.1, section 9.7.13.5); that min and max of halves pass over a NaN, as min.f16 does, is inferred.
Does not know lanes' registers, spaces' places or statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ...run.wave import Wave
from ...state import spaces
from ...state.lanes import Values
from ...state.spaces import Bytes, Offsets
from ..floating.doubles import NAN
from ..floating.float_bits import FORMATS, Format, format_of
from ..integer.words import number_dtype, unsigned

_FEW = 8  # lanes at one address, up to which a round for each is quicker than a scan for each address
SPACES = ("global", "shared")

# The old word, and operands by lane -> the old word and the word after each lane; None: cannot say.
Scan = Callable[..., "Values | None"]


@dataclass(frozen=True)
class Update:
    """New values of old values and operands, ``(lanes, elements)`` each; a quicker way for one element.

    ``adds`` is the format of floats that it adds, "" where it does anything else. Of old values and operands
    for which ``doubtful`` is true, results are inferred: ``note`` says how.
    """

    function: Callable[..., Values]
    scan: Scan | None = None
    adds: str = ""
    doubtful: Callable[[Values, Values], bool] | None = None
    note: str = ""


def _increment(old: Values, limit: Values) -> Values:
    return np.asarray(np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)))


def _decrement(old: Values, limit: Values) -> Values:
    return np.asarray(np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)))


def _exchange(old: Values, new: Values) -> Values:
    return new


def _compare_and_swap(old: Values, compare: Values, new: Values) -> Values:
    return np.where((old == compare).all(axis=1, keepdims=True), new, old)  # all words of a value


def _chained(old: Values, new: Values) -> Values:
    """Return all words in turn where each lane leaves its operand."""
    return np.asarray(np.r_[old, new])


def _in_turn(step: Callable[..., int]) -> Scan:
    """Return the scan of an update of integers that needs the result of the lane before."""

    def scan(old: Values, *operands: Values) -> Values:
        words = [int(old)]
        for given in zip(*(operand.tolist() for operand in operands), strict=True):
            words.append(step(words[-1], *given))
        return np.array(words, old.dtype)

    return scan


_FUNCTIONS: dict[str, Update] = {
    "inc": Update(_increment, _in_turn(lambda old, limit: 0 if old >= limit else old + 1)),
    "dec": Update(_decrement, _in_turn(lambda old, limit: limit if not 0 < old <= limit else old - 1)),
    "exch": Update(_exchange, _chained),
    "cas": Update(_compare_and_swap, _in_turn(lambda old, compare, new: new if old == compare else old)),
}
_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _integers(name: str, type_name: str) -> Update:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    ufunc, dtype = _UFUNCS[name], number_dtype(type_name)

    def function(old: Values, value: Values) -> Values:
        return unsigned(np.asarray(ufunc(old.view(dtype), value.view(dtype))))

    def scan(old: Values, values: Values) -> Values:
        return unsigned(ufunc.accumulate(np.r_[old, values].view(dtype), dtype=dtype))

    return Update(function, scan)


def _floats(name: str, type_name: str, flush: str) -> Update:
    from .. import operation

    compute = operation(name, *filter(None, (flush, type_name)), sources=2).compute
    scan = _sums(type_name) if name == "add" and type_name in ("f32", "f64") else None
    note = note_of(name, type_name)
    return Update(
        function=lambda old, value: compute(old, value)[0],
        scan=scan,
        adds=type_name.removesuffix("x2") if name == "add" else "",
        doubtful=partial(_doubtful, name, format_of(type_name)) if note else None,
        note=note,
    )


_EXTREMES = (
    "that min and max of halves in memory pass over a NaN and take -0 for less than +0 is inferred, as "
    "min.f16 and max.f16 do; everything else is exact"
)


def note_of(name: str, type_name: str) -> str:
    """Return what is inferred of an update of floats for some values; "" for nothing."""
    if name in ("min", "max"):
        return _EXTREMES
    return f"{NAN}, as of add.f64; everything else is exact" if type_name == "f64" else ""


def _doubtful(name: str, form: Format, old: Values, values: Values) -> bool:
    """Return whether a sum may be a NaN, or a minimum is of a NaN or of two zeros."""
    left, right = (np.ascontiguousarray(words).view(form.word) & form.magnitude for words in (old, values))
    if name == "add":
        return bool((np.maximum(left, right) >= form.infinity).any())
    return bool(((np.maximum(left, right) > form.infinity) | (np.maximum(left, right) == 0)).any())


def note_doubt(wave: Wave, pc: int, update: Update, old: Values, values: Values) -> None:
    """Note a statement some of whose results are inferred."""
    doubtful = update.doubtful
    if doubtful is not None and pc not in wave.inferred and doubtful(old, values):
        wave.infer(pc, update.note)


def _sums(type_name: str) -> Scan:
    """Return running sums, as long as all values are normal or zero: no flushing, no NaN."""
    form = FORMATS[type_name]
    dtype = np.dtype(f"f{form.bits // 8}")

    def scan(old: Values, given: Values) -> Values | None:
        chain: Values = np.r_[old, given]
        with np.errstate(all="ignore"):
            sums: Values = np.add.accumulate(chain.view(dtype), dtype=dtype).view(chain.dtype)
        for values in (chain, sums):
            magnitude = values & form.magnitude
            if ((magnitude >= form.infinity) | (magnitude - form.word(1) < form.largest_subnormal)).any():
                return None
        return sums

    return scan


FLUSHED = ("add", "f32")  # of copies that reduce
FLUSHES = "inferred: subnormals are flushed in global memory, as red flushes them there"


def updates_of(name: str, type_name: str) -> dict[str, Update]:
    """Return the update in each space."""
    if type_name[0] != "f" and not type_name.startswith("bf"):
        return dict.fromkeys(SPACES, _integers(name, type_name))
    flushes = {"global": "ftz"} if type_name == "f32" else {}
    return {space: _floats(name, type_name, flushes.get(space, "")) for space in SPACES}


# --- many lanes at one address -------------------------------------------------------------------------


def _runs(offsets: Offsets) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return places in the order of their offsets, ascending among equals, and where in it each offset
    begins.
    """
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    return order, np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])


def _rounds(order: npt.NDArray[np.intp], starts: npt.NDArray[np.intp]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield places with different offsets; those of one offset come in turn."""
    lengths = np.diff(np.r_[starts, order.size])
    rank = np.arange(order.size) - np.repeat(starts, lengths)
    by_turn = np.argsort(rank, kind="stable")
    yield from np.split(order[by_turn], np.cumsum(np.bincount(rank))[:-1])


def apply(memory: Bytes, offsets: Offsets, operands: list[Values], update: Update) -> Values:
    """Update words in turn, and return the old value of each, ``(offsets, elements)``."""
    order, starts = _runs(offsets)
    scan = update.scan
    if scan is not None and offsets.size > _FEW * starts.size and operands[0].shape[1] == 1:
        return _by_address(memory, offsets, operands, update, scan)
    found = np.empty_like(operands[0])
    for chosen in _rounds(order, starts):
        found[chosen] = _update(memory, offsets[chosen], [operand[chosen] for operand in operands], update)
    return found


def _update(memory: Bytes, offsets: Offsets, operands: list[Values], update: Update) -> Values:
    """As apply, where no offset comes twice."""
    size, count = operands[0].dtype.itemsize, operands[0].shape[1]
    old = spaces.words_at(memory, offsets, size, count)
    spaces.put_words(memory, offsets, update.function(old, *operands))
    return old


def _by_address(
    memory: Bytes, offsets: Offsets, operands: list[Values], update: Update, scan: Scan
) -> Values:
    """Apply an update address by address; lane by lane where the scan has no result."""
    order, starts = _runs(offsets)
    found = np.empty_like(operands[0])
    view = memory.view(operands[0].dtype)
    for chosen in np.split(order, starts[1:]):
        first = int(offsets[chosen[0]]) // view.itemsize
        chain = scan(view[first], *(operand[chosen, 0] for operand in operands))
        if chain is not None:
            found[chosen, 0], view[first] = chain[:-1], chain[-1]
            continue
        for index in chosen:
            place = slice(index, index + 1)
            found[place] = _update(memory, offsets[place], [part[place] for part in operands], update)
    return found
