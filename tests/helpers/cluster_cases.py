"""Launches of the kernels of clusters in traces/kernels, with what NumPy's exact integers say of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.helpers.kernel_products import Case, Rng


def _sum(rng: Rng) -> Case:
    """Rows of odd lengths, three CTAs each."""
    rows, length = 3, 701
    values = rng.integers(-(2**31), 2**31, (rows, length)).astype(np.int32)
    return Case(
        file="cluster_reduction.ptx",
        entry="cluster_sum",
        grid=9,
        block=128,
        arguments=(values, length, np.zeros(rows, np.int64)),
        expected={2: values.sum(axis=1, dtype=np.int64)},
        shared_bytes=128 * 8,
        cluster=3,
    )


def _histogram(rng: Rng) -> Case:
    """Two clusters of four CTAs, 20 bins each."""
    values, width, cluster = rng.integers(0, 2**32, 2000).astype(np.uint32), 20, 4
    counts = np.bincount(values % (width * cluster), minlength=width * cluster)
    return Case(
        file="cluster_reduction.ptx",
        entry="cluster_histogram",
        grid=8,
        block=96,
        arguments=(values, values.size, np.zeros(width * cluster, np.uint32), width),
        expected={2: counts.astype(np.uint32)},
        shared_bytes=width * 4,
        cluster=cluster,
    )


def _argmax(rng: Rng) -> Case:
    """Few different values, so that the largest one comes several times."""
    rows, length = 3, 333
    values = rng.integers(-20, 20, (rows, length)).astype(np.int32)
    found = np.stack([values.max(axis=1), values.argmax(axis=1)], axis=1).astype(np.int32)
    return Case(
        file="cluster_reduction.ptx",
        entry="cluster_argmax",
        grid=4 * rows,
        block=64,
        arguments=(values, length, np.zeros((4 * rows, 2), np.int32)),
        expected={2: np.repeat(found, 4, axis=0)},
    )


CLUSTERS: dict[str, Callable[[Rng], Case]] = {
    "cluster_sum": _sum,
    "cluster_histogram": _histogram,
    "cluster_argmax": _argmax,
}
