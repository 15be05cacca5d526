"""A run as plain data for the page: instructions, what they read and wrote, layouts, checks and hazards.

Everything is asked of the views and of the records of the run; nothing is computed a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import present
from ...isa.families.tcgen05_operands import is_shifted
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs, ScaleSelectors
from ...isa.warps import WARP
from ...observe.checks.wgmma.hazard import Hazard
from ...observe.recording.matrix_events import Event
from ...observe.recording.recorder import LaunchEvent
from ...workbench.explanation.gathered_operands import Gathered, from_registers
from ...workbench.traces.checks import ByteDifference, Check, Difference
from ...workbench.traces.running import Run
from ...workbench.vectors.recordings import Recording
from ..views.report import word_names
from .arrays import Pool, Reference
from .expectations import Expectation, expectations
from .forecast import differences, is_forecast
from .launches import launch_document, ptx_documents, source_documents
from .layouts import format_documents, layout_document, with_distinctions
from .overview import overview_of
from .set_cases import Case, Cases
from .timelines import TimelinePieces, timeline_pieces

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The data of a report; the arrays that the document refers to lie in the pool.

    ``timeline`` is what a launch did in its order, where that was recorded.
    """

    document: Document
    pool: Pool
    timeline: TimelinePieces | None = None


@in_default_environment
def gather(run: Run | Recording | Cases) -> ReportData:
    """Return the data of the report of a run, of a launch's recording, or of a vector set."""
    if isinstance(run, Cases):
        return _gather_cases(run)
    return _gather_recording(run) if isinstance(run, Recording) else _gather_run(run)


def _gather_cases(cases: Cases) -> ReportData:
    """Return the data of a set: check 0 is of all cases, each case that differs and is shown has its own."""
    wrong = [at for at, case in enumerate(cases.shown) if case.first_difference()]
    writer = _Writer(cases.shown, list(_stored_expectations(cases, wrong)))
    instructions = list(writer.instructions())
    shown = [_case_check(cases.shown[at], at) for at in wrong]
    whole = {
        "line": None,
        "registers": f"D of {len(cases.vectors):,} cases",
        "compared": prod(cases.vectors.specs()["d"][1]),
        "different": int(cases.different.sum()),
    }
    first = shown[0] if shown else {"first": None, "lane": None, "element": None, "instruction": None}
    about = {name: first[name] for name in ("first", "lane", "element", "instruction")}
    document = {
        "title": cases.title,
        "target": str(cases.vectors.instruction.target),
        "engine": "kernel",
        "passed": not cases.count,
        "compared": prod(cases.vectors.specs()["d"][1]),
        "formats": format_documents(),
        "layouts": with_distinctions(writer.layouts),
        "instructions": instructions,
        "checks": [whole | about, *shown],
        "hazards": [],
        "launch": None,
        "overview": None,
        "sources": [],
        "ptx": [],
        "cases": _cases_document(cases),
    }
    return ReportData(document=document, pool=writer.pool)


def _cases_document(cases: Cases) -> Document:
    provenance = cases.vectors.provenance
    return {
        "count": len(cases.vectors),
        "different": cases.count,
        "title": cases.vectors.title,
        "source": str(provenance.get("chip") or provenance.get("kind", "")),
    }


def _stored_expectations(cases: Cases, wrong: Sequence[int]) -> Iterator[Expectation]:
    """Yield every register of D as the set has it."""
    for at, case in enumerate(cases.shown):
        check = wrong.index(at) + 1 if at in wrong else 0
        for register in range(case.held.shape[1]):
            yield Expectation(check=check, event=at, register=register, words=case.held[:, register])


def _case_check(case: Case, at: int) -> Document:
    difference = case.first_difference()
    return {
        "line": None,
        "registers": case.place,
        "compared": case.d.size,
        "different": int((case.d != case.held).sum()),
        "first": str(difference),
        "lane": None if difference is None else difference.lane,
        "element": _element_key(difference),
        "instruction": at,
    }


def _gather_recording(recording: Recording) -> ReportData:
    overview = overview_of(recording)
    recording = overview.detailed()
    writer = _Writer(recording.events)
    instructions = list(writer.instructions())
    document = {
        "title": PurePath(recording.path).name or recording.kernel,
        "target": recording.target,
        "engine": "",
        "passed": True,
        "compared": 0,
        "formats": format_documents(),
        "layouts": with_distinctions(writer.layouts),
        "instructions": instructions,
        "checks": [],
        "hazards": [],
        "launch": launch_document(recording),
        "overview": overview.document(writer.pool),
        "sources": (sources := source_documents(recording)),
        "ptx": ptx_documents(sources),
        "cases": None,
    }
    return ReportData(document=document, pool=writer.pool, timeline=timeline_pieces(recording))


def _gather_run(run: Run) -> ReportData:
    writer = _Writer(run.events, expectations(run))
    instructions = list(writer.instructions())
    document = {
        "title": PurePath(run.trace.path).name,
        "target": run.machine.target,
        "engine": run.machine.engine_name,
        "passed": run.passed,
        "compared": sum(check.compared for check in run.checks),
        "formats": format_documents(),
        "layouts": with_distinctions(writer.layouts),
        "instructions": instructions,
        "checks": [_check_document(number, check, instructions) for number, check in enumerate(run.checks)],
        "hazards": [_hazard_document(hazard) for hazard in run.hazards],
        "launch": None,
        "overview": None,
        "sources": [],
        "ptx": [],
        "cases": None,
    }
    return ReportData(document=document, pool=writer.pool)


LayoutKey = tuple[Instruction, int, ScaleSelectors]


class _Writer:
    """Documents of the instructions of one run; what several of them share is written once."""

    def __init__(self, events: Sequence[Event | Case], expected: Sequence[Expectation] = ()) -> None:
        self.events = events
        self.pool = Pool()
        self.layouts: list[Document] = []
        self.expectations = expected
        self._numbers: dict[LayoutKey, int] = {}
        self._results: dict[bytes, int] = {}  # words of D that are differences, and the instruction of each

    def instructions(self) -> Iterator[Document]:
        """Yield a document for each execution: an ``mma`` in a warpgroup is an execution for each warp."""
        count = 0
        for number, event in enumerate(self.events):
            expected = [expectation for expectation in self.expectations if expectation.event == number]
            for first, inputs, d in event.executions():
                yield self._instruction(event, first, inputs, d, expected, count)
                count += 1

    def _instruction(
        self,
        event: Event | Case,
        first: int,
        inputs: Inputs,
        d: npt.NDArray[Any],
        expected: Sequence[Expectation],
        number: int,
    ) -> Document:
        form = event.instruction
        gathered = from_registers(form, inputs)
        alone = len(event.d) == form.lanes
        words = {role: self._words(words) for role, words in inputs.registers.items()}
        return {
            "layout": self._layout(form, inputs),
            **_place(event),
            "statement": str(event.statement),
            "warp": None if alone else first // WARP,
            "names": {} if isinstance(event, Case) else word_names(event),
            "words": words | {"d": self._result(number, gathered, d)},
            "codes": {role: self.pool.add(codes) for role, codes in _codes(gathered, inputs)},
            "kept": np.flatnonzero(inputs.tensor.disabled(form.lanes)).tolist(),
            "columns": self._columns(gathered),
            "memory": self._memory(form, inputs),
            "notes": list(gathered.notes),
            "absent": sorted(gathered.absent),
            **self._expected_d(d, first, expected),
        }

    def _layout(self, form: Instruction, inputs: Inputs) -> int:
        key = form, inputs.selector, inputs.scale_selectors
        if key not in self._numbers:
            self._numbers[key] = len(self.layouts)
            self.layouts.append(layout_document(*key, self.pool))
        return self._numbers[key]

    def _words(self, words: npt.NDArray[Any]) -> Document:
        """Return where words lie: in the pool, or as the D of an instruction."""
        known = self._results.get(words.tobytes())
        return self.pool.add(words) if known is None else {"result": known}

    def _result(self, number: int, gathered: Gathered, d: npt.NDArray[Any]) -> Document:
        """Return where the D of this instruction lies; from here on it can be referred to."""
        if not is_forecast(gathered.instruction) or d.tobytes() in self._results:
            return self._words(d)
        self._results[d.tobytes()] = number
        return {"differences": self.pool.add(differences(gathered.instruction, gathered.operands, d))}

    def _columns(self, gathered: Gathered) -> Reference | None:
        """Return the logical column of every stored element of A."""
        columns = gathered.operands.columns
        return None if columns is None else self.pool.add_narrow(columns)

    def _expected_d(self, d: npt.NDArray[Any], first: int, expected: Iterable[Expectation]) -> Document:
        """D as it was expected, the registers that were checked, and by which checks."""
        wanted, registers, checks = d.copy(), set[int](), set[int]()
        for item in expected:
            wanted[:, item.register] = item.words[first : first + len(d)]
            registers.add(item.register)
            checks.add(item.check)
        return {
            "expected": self._words(wanted) if registers else None,
            "checked": sorted(registers),
            "checks": sorted(checks),
            "different": int((wanted != d).sum()),
        }

    def _memory(self, form: Instruction, inputs: Inputs) -> Document:
        """Return operands in shared memory: their descriptors, and the address of every element."""
        found: Document = {}
        for side, tile in form.tiles(inputs).items():
            word = int(np.unique(present(inputs.descriptor(side), side))[0])
            addresses = tile.element_addresses(word, inputs, form.product)
            found[side] = {
                "descriptor": f"{word:#018x}",
                "explained": list(tile.explained(word, inputs, form.product)),
                "addresses": self.pool.add_narrow(addresses),
            }
        return found


def _place(event: Event | Case) -> Document:
    """Return where an execution stands: a line, perhaps with its source and its place in a launch; a case."""
    if isinstance(event, Case):
        return {"line": None, "source": None, "executed": event.place}
    source = event.location.source
    return {
        "line": event.statement.location().line,
        "source": None if source is None else str(source),
        "executed": event.place if isinstance(event, LaunchEvent) else None,
    }


def _codes(gathered: Gathered, inputs: Inputs) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield codes that are not those in registers or tensor memory.

    They come from shared memory, or with flipped signs, from other rows (.ashift), scaled (scale-input-d).
    """
    other = dict(zip("ab", inputs.negate, strict=True))
    other["a"] |= is_shifted(gathered.instruction)
    other["c"] = bool(inputs.tensor.scale_input_d)
    for role, differs in other.items():
        if differs or (role != "c" and role in gathered.absent):
            yield role, getattr(gathered.operands, role)


# --- checks and hazards ----------------------------------------------------------------------------


def _check_document(number: int, check: Check, instructions: Sequence[Document]) -> Document:
    """Return a check, the instruction with its D (None: unknown), and its first difference in words."""
    about = [at for at, item in enumerate(instructions) if number in item["checks"]]
    worst = [at for at in about if instructions[at]["different"]]
    first = check.first
    return {
        "line": check.location.line,
        "registers": check.registers,
        "compared": check.compared,
        "different": check.different,
        "first": None if first is None else str(first),
        "lane": first.lane if isinstance(first, Difference) else None,
        "element": _element_key(first),
        "instruction": next(iter([*worst, *about]), None),
    }


def _element_key(first: Difference | ByteDifference | None) -> list[int] | None:
    """Row, column and product of the element of D behind a difference, if that is known."""
    if not isinstance(first, Difference) or first.element is None:
        return None
    return [first.element.row, first.element.column, first.element.product or 0]


def _hazard_document(hazard: Hazard) -> Document:
    return {
        "severity": hazard.severity,
        "line": hazard.second.line,
        "message": hazard.message,
        "fix": hazard.fix,
    }
