"""Making vector sets of each kind: so many cases, or as many as full coverage takes.

The set depends on the instruction, its target, the kind, the seed and the number of cases alone: chunks are
pure functions of their number (see corners.py), and however they are made or cut, the cases are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...base.cluster.distribution import in_order
from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.instruction import Instruction
from ...ptx.decode import Form, resolved
from ..vectors.sets import VectorSet, case_bytes
from .cases.assembly import joined_sets
from .cases.corners import theme_chunks
from .cases.exhaustive import chunk_cases, exhaustive_chunk, plan_of
from .cases.placement import Place
from .coverage.vector_coverage import Coverage, coverage_of, empty_coverage

if TYPE_CHECKING:
    from distributed import Client

Watch = Callable[[int, Coverage | None], object]  # cases so far, coverage so far

KINDS = ("random", "corner", "exhaustive")
DEFAULT_COUNT = 1000  # of random cases
MOST_CHUNKS = 64  # without full coverage, before giving up
LARGEST = 1 << 32  # bytes of a set that is made whole in memory
LARGEST_IN_PARTS = 1 << 33  # bytes of a set that is written as it is made


@in_default_environment
def generate_vectors(
    instruction: Form,
    *,
    kind: str = "corner",
    count: int | None = None,
    seed: int = 0,
    target: str | None = None,
    a_in: Place = "shared",
    watch: Watch | None = None,
    scheduler: str | Client | None = None,
) -> VectorSet:
    """Return a vector set of an instruction on its target, D as the model computes it.

    ``kind`` is "corner" (directed at the arithmetic; without ``count`` as many cases as full coverage
    takes), "random" (normal, narrow and wide distributions without infinities and NaNs, 1000 cases) or
    "exhaustive" (all pairs of codes of formats of at most 8 bits, in every position). wgmma reads A from
    ``a_in`` "shared" memory or "registers". With ``scheduler``, an address such as ``"tcp://host:8786"`` or a
    ``dask.distributed.Client``, chunks are made on a Dask cluster. The same arguments give the same set,
    wherever it is made. Raises OperandError, ClusterError, and IllegalInstruction without a target.
    """
    form = targeted(instruction, target)
    if kind == "corner" and count is None:
        return corner_vectors(form, seed=seed, a_in=a_in, watch=watch, scheduler=scheduler)[0]
    parts, cases = list[VectorSet](), 0
    for part in vector_parts(form, kind=kind, count=count, seed=seed, a_in=a_in, scheduler=scheduler):
        parts.append(part)
        _check_size(part, count or 0, LARGEST)
        cases += len(part)
        if watch:
            watch(cases, None)
    return joined_sets(parts)


def vector_parts(
    form: Instruction,
    *,
    kind: str,
    count: int | None,
    seed: int = 0,
    a_in: Place = "shared",
    scheduler: str | Client | None = None,
) -> Iterator[VectorSet]:
    """Yield the set of generate_vectors in parts as they are made; corner cases need a count."""
    _check(kind, count, a_in)
    if kind == "exhaustive":
        return _exhaustive(form, count, seed, a_in, scheduler)
    return _first_cases(theme_chunks(form, kind, seed, a_in, scheduler), count or DEFAULT_COUNT)


@in_default_environment
def corner_vectors(
    instruction: Form,
    *,
    count: int | None = None,
    seed: int = 0,
    target: str | None = None,
    a_in: Place = "shared",
    watch: Watch | None = None,
    scheduler: str | Client | None = None,
) -> tuple[VectorSet, Coverage]:
    """Return corner cases, and what they cover: ``count`` of them, or chunks until every reachable bin is
    hit.

    After 64 chunks without full coverage they stop; Coverage.missed then says what is left.
    """
    form = targeted(instruction, target)
    _check("corner", count, a_in)
    if count is not None:
        vectors = generate_vectors(form, count=count, seed=seed, a_in=a_in, watch=watch, scheduler=scheduler)
        return vectors, coverage_of(vectors)
    covered, parts = empty_coverage(form, a_in), []
    for part in islice(theme_chunks(form, "corner", seed, a_in, scheduler), MOST_CHUNKS):
        parts.append(part)
        covered.add(part)
        if watch:
            watch(covered.cases, covered)
        if covered.complete:
            break
    return joined_sets(parts), covered


@in_default_environment
def coverage(vectors: VectorSet) -> Coverage:
    """Return what the cases of a vector set cover: bins hit, missed, and unreachable with the reason."""
    return coverage_of(vectors)


def targeted(instruction: Form, target: str | None) -> Instruction:
    """Return the instruction on its target, which it needs."""
    form = resolved(instruction, target)
    if form.target is None:
        raise OperandError(f"{form} has no target: vectors hold the D of one chip; give target='sm_…'")
    return form


def _check(kind: str, count: int | None, a_in: Any) -> None:
    if kind not in KINDS:
        raise OperandError(f"unknown kind {kind!r}; known are {', '.join(KINDS)}")
    if count is not None and count < 1:
        raise OperandError(f"count is {count}: a vector set has at least one case")
    if a_in not in ("shared", "registers"):
        raise OperandError(f"a_in {a_in!r}: A of wgmma lies in 'shared' memory or in 'registers'")


def _first_cases(chunks: Iterator[VectorSet], count: int) -> Iterator[VectorSet]:
    cases = 0
    while cases < count:
        part = next(chunks).part(0, count - cases)
        _check_size(part, count, LARGEST_IN_PARTS)
        cases += len(part)
        yield part


def _check_size(part: VectorSet, count: int, largest: int) -> None:
    most = largest // case_bytes(part)
    if count > most:
        raise OperandError(
            f"{count} cases of {case_bytes(part):,} bytes: a set has at most {most:,}; "
            f"make several, each with a seed of its own"
        )


def _exhaustive(
    form: Instruction,
    count: int | None,
    seed: int,
    a_in: Place,
    scheduler: str | Client | None,
) -> Iterator[VectorSet]:
    plan = plan_of(form)
    if count not in (None, plan.cases):
        raise OperandError(f"exhaustive vectors of {form} are {plan.cases} cases, not {count}: {plan}")
    pieces = ((plan, seed, index, a_in) for index in range(-(-plan.cases // chunk_cases(form))))
    yield from in_order(exhaustive_chunk, pieces, scheduler)
