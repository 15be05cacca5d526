"""Vector sets: many cases of an instruction, its inputs and the expected D registers of each.

Arrays have the cases as their first axis and are otherwise as warpsim.execute takes and returns them. Knows
the parts of a set and proves that it is complete; does not know files (see vector_formats), nor how inputs
are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...base.files.version import __version__
from ...isa.families.tcgen05_operands import masks_of
from ...isa.instruction import Instruction
from ...isa.memory import SHARED_BYTES
from ...isa.registers import Words
from ...isa.warps import WARPGROUP
from ...ptx.decode import Form, resolved
from ...sums.execution.inputs import inputs_by_name
from ...sums.execution.pipeline import Engine, Undefined, evidence, execute_inputs

Array = npt.NDArray[Any]
Spec = tuple[np.dtype[Any], tuple[int, ...]]  # bytes of an array

DESCRIPTORS = ("a_desc", "b_desc")
IMMEDIATES = (
    "selector",
    *("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b"),
    *("scale_d", "imm_scale_a", "imm_scale_b", "imm_trans_a", "imm_trans_b"),
    *("enable_input_d", "scale_input_d"),
)
MASKS = ("zero_column_mask", "disable_output_lane")  # of tcgen05.mma, one of a launch a case
PART_BYTES = 1 << 23  # bytes of a set that is executed at a time


@dataclass(frozen=True, kw_only=True)
class Part:
    """Cases of a set for one call of warpsim.execute: their numbers, and the arguments of the call."""

    cases: slice | npt.NDArray[np.intp]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorSet:
    """Cases of an instruction on its target, and the expected D of each.

    ``registers`` are ``(cases, lanes, registers)`` of every operand but d, uint32 (uint64 for f64), and ``d``
    likewise; of tcgen05.mma both are words of tensor memory, ``(cases, lanes, columns)``. ``immediates`` are
    arguments of warpsim.execute, one integer for all cases or an integer array ``(cases,)``; wgmma and
    tcgen05.mma have ``descriptors`` ``(cases,)`` uint64 and ``shared`` ``(cases, bytes)`` uint8. ``masks`` of
    tcgen05.mma are zero_column_mask ``(cases,)`` uint64 or disable_output_lane ``(cases, 1, words)`` uint32.
    ``provenance`` says what computed d: ``{"kind": "model", "version": ...}``, or ``{"kind": "hardware",
    "chip": ..., ...}``. ``title`` says how the cases were chosen; ``labels`` has a description for each case.
    """

    instruction: Instruction
    registers: Mapping[str, Words]
    d: Words
    immediates: Mapping[str, int | Array]
    descriptors: Mapping[str, Array]
    shared: Array | None
    provenance: Mapping[str, Any]
    seed: int | None
    title: str = ""
    labels: tuple[str, ...] = ()
    masks: Mapping[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<VectorSet: {len(self)} cases of {self.instruction!r}>"

    def __post_init__(self) -> None:
        legal = immediates_of(self.instruction)
        for name, value in self.immediates.items():
            _check_values(self.instruction, name, np.asarray(value), legal.get(name, ()))
        check_specs(self.instruction, self.specs(), self.constants(), len(self))
        if self.labels and len(self.labels) != len(self):
            raise OperandError(f"{len(self.labels)} labels for {len(self)} cases: expected one each, or none")
        for text in (self.title, *self.labels):
            if not text.isprintable():
                raise OperandError(f"{text[:40]!r}: title and labels are printable text on one line")

    def __len__(self) -> int:
        return len(self.d)

    def constants(self) -> dict[str, int]:
        """Return the immediates that are the same in all cases."""
        return {name: int(value) for name, value in self.immediates.items() if not _varies(value)}

    def varying(self) -> dict[str, Array]:
        """Return the immediates that differ from case to case, as int8."""
        varying = {name: value for name, value in self.immediates.items() if _varies(value)}
        return {name: np.asarray(value, np.int8) for name, value in varying.items()}

    def arrays(self) -> dict[str, Array]:
        """Return every array by its name, cases first, in the order of files; d comes last."""
        shared = {} if self.shared is None else {"shared": self.shared}
        registers = dict(sorted(self.registers.items()))
        return {
            **registers,
            **dict(sorted(self.descriptors.items())),
            **shared,
            **dict(sorted(self.masks.items())),
            **self.varying(),
            "d": self.d,
        }

    def specs(self) -> dict[str, Spec]:
        """Return dtype and shape of every array, in the order of files."""
        return {name: (array.dtype, array.shape) for name, array in self.arrays().items()}

    def blocks(self, name: str) -> Iterator[Array]:
        """Yield an array in pieces, here as a whole."""
        yield self.arrays()[name]

    def part(self, start: int = 0, stop: int | None = None) -> VectorSet:
        """Return the cases from ``start`` to ``stop``, as views of the same arrays."""
        cut = slice(start, stop)
        return replace(
            self,
            registers={name: words[cut] for name, words in self.registers.items()},
            d=self.d[cut],
            immediates=self.constants() | {name: values[cut] for name, values in self.varying().items()},
            descriptors={name: values[cut] for name, values in self.descriptors.items()},
            shared=None if self.shared is None else self.shared[cut],
            labels=self.labels[cut],
            masks={name: words[cut] for name, words in self.masks.items()},
        )

    def parts(self) -> Iterator[VectorSet]:
        """Return the set in parts of some megabytes, in order."""
        step = part_cases(self.specs())
        return (self.part(start, start + step) for start in range(0, len(self), step))

    def inputs(self, start: int = 0, stop: int | None = None) -> Iterator[Part]:
        """Yield the cases in parts of equal immediates and some megabytes, as arguments of
        warpsim.execute.
        """
        stop = len(self) if stop is None else min(stop, len(self))
        step = part_cases(self.specs())
        for first in range(start, stop, step):
            yield from self._parts(first, min(first + step, stop))

    def _parts(self, start: int, stop: int) -> Iterator[Part]:
        varying = {name: values[start:stop].tolist() for name, values in self.varying().items()}
        varying |= {name: _masks(words[start:stop]) for name, words in self.masks.items()}
        if not varying:
            yield self._of(slice(start, stop), self.constants())
            return
        groups: dict[tuple[Any, ...], list[int]] = {}
        for case, values in enumerate(zip(*varying.values(), strict=True), start):
            groups.setdefault(values, []).append(case)
        for values, cases in groups.items():
            yield self._of(np.array(cases), self.constants() | dict(zip(varying, values, strict=True)))

    def _of(self, cases: slice | npt.NDArray[np.intp], immediates: dict[str, Any]) -> Part:
        shared = {} if self.shared is None else {"shared": self.shared}
        arrays = chain(self.registers.items(), self.descriptors.items(), shared.items())
        return Part(cases=cases, arguments={name: array[cases] for name, array in arrays} | immediates)


def _masks(words: Array) -> list[Any]:
    """Return masks as warpsim.execute takes them: an integer a case, or a tuple of words."""
    return words.tolist() if words.ndim == 1 else [tuple(case) for case in words[:, 0].tolist()]


def _varies(value: int | Array) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def part_cases(specs: Mapping[str, Spec]) -> int:
    """Return the number of cases of a part of some megabytes."""
    size = sum(prod(shape[1:]) * dtype.itemsize for dtype, shape in specs.values())
    return max(1, PART_BYTES // max(size, 1))


def case_bytes(vectors: VectorSet) -> int:
    """Return the number of bytes of a case."""
    return sum(array.nbytes for array in vectors.arrays().values()) // len(vectors)


# --- making and executing --------------------------------------------------------------------------


@in_default_environment
def make_vectors(
    instruction: Form,
    *,
    target: str | None = None,
    title: str = "",
    seed: int | None = None,
    labels: tuple[str, ...] = (),
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    **arguments: Any,
) -> VectorSet:
    """Return a set of the given inputs, named as in warpsim.execute, with the D that the model computes.

    Every array has an axis of cases in front; an immediate is one integer, or an array with an integer for
    each case. Raises OperandError, and what executing raises.
    """
    form = resolved(instruction, target)
    arguments = {name: value for name, value in arguments.items() if value is not None}
    immediate = {name: value for name, value in arguments.items() if name in IMMEDIATES}
    arrays = {name: np.asarray(value) for name, value in arguments.items() if name not in immediate}
    others = (*DESCRIPTORS, *MASKS, "shared")
    registers = {name: array for name, array in arrays.items() if name not in others}
    cases = len(next((array for name, array in arrays.items() if name not in MASKS), ()))
    vectors = VectorSet(
        instruction=form,
        registers=registers,
        d=np.zeros((cases, *form.held("d").shape), f"u{form.register_bits // 8}"),
        immediates={name: _immediate(value) for name, value in immediate.items()},
        descriptors={name: arrays[name] for name in DESCRIPTORS if name in arrays},
        shared=arrays.get("shared"),
        provenance=provenance_of(form, engine, with_c=adds_c(immediate)),
        seed=seed,
        title=title,
        labels=labels,
        masks={name: arrays[name] for name in MASKS if name in arrays},
    )
    return replace(vectors, d=expected(vectors, engine, undefined))


@in_default_environment
def expected(
    vectors: VectorSet,
    engine: Engine = "kernel",
    undefined: Undefined = "error",
    threads: int | None = None,
) -> Words:
    """Return D ``(cases, lanes, registers)`` of a set as the model computes it; raises what executing
    raises.
    """
    d = np.empty_like(vectors.d)
    for part in vectors.inputs():
        inputs = inputs_by_name({**part.arguments, "undefined": undefined})
        d[part.cases] = execute_inputs(vectors.instruction, inputs, engine, threads)
    return d


def adds_c(immediates: Mapping[str, Any]) -> bool:
    """Return whether any case adds C, which scale-d and enable-input-d decide."""
    return all(bool(np.any(immediates.get(name, 1))) for name in ("scale_d", "enable_input_d"))


def provenance_of(instruction: Instruction, engine: Engine, *, with_c: bool = True) -> dict[str, str]:
    """Return the provenance of a set made by the model: version, engine, and evidence of the rule, with or
    without C.
    """
    why = str(evidence(instruction, with_c=with_c))
    return {"kind": "model", "version": __version__, "engine": engine, "evidence": why}


def _immediate(value: Any) -> int | Array:
    array = np.asarray(value)
    return array if array.ndim else int(array)


# --- what belongs to a set -------------------------------------------------------------------------


def immediates_of(instruction: Instruction) -> dict[str, Sequence[int]]:
    """Return the immediates that an instruction has, and the legal values of each."""
    legal: dict[str, Sequence[int]] = {}
    if instruction.descriptor is not None:
        powers = {"scale_input_d": range(16)} if instruction.kind in ("f16", "tf32") else {}
        return {"enable_input_d": (0, 1), **powers}
    if instruction.sparse:
        legal["selector"] = instruction.selectors
    if instruction.scale:
        for side in "ab":
            scales = instruction.scales(side)
            legal |= {f"byte_id_{side}": scales.byte_ids, f"thread_id_{side}": scales.thread_ids}
    if not instruction.has_registers("b"):
        signs = (-1, 1) if instruction.a.is_float else (1,)
        majors = (0, 1) if instruction.a.bits == 16 else (0,)
        legal |= {"scale_d": (0, 1), "imm_scale_a": signs, "imm_scale_b": signs}
        legal |= {"imm_trans_a": majors, "imm_trans_b": majors}
    return legal


def check_specs(
    instruction: Instruction, specs: Mapping[str, Spec], constants: Mapping[str, int], cases: int
) -> None:
    """Raise OperandError unless the arrays and immediates are those of so many cases of an instruction."""
    if instruction.target is None:
        raise OperandError(f"{instruction} has no target: decode it with target='sm_…'")
    if cases < 1:
        raise OperandError("a vector set has at least one case")
    legal = immediates_of(instruction)
    for name, value in constants.items():
        _check_values(instruction, name, np.asarray(value), legal.get(name, ()))
    wanted = _specs_of(instruction, cases) | {
        name: (np.dtype(np.int8), (cases,)) for name in legal if name not in constants
    }
    for name, spec in specs.items():
        if name not in wanted:
            raise OperandError(f"{instruction} has no operand {name}; it takes {', '.join(wanted)}")
        _check_spec(name, spec, wanted[name])
    _check_complete(instruction, specs, wanted, constants)


def _specs_of(instruction: Instruction, cases: int) -> dict[str, Spec]:
    """Return every array but immediates that an instruction can have; shared memory may be smaller."""
    lanes = instruction.lanes
    words = np.dtype(f"u{instruction.register_bits // 8}")
    specs: dict[str, Spec] = {
        name: (words if name in ("a", "b", "c", "d") else np.dtype(np.uint32), (cases, lanes, count))
        for name, count in instruction.registers.items()
    }
    if not instruction.has_registers("b"):
        specs |= {name: (np.dtype(np.uint64), (cases,)) for name in DESCRIPTORS}
        specs["shared"] = (np.dtype(np.uint8), (cases, SHARED_BYTES * (lanes // WARPGROUP)))
    for name, count in masks_of(instruction).items():
        is_wide = name == "zero_column_mask"  # a word of 64 bits, as a descriptor
        specs[name] = (np.dtype(np.uint64), (cases,)) if is_wide else (np.dtype(np.uint32), (cases, 1, count))
    return specs


def _check_spec(name: str, given: Spec, wanted: Spec) -> None:
    (dtype, shape), (word, expected_shape) = given, wanted
    if dtype != word:
        raise OperandError(f"{name} has dtype {dtype}, but in a vector set it is {word}")
    if name == "shared" and len(shape) == 2 and 0 < shape[1] <= expected_shape[1]:
        expected_shape = (expected_shape[0], shape[1])
    if shape != expected_shape:
        raise OperandError(f"{name} has shape {shape}, but in this vector set it is {expected_shape}")


def _check_complete(
    instruction: Instruction,
    specs: Mapping[str, Spec],
    wanted: Mapping[str, Spec],
    constants: Mapping[str, int],
) -> None:
    if "a_desc" in specs and "a" in specs:
        raise OperandError(
            f"{instruction} takes A in registers (a) or behind a descriptor (a_desc), not both"
        )
    optional = {"a_desc"} if "a_desc" not in specs else {"a"}
    optional |= set(MASKS)
    optional |= {"c"} if 0 in (constants.get("scale_d"), constants.get("enable_input_d")) else set()
    for name in wanted:
        if name not in specs and name not in optional and name not in IMMEDIATES:
            raise OperandError(f"a vector set of {instruction} needs {name}")


def _check_values(instruction: Instruction, name: str, values: Array, legal: Sequence[int]) -> None:
    if not legal:
        names = ", ".join(immediates_of(instruction)) or "none"
        raise OperandError(f"{instruction} has no immediate {name}; it has {names}")
    if values.dtype.kind not in "iu":
        raise OperandError(f"{name} has dtype {values.dtype}, but it is an integer")
    wrong = ~np.isin(values, legal)
    if wrong.any():
        raise OperandError(f"{name} is one of {', '.join(map(str, legal))}, not {int(values[wrong][0])}")
