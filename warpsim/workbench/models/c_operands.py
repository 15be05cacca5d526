"""Operands of a golden model in C99: registers of a warp where a form has them, matrices of codes elsewhere.

Places in registers are bit maps, proven for every element (vectors/benches/sv_expressions.py). Matrices are
those of warpsim.matmul: A as it is stored, row after row; B with k rows; a scale for each chunk of k.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ...isa.fragments import metadata_map
from ...isa.instruction import Instruction
from ..vectors.benches.sv_expressions import expression
from .c_parts import constant

_AT = ("row", "column")


class Argument(NamedTuple):
    """An argument of a model: its declaration, the shape of an array, () for a number, and what it holds."""

    declaration: str
    shape: tuple[int, ...]
    content: str

    @property
    def text(self) -> str:
        """The shape and what it holds."""
        return "".join(f"[{size}]" for size in self.shape) + f"{' ' if self.shape else ''}{self.content}"

    @property
    def name(self) -> str:
        """The name that is declared."""
        return self.declaration.split()[-1].lstrip("*")

    @property
    def is_array(self) -> bool:
        """Whether it is an array of words."""
        return bool(self.shape)

    @property
    def words(self) -> int:
        """The words of an array."""
        return prod(self.shape)

    @property
    def type(self) -> str:
        """The C type of the number, or of a word of the array."""
        return self.declaration.removeprefix("const ").split()[0]


class Operands:
    """Arguments of NAME, functions that read codes of elements, and how a code of D is written.

    ``word`` is the C type of a register or a code.
    """

    def __init__(self, form: Instruction, word: str) -> None:
        self.form, self.word = form, word
        self.in_registers = not form.reads_tiles and all(form.has_registers(each) for each in "abcd")

    # --- arguments ---

    def arguments(self) -> Iterator[Argument]:
        """Yield the arguments, those of D last."""
        yield from (self._matrix(name) for name in "abc")
        yield from self._metadata_arguments()
        for side in "ab" if self.form.scale else "":
            yield from self._scale_arguments(side)
        yield self._matrix("d")

    def _matrix(self, name: str) -> Argument:
        constant = "" if name == "d" else "const "
        also = "; may be c" if name == "d" else ""
        element = self.form.format(name)
        shape = (
            (self.form.lanes, self.form.held(name).words)
            if self.in_registers
            else self.form.matrix_shape(name)
        )
        held = "registers by lane, of" if self.in_registers else "codes of"
        return Argument(f"{constant}{self.word} *{name}", shape, f"{held} {element}{also}")

    def _metadata_arguments(self) -> Iterator[Argument]:
        pattern, m = self.form.pattern, self.form.shape.m
        if pattern is None:
            return
        if self.in_registers:
            yield Argument("const uint32_t *e", (self.form.lanes,), "registers of metadata by lane")
            yield Argument("int selector", (), f"sparsity selector, {_listed(self.form.selectors)}")
        else:
            chunks = self.form.shape.k // pattern.chunk
            yield Argument("const uint32_t *e", (m, chunks), "fields of 4 bits of metadata")

    def _scale_arguments(self, side: str) -> Iterator[Argument]:
        name, scale = f"scale_{side}", self.form.scale
        if self.in_registers:
            held = self.form.scales(side)
            yield Argument(f"const uint32_t *{name}", (self.form.lanes,), f"registers by lane, of {scale}")
            yield Argument(f"int byte_id_{side}", (), _listed(list(held.byte_ids)))
            yield Argument(f"int thread_id_{side}", (), _listed(list(held.thread_ids)))
        else:
            chunks, m, n = self.form.scale_chunks, self.form.shape.m, self.form.shape.n
            shape = (m, chunks) if side == "a" else (chunks, n)
            yield Argument(f"const uint32_t *{name}", shape, f"codes of {scale}")

    # --- functions ---

    def functions(self) -> Iterator[str]:
        """Yield a function for the codes of each operand that is read."""
        yield from (self.reader(name) for name in "abc")
        if self.form.pattern is not None:
            yield self._function(
                "e_field", "const uint32_t *e, int selector", ("row", "chunk"), self._field()
            )
        for side in "ab" if self.form.scale else "":
            yield self._scale_reader(side)

    def reader(self, name: str) -> str:
        """Return the function for the code of an element of a matrix."""
        element = self.form.format(name)
        if self.in_registers:
            lane, register, bit = self.place(name)
            at = f"({lane}) * {self.form.held(name).words} + ({register})"
            shifted = f" >> ({bit})" if bit != "0" else ""
            value = f"{name}[{at}]{shifted} & {self._constant(element.mask)}"
        else:
            columns = self.form.matrix_shape(name)[1]
            value = f"{name}[row * {columns} + column] & {self._constant(element.mask)}"
        if name in "ab" and self.form.product.negated["ab".index(name)]:
            value = f"({value}) ^ {self._constant(element.sign_bit)}"
        return self._function(f"{name}_code", f"const {self.word} *{name}", _AT, value)

    def _constant(self, value: int) -> str:
        return constant(value) if self.word == "uint64_t" else f"0x{value:x}u"

    def place(self, name: str) -> tuple[str, str, str]:
        """Return the lane, the register and the lowest bit of an element, of ``row`` and ``column``."""
        held, storage = self.form.in_registers(name), self.form.storage(name)
        each = self.form.register_bits // storage.bits
        lane, value = np.divmod(held.layout.inverse, held.layout.values)
        bit = expression(value % each * storage.bits, _AT)
        shifted = f"({bit}) + {storage.shift}" if storage.shift else bit
        return expression(lane, _AT), expression(value // each, _AT), shifted

    def _field(self) -> str:
        """Return the metadata of a chunk of a row."""
        word, bit = self._field_place()
        return f"e[{word}] >> ({bit}) & 15" if self.in_registers else f"e[{word}] & 15"

    def _field_place(self) -> tuple[str, str]:
        """Return the word of e and the lowest bit of the metadata of a chunk of a row."""
        pattern = self.form.pattern
        assert pattern is not None, "the form is sparse"
        chunks = self.form.shape.k // pattern.chunk
        if not self.in_registers:
            return f"row * {chunks} + chunk", "0"
        shape, names = (self.form.shape.m, chunks), ("row", "chunk", "selector")
        maps = [metadata_map(self.form, selector) for selector in self.form.selectors]
        lane, bit = (
            expression(np.stack([each[:, at].reshape(shape) for each in maps], -1), names) for at in (0, 1)
        )
        return lane, bit

    def _scale_reader(self, side: str) -> str:
        name = f"scale_{side}"
        given = f"const uint32_t *{name}, int byte_id, int thread_id"
        word, bit = self._scale_place(side)
        value = f"{name}[{word}] >> {bit} & 0xffu" if self.in_registers else f"{name}[{word}] & 0xffu"
        return self._function(f"{name}_code", given, (_line(side), "chunk"), value)

    def _scale_place(self, side: str) -> tuple[str, str]:
        """Return the word and the lowest bit of the scale of a chunk of k."""
        if self.in_registers:
            index = self.form.scales(side).layout.index  # (line, chunk, thread, byte, 2)
            return expression(index[:, 0, :, 0, 0], (_line(side), "thread_id")), "8 * (chunk + byte_id)"
        chunks, n = self.form.scale_chunks, self.form.shape.n
        return f"row * {chunks} + chunk" if side == "a" else f"chunk * {n} + column", "0"

    # --- functions that write ---

    def writers(self) -> Iterator[str]:
        """Yield a function that writes a code for each operand."""
        yield from (self._writer(name) for name in "abcd")
        if self.form.pattern is not None:
            yield _put("uint32_t *e, int selector", ("row", "chunk"), self._field_place(), 15)
        for side in "ab" if self.form.scale else "":
            given, at = f"uint32_t *scale_{side}, int byte_id, int thread_id", (_line(side), "chunk")
            yield _put(given, at, self._scale_place(side), 255)

    def _writer(self, name: str) -> str:
        if not self.in_registers:
            word = f"row * {self.form.matrix_shape(name)[1]} + column"
            return _put(f"{self.word} *{name}", _AT, (word, "0"), self.form.format(name).mask)
        lane, register, bit = self.place(name)
        word = f"({lane}) * {self.form.held(name).words} + ({register})"
        storage = self.form.storage(name)
        kept = (1 << storage.bits - storage.shift) - 1
        return _put(f"{self.word} *{name}", _AT, (word, bit), kept)

    def _function(self, name: str, given: str, at: Sequence[str], value: str) -> str:
        names = [*(each.split()[-1].lstrip("*") for each in given.split(", ")), *at]
        unused = [f"  (void){each};\n" for each in names if not _uses(value, each)]
        listed = ", ".join([given, *(f"int {each}" for each in at)])
        word = self.word if name in ("a_code", "b_code", "c_code", "d_code") else "uint32_t"
        return f"static {word} {name}({listed}) {{\n{''.join(unused)}  return {value};\n}}"

    # --- calls ---

    def field_of_chunk(self) -> str:
        """Return the call for the metadata of a chunk."""
        return f"e_field(e, {'selector' if self.in_registers else '0'}, row, chunk)"

    def scale_of_chunk(self, side: str, chunk: str) -> str:
        """Return the call for the scale of a chunk of k."""
        ids = f"byte_id_{side}, thread_id_{side}" if self.in_registers else "0, 0"
        return f"scale_{side}_code(scale_{side}, {ids}, {'row' if side == 'a' else 'column'}, {chunk})"


def _line(side: str) -> str:
    return "row" if side == "a" else "column"


def _put(given: str, at: Sequence[str], place: tuple[str, str], mask: int) -> str:
    """Return a function that replaces the bits of a code in a word: arguments, coordinates, word and bit."""
    index, bit = place
    array, *others = (each.split()[-1].lstrip("*") for each in given.split(", "))
    word = given.split()[0]
    unused = "".join(f"  (void){x};\n" for x in (*others, *at) if not _uses(f"{index} {bit}", x))
    listed = ", ".join(f"int {each}" for each in at)
    return (
        f"static void put_{array}({given}, {listed}, {word} code) {{\n{unused}"
        f"  {word} *at = &{array}[{index}], mask = ({word}){constant(mask)};\n"
        f"  *at = (*at & ~(mask << ({bit}))) | (code & mask) << ({bit});\n}}"
    )


def _uses(value: str, name: str) -> bool:
    return name in value.replace("[", " ").replace("(", " ").replace(")", " ").replace("]", " ").split()


def _listed(values: Sequence[int]) -> str:
    """Return a range of values such as ``0 to 3``."""
    if len(values) == 1:
        return f"{values[0]} alone"
    step = values[1] - values[0]
    return f"{values[0]} to {values[-1]}" + (f" in steps of {step}" if step > 1 else "")
