"""Arithmetic on vectors of LLVM, for code that Numba's own vectoriser does not find.

A ``Lanes`` is one SSA value while a function is being compiled: a vector whose lanes are the columns of
D. Its operators emit one LLVM instruction each, on generic vectors, so that every target can compile
them. Knows no rule and no format. Integer arithmetic wraps; floating point has no fast-math flags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba.core.cgutils
import numba.core.types
import numba.extending

# Numba's own modules have no useful types.
cgutils: Any = numba.core.cgutils
types: Any = numba.core.types
ir: Any = cgutils.ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_BITS = {F16: 16, F32: 32, F64: 64}


def _bits(element: Any) -> int:
    return int(element.width) if isinstance(element, ir.IntType) else _BITS[element]


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare an intrinsic of Numba: from argument types, the function returns the
    signature and the emitter.
    """
    decorated: Callable[..., Any] = numba.extending.intrinsic(function)
    return decorated


def pointer_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the data pointer of an array argument of an intrinsic."""
    return context.make_array(kind)(context, builder, array).data


def pointers(context: Any, builder: Any, kind: Any, arrays: Any) -> list[Any]:
    """Return data pointers of a tuple of arrays."""
    parts = cgutils.unpack_tuple(builder, arrays, len(kind))
    return [pointer_of(context, builder, part, value) for part, value in zip(kind, parts, strict=True)]


@dataclass(frozen=True, eq=False)
class Lanes:
    """A vector value and the builder that its instructions go to."""

    builder: Any
    value: Any

    @property
    def width(self) -> int:
        """Number of lanes."""
        return int(self.value.type.count)

    @property
    def element(self) -> Any:
        """LLVM type of one lane."""
        return self.value.type.element

    @property
    def _is_float(self) -> bool:
        return self.element in _BITS

    def _with(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def like(self, number: float) -> Lanes:
        """Return the same number in every lane."""
        return self._with(ir.Constant(self.value.type, [number] * self.width))

    def _operand(self, other: Lanes | float) -> Any:
        return other.value if isinstance(other, Lanes) else self.like(other).value

    def _binary(self, integer: str, floating: str, other: Lanes | float) -> Lanes:
        emit = getattr(self.builder, floating if self._is_float else integer)
        return self._with(emit(self.value, self._operand(other)))

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._binary("sub", "fsub", other)

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._binary("mul", "fmul", other)

    def __and__(self, other: Lanes | int) -> Lanes:
        return self._with(self.builder.and_(self.value, self._operand(other)))

    def __or__(self, other: Lanes | int) -> Lanes:
        return self._with(self.builder.or_(self.value, self._operand(other)))

    def __xor__(self, other: Lanes | int) -> Lanes:
        return self._with(self.builder.xor(self.value, self._operand(other)))

    def __invert__(self) -> Lanes:
        return self._with(self.builder.not_(self.value))

    def __lshift__(self, other: Lanes | int) -> Lanes:
        return self._with(self.builder.shl(self.value, self._operand(other)))

    def __rshift__(self, other: Lanes | int) -> Lanes:
        """Shift right arithmetically."""
        return self._with(self.builder.ashr(self.value, self._operand(other)))

    def field(self, shift: int, bits: int) -> Lanes:
        """Return bits ``shift`` up to ``shift + bits`` as a non-negative number."""
        return self._with(self.builder.lshr(self.value, self._operand(shift))) & ((1 << bits) - 1)

    def logical_shift(self, distance: Lanes) -> Lanes:
        """Shift right, filling with zeros."""
        return self._with(self.builder.lshr(self.value, distance.value))

    def unsigned_to(self, element: Any) -> Lanes:
        """Return integers widened with zeros (or as they are)."""
        if element == self.element:
            return self
        return self._with(self.builder.zext(self.value, ir.VectorType(element, self.width)))

    def _compare(self, operator: str, other: Lanes | float) -> Lanes:
        emit = self.builder.fcmp_ordered if self._is_float else self.builder.icmp_signed
        return self._with(emit(operator, self.value, self._operand(other)))

    def __lt__(self, other: Lanes | float) -> Lanes:
        return self._compare("<", other)

    def __gt__(self, other: Lanes | float) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Lanes | float) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other: Lanes | float) -> Lanes:
        """Compare lane by lane; false for NaN."""
        return self._compare("==", other)

    def outside(self, low: int, high: int) -> Lanes:
        """Return which integers are not in ``low..high``: one addition and one unsigned comparison."""
        moved = self._operand(self - low)
        return self._with(self.builder.icmp_unsigned(">", moved, self._operand(high - low)))

    def is_nan(self) -> Lanes:
        """Return which lanes hold a NaN."""
        return self._with(self.builder.fcmp_unordered("uno", self.value, self.value))

    def choose(self, yes: Lanes | float, no: Lanes) -> Lanes:
        """Return ``yes`` where this mask is set, otherwise ``no``."""
        return self._with(self.builder.select(self.value, no._operand(yes), no.value))

    def maximum(self, other: Lanes | int) -> Lanes:
        """Return the larger, of signed integers."""
        return (self > other).choose(self, self._with(self._operand(other)))

    def minimum(self, other: Lanes | int) -> Lanes:
        """Return the smaller, of signed integers."""
        return (self < other).choose(self, self._with(self._operand(other)))

    def unsigned_maximum(self, other: Lanes | int) -> Lanes:
        """Return the larger, of unsigned integers."""
        return self.unsigned_above(other).choose(self, self._with(self._operand(other)))

    def unsigned_minimum(self, other: Lanes | int) -> Lanes:
        """Return the smaller, of unsigned integers."""
        return self.unsigned_above(other).choose(other, self)

    def unsigned_above(self, other: Lanes | int) -> Lanes:
        """Return lane by lane whether unsigned integers are larger."""
        return self._with(self.builder.icmp_unsigned(">", self.value, self._operand(other)))

    def unsigned_sum(self, other: Lanes) -> Lanes:
        """Return sums of unsigned integers, the largest integer where they overflow."""
        return self._saturating("uadd", other)

    def _saturating(self, operation: str, other: Lanes) -> Lanes:
        kind = self.value.type
        name = f"llvm.{operation}.sat.v{self.width}i{_bits(self.element)}"
        function = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(kind, [kind, kind]), name
        )
        return self._with(self.builder.call(function, [self.value, other.value]))

    def unsigned_difference(self, other: Lanes) -> Lanes:
        """Return differences of unsigned integers, 0 where they are negative."""
        return self._saturating("usub", other)

    def magnitude(self) -> Lanes:
        """Return a float without its sign."""
        bits = _bits(self.element)
        return (self.seen_as_integer() & ((1 << (bits - 1)) - 1)).seen_as(self.element)

    def to(self, element: Any) -> Lanes:
        """Convert by value: integers are sign-extended or cut, floats become integers toward zero, or floats.

        A float that does not fit its integer becomes an arbitrary integer (frozen poison).
        """
        target = ir.VectorType(element, self.width)
        if self._is_float and element in _BITS:
            emit = self.builder.fpext if _bits(element) > _bits(self.element) else self.builder.fptrunc
            return self._with(emit(self.value, target))
        if self._is_float:
            return self._with(_frozen(self.builder, self.builder.fptosi(self.value, target)))
        if element in _BITS:
            return self._with(self.builder.sitofp(self.value, target))
        emit = self.builder.sext if element.width > self.element.width else self.builder.trunc
        return self._with(emit(self.value, target))

    def seen_as(self, element: Any) -> Lanes:
        """Return the same bits as another type of the same size."""
        return self._with(self.builder.bitcast(self.value, ir.VectorType(element, self.width)))

    def seen_as_integer(self) -> Lanes:
        """Return the bits of a float."""
        return self.seen_as(ir.IntType(_bits(self.element)))

    def frozen(self) -> Lanes:
        """Return the same lanes, of which LLVM forgets how they were computed."""
        return self._with(_frozen(self.builder, self.value))

    def upper_halves(self) -> Lanes:
        """Return the upper 16 bits of 32-bit lanes, as 16-bit integers."""
        halves = self.builder.bitcast(self.value, ir.VectorType(I16, 2 * self.width))
        odd = [2 * lane + 1 for lane in range(self.width)]
        return self._with(_shuffled(self.builder, halves, halves, odd))

    def upper_bytes(self) -> Lanes:
        """Return the upper 8 bits of 16-bit lanes, as bytes."""
        pieces = self.builder.bitcast(self.value, ir.VectorType(I8, 2 * self.width))
        last = [2 * lane + 1 for lane in range(self.width)]
        return self._with(_shuffled(self.builder, pieces, pieces, last))

    def part(self, start: int, width: int) -> Lanes:
        """Return lanes ``start`` up to ``start + width``."""
        return self._with(_shuffled(self.builder, self.value, self.value, list(range(start, start + width))))

    def joined(self, other: Lanes) -> Lanes:
        """Return these lanes, then those of ``other``, which are as many."""
        return self._with(_shuffled(self.builder, self.value, other.value, list(range(2 * self.width))))

    def interleaved(self, other: Lanes) -> Lanes:
        """Return the first lane of both, then the second of both, and so on."""
        order = [k + start for k in range(self.width) for start in (0, self.width)]
        return self._with(_shuffled(self.builder, self.value, other.value, order))

    def every(self, step: int, first: int) -> Lanes:
        """Return every ``step``-th lane, from a first on."""
        return self._with(_shuffled(self.builder, self.value, self.value, [*range(first, self.width, step)]))

    def any(self) -> Any:
        """Return an i1: whether some lane of the mask is set."""
        packed = self.builder.bitcast(self.value, ir.IntType(self.width))
        return self.builder.icmp_unsigned("!=", packed, ir.Constant(packed.type, 0))

    def store(self, pointer: Any, index: Any) -> None:
        """Write the lanes to ``pointer[index:]``."""
        place = _vector_pointer(self.builder, pointer, index, self.width)
        self.builder.store(self.value, place).align = _bits(self.element) // 8


def _shuffled(builder: Any, first: Any, second: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(I32, len(order)), order))


def _frozen(builder: Any, value: Any) -> Any:
    """Emit LLVM's freeze, which llvmlite's builder lacks: poison becomes some fixed value."""
    instruction = ir.instructions.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(instruction)
    return instruction


def _vector_pointer(builder: Any, pointer: Any, index: Any, width: int) -> Any:
    element = pointer.type.pointee
    place = builder.gep(pointer, [index])
    return builder.bitcast(place, ir.VectorType(element, width).as_pointer())


def load(builder: Any, pointer: Any, index: Any, width: int) -> Lanes:
    """Return the lanes at ``pointer[index:]``."""
    value = builder.load(_vector_pointer(builder, pointer, index, width))
    value.align = _bits(pointer.type.pointee) // 8
    return Lanes(builder, value)


def splat(builder: Any, scalar: Any, width: int) -> Lanes:
    """Return a scalar in every lane."""
    vector = ir.VectorType(scalar.type, width)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(I32, 0))
    order = ir.Constant(ir.VectorType(I32, width), [0] * width)
    return Lanes(builder, builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), order))


def constant(builder: Any, element: Any, number: float, width: int) -> Lanes:
    """Return a number in every lane."""
    return Lanes(builder, ir.Constant(ir.VectorType(element, width), [number] * width))


def power_of_two(exponent: Lanes, element: Any) -> Lanes:
    """Return 2**exponent as a float, for exponents of its normal numbers; arbitrary bits for others."""
    bias, fraction = (127, 23) if element is F32 else (1023, 52)
    integer = ir.IntType(_bits(element))
    wide = exponent if exponent.element == integer else exponent.to(integer)
    return ((wide + bias) << fraction).seen_as(element)


_TOWARD_ZERO = 11  # x86: round toward zero, suppress exceptions


def embedded_toward_zero(integers: Lanes) -> Lanes:
    """Convert 32-bit integers to float32, toward zero by AVX-512's embedded rounding; 16
    lanes or a multiple.
    """
    builder = integers.builder
    signature = ir.FunctionType(ir.VectorType(F32, 16), [ir.VectorType(I32, 16), I32])
    name = "llvm.x86.avx512.sitofp.round.v16f32.v16i32"
    convert = cgutils.get_or_insert_function(builder.module, signature, name)
    mode = ir.Constant(I32, _TOWARD_ZERO)
    return _in_parts(lambda part: builder.call(convert, [part.value, mode]), integers)


def embedded_fused_toward_zero(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return a * b + c of float32, truncated by AVX-512's embedded rounding; 16 lanes or a multiple."""
    builder, vector = a.builder, ir.VectorType(F32, 16)
    signature = ir.FunctionType(vector, [vector, vector, vector, I32])
    fused = cgutils.get_or_insert_function(builder.module, signature, "llvm.x86.avx512.vfmadd.ps.512")
    mode = ir.Constant(I32, _TOWARD_ZERO)
    return _in_parts(lambda *parts: builder.call(fused, [*(part.value for part in parts), mode]), a, b, c)


def _in_parts(operation: Callable[..., Any], *lanes: Lanes) -> Lanes:
    """Apply an operation on 16 lanes to all of them."""
    parts = [
        Lanes(lanes[0].builder, operation(*(each.part(start, 16) for each in lanes)))
        for start in range(0, lanes[0].width, 16)
    ]
    while len(parts) > 1:
        parts = [low.joined(high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
