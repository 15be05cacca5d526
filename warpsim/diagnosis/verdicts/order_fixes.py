"""What to do about a finding of order: the statement that is missing, and between which lines it belongs.

Knows findings by kind and place; does not execute.
"""

from __future__ import annotations

from ...checks.findings import LaunchFinding


def fix_of(finding: LaunchFinding) -> str:
    """Return what to do; empty where the finding names no other access, or says it itself."""
    if finding.fix or finding.other is None:
        return finding.fix
    before, after = finding.other.short, finding.location.short
    if finding.kind == "in flight":
        return (
            f"put cp.async.wait_group, with fewer groups that may be in flight, and then bar.sync "
            f"(__syncthreads()) between {before} and {after}"
        )
    if finding.kind != "race":
        return ""
    turn = ", in every turn of the loop" if finding.location.line < finding.other.line else ""
    if finding.location.quoted().startswith("wgmma"):
        return f"put fence.proxy.async and then bar.sync (__syncthreads()) between {before} and {after}{turn}"
    return f"put bar.sync (__syncthreads()) between {before} and {after}{turn}"
