"""What the fixture ``simulator`` gives a test: kernels loaded for a chip, launched, judged and compared.

A launch fails its test with findings of the chosen severity, and, where that is asked for, with outputs that
depend on the schedule. A failed comparison of an output of the last launch names its cause, as warpsim.why
does. Knows launches and verdicts; does not know pytest, but for the variable by which it hides frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError, WarpsimError
from ...machine.run.schedules import other_schedules
from ...observe.checks.findings import LaunchFinding
from ...programs.compilers.numba_kernels import launch_numba
from ...programs.compilers.triton_kernels import Grid, launch_triton
from ...programs.launch.fidelity import LABELS
from ...programs.launch.launching import LaunchableKernel, LaunchReport, LoadedModule, load_text
from ...programs.launch.loading import compiled, load, source_lines
from ...workbench.diagnosis.verdicts import RepeatedLaunch, verdict_of
from .comparison import array_of, lines_of, wrong_bits, wrong_ulps, wrong_values
from .failures import KernelFailure, without_frames

SEVERITIES = ("note", "warning", "error")  # in rising order
_CHIP = "sm_80"  # of CUDA sources and of Triton, where a test names none
_SHOWN = 3  # findings that a failure shows
_VERDICT = 12  # lines of a verdict that a failure shows
_SOURCES = (".cu", ".cuh", ".cpp", ".c")

Array = npt.NDArray[Any]
Source = str | bytes | PathLike[str]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How launches of a test are judged.

    ``fail_on`` is the least severity that fails ("note", "warning", "error"), or "never"; ``schedules`` are
    so many others that each launch is repeated under; ``explain`` asks for the cause of wrong outputs;
    relative names of files are those of ``folder`` where the current folder has none.
    """

    chip: str | None = None
    fail_on: str = "warning"
    schedules: int = 0
    explain: bool = True
    folder: Path = field(default_factory=Path)


class Simulator:
    """Kernels of a test. ``chip`` is the chip that it runs for, None where it names none; ``reports`` are
    those of its launches, in their order.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.reports: list[LaunchReport] = []

    @property
    def chip(self) -> str | None:
        """The chip of the mark ``chips``, of ``--warpsim-chip`` or of the ini file; or None."""
        return self._settings.chip

    def __repr__(self) -> str:
        count = len(self.reports)
        launches = f"{count} launch{'' if count == 1 else 'es'}"
        return f"<simulator for {self.chip or 'the chip of each module'}: {launches}>"

    # --- kernels -----------------------------------------------------------------------------------

    def load(self, source: Source, target: str | None = None, nvcc: Sequence[str] = ()) -> LoadedModule:
        """Return the module of a ``.cu`` or ``.ptx`` file or of PTX text, as ``warpsim.load`` does.

        ``target`` is by default the chip of the test. A relative name that the current folder does not have
        is looked for beside the test. A source is compiled once in a run. Raises what ``load`` raises.
        """
        __tracebackhide__ = True
        return without_frames(lambda: self._loaded(source, target or self.chip, tuple(nvcc)))

    def _loaded(self, source: Source, target: str | None, nvcc: tuple[str, ...]) -> LoadedModule:
        if isinstance(source, bytes) or (
            isinstance(source, str) and ("\n" in source or ".version" in source)
        ):
            return load(source, target)
        path = self._find_path(Path(source))
        if path.suffix not in _SOURCES:
            return load(path, target)
        state = path.stat() if path.is_file() else None
        stamp = (0, 0) if state is None else (state.st_mtime_ns, state.st_size)
        return load_text(_ptx(path, stamp, target, nvcc), f"PTX of {path.name}", target, source_lines)

    def _find_path(self, path: Path) -> Path:
        beside = self._settings.folder / path
        if path.exists() or not beside.exists():
            return path
        return beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside

    # --- launches ----------------------------------------------------------------------------------

    def launch(
        self,
        kernel: LaunchableKernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        **options: Any,
    ) -> LaunchReport:
        """Launch a kernel; arrays among ``args`` are written back in place.

        ``options`` are those of a launch: shared_bytes, cluster, schedule and so on; ``schedules`` and
        ``fail_on`` are by default those of the test. Raises KernelFailure for findings and for outputs that
        depend on the schedule, and what the launch raises.
        """
        __tracebackhide__ = True
        return self._judged(lambda asked: kernel(grid, block, args, **{"checks": "warn", **asked}), options)

    def launch_triton(
        self,
        function: Any,
        grid: Grid,
        args: Sequence[Any],
        constants: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> LaunchReport:
        """Launch a ``@triton.jit`` function for the chip of the test, as ``warpsim.launch_triton`` does."""
        __tracebackhide__ = True
        launch = {"checks": "warn", **options.pop("launch", {})}
        chosen = {"target": self.chip or _CHIP, **options, "launch": launch}
        return self._judged(lambda asked: launch_triton(function, grid, args, constants, **asked), chosen)

    def launch_numba(
        self,
        function: Callable[..., Any],
        grid: Any,
        block: Any,
        args: Sequence[Any],
        **options: Any,
    ) -> LaunchReport:
        """Launch a function of Numba's CUDA dialect for the chip of the test, as ``warpsim.launch_numba``."""
        __tracebackhide__ = True
        chosen = {"target": self.chip or _CHIP, "checks": "warn", **options}
        return self._judged(lambda asked: launch_numba(function, grid, block, args, **asked), chosen)

    def _judged(
        self, call: Callable[[Mapping[str, Any]], LaunchReport], options: Mapping[str, Any]
    ) -> LaunchReport:
        """Launch with the options that are not ours, and judge what it did."""
        __tracebackhide__ = True
        asked, ours = dict(options), self._settings
        least = without_frames(lambda: _severity(asked.pop("fail_on", ours.fail_on)))
        count = without_frames(lambda: _count(asked.pop("schedules", ours.schedules)))
        report = without_frames(lambda: call(asked))
        self.reports.append(report)
        _check_findings(report.hazards, least)
        if count:
            _check_schedules(report, count, least)
        return report

    # --- comparisons -------------------------------------------------------------------------------

    def assert_equal(self, given: Any, expected: Any) -> None:
        """Fail unless two arrays have the same bits; they have one dtype and shape."""
        __tracebackhide__ = True
        self._compare(given, expected, wrong_bits, "")

    def assert_ulp(self, given: Any, expected: Any, most: int) -> None:
        """Fail unless the floats of two arrays of one dtype are at most so many values apart."""
        __tracebackhide__ = True
        self._compare(given, expected, lambda x, y: wrong_ulps(x, y, most), f" by more than {most} ulp")

    def assert_close(self, given: Any, expected: Any, rtol: float, atol: float = 0.0) -> None:
        """Fail unless ``abs(given - expected) <= atol + rtol * abs(expected)`` for all elements."""
        __tracebackhide__ = True
        how = f" by more than {atol:g} + {rtol:g} x expected"
        self._compare(given, expected, lambda x, y: wrong_values(x, y, rtol, atol), how, rtol)

    def assert_computes(self, reference: str | Callable[..., Any], tolerance: float = 0.0) -> None:
        """Fail unless the last launch computes the formula of a NumPy function of the kernel's arguments.

        ``reference`` is a function, "FILE.py:FUNCTION" or the name of a built-in reference; values are within
        ``tolerance``, relative, by default what rounding leaves in the type of the output.
        """
        __tracebackhide__ = True
        launched = self.reports[-1].launched if self.reports else None
        if launched is None or launched.before is None:
            raise OperandError("assert_computes takes the last launch: there is none that can be repeated")
        launch = RepeatedLaunch(**launched._asdict())
        found = without_frames(lambda: verdict_of(launch, {}, tolerance, reference))
        if not found.as_expected:
            raise KernelFailure("\n".join(str(found).splitlines()[:_VERDICT]))

    def _compare(
        self,
        given: Any,
        expected: Any,
        wrong_of: Callable[[Array, Array], npt.NDArray[np.bool_]],
        how: str,
        tolerance: float = 0.0,
    ) -> None:
        __tracebackhide__ = True
        x, y = without_frames(lambda: (array_of(given), array_of(expected)))
        wrong = without_frames(lambda: wrong_of(x, y))
        if not wrong.any():
            return
        launch, argument = self._output(given)
        name = "the output" if launch is None else f"argument {argument}, {launch.name(argument)}"
        lines = [*lines_of(name, x, y, wrong, how), *self._cause(launch, argument, y, tolerance)]
        raise KernelFailure("\n".join(lines))

    def _output(self, given: Any) -> tuple[RepeatedLaunch | None, int]:
        """Return the last launch that has this array among its arguments, and which it is."""
        for report in reversed(self.reports):
            launched = report.launched
            places = (
                [] if launched is None else [at for at, value in enumerate(launched.args) if value is given]
            )
            if launched is not None and places:
                before = launched.before or {}
                return RepeatedLaunch(**{**launched._asdict(), "before": before}), places[0]
        return None, -1

    def _cause(
        self, launch: RepeatedLaunch | None, argument: int, expected: Array, tolerance: float
    ) -> Iterator[str]:
        """Yield why an output of the last launch is wrong, where a cause is found."""
        last = self.reports[-1].launched if self.reports else None
        if not self._settings.explain or launch is None or last is None or last.args is not launch.args:
            return  # arrays of an earlier launch may hold other inputs by now
        if last.before is None or not 0 <= tolerance < 1:
            return
        try:
            verdict = verdict_of(launch, {argument: expected}, tolerance)
        except WarpsimError as error:
            yield f"why was not found out: {error.message}"
            return
        if verdict.causes:
            lines = [line for line in verdict.lines() if not line.startswith("output ")]
            yield from lines[:_VERDICT]

    # --- what a test leaves --------------------------------------------------------------------------

    def properties(self) -> Iterator[tuple[str, str]]:
        """Yield what a JUnit file says of a test with launches: chip, launches, fidelity, findings."""
        if not self.reports:
            return
        if self.chip is not None:
            yield "warpsim_chip", self.chip
        yield "warpsim_launches", str(len(self.reports))
        counts = Counter[str]()
        for report in self.reports:
            counts.update(report.fidelity.counts)
        yield "warpsim_fidelity", ", ".join(f"{label} {counts[label]}" for label in LABELS if counts[label])
        found = Counter(item.severity for report in self.reports for item in report.hazards)
        yield "warpsim_findings", ", ".join(f"{name} {count}" for name, count in found.items()) or "none"


@lru_cache(maxsize=128)
def _ptx(path: Path, stamp: tuple[int, int], target: str | None, nvcc: tuple[str, ...]) -> str:
    """Return the PTX of a source; again when the file has changed."""
    return compiled(path, target, nvcc)


def _severity(name: str) -> int:
    """Return the rank of the least severity that fails. Raises OperandError."""
    known = (*SEVERITIES, "never")
    if name not in known:
        raise OperandError(f"fail_on={name!r}: expected one of {', '.join(known)}")
    return known.index(name)


def _count(schedules: int) -> int:
    if isinstance(schedules, bool) or not isinstance(schedules, int) or schedules < 0:
        raise OperandError(f"schedules={schedules!r}: it is the number of other schedules, 0 or more")
    return schedules


def _check_findings(findings: Sequence[LaunchFinding], least: int, schedule: str = "") -> None:
    """Raise KernelFailure for findings that are grave enough, the gravest first."""
    __tracebackhide__ = True
    grave = [item for item in findings if SEVERITIES.index(item.severity) >= least]
    if not grave:
        return
    grave.sort(key=lambda item: -SEVERITIES.index(item.severity))
    more = [f"and {len(grave) - _SHOWN} more findings"] if len(grave) > _SHOWN else []
    raise KernelFailure("\n".join([f"{item}{schedule}" for item in grave[:_SHOWN]] + more))


def _check_schedules(report: LaunchReport, count: int, least: int) -> None:
    """Raise KernelFailure where another schedule has findings, or leaves other bits in an array."""
    __tracebackhide__ = True
    launched = report.launched
    if launched is None or launched.before is None:
        raise OperandError("device buffers too large to be kept: launch with schedules=0") from None
    launch = RepeatedLaunch(**launched._asdict())
    for schedule in other_schedules(count, launched.options["schedule"]):
        attempt = without_frames(partial(launch.attempt, checks="warn", schedule=schedule))
        named = f"\nunder --warpsim-schedules, with the schedule {schedule}"
        if attempt.error is not None:
            raise KernelFailure(f"{attempt.error}{named}") from None
        _check_findings(attempt.report.hazards if attempt.report else (), least, named)
        for argument, array in launch.arrays.items():
            other = attempt.arrays[argument]
            wrong = wrong_bits(array, other)
            if wrong.any():
                name = f"argument {argument}, {launch.name(argument)}"
                how = f" under the schedule {schedule}: outputs depend on the schedule"
                raise KernelFailure("\n".join(lines_of(name, array, other, wrong, how)))
