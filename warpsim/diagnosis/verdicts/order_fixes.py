"""What to do about a finding of order: the statement that is missing, and between which lines it belongs.

Knows findings and their words; does not execute.
"""

from __future__ import annotations

import re

from ...checks.findings import LaunchFinding

_STATED = re.compile(r"[;:] ((?:put|let|wait|leave) [^;\[]*?)(?: \[|$)")


def fix_of(finding: LaunchFinding) -> str:
    """Return what to do; empty where the finding says nothing of it and names no other access."""
    stated = _STATED.search(finding.message)
    if finding.fix or stated is not None:
        return finding.fix or str(stated and stated[1])
    if finding.other is None:
        return ""
    before, after = finding.other.short, finding.location.short
    if finding.kind == "in flight":
        return (
            f"put cp.async.wait_group, with fewer groups that may be in flight, and then bar.sync "
            f"(__syncthreads()) between {before} and {after}"
        )
    if finding.kind != "race":
        return ""
    if "of the same warp" in finding.message:
        return f"put bar.warp.sync 0xffffffff (__syncwarp()) between {before} and {after}"
    if "wgmma" in finding.message:
        return (
            f"put fence.proxy.async.shared::cta and then bar.sync (__syncthreads()) between {before} and "
            f"{after}"
        )
    turn = ", in every turn of the loop" if finding.location.line < finding.other.line else ""
    return f"put bar.sync (__syncthreads()) between {before} and {after}{turn}"
