"""Special registers of grids, clusters and warps, each against its definition; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from warpsim.programs.launch.launching import load_text


def read(name: str, cluster: str = "", grid: tuple[int, int, int] = (4, 6, 3)) -> list[int]:
    """The register in thread 0 of each CTA, in the order x, y, z."""
    kind = "pred" if name == "%is_explicit_cluster" else "u32"
    move = f"mov.{kind} %p1, {name}; selp.u32 %r1, 1, 0, %p1;" if kind == "pred" else f"mov.u32 %r1, {name};"
    text = f""".version 9.0
.target sm_90
.address_size 64
.entry k(.param .u64 out) {cluster} {{ .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>;
{move}
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
mad.lo.u32 %r3, %r4, {grid[1]}, %r3; mad.lo.u32 %r2, %r3, {grid[0]}, %r2;
ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r2, 4, %d1; st.global.u32 [%d1], %r1; ret; }}"""
    out = np.full(grid[0] * grid[1] * grid[2], 77, np.uint32)
    load_text(text)["k"](grid, 32, [out])
    found: list[int] = out.tolist()
    return found


GRID = (4, 6, 3)


@pytest.mark.parametrize("cluster", [None, (2, 3, 1)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_clusters(cluster: tuple[int, int, int] | None, axis: int) -> None:
    directive = ".reqnctapercluster 2, 3, 1" if cluster else ""
    size = (cluster or (1, 1, 1))[axis]
    places = [(x, y, z) for z in range(GRID[2]) for y in range(GRID[1]) for x in range(GRID[0])]
    dot = "xyz"[axis]
    assert read(f"%clusterid.{dot}", directive) == [place[axis] // size for place in places]
    assert read(f"%cluster_ctaid.{dot}", directive) == [place[axis] % size for place in places]
    assert set(read(f"%nclusterid.{dot}", directive)) == {GRID[axis] // size}
    assert set(read(f"%cluster_nctaid.{dot}", directive)) == {size}


@pytest.mark.parametrize("cluster", [None, (2, 3, 1)])
def test_ranks(cluster: tuple[int, int, int] | None) -> None:
    directive = ".reqnctapercluster 2, 3, 1" if cluster else ""
    places = [(x % 2, y % 3) for z in range(GRID[2]) for y in range(GRID[1]) for x in range(GRID[0])]
    assert read("%cluster_ctarank", directive) == [x + 2 * y if cluster else 0 for x, y in places]
    assert set(read("%cluster_nctarank", directive)) == {6 if cluster else 1}
    assert set(read("%is_explicit_cluster", directive)) == {int(cluster is not None)}


@pytest.mark.parametrize(
    ("version", "target", "needs"),
    [
        ("9.0", "sm_80", "is not on sm_80: it needs sm_90 or higher"),
        ("7.7", "sm_90", "needs PTX 7.8, but the version is 7.7"),
    ],
)
def test_clusters_came_with_sm_90(version: str, target: str, needs: str) -> None:
    text = f".version {version}\n.target {target}\n.entry k() {{ .reg .b32 %r; mov.u32 %r, %clusterid.x; }}"
    problem = load_text(text).problems[-1]
    assert problem.message == f"%clusterid.x {needs}"


@pytest.mark.parametrize("name", ["tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid"])
def test_the_fourth_axis_is_zero(name: str) -> None:
    assert set(read(f"%{name}.w")) == {0}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("%pm0", 0), ("%pm7_64", 0), ("%envreg3", 0), ("%reserved_smem_offset_1", 0)),
        *(("%reserved_smem_offset_begin", 0), ("%reserved_smem_offset_end", 1024)),
    ],
)
def test_what_a_driver_decides_is_made_up(name: str, value: int) -> None:
    if not name.endswith("_64"):
        assert set(read(name)) == {value}
    bits, register = (64, "%d1") if name.endswith("_64") else (32, "%r1")
    registers = ".reg .b64 %d<2>; .reg .b32 %r<2>;"
    text = f".version 9.0\n.target sm_90\n.entry k() {{ {registers} mov.u{bits} {register}, {name}; }}"
    approximate = load_text(text)["k"](1, 1).fidelity["approximate"]
    assert any(name in entry.note for entry in approximate)


@pytest.mark.parametrize(
    ("name", "version", "target", "needs"),
    [
        ("%clusterid.x", "9.0", "sm_80", "%clusterid.x is not on sm_80: it needs sm_90 or higher"),
        ("%reserved_smem_offset_cap", "7.5", "sm_80", "%reserved_smem_offset_cap needs PTX 7.6"),
        ("%aggr_smem_size", "8.0", "sm_90", "%aggr_smem_size needs PTX 8.1, but the version is 8.0"),
    ],
)
def test_since(name: str, version: str, target: str, needs: str) -> None:
    text = f".version {version}\n.target {target}\n.entry k() {{ .reg .b32 %r1; mov.u32 %r1, {name}; }}"
    assert needs in load_text(text).problems[0].message
