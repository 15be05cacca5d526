"""tcgen05.mma in launched kernels: its operands in the statement, and an issue for each thread that
executes it.

PTX ISA 9.3, sections 9.7.17.10.9 to 9.7.17.10.12.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ....base.errors import located
from ....isa.families.tcgen05 import Form, check_needs, form_of, forms
from ....isa.features import Feature
from ....isa.layouts.zero_columns import EVIDENCE as ZERO_COLUMNS
from ....ptx.binding import tensor_operand_names
from ....ptx.constants import Immediate
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ..effect import Effect
from ..statement_binder import Reader, StatementBinder
from .executed_products import complete
from .issue_order import Work, family_of, issue_in_order, notifies, notify
from .tensor_places import check_integer, is_tensor_address, tensor_address, value_in
from .tensor_products import Given, Multiplication, prepared

_SELECTOR = "inferred: metadata of selectors 2 and 3 lie in the next columns; the manual has figures"
_HALF = "inferred: metadata of M 64 and of layout C lie in the lanes of D; the manual has figures"
_LANES = "inferred: disable-output-lane counts the lanes of the even CTA, then those of the odd CTA"
_SHIFT = "inferred: row i of A takes row i + 1, and the last row of each CTA stays"
_DEPTH_96 = (
    "inferred: where the factors of K 96 continue, and the second chunk of a row; the manual has figures"
)
_SCALE_D = "inferred: scale-input-d multiplies D by a power of two before the sum"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Statement:
    """A statement: its form, and readers of its operands by name."""

    form: Form
    target: str
    a_in_memory: bool
    readers: dict[str, Reader]
    mask: tuple[Reader, ...]
    scale_d: int

    def given(self, wave: Wave, path: DivergentPath, lane: int) -> Given:
        """Return the operands of one lane."""
        values = {name: value_in(wave, path, read, lane) for name, read in self.readers.items()}
        words = [value_in(wave, path, read, lane) for read in self.mask]
        return Given(
            d=values["d"],
            a=values["a"],
            a_in_memory=self.a_in_memory,
            b=values["b"],
            word=values["idesc"],
            enabled=bool(values["enable"]),
            metadata=values.get("metadata", 0),
            scale_a=values.get("scale_a", 0),
            scale_b=values.get("scale_b", 0),
            disabled=sum(word << 32 * place for place, word in enumerate(words)),
            zero_columns=values.get("zero_columns", 0),
            scale_d=self.scale_d,
        )


# --- operands ----------------------------------------------------------------------------------------

_ADDRESSES = ("d", "metadata", "scale_a", "scale_b")
_TYPES = {"b": "b64", "idesc": "b32", "enable": "pred", "zero_columns": "b64"}


def _names(binder: StatementBinder, form: Form) -> tuple[str, ...]:
    """Return the operands in order; raises IllegalInstruction where there are too few or too many."""
    names, optional = tensor_operand_names(form, binder.operands)
    if not optional:
        binder.count(len(names))
        return names
    given = binder.count(len(names), len(names) + 1)
    return (*names, optional) if given > len(names) else names


def _bound(binder: StatementBinder, form: Form) -> _Statement:
    names, readers, scale_d = _names(binder, form), dict[str, Reader](), 0
    mask: tuple[Reader, ...] = ()
    in_memory = is_tensor_address(binder, 1)
    for index, name in enumerate(names):
        if name == "mask":
            mask = _mask(binder, form, index)
        elif name == "scale_d":
            scale_d = _scale_d(binder, form, index)
        elif name in _ADDRESSES or (name == "a" and in_memory):
            readers[name] = tensor_address(binder, index)
        else:
            if name != "enable":
                check_integer(binder, binder.operands[index], index)
            readers[name] = binder.reader(binder.operands[index], _TYPES.get(name, "b64"), index)
    if form.shifted and not in_memory:
        raise binder.illegal("tcgen05.mma.ashift shifts A in tensor memory, not behind a descriptor", 1)
    return _Statement(
        form=form,
        target=binder.module.target,
        a_in_memory=in_memory,
        readers=readers,
        mask=mask,
        scale_d=scale_d,
    )


def _mask(binder: StatementBinder, form: Form, index: int) -> tuple[Reader, ...]:
    """Return the words of disable-output-lane: 4 for a CTA, 8 for a pair."""
    if form.weight_stationary:
        raise binder.illegal("tcgen05.mma.ws has no lanes of D to disable", index)
    elements = binder.elements(index, 4 * form.ctas)
    return tuple(binder.reader(element, "b32", index, place) for place, element in enumerate(elements))


def _scale_d(binder: StatementBinder, form: Form, index: int) -> int:
    """Return scale-input-d, a constant of 0 to 15. Raises IllegalInstruction."""
    operand = binder.operands[index]
    if form.kind.name not in ("f16", "tf32", "i8"):
        raise binder.illegal(
            f"scale-input-d belongs to kind::f16 and kind::tf32, not to {form.kind.name}", index
        )
    if not isinstance(operand, Immediate) or operand.kind != "integer":
        raise binder.illegal(f"scale-input-d is a constant of 0 to 15, not '{operand}'", index)
    if form.kind.name == "i8":
        raise binder.not_modelled("ptxas takes scale-input-d with kind::i8, and the manual does not", index)
    binder.check_available((8, 6), Feature.TENSOR_SCALED_D, "scale-input-d")
    if not 0 <= operand.value <= 15:
        raise binder.illegal(f"scale-input-d is 0 to 15, not {operand}", index)
    return operand.value


def _infer(wave: Wave, path: DivergentPath, work: Multiplication) -> None:
    """Record what the result of a statement rests on that the manual says in figures only."""
    if work.made.descriptor.selector > 1:
        wave.infer(path.pc, _SELECTOR)
    if work.metadata is not None and work.made.letter in "CF":
        wave.infer(path.pc, _HALF)
    if work.made.form.shifted:
        wave.infer(path.pc, _SHIFT)
    if work.made.descriptor.k_96:
        wave.infer(path.pc, _DEPTH_96)
    if work.given.disabled and (work.made.ctas == 2 or work.made.letter != "D"):
        wave.infer(path.pc, _LANES)


# --- statements --------------------------------------------------------------------------------------


def _multiply(binder: StatementBinder, *modifiers: str) -> Step:
    with located(binder.statement.location):
        form = form_of(binder.statement.modifiers)
        check_needs(form, binder.module.target, binder.module.version)
    return TensorMultiply(_bound(binder, form))


@dataclass(frozen=True, eq=False)
class TensorMultiply:
    """The step of a tcgen05.mma: each lane issues a multiplication."""

    statement: _Statement

    def __call__(self, wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        """Issue the multiplication of every lane."""
        if self.statement.scale_d:
            wave.infer(path.pc, _SCALE_D)
        for lane in lanes.index.tolist():
            self._issue(wave, path, lane)

    def work(self, wave: Wave, path: DivergentPath, lane: int) -> Multiplication:
        """Return what a lane would issue now, checked. Raises as prepared does."""
        given = self.statement.given(wave, path, lane)
        if wave.modes.interposed is not None:
            given = wave.modes.interposed.tensor_operands(wave, path.pc, lane, given)
        return prepared(wave, path, lane, self.statement.form, given, self.statement.target)

    def _issue(self, wave: Wave, path: DivergentPath, lane: int) -> None:
        work, form = self.work(wave, path, lane), self.statement.form
        if work.given.zero_columns:
            wave.infer(path.pc, ZERO_COLUMNS)
        _infer(wave, path, work)
        reads = work.reads(wave)
        if notifies(wave):
            notify(wave, path, lane, family_of(form.ctas), work.touched(), in_order=True)
        done = partial(complete, work, path.pc)
        issue_in_order(wave, path, (lane, form.ctas), "tcgen05.mma", Work(done, reads))


@dataclass(frozen=True, kw_only=True)
class _ProductRow(Effect):
    """tcgen05.mma, whose forms are those of the instruction family."""

    def forms(self) -> Iterator[tuple[str, ...]]:
        """Return the modifiers of every form, in PTX's order."""
        return (tuple(form.mnemonic.split(".")[1:]) for form in forms())

    def match(self, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return all modifiers, unless they are those of another statement."""
        return modifiers if modifiers[:1] == ("mma",) else None


ROWS: tuple[Effect, ...] = (
    _ProductRow(opcode="tcgen05", slots=(), bind=_multiply, since=(8, 6), feature=Feature.TCGEN05),
)
