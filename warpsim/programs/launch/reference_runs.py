"""A launch compared with a NumPy function: ``equivalence_of`` says whether the kernel computes the formula.

The function is called with the arguments of the kernel, in their order, and returns an array, the only
output, or {argument index or name: array}. It is executed on keys and on float64 values at once
(observe/algebra).
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from runpy import run_path
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError, TraceError
from ...base.files.archives import check_text_file
from ...isa.arrays import as_array
from ...isa.formats import FORMATS
from ...machine.host.tensor_maps import ArrayMap, BufferMap
from ...machine.run.wave import Record
from ...observe.algebra.builtin_references import BUILT_IN
from ...observe.algebra.equivalence import Equivalence, Output, Parted, Stored, output_of
from ...observe.algebra.formula_values import FormulaValues
from ...observe.algebra.keys.key_reading import KeyReader, numbers
from ...observe.algebra.leaves import Argument, Leaves, StoredArray
from ...observe.algebra.locating.located_record import user_location
from ...observe.algebra.numpy_functions import trace_of
from ...observe.algebra.observer import Algebra
from ...observe.algebra.provenance import Provenance
from ...observe.algebra.shadow_arrays import ReferenceError, Shadow, Trace, created_in

Array = npt.NDArray[Any]
Reference = Callable[..., Any]


class Repeatable(Protocol):
    """A launch that can be executed again (diagnosis.verdicts.RepeatedLaunch)."""

    @property
    def kernel(self) -> Any:
        """The kernel."""

    def formula_arguments(self) -> list[Argument]:
        """Return what a reference is called with, as before the launch."""

    def attempt(self, **options: Any) -> Any:
        """Execute once; arrays afterwards go by the numbers of these arguments."""


class Run(NamedTuple):
    """Both sides of a comparison: what verdicts ask further."""

    equivalence: Equivalence
    algebra: Algebra
    leaves: Leaves
    trace: Trace
    attempt: Any


def reference_of(given: str | Reference) -> tuple[str, Reference]:
    """Return the name and the function of ``FILE.py:FUNCTION``, or of a built-in reference.

    Raises OperandError.
    """
    if callable(given):
        return getattr(given, "__name__", "the reference"), given
    if given in BUILT_IN:
        return given, BUILT_IN[given]
    file, colon, name = given.rpartition(":")
    if not colon or not file:
        known = ", ".join(BUILT_IN)
        raise OperandError(f"reference {given!r}: expected FILE.py:FUNCTION, or one of {known}")
    try:
        check_text_file(file)
    except FileNotFoundError:
        raise OperandError(f"reference {given!r}: there is no file {file}") from None
    except (OSError, TraceError) as error:
        raise OperandError(f"reference {given!r}: {error}") from None
    try:
        found = run_path(file).get(name)
    except Exception as error:
        raise OperandError(f"reference {given!r}: {_where(error, file)}") from None
    if not callable(found):
        raise OperandError(f"reference {given!r}: {file} has no function {name}")
    return name, found


def _where(error: Exception, file: str) -> str:
    """Return an error with the last line of the user's code that it passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    place = f"{file}:{frames[-1].lineno}: " if frames else ""
    line = f"\n  {frames[-1].line}" if frames else ""
    return f"{place}{type(error).__name__}: {error}{line}"


# --- calling a reference -------------------------------------------------------------------------------


def _called(name: str, reference: Reference, given: Sequence[Any], trace: Trace) -> Any:
    """Call a reference; raises ReferenceError for whatever it raises, and where it has other parameters."""
    try:
        inspect.signature(reference).bind(*given)
    except TypeError as error:
        wanted = ", ".join(inspect.signature(reference).parameters)
        raise ReferenceError(
            f"{name}({wanted}) does not take the {len(given)} arguments of the kernel: {error}"
        ) from None
    file = inspect.unwrap(reference).__code__.co_filename if hasattr(reference, "__code__") else ""
    state = _random_state()
    try:
        with np.errstate(all="ignore"), created_in(reference, trace):
            found = reference(*given)
    except ReferenceError:
        raise
    except Exception as error:
        raise ReferenceError(f"{name} raises {_where(error, file)}") from None
    if _random_state() != state:
        raise ReferenceError(f"{name} reads random numbers: its formula is another each time")
    return found


def _plain(given: Any) -> Any:
    """Return an argument of a reference without keys, as an array that cannot be written."""
    if isinstance(given, SimpleNamespace):
        return SimpleNamespace(**{name: _plain(each) for name, each in vars(given).items()})
    if not isinstance(given, Shadow):
        return given
    values = given.values.copy()
    values.flags.writeable = False
    return values if values.ndim else values[()]


def _random_state() -> bytes:
    """Return what NumPy's own generator has drawn so far."""
    _, words, place, *more = np.random.get_state(legacy=True)
    return np.asarray(words).tobytes() + repr((place, more)).encode()


def _outputs(run: _Sides, found: Any) -> dict[int, Shadow]:
    """Return the outputs by argument. Raises ReferenceError for other names and shapes."""
    if not isinstance(found, Mapping):
        found = {run.only_output(): found}
    outputs = {}
    for key, value in found.items():
        argument = run.argument(key)
        content = argument.content
        assert content is not None
        shadow = _extended(run, run.trace.lift(value), argument)
        packed = (*content.shape[:-1], 2 * content.shape[-1])
        if shadow.shape not in (content.shape, packed):
            if shadow.size != content.size or content.ndim != 1:
                raise ReferenceError(
                    f"{run.name} returns {shadow.shape} for {argument.name}, which has {content.shape}"
                )
            shadow = shadow.moved(np.reshape, content.shape)
        outputs[argument.index] = shadow
    return outputs


def _extended(run: _Sides, shadow: Shadow, argument: Argument) -> Shadow:
    """Return what a reference returns for memory without a shape: what it leaves out stays as it was."""
    size = 0 if argument.content is None else argument.content.size
    if not argument.shapeless or shadow.size >= size:
        return shadow
    rest = run.leaves.value(run.trace, argument)[shadow.size :]
    joined: Any = np.concatenate
    found: Shadow = joined([shadow.reshape(-1), rest])
    return found


_DECIDING = ("max", "min", "setp", "set")


def _precision(code: Sequence[Record]) -> float:
    """Return how near numbers may be that a kernel compares as the same, in its narrowest format."""
    deciding = (each.statement for each in code if each.statement.opcode in _DECIDING)
    words = {word.removesuffix("x2") for statement in deciding for word in statement.modifiers}
    formats = [FORMATS[word] for word in words if word in FORMATS and FORMATS[word].is_float]
    return max((2.0**-each.fraction_bits for each in formats), default=0.0)


_LONGER = 4  # times the statements of a launch may another one run that takes other branches


class _Sides:
    """The kernel and the reference of a comparison, with keys of one seed."""

    def __init__(self, launch: Repeatable, name: str, reference: Reference, seed: int) -> None:
        self.launch, self.name, self.reference = launch, name, reference
        self.reader = KeyReader(seed)
        self.arguments = launch.formula_arguments()
        self.names = argument_names(self.arguments, reference)
        self.leaves = Leaves(self.reader, self.arguments)
        self.trace = trace_of(self.reader)
        self.algebra: Algebra | None = None
        self.attempt: Any = None

    def argument(self, key: int | str) -> Argument:
        """Return an argument that is an array, by number or name; raises ReferenceError."""
        for argument in self.arguments:
            known = (argument.index, argument.name, self.names[argument.index])
            if key in known and not isinstance(key, bool):
                if argument.content is None or not argument.content.ndim:
                    raise ReferenceError(f"{self.name} returns {key!r}, which is no array")
                return argument
        names = ", ".join(self.names)
        raise ReferenceError(f"{self.name} returns {key!r}: the arguments are {names}")

    def only_output(self) -> int:
        """Return the argument that the kernel stores in; raises ReferenceError for none or several."""
        stored = [
            argument.index
            for argument in self.arguments
            if argument.places.size and (self.leaves.left(argument).writers >= 0).any()
        ]
        if len(stored) != 1:
            names = ", ".join(self.arguments[index].name for index in stored) or "no array"
            raise ReferenceError(
                f"{self.name} returns an array, but the kernel stores in {names}: return {{argument: array}}"
            )
        return stored[0]

    def _scouted(self) -> frozenset[str]:
        """Return the functions that the reference applies to what arrays have, and know its constants.

        Those of a list where it fails, as it may before the kernel shows which numbers its integers are.
        """
        trace, state = trace_of(self.reader, scouting=True), np.random.get_state()
        try:
            _called(self.name, self.reference, self.leaves.given(trace), trace)
        except ReferenceError:
            return frozenset({"tanh", "exp", "erf", "sqrt", "log"})
        finally:
            np.random.set_state(state)
        return frozenset(trace.functions)

    def unused(self) -> list[Argument]:
        """Return arguments that are floats and that no operation of the reference takes: constants for it."""
        used = {
            int(each.keys.flat[0])
            for operation in self.trace.operations
            for each in operation.operands
            if each.size and not any(each.keys.strides)
        }
        floats = ((each, each.keys) for each in self.arguments if each.keys is not None)
        return [each for each, keys in floats if not keys.ndim and int(keys) not in used]

    def _check_same(self, outputs: Mapping[int, Shadow]) -> None:
        """Raise ReferenceError where the function returns other values when it is called on plain arrays."""
        plain = [_plain(each) for each in self.leaves.given(self.trace)]
        try:
            with np.errstate(all="ignore"):
                found = self.reference(*plain)
        except Exception:
            return  # it asks for what shadows have
        found = found if isinstance(found, Mapping) else {next(iter(outputs)): found}
        for key, value in found.items():
            argument, given = self.argument(key), np.asarray(value)
            wanted = outputs[argument.index].values
            if argument.shapeless:
                given, wanted = given.reshape(-1), wanted[: given.size]
            if given.size != wanted.size or not np.allclose(
                given.reshape(wanted.shape), wanted, 1e-6, 1e-9, True
            ):
                raise ReferenceError(
                    f"{self.name} returns other values when it is called again: it reads random numbers, "
                    "keeps something from call to call, or changes its arguments"
                )

    def run(
        self, provenance: Provenance | None, *, gauge: bool = False, first: _Sides | None = None
    ) -> dict[int, Shadow]:
        """Execute the kernel, then the reference on the numbers that the kernel read; both again where the
        reference applies functions or constants that were not known before.

        What ``first``, of another seed, has found is known: functions, constants, and what the checks find.
        """
        if first is not None:
            self.reader.constants = first.reader.constants
        names = self._scouted() if first is None else frozenset(first.trace.functions)
        known, checks = self.reader.constants.count, "warn" if first is None else "off"
        for _ in range(3):
            self.algebra = Algebra(self.reader, self.leaves.bind, sorted(names), provenance, at_zero=gauge)
            self.algebra.target = self.launch.kernel.module.target
            self.attempt = self.launch.attempt(checks=checks, observers=(self.algebra,))
            if self.attempt.error is not None:
                raise self.attempt.error
            self.trace = trace_of(self.reader, gauge=gauge)
            self.trace.close = max(self.trace.close, _precision(self.algebra.code))
            found = _called(self.name, self.reference, self.leaves.given(self.trace), self.trace)
            for argument in (unused := self.unused()):
                self.reader.constants.note(float(argument.content))  # type: ignore[arg-type]
                argument.keys = None
            if not unused and names >= self.trace.functions and known == self.reader.constants.count:
                break
            names, known = names | self.trace.functions, self.reader.constants.count
            provenance = None if provenance is None else Provenance()
        outputs = _outputs(self, found)
        if first is None:
            self._check_same(outputs)
        return outputs

    def compare(self, outputs: Mapping[int, Shadow], tolerance: float | None) -> Equivalence:
        """Return the answer for the outputs."""
        assert self.algebra is not None
        found = [self._compared(index, shadow, tolerance) for index, shadow in outputs.items()]
        parted = list[Parted]()
        if not self.trace.gauge and any((output.other | output.far).any() for output in found):
            found, parted = self._turned(found, FormulaValues([*self.trace.arrays(), *outputs.values()]))
        code = self.algebra.code
        place = {
            pc: str(code[pc].statement.location())
            for pc in (*self.algebra.by_value.places, *self.algebra.overflows)
        }
        values = [
            f"{name} at {place[pc]} by value in {count} lanes, not by algebra"
            for pc, (name, count) in self.algebra.by_value.places.items()
        ]
        chosen = {each.name for each in self.trace.operations} & {"max", "min", "where", "abs"}
        report = self.attempt.report
        return Equivalence(
            reference=self.name,
            outputs=tuple(found),
            by_value=tuple(values),
            decisions=tuple(sorted(chosen)),
            uninterpreted=self.algebra.uninterpreted,
            overflows=tuple(place[pc] for pc in sorted(self.algebra.overflows)),
            parted=tuple(parted),
            misread=tuple(self.reader.misread),
            untyped=tuple(self.leaves.untyped()),
            findings=() if report is None else report.hazards,
        )

    def _turned(self, outputs: list[Output], values: FormulaValues) -> tuple[list[Output], list[Parted]]:
        """Return outputs as they are where the kernel decides by the values of the reference, and which
        statements make other values that are far from these.
        """
        assert self.algebra is not None
        algebra = Algebra(self.reader, self.leaves.bind, self.algebra.by_value.names, values=values)
        algebra.target, memory = self.algebra.target, self.leaves.memory
        executed = sum(self.attempt.report.fidelity.counts.values())
        attempt = self.launch.attempt(checks="off", observers=(algebra,), most_statements=_LONGER * executed)
        found = outputs
        if attempt.error is None:
            left = [self.leaves.left(self.arguments[output.argument]) for output in outputs]
            found = [
                output.turning(each.read(self.reader, attempt.arrays[output.argument]))
                for output, each in zip(outputs, left, strict=True)
            ]
        self.leaves.memory = memory
        return found, [*self._parted(values)] if any((each.turned | each.far).any() for each in found) else []

    def _parted(self, values: FormulaValues) -> Iterator[Parted]:
        """Yield statements whose results are out of range, the first of each line of the user's."""
        assert self.algebra is not None
        seen = set[str]()
        for pc, what in sorted(values.parted.items()):
            statement = self.algebra.code[pc].statement
            place = user_location(statement.location())
            line = f"{place.source or place}: {statement.mnemonic}"
            if pc >= 0 and line not in seen:
                seen.add(line)
                yield Parted(place, statement.mnemonic, what)

    def _compared(self, index: int, shadow: Shadow, tolerance: float | None) -> Output:
        argument, given = self.arguments[index], self.attempt.arrays[index]
        left = self.leaves.left(argument)
        keys = left.read(self.reader, given)
        if keys.shape != shadow.shape:
            raise ReferenceError(
                f"{self.name} returns {shadow.shape} for {argument.name}, which has {keys.shape}"
            )
        kind, values = _stored(left, given)
        each = keys.size // max(left.writers.size, 1)  # 2 where a byte holds two numbers
        stored = Stored(
            argument=index,
            name=argument.name,
            kind=kind,
            keys=keys,
            values=values,
            writers=np.repeat(left.writers, each).reshape(keys.shape),
            bare=np.repeat(left.bare, each).reshape(keys.shape),
            dtype=given.dtype,
        )
        lawless = bool(self.algebra and self.algebra.uninterpreted)
        untyped = bool(self.leaves.untyped())
        return output_of(stored, shadow, tolerance, lawless=lawless, untyped=untyped)


_PACKED = 4  # bits of codes of which an array has two in a byte


def _stored(left: StoredArray, given: Array) -> tuple[str, Array]:
    """Return the format that an output was stored as, and its numbers."""
    kind = left.kind(given.dtype)
    packed = kind in FORMATS and FORMATS[kind].bits == _PACKED
    if given.dtype.kind not in "iu" or packed:
        return kind, given
    return kind, numbers(given.view(f"u{given.dtype.itemsize}"), kind, given.dtype.itemsize)


def argument_names(arguments: Sequence[Argument], reference: Reference) -> list[str]:
    """Return the names of arguments: those of the reference's parameters, else of the kernel's."""
    parameters = inspect.signature(reference).parameters.values()
    own = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    plain = [each.index for each in arguments if not each.structure]
    known = dict(zip(plain, own, strict=False)) if len(plain) == len(arguments) else {}
    return [known.get(each.index, each.name) for each in arguments]


def launch_argument(index: int, name: str, value: Any, content: Array | None) -> Argument:
    """Return an argument of a launch as one of a reference; ``content`` is that of an array."""
    if content is not None:
        return Argument(index, name, content, isinstance(value, ArrayMap | BufferMap))
    if isinstance(value, bool | int | float | np.generic) or (
        isinstance(value, np.ndarray) and not value.ndim
    ):
        return Argument(index, name, np.asarray(as_array(value)))
    return Argument(index, name, None)


def equivalence_of(
    launch: Repeatable,
    reference: str | Reference,
    tolerance: float | None = None,
    *,
    provenance: Provenance | None = None,
    gauge: bool = False,
    seed: int = 1,
) -> Run:
    """Return whether a launch computes a reference, and both sides.

    Formulas behind an exponential are compared again with another seed. Raises what the launch raises, and
    ReferenceError.
    """
    name, function = reference_of(reference)
    sides = _Sides(launch, name, function, seed)
    found = sides.compare(sides.run(provenance, gauge=gauge), tolerance)
    if found.needs_another_seed:
        again = _Sides(launch, name, function, seed + 1)
        second = again.compare(again.run(None, gauge=gauge, first=sides), tolerance)
        if second.answer != "equal":
            sides, found = again, replace(second, findings=found.findings)
        found = replace(found, seeds=2)
    assert sides.algebra is not None
    return Run(found, sides.algebra, sides.leaves, sides.trace, sides.attempt)
