"""The pipelines of traces/kernels, at sizes that go round each ring twice and reach each unrolled copy.

Knows launches and where rings lie in shared memory; does not know what is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

import warpsim
from tests.helpers import pipeline_products, tensor_core_products, tensor_products
from tests.helpers.cluster_cases import CLUSTERS
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.kernel_products import Case, Rng
from tests.helpers.tensor_pipeline_products import TENSOR_PIPELINES
from warpsim.programs.launch.launching import LaunchReport

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Rows of ``count`` things of so many bytes each in shared memory, from an offset of a variable on."""

    variable: str
    offset: int
    each: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A kernel and one launch of it: ``barriers`` and ``tiles`` are what has a stage index."""

    entry: str
    make: Callable[[Rng], Case]
    barriers: Ring | None = None
    tiles: Ring | None = None
    about: str = ""
    target: str = "sm_90a"

    @cached_property
    def case(self) -> Case:
        """The launch: seeded."""
        return self.make(np.random.default_rng(12))

    @cached_property
    def text(self) -> str:
        """The PTX of this entry alone; lines are counted in it from the start of the file."""
        text = (FOLDER / self.case.file).read_text(encoding="utf-8")
        start, first = text.index(f".visible .entry {self.entry}("), text.index(".visible .entry")
        end = text.find(".visible .entry", start + 1)
        blank = "\n" * text.count("\n", first, start)
        return text[:first] + blank + text[start : end if end > 0 else len(text)]

    def launch(self, module: Any, schedule: str | int) -> tuple[LaunchReport, bool]:
        """Launch the kernel; return the report, and whether the outputs have the expected bits."""
        report, left = self.left(module, schedule)
        return report, all(left[place].tobytes() == d.tobytes() for place, d in self.case.expected.items())

    def left(self, module: Any, schedule: str | int) -> tuple[LaunchReport, list[Any]]:
        """Launch the kernel; return the report, and the arguments as the launch leaves them."""
        case = self.case
        given = [one.copy() if isinstance(one, np.ndarray) else one for one in case.arguments]
        options: dict[str, Any] = {"shared_bytes": case.shared_bytes, "schedule": schedule, "checks": "warn"}
        if case.cluster:
            options["cluster"] = case.cluster
        return module[self.entry](case.grid, case.block, case.passed(given), **options), given


def _wgmma(entry: str, each: int, make: Callable[[Rng], Case], about: str) -> Pipeline:
    """Return a pipeline of pipelines.ptx: four stages, then their barriers."""
    return Pipeline(
        entry=entry,
        make=make,
        barriers=Ring(variable="shared", offset=4 * each, each=8, count=4),
        tiles=Ring(variable="shared", offset=0, each=each, count=4),
        about=about,
    )


def _three_stages(entry: str, each: int, make: Callable[[Rng], Case], about: str) -> Pipeline:
    """Return a pipeline whose stages and barriers are variables."""
    return Pipeline(
        entry=entry,
        make=make,
        barriers=Ring(variable="full", offset=0, each=8, count=3),
        tiles=Ring(variable="stages", offset=0, each=each, count=3),
        about=about,
    )


def _bulk_ring(rng: Rng) -> Case:
    """Make a launch of two tiles of four steps each, in one CTA."""
    m, n, k = 32, 64, 128
    form = warpsim.decode(_F16, target="sm_90a")
    A, B = (rng.normal(size=shape).astype(np.float16) for shape in ((m, k), (k, n)))
    d = warpsim.gemm(form, A, B)
    given = (A, np.ascontiguousarray(B.T), np.zeros((m, n), np.float32), m, n, k)
    return Case(file="bulk_ring.ptx", entry="bulk_ring", grid=1, block=96, arguments=given, expected={2: d})


def _split(rng: Rng) -> Case:
    """Make a launch of one CTA that has two tiles of three steps each."""
    return replace(tensor_products.split(rng), grid=1)


def _tensor(entry: str, made: Callable[[Rng], Case], about: str, stages: int, each: int) -> Pipeline:
    """Return a pipeline with products in tensor memory."""
    return Pipeline(
        entry=entry,
        make=made,
        barriers=Ring(variable="full", offset=0, each=8, count=stages),
        tiles=Ring(variable="memory", offset=0, each=each, count=stages),
        about=about,
        target="sm_100a",
    )


PIPELINES = (
    _wgmma(
        "cooperative_f16",
        24576,
        partial(pipeline_products.dense, entry="cooperative_f16", size=(128, 64, 704)),
        "two warpgroups share a stage",
    ),
    _wgmma(
        "pingpong_f16",
        16384,
        partial(pipeline_products.pingpong, size=(320, 64, 192), ctas=1),
        "two warpgroups take turns",
    ),
    _wgmma(
        "multicast_f16",
        24576,
        partial(pipeline_products.dense, entry="multicast_f16", size=(128, 128, 704), rows=64),
        "a cluster of two, each of which loads half of A for both",
    ),
    _wgmma(
        "cooperative_sparse_f16",
        16384,
        partial(pipeline_products.sparse, size=(128, 64, 704)),
        "wgmma.sp with metadata",
    ),
    _wgmma(
        "cooperative_e4m3",
        24576,
        partial(pipeline_products.dense, entry="cooperative_e4m3", size=(128, 64, 1408), promote=4),
        "sums are promoted after each stage",
    ),
    _wgmma(
        "stream_k_f16",
        16384,
        partial(pipeline_products.stream_k, size=(128, 128, 192), share=11),
        "CTAs share tiles by red",
    ),
    _three_stages("bulk_ring", 5120, _bulk_ring, "bulk copies feed mma.sync"),
    _three_stages(
        "tensor_ring",
        12288,
        partial(tensor_products.ring, size=(64, 64, 256), ctas=1),
        "tensor copies feed mma.sync",
    ),
    _three_stages("tensor_split", 12288, _split, "D is added to by tensor reductions"),
    *(Pipeline(entry=name, make=make, about="CTAs of a cluster") for name, make in CLUSTERS.items()),
    _tensor(
        "tensor_f16", partial(tensor_core_products.f16, size=(128, 64, 704)), "a ring filled by TMA", 3, 33792
    ),
    _tensor(
        "tensor_mxf8",
        partial(tensor_core_products.mxf8, size=(128, 64, 1408)),
        "block scales by tcgen05.cp",
        3,
        33792,
    ),
    _tensor("tensor_stored", TENSOR_PIPELINES["tensor_stored"], "threads store the tiles", 2, 24576),
    _tensor("tensor_attention", TENSOR_PIPELINES["tensor_attention"], "A in tensor memory", 2, 16384),
    _tensor("tensor_in_turn", TENSOR_PIPELINES["tensor_in_turn"], "two accumulators in turn", 2, 24576),
    _tensor("tensor_pair", TENSOR_PIPELINES["tensor_pair"], "a pair of CTAs", 2, 20480),
)
