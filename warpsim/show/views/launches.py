"""Kernels and what launches of them did: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...base.errors import Location
from ...machine.run.wave import Parameter
from ...machine.state.device_runtime import Printed
from ...observe.checks.findings import LaunchFinding
from ...programs.launch.fidelity import LABELS, Fidelity, Reach, StatementClass
from ...programs.launch.launching import LaunchReport, LoadedModule
from ...ptx.symbols import shown, shown_variable

Document = dict[str, Any]
_SHOWN = 5  # of a kind that are listed

# --- text ------------------------------------------------------------------------------------------


def kernel_lines(module: LoadedModule) -> Iterator[str]:
    """Yield every kernel, and its parameters by their index."""
    for name in module.entries:
        parameters, known = module.parameters(name), shown(name)
        yield known if parameters else f"{known}, which has no parameters"
        yield from (f"  {parameter_text(parameter)}" for parameter in parameters)


def kernel_documents(module: LoadedModule) -> Iterator[dict[str, Any]]:
    """Yield the name of every kernel, as PTX and as C++ have it, and its parameters."""
    for name in module.entries:
        parameters = [
            {
                "index": each.index,
                "name": each.name,
                "kind": each.kind,
                "bytes": each.bytes,
                "alignment": each.alignment,
            }
            for each in module.parameters(name)
        ]
        yield {"entry": name, "signature": shown(name), "parameters": parameters}


def parameter_text(parameter: Parameter) -> str:
    """Return ``0 A: .u64, 8 bytes``."""
    plural = "s"[: parameter.bytes != 1]
    aligned = f", aligned to {parameter.alignment}" if parameter.kind == "b8" else ""
    size = f"{parameter.bytes} byte{plural}{aligned}"
    return f"{parameter.index} {shown_variable(parameter.name)}: .{parameter.kind}, {size}"


def hazard_lines(hazards: Sequence[LaunchFinding]) -> Iterator[str]:
    """Yield findings with their places, then how many."""
    for hazard in hazards:
        yield from str(hazard).splitlines()
    if hazards:
        yield f"{len(hazards)} finding{'s'[: len(hazards) != 1]}"


def fidelity_lines(fidelity: Fidelity) -> Iterator[str]:
    """Yield how many statements were exact, the mnemonics of the others and why, and what these reached."""
    counts = {label: sum(item.statements for item in fidelity[label]) for label in LABELS}
    named = [f"{count} {label}" for label, count in counts.items() if count or label == "exact"]
    yield f"statements executed: {', '.join(named)}"
    for label in LABELS[1:]:
        yield from (f"  {label}: {entry.mnemonic}: {entry.note}" for entry in fidelity[label])
    for reach in fidelity.reached[:_SHOWN]:
        yield f"  {reach}"
    if len(fidelity.reached) > _SHOWN:
        yield f"  and {len(fidelity.reached) - _SHOWN} more"


# --- data ------------------------------------------------------------------------------------------


def report_document(report: LaunchReport) -> Document:
    """Return ``hazards``, ``fidelity``, ``notes`` and ``printed`` of a launch as JSON-ready data."""
    fidelity = report.fidelity
    return {
        "hazards": [_hazard_document(hazard) for hazard in report.hazards],
        "fidelity": {
            "executions": dict(fidelity.counts),
            "classes": [_class_document(class_) for class_ in fidelity.classes],
            "reached": [_reach_document(entry) for entry in fidelity.reached],
        },
        "notes": [*report.notes],
        "printed": [_printed_document(item) for item in report.printed],
    }


def _printed_document(item: Printed) -> Document:
    return {
        "text": item.text,
        "cta": list(item.cta),
        "warp": item.warp,
        "lane": item.lane,
        "location": _place(item.location),
    }


def _place(location: Location | None) -> Document | None:
    if location is None:
        return None
    source = location.source
    return {
        "file": location.file,
        "line": location.line,
        "column": location.column,
        "source": None if source is None else {"file": source.file, "line": source.line},
    }


def _hazard_document(finding: LaunchFinding) -> Document:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "location": _place(finding.location),
        "other": _place(finding.other),
        "note": finding.note if finding.other else "",
        "fix": finding.fix,
        "count": finding.count,
        "legal": finding.legal,
        "influence": finding.influence,
        "others": [[_place(here), _place(there)] for here, there in finding.others],
    }


def _class_document(class_: StatementClass) -> Document:
    return {
        "mnemonic": class_.mnemonic,
        "fidelity": class_.fidelity,
        "note": class_.note,
        "statements": class_.statements,
        "executions": class_.executions,
    }


def _reach_document(reach: Reach) -> Document:
    return {
        "role": reach.role,
        "mnemonic": reach.mnemonic,
        "location": _place(reach.location),
        "origin": {"mnemonic": reach.origin_mnemonic, "location": _place(reach.origin)},
    }
