"""The checks of launches of clusters, and those that only kernels with setmaxnreg have.

Knows which launch needs which check; does not know what they find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import Location
from ..machine.run.clusters import PORTABLE
from ..machine.run.geometry import Cluster
from .findings import Findings, LaunchFinding
from .register_use import RegisterUse

if TYPE_CHECKING:
    from ..machine.run.entries import Entry


def cluster_checks(findings: Findings, entry: Entry) -> list[Callable[[Findings], Any]]:
    """What makes the observers of a wave, besides those that every launch has."""
    if findings.mode != "off" and any(one.statement.opcode == "setmaxnreg" for one in entry.code):
        return [RegisterUse]
    return []


def check_portable(findings: Findings, cluster: Cluster, kernel: Location) -> None:
    """Warn of clusters that not every chip takes."""
    if findings.mode == "off" or cluster.count <= PORTABLE:
        return
    message = (
        f"a cluster of {cluster} CTAs has {cluster.count}: up to {PORTABLE} are portable, and more need "
        f"a chip and a host that allow it (cudaFuncAttributeNonPortableClusterSizeAllowed)"
    )
    finding = LaunchFinding(kind="not portable", severity="warning", message=message, location=kernel)
    findings.add(("not portable",), finding)
