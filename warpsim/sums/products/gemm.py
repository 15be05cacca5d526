"""Whole matrix products: the tile loop of a kernel that issues one instruction along k.

D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C for any m, n and k, equal bit for bit to executing the
instruction tile by tile, the accumulators of each being C of the next. Ragged edges are filled up
with zeros, as a kernel does. Knows how D is shared out, here or over a cluster; does not know lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.arrays import as_array, as_given
from ...isa.codes import matrix_of
from ...isa.fragments import require_sparse
from ...isa.metadata.arrangements import convert
from ...isa.products import Codes
from ...ptx.decode import Form, resolved
from ..arithmetic.cores import memory_bytes, thread_count
from ..execution.code_engines import engine_of
from ..execution.logical_matrices import Matrices
from ..execution.pipeline import Undefined
from .accumulation import Chain, accumulated
from .arguments import ColumnsOfB, Request, RowsOfA, checked, joined

if TYPE_CHECKING:
    from distributed import Client

Matrix = npt.NDArray[Any]
Order = Literal["k"]
Watch = Callable[[int, int], object]  # elements of D that are done, and all of them
Tile = tuple[slice, slice]  # rows and columns of D
Piece = tuple[Any, ...]  # arguments of tile_codes

_STEP = 1 << 32  # products between two calls of progress: about a second
_TILE = 1 << 33  # products of a task, at most: a second or two of a core
_BAND = 1 << 25  # bytes of B that a task takes, at most
_GROUP = 1 << 28  # bytes of B that the cluster holds at once
_SIDES = (4096, 2048, 1024, 512, 256, 128, 64)  # of a tile


def gemm(
    instruction: Form,
    A: Any,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    *,
    target: str | None = None,
    order: Order = "k",
    split_k: int = 1,
    promote_every: int | None = None,
    threads: int | None = None,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    undefined: Undefined = "error",
    scheduler: str | Client | None = None,
    progress: Watch | None = None,
) -> Matrix:
    """Return D ``(m, n)`` of A ``(m, k)``, B ``(k, n)`` and C ``(m, n)``, in D's dtype; C None is zero.

    A, B and C take the dtypes that matmul takes; a sparse A obeys the instruction's pattern, or is
    ``(values, indices)`` as compress returns them. ``order="k"``: instructions along ascending k, each result
    being the next accumulator. ``scale_a (m, chunks)`` and ``scale_b (chunks, n)`` have the instruction's
    chunks for every instruction along k.

    ``promote_every=n``: after every n instructions, and after the last, the accumulator is added to a
    main accumulator in f32 (f64 for f64), round to nearest, and starts again from zero; the main one
    starts from C.
    ``split_k=s``: the instructions along k are cut into s runs of equal length (the last may be shorter,
    or some missing), each accumulated from zero; the results are added in ascending order and C last,
    in f32 round to nearest (f64 and integers: in their own arithmetic).

    ``threads`` None is all cores. ``scheduler``, an address such as ``"tcp://host:8786"`` or a
    ``dask.distributed.Client``, computes D in tiles on a Dask cluster; ``threads`` are then those of one
    task, None being 1. The bits depend on neither. ``progress(done, total)`` is called now and then
    with numbers of elements of D. Where A, B or C is a tensor of PyTorch, D is a tensor, too. Raises as
    matmul does, and ClusterError.
    """
    form = resolved(instruction, target)
    if order != "k":
        raise OperandError(f"order {order!r}: expected 'k'")
    chain = Chain(split_k=split_k, promote_every=promote_every)
    if form.c != form.d:
        raise OperandError(f"{form} has C of {form.c} and D of {form.d}: D cannot be the next C")
    request = checked(form, Matrices(A, B, C, scale_a, scale_b), undefined)
    _check_memory(request)
    if promote_every and not form.d.is_float:
        raise OperandError(f"promote_every adds floats, but D of {form} is {form.d}")
    if scheduler is None:
        codes = _computed_here(request, chain, thread_count(threads), progress)
    else:
        count = thread_count(1 if threads is None else threads)
        work = TileWork(mnemonic=form.mnemonic, target=form.target, chain=chain, threads=count)
        codes = _computed_there(request, work, scheduler, progress)
    given = A if isinstance(A, tuple) else (A,)
    result: Matrix = as_given(matrix_of(codes, form.d), *given, B, C)
    return result


def gemm_sparse(
    instruction: Form,
    values: npt.ArrayLike,
    metadata: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    *,
    arrangement: str = "indices",
    target: str | None = None,
    **options: Any,
) -> Matrix:
    """gemm with a compressed A: ``values (m, stored k)`` and the metadata of all of A.

    ``metadata`` is ``(m, units)`` as compress returns it, or in another ``arrangement``: "cutlass" (E as
    CUTLASS 2.x reorders it) or "torch" (``meta_reordered`` of torch.sparse, whose packed tensor also has the
    values), "words", "fields" or "lanes ..." (see convert_metadata). ``options`` are those of gemm.
    """
    form = resolved(instruction, target)
    if arrangement != "indices":
        shape = as_array(values).shape
        if len(shape) != 2:
            raise OperandError(f"values have shape {shape}: they are a matrix, (m, stored k)")
        rows, stored = shape
        k = stored // require_sparse(form).stored * require_sparse(form).chunk
        metadata = convert(metadata, rows, k, form, source=arrangement, target="indices")
    return gemm(form, (values, metadata), B, C, **options)


# --- here --------------------------------------------------------------------------------------------


def _check_memory(request: Request) -> None:
    """Raise OperandError where D alone is larger than all memory of this machine, as far as that is known."""
    rows, columns = request.shape
    size = rows * columns * request.instruction.d.code_dtype.itemsize
    limit = memory_bytes()
    if limit is not None and size > limit:
        raise OperandError(f"D ({rows}, {columns}) takes {size:,} bytes, but this machine has {limit:,}")


def _computed_here(request: Request, chain: Chain, threads: int, progress: Watch | None) -> Codes:
    """Return codes of D; with ``progress``, some rows at a time."""
    rows, columns = request.shape
    if _is_small(request):
        codes = accumulated(request, chain, threads, compiled=False)
        if progress is not None:
            progress(codes.size, codes.size)
        return codes
    if progress is None:
        return accumulated(request, chain, threads)
    depth = request.instructions * request.instruction.shape.k
    height = max(512, _STEP // max(columns * depth, 1) // 256 * 256)
    codes = np.empty(request.shape, request.instruction.d.code_dtype)
    for band in _cuts(rows, height):
        codes[band] = accumulated(request.tile(band, slice(columns)), chain, threads)
        progress(band.stop * columns, rows * columns)
    return codes


def _is_small(request: Request) -> bool:
    """Return whether NumPy computes it before a kernel would be loaded or compiled."""
    form, (rows, columns) = request.instruction, request.shape
    count = rows * columns * request.instructions * form.stored_k
    return count > 0 and engine_of(form.product, count, request.rule) == "numpy"


def _cuts(stop: int, width: int, start: int = 0) -> list[slice]:
    return [slice(first, min(first + width, stop)) for first in range(start, stop, width)]


# --- on a cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TileWork:
    """What a task does with its operands; small, and the same on every machine."""

    mnemonic: str
    target: str | None
    chain: Chain
    threads: int


@in_default_environment
def tile_codes(work: TileWork, left: RowsOfA, right: ColumnsOfB, c: Codes | None) -> Codes:
    """Return codes of a tile of D: the whole of a task, which depends on nothing but its arguments."""
    form = resolved(work.mnemonic, work.target)
    request = joined(form, tuple(map(_fit, left)), tuple(map(_fit, right)), _fit(c))
    return accumulated(request, work.chain, work.threads)


def _fit(codes: Any) -> Any:
    """Return the array as kernels were compiled for: off the network it may be unaligned or read-only."""
    return None if codes is None else np.require(codes, requirements=["C", "A", "W"])


def _computed_there(
    request: Request, work: TileWork, scheduler: str | Client, progress: Watch | None
) -> Codes:
    """Return codes of D, tile by tile as the cluster returns them."""
    from ...base.cluster.connection import connected, thread_total
    from ...base.cluster.distribution import run_tasks

    codes = np.empty(request.shape, request.instruction.d.code_dtype)
    tiles: list[Tile] = []
    done = 0

    def pieces() -> Iterator[Piece]:
        for tile, piece in _pieces(request, work, side):
            tiles.append(tile)
            yield piece

    with connected(scheduler) as client:
        side = _side(request, thread_total(client))
        for index, tile in run_tasks(tile_codes, pieces(), client):
            codes[tiles[index]] = tile
            done += tile.size
            if progress:
                progress(done, codes.size)
    return codes


def _side(request: Request, threads: int) -> int:
    """Return rows and columns of a tile: large, but not too large for a task, and several for every
    thread.
    """
    rows, columns = request.shape
    depth = request.b.shape[0]
    widest = max(request.a.shape[1] * request.a.itemsize, depth * request.b.itemsize)
    for side in _SIDES:
        tiles = len(_cuts(rows, side)) * len(_cuts(columns, side))
        if side * side * depth <= _TILE and side * widest <= _BAND and tiles >= 4 * threads:
            return side
    return _SIDES[-1]


def _pieces(request: Request, work: TileWork, side: int) -> Iterator[tuple[Tile, Piece]]:
    """Yield every tile of D with the arguments of its task, a group of columns after the other.

    So that rows of A are sent once a group, columns of B once, and both are held no longer than needed.
    """
    from ...base.cluster.distribution import Sent

    rows, columns = request.shape
    what = Sent(work, everywhere=True)
    column_bytes = request.b.shape[0] * request.b.itemsize
    for group in _cuts(columns, max(_GROUP // max(column_bytes, 1) // side, 1) * side):
        rights = [(cut, Sent(request.right(cut))) for cut in _cuts(group.stop, side, group.start)]
        for band in _cuts(rows, side):
            left = Sent(request.left(band))
            for cut, right in rights:
                c = None if request.c is None else Sent(request.c[band, cut])
                yield (band, cut), (what, left, right, c)
