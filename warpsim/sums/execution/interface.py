"""The public functions: text or Instruction in, arrays out.

Thin: each resolves its instruction and hands over to the module that does the work. The register
conventions are the same for all: ``uint32`` arrays whose last two axes are (lanes, registers),
``uint64`` for f64, any leading axes being a batch. Matrices have the format's NumPy or ml_dtypes
dtype, or are unsigned integers, which are taken as raw codes (integer formats take signed integers by
value). PyTorch's tensors in main memory go wherever arrays go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa import fragments, sparsity
from ...isa.arrays import as_array, as_integer, is_numeric
from ...isa.codes import magnitudes, zero_ranks
from ...isa.comparisons import Evidence
from ...isa.families import forms
from ...isa.instruction import Instruction
from ...isa.registers import Words
from ...ptx.decode import Form, resolved, version_of
from ...ptx.decode import decode as decode
from ...ptx.qualifiers import check_target, on_target
from ..arithmetic.cores import thread_count
from .inputs import NO_TENSOR, OPERANDS, executed_if_plain, inputs_from, with_tensor_settings
from .logical_matrices import Matrices, matmul_matrices
from .pipeline import Engine, Undefined, execute_inputs
from .pipeline import evidence as _evidence


def instructions(
    target: str | None = None, version: tuple[int, int] | str | None = None
) -> Iterator[Instruction]:
    """Yield every legal form of ``target``, or of any target (their ``target`` is then None).

    ``version`` is the PTX ISA version, such as ``"8.5"`` or ``(8, 5)`` (default 9.5, or the first that has
    the target). Raises IllegalInstruction for an unknown target, or a target that the version does not have.
    """
    known = version_of(version, target)
    if target is not None:
        check_target(target, known)
    for form in forms().values():
        if form.since <= known and (target is None or target in form.targets):
            yield on_target(form, target)


def evidence(instruction: Form, target: str | None = None, *, with_c: bool = True) -> Evidence:
    """Return why the result of an instruction on its target is believed: label, chips and outputs, or the
    reason. ``with_c=False`` asks for a wgmma whose scale-d is false, or a tcgen05.mma that adds no D.
    """
    return _evidence(resolved(instruction, target), with_c=with_c)


def execute(
    instruction: Form,
    *,
    target: str | None = None,
    a: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
    c: npt.ArrayLike | None = None,
    e: npt.ArrayLike | None = None,
    selector: int = 0,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    byte_id_a: int = 0,
    thread_id_a: int = 0,
    byte_id_b: int = 0,
    thread_id_b: int = 0,
    a_desc: npt.ArrayLike | None = None,
    b_desc: npt.ArrayLike | None = None,
    shared: npt.ArrayLike | None = None,
    scale_d: int = 1,
    imm_scale_a: int = 1,
    imm_scale_b: int = 1,
    imm_trans_a: int = 0,
    imm_trans_b: int = 0,
    idesc: int | None = None,
    enable_input_d: int = 1,
    scale_input_d: int = 0,
    disable_output_lane: npt.ArrayLike | None = None,
    zero_column_mask: int = 0,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    threads: int | None = None,
) -> Words:
    """Return D registers of one instruction, ``(..., lanes, registers)``.

    ``e`` (metadata) and ``selector`` belong to sparse forms; ``scale_a``, ``scale_b`` (..., lanes, 1)
    and the byte and thread ids to block-scaled forms. wgmma takes A as registers ``a`` or as a matrix
    descriptor ``a_desc``, B as ``b_desc`` (uint64, a value for each batch element), the ``shared`` memory
    they point into (uint8, (..., bytes)), and the D registers before as ``c``, which ``scale_d=0`` ignores;
    ``imm_scale`` is 1 or -1, ``imm_trans`` 0 (K-major) or 1 (MN-major).

    tcgen05.mma, with its instruction descriptor in ``idesc`` where decode has not got it, takes and returns
    words of tensor memory: uint32 ``(..., lanes, columns)`` from the address of an operand on, 128 lanes, for
    cta_group::2 those of the even CTA and then of the odd CTA, 256. They are ``c`` (D before) and ``d`` (N
    columns, of layouts B and E N / 2, of G N / 4), ``e`` (metadata), ``scale_a`` and ``scale_b``, and ``a``
    where its dtype is uint32 (8 columns); ``registers`` of the instruction has the columns of each. Of a
    layout that leaves lanes free, operands begin at lane 0. A and scales of another dtype, and ``b``, are
    matrices as matmul has them (A of a sparse form as it is stored); or A and B lie in ``shared`` (uint8, of
    cta_group::2 both memories in a row) behind ``a_desc`` and ``b_desc``. ``enable_input_d=0``
    does not read D; ``scale_input_d`` divides it by a power of two; lanes whose bit ``disable_output_lane``
    (4 or 8 words) has keep D; ``zero_column_mask`` belongs to .ws. PTX ISA 9.3, section 9.7.17.10.

    ``engine`` is ``"kernel"`` or ``"reference"`` (plain Python integers, slow). ``undefined="fallback"``
    executes metadata that PTX leaves undefined by reading every field literally: each stored unit
    multiplies the B rows that its own index names. Large batches are shared out among ``threads``, None
    for all cores. NumPy computes the first, small executions of an instruction in a process, compiled kernels
    the others (compiled then, or ahead by warmup). The bits depend on neither.

    Raises OperandError (shapes, dtypes), UndefinedBehavior (metadata or selector without a meaning),
    NotModelled (legal, result unknown), IllegalInstruction.
    """
    ids = (byte_id_a, thread_id_a, byte_id_b, thread_id_b)  # keywords take a microsecond, records another
    wgmma = (a_desc, b_desc, shared, scale_d, imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b)
    tensor = (enable_input_d, scale_input_d, zero_column_mask, disable_output_lane)
    registers = (a, b, c, e, scale_a, scale_b)
    call = (instruction, selector, undefined, target, idesc, engine, threads)
    others = (scale_a, scale_b, *ids, *wgmma, *tensor, target, idesc, threads, engine)
    d = executed_if_plain(instruction, registers, selector, undefined, others)
    return _execute(call, registers, ids, wgmma, tensor) if d is None else d


def _execute(
    call: tuple[Any, ...],
    registers: tuple[npt.ArrayLike | None, ...],
    ids: tuple[int, ...],
    wgmma: tuple[Any, ...],
    tensor: tuple[Any, ...],
) -> Words:
    """Return what execute returns; for plain calls, which most are, that takes three times as long."""
    instruction, selector, undefined, target, idesc, engine, threads = call
    inputs = inputs_from(dict(zip(OPERANDS, registers, strict=True)), selector, ids, wgmma, undefined)
    if tensor[3] is not None or tensor != NO_TENSOR:  # a call takes a tenth of a microsecond
        inputs = with_tensor_settings(inputs, tensor)
    return execute_inputs(resolved(instruction, target, None, idesc), inputs, engine, threads)


@in_default_environment
def matmul(
    instruction: Form,
    A: Any,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    idesc: int | None = None,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Return D ``(..., m, n)`` of logical matrices A ``(..., m, k)``, B ``(..., k, n)`` and C ``(..., m,
    n)``.

    The same arithmetic as execute, without lanes; ``idesc`` is the instruction descriptor of a tcgen05.mma.
    Sparse A obeys the instruction's pattern, or is ``(values, indices)`` as compress returns them. Scales
    are ``scale_a (..., m, chunks)`` and ``scale_b (..., chunks, n)``, uint8 codes or the ml_dtypes scale
    type. C None is zero. For m8n8k4
    f16 this is one of the four products. Raises as execute does.
    """
    form = resolved(instruction, target, idesc=idesc)
    if threads is not None:
        thread_count(threads)
    modes: dict[str, Any] = {"engine": engine, "undefined": undefined, "threads": threads}
    return matmul_matrices(form, Matrices(A, B, C, scale_a, scale_b), **modes)


def pack(instruction: Form, operand: str, matrix: npt.ArrayLike) -> Words:
    """Return registers ``(..., lanes, registers)`` of the matrix of operand ``a``, ``b``, ``c`` or ``d``.

    Sparse A is packed compressed (see compress). Raises OperandError.
    """
    form = resolved(instruction)
    return fragments.pack(form, _operand(form, operand), matrix)


def unpack(instruction: Form, operand: str, registers: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the matrix that registers hold, in the format's dtype; the inverse of pack. Raises
    OperandError.
    """
    form = resolved(instruction)
    return fragments.unpack(form, _operand(form, operand), registers)


def fragment(instruction: Form, operand: str) -> npt.NDArray[np.intp]:
    """Return ``(lanes, registers, elements per register, 2)``: row and column of each element (stored column
    for sparse A)."""
    form = resolved(instruction)
    return fragments.fragment(form, _operand(form, operand))


def _operand(form: Instruction, name: str) -> str:
    if name not in ("a", "b", "c", "d"):
        raise OperandError(f"operand {name!r}: expected 'a', 'b', 'c' or 'd'")
    if not form.has_registers(name):
        raise OperandError(f"{name} of {form} lies in shared memory, behind a descriptor, not in registers")
    return name


@in_default_environment
def compress(A: npt.ArrayLike, instruction: Form) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return ``(values, indices)`` of a sparse A ``(..., m, k)``: values ``(..., m, stored k)`` of A's
    dtype and the index in its chunk of every stored unit, ``(..., m, units)`` (for 4-bit formats a unit is a
    pair).

    Raises OperandError naming row and chunk where A does not obey the pattern.
    """
    form = resolved(instruction)
    pattern = fragments.require_sparse(form)
    matrix = _logical(as_array(A), form)
    return sparsity.compress(matrix, zero_ranks(matrix, form.a), pattern)


def decompress(values: npt.ArrayLike, indices: npt.ArrayLike, instruction: Form) -> npt.NDArray[Any]:
    """Return A ``(..., m, k)``, zeros where nothing is stored; the inverse of compress."""
    form = resolved(instruction)
    pattern = fragments.require_sparse(form)
    fields = fragments.fields_of(form, indices)
    stored = fragments.shaped(as_array(values), form.matrix_shape("a"), "values")
    return sparsity.decompress(stored, fragments.indices_of(form, fields), pattern)


@in_default_environment
def prune(A: npt.ArrayLike, instruction: Form) -> npt.NDArray[Any]:
    """Return A with all but the largest magnitudes of every chunk set to zero, so that it obeys the
    pattern.
    """
    form = resolved(instruction)
    pattern = fragments.require_sparse(form)
    matrix = _logical(as_array(A), form)
    return sparsity.prune(matrix, magnitudes(matrix, form.a), pattern)


def _logical(matrix: npt.NDArray[Any], form: Instruction) -> npt.NDArray[Any]:
    if not is_numeric(matrix.dtype):
        raise OperandError(f"A has dtype {matrix.dtype}, but its elements are numbers")
    if matrix.shape[-1:] == () or matrix.shape[-1] % form.shape.k:
        raise OperandError(
            f"A has shape {matrix.shape}, but its last axis is a multiple of k = {form.shape.k}"
        )
    return matrix


def pack_metadata(instruction: Form, indices: npt.ArrayLike, selector: int = 0) -> Words:
    """Metadata registers ``(..., lanes, 1)`` of unit indices; lanes that the selector ignores are zero.

    Raises UndefinedBehavior for a selector or for indices without a meaning, OperandError for shapes.
    """
    form = resolved(instruction)
    selector = _selector(form, selector)
    fields = fragments.fields_of(form, indices)
    fragments.check_fields(form, fields, selector)
    return fragments.write_fields(form, fields, selector)


def unpack_metadata(instruction: Form, e: npt.ArrayLike, selector: int = 0) -> npt.NDArray[np.uint8]:
    """Return unit indices ``(..., m, units)`` that the selected lanes of metadata registers hold.

    Raises UndefinedBehavior, naming lane and bits, for a field without a meaning.
    """
    form = resolved(instruction)
    selector = _selector(form, selector)
    fields = fragments.read_fields(form, fragments.checked_registers(e, form, "e"), selector)
    fragments.check_fields(form, fields, selector)
    return fragments.indices_of(form, fields)


def _selector(form: Instruction, selector: int) -> int:
    """Return the selector as Python's integer; raises OperandError for a dense form, UndefinedBehavior."""
    fragments.require_sparse(form)
    selector = as_integer(selector, "selector")
    fragments.check_selector(form, selector)
    return selector


def metadata_map(instruction: Form, selector: int = 0) -> npt.NDArray[np.intp]:
    """Return ``(fields, 5)``: lane, lowest bit, bits, row and chunk of every metadata field."""
    form = resolved(instruction)
    selector = _selector(form, selector)
    return fragments.metadata_map(form, selector).copy()
