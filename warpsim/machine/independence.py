"""Whether CTAs of a launch are independent: none sees what another does, as far as the statements say.

Knows opcodes and modifiers; whether CTAs read what others have written shows only when they run.
"""

from __future__ import annotations

from ..ptx.statements import InstructionStatement
from .opcodes.control.system_calls import calls_the_system
from .run.wave import Entry
from .state.side_tables import SideTable

_FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
_ORDERED = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_SHARED = frozenset({"shared", "shared::cta", "shared::cluster"})
_ATOMIC = frozenset({"atom", "red"})
_OF_A_CLUSTER = frozenset({"mbarrier", "barrier", "bar", "fence", "membar"})  # they order, and move no data
_NEVER = {
    "clusterlaunchcontrol": "asks for the work of other clusters",
    "multimem": "reaches the memory of several devices",
    "tensormap": "changes a tensor map, which other CTAs may use",
}


def dependence(entry: Entry) -> str:
    """Return why CTAs of a kernel may depend on each other, or on their order; "" where they do not."""
    return _DEPENDENCE.of(entry)


def _dependence(entry: Entry) -> str:
    if calls_the_system(entry):
        return "printf, malloc and assertions have an order"
    for record in entry.code:
        reason = _reason(record.statement)
        if reason:
            return f"{record.statement.mnemonic} {reason}"
    return ""


def _reason(statement: InstructionStatement) -> str:
    """Return what a statement shows to other CTAs; "" for nothing."""
    opcode, words = statement.opcode, frozenset(statement.modifiers)
    if opcode in _NEVER:
        return _NEVER[opcode]
    if "tensormap" in " ".join(words):
        return _NEVER["tensormap"]
    if opcode == "cp" and "reduce" in words:
        return "adds in memory, in an order"
    if opcode in _ATOMIC and not words.isdisjoint(_FLOATS):
        return "adds floats in an order"
    reaches = opcode in _ATOMIC or not words.isdisjoint(_ORDERED)
    if reaches and opcode not in _OF_A_CLUSTER and words.isdisjoint(_SHARED):
        return "reaches memory by which CTAs may wait for each other"
    return ""


_DEPENDENCE = SideTable(_dependence)
