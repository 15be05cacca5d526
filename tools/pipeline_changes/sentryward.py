"""What SentryWard decides of a text: a static verifier of PTX (PyPI, Apache-2.0), asked about one launch.

It checks synchronisation and order of accesses for every schedule, and says so where it cannot. It is asked
for no values. Knows its input and output, as 0.1.1 has them; does not know what is changed, or our findings.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .kernels import Pipeline

INSTALL = "SentryWard is not there: pip install sentryward"
_WRONG = frozenset({"not_wellsynced", "potential_race", "invalid_lifecycle"})
_NAMED = frozenset({"missing-barrier-initialization", "zero-initial-arrival-count"})  # under tool_failure
_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """``word``: fine, wrong or undecided, and why, in its own words."""

    word: str
    why: str = ""


def available() -> bool:
    """Return whether the package can be imported."""
    try:
        import sentryward  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        return False
    return True


def decided(pipeline: Pipeline, text: str) -> Verdict:
    """Return what SentryWard decides of a text in place of a pipeline's."""
    from sentryward import verify

    with tempfile.TemporaryDirectory() as folder:
        code, question = Path(folder) / "kernel.ptx", Path(folder) / "input.json"
        code.write_text(text, encoding="utf-8")
        question.write_text(json.dumps(_question(pipeline)), encoding="utf-8")
        return _verdict(verify(code, input=question, timeout_seconds=_SECONDS))


def _verdict(answer: dict[str, Any]) -> Verdict:
    word = answer["result"]
    found = (answer.get("diagnostics") or [{}])[0]
    why = f"{word}: {found['code']}" if "code" in found else word
    if word == "race_free":
        return Verdict(word="fine")
    wrong = word in _WRONG or found.get("code") in _NAMED
    return Verdict(word="wrong" if wrong else "undecided", why=why)


def _question(pipeline: Pipeline) -> dict[str, Any]:
    """Return the launch as input: dimensions, arguments, and arrays that do not overlap."""
    case, found = pipeline.case, dict[str, list[Any]](arguments=[], declarations=[], tma_descriptors=[])
    launch = {"grid_dim": _three(case.grid), "block_dim": _three(case.block)}
    if case.cluster:
        launch["cluster_dim"] = _three(case.cluster)
    for place, one in enumerate(case.passed(list(case.arguments))):
        name = {"parameter": f"{pipeline.entry}_param_{place}"}
        if isinstance(one, int):
            found["arguments"].append({**name, "type": "u32", "value": one})
        elif hasattr(one, "map"):
            found["tma_descriptors"].append({**name, "object": f"array_{place}", **_map(one.map)})
        else:
            found["declarations"].append(
                {**name, "type": "pointer", "space": "global", "object": f"array_{place}"}
            )
    shared = {"dynamic_shared_bytes": case.shared_bytes} if case.shared_bytes else {}
    start = {"schema": "spverify.kernel-input/v1", "entry": pipeline.entry, "launch": {**launch, **shared}}
    return {**start, **found}


def _three(given: Any) -> list[int]:
    """Return three dimensions; those not given are 1."""
    known = [given] if isinstance(given, int) else list(given)
    return known + [1] * (3 - len(known))


def _map(one: Any) -> dict[str, Any]:
    """Return a tensor map as input, innermost dimension first."""
    return {
        "element_type": one.element,
        "rank": len(one.sizes),
        "global_shape": list(one.sizes),
        "global_strides_bytes": list(one.strides),
        "box_shape": list(one.box),
        "element_strides": list(one.element_strides),
        "swizzle": one.swizzle,
        "interleave": one.interleave,
        "oob_fill": one.fill,
    }
