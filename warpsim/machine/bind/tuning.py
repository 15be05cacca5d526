"""The sizes that the directives of a kernel state (PTX ISA 9.1, section 11.4)."""

from __future__ import annotations

from dataclasses import dataclass

Dimensions = tuple[int, int, int]  # x, y, z


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What the directives of a kernel say; None and False where they say nothing."""

    block: Dimensions | None = None  # .reqntid
    most_threads: int | None = None  # .maxntid
    cluster: Dimensions | None = None  # .reqnctapercluster
    most_cluster: int | None = None  # .maxclusterrank
    explicit_cluster: bool = False
    blocks_are_clusters: bool = False
    most_registers: int | None = None  # .maxnreg
    least_ctas: int | None = None  # .minnctapersm
