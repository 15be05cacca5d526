"""Clusters: CTAs that run at one time and reach each other's shared memory.

An address of .shared::cluster below RANK_BYTES is one of the own CTA, as one of .shared::cta is; above,
``(rank + FIRST) * RANK_BYTES + offset`` is one of the CTA of that rank, the own one included. So ``mapa``
makes them here; PTX keeps the numbers to itself. The CTAs of a cluster lie side by side in a wave, by rank.

Knows shapes, ranks and addresses; does not know statements or barriers (see cluster_barrier.py).
PTX ISA 9.1, sections 2.2.2 "cluster of cooperative thread arrays" and 5.1.7 "shared state space".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base.errors import OperandError
from ...isa.architectures import ARCHITECTURES, LARGEST, has, least_targets
from ...isa.features import Feature
from ..bind.tuning import Dimensions
from ..bind.variable_names import place_name
from ..state import spaces
from ..state.lanes import Lanes, Values
from ..state.spaces import Bytes, InvalidAccess, Offsets
from .geometry import ALONE, Cluster
from .wave import Entry, Wave

RANK_BYTES = 1 << 24
FIRST = 2  # even, so that clearing the lowest bit of the field names the even CTA of a pair, as CUTLASS does
PORTABLE = LARGEST.portable_cluster  # CTAs of a cluster that every chip with clusters takes


# --- what a launch may ask for --------------------------------------------------------------------------


def cluster_of(entry: Entry, given: Dimensions | None, target: str) -> Cluster:
    """Return the clusters of a launch: as it states, or as the kernel does; raises OperandError."""
    wanted = entry.tuning.cluster
    if given is not None and wanted is not None and given != wanted:
        raise OperandError(f"cluster {given}: the kernel says .reqnctapercluster {wanted}")
    shape = given or wanted
    if shape is None:
        if entry.tuning.explicit_cluster:
            raise OperandError("the kernel says .explicitcluster: the launch must name its cluster")
        return ALONE
    found = Cluster(shape=shape, explicit=True)
    _check_count(entry, found, target)
    return found


def _check_count(entry: Entry, cluster: Cluster, target: str) -> None:
    """Check that chip and kernel take so many CTAs; raises OperandError."""
    count = cluster.count
    if min(cluster.shape) < 1:
        raise OperandError(f"a cluster of {cluster} CTAs: at least 1 along each axis")
    limits = ARCHITECTURES[target].limits
    if count > limits.cluster:
        raise OperandError(
            f"a cluster of {cluster} CTAs has {count}: at most {limits.portable_cluster} on {target}, "
            f"or {limits.cluster} where the host allows it"
        )
    most = entry.tuning.most_cluster
    if most is not None and count > most:
        raise OperandError(f"a cluster of {cluster} CTAs has {count}: the kernel says .maxclusterrank {most}")
    if count > 1 and not has(target, Feature.CLUSTERS):
        raise OperandError(
            f"a cluster of {cluster} CTAs: clusters need {least_targets(Feature.CLUSTERS)}, not {target}"
        )


def grid_of(entry: Entry, grid: Dimensions, cluster: Cluster) -> Dimensions:
    """Return the CTAs of a launch: ``grid``, in clusters by .blocksareclusters; raises OperandError."""
    if entry.tuning.blocks_are_clusters:
        x, y, z = (count * each for count, each in zip(grid, cluster.shape, strict=True))
        return x, y, z
    for axis, count, each in zip("xyz", grid, cluster.shape, strict=True):
        if count % each:
            raise OperandError(
                f"grid {grid}: {axis} is not a multiple of {each}, as clusters are {cluster} CTAs"
            )
    return grid


# --- where CTAs are -------------------------------------------------------------------------------------


def ctas_of(cluster: Cluster, grid: Dimensions, numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the coordinates of the CTAs of the clusters with these numbers, x fastest, rank by rank."""
    (x, y, z), across = (
        cluster.shape,
        [count // each for count, each in zip(grid, cluster.shape, strict=True)],
    )
    for number in numbers:
        rest, first = divmod(number, across[0])
        third, second = divmod(rest, across[1])
        for rank in range(cluster.count):
            yield (first * x + rank % x, second * y + rank // x % y, third * z + rank // (x * y) % z)


def ranks_of(wave: Wave, lanes: Lanes | None = None) -> Values:
    """Return the rank in its cluster of each lane's CTA, int64; of all lanes, or of some."""
    ranks: Values = (wave.cta if lanes is None else lanes.of(wave.cta)) % wave.cluster.count
    return ranks


def peers_of(wave: Wave, lanes: Lanes, ranks: Values) -> Values:
    """Return the place in the wave of the CTA of that rank in the cluster of each lane."""
    own = lanes.of(wave.cta)
    peers: Values = own - own % wave.cluster.count + ranks
    return peers


# --- addresses ------------------------------------------------------------------------------------------


def cluster_addresses(wave: Wave, offsets: Values) -> Values:
    """Return ``(lanes,)``: addresses of .shared::cluster of offsets in the own CTA of each lane."""
    found: Values = offsets + (ranks_of(wave) + FIRST) * RANK_BYTES
    return found


def rank_field(addresses: Any) -> Any:
    """Return the rank + 1 that addresses of .shared::cluster name, 0 for the own CTA."""
    return addresses // RANK_BYTES


def rank_in(address: int, own: int) -> int:
    """Return the rank that an address of .shared::cluster names; ``own`` is that of the lane's CTA."""
    field = rank_field(address)
    return int(field) - FIRST if field else own


def own_cta(wave: Wave, addresses: Values) -> Values:
    """Return (lanes,) bool: whether addresses of .shared::cluster lie in the own CTA."""
    field = rank_field(addresses)
    own: Values = (field == 0) | (field == ranks_of(wave) + FIRST)
    return own


def cluster_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    """Find words in shared memory of CTAs of each lane's cluster. Raises InvalidAccess."""
    spaces.check_alignment(addresses, size, lanes)
    if not spaces.leave(addresses, size, wave.memories.shared_bytes):
        return wave.memories.shared, addresses + lanes.of(wave.memories.shared_base)
    field = rank_field(addresses)
    _check_ranks(wave, lanes, addresses, field)
    peers = np.where(field, peers_of(wave, lanes, field - FIRST), lanes.of(wave.cta))
    offsets = addresses % RANK_BYTES
    past = np.flatnonzero(offsets > wave.memories.shared_bytes - size)
    if past.size:
        owner, most = named(wave, int(peers[past[0]])), wave.memories.shared_bytes
        reason = f"leaves shared memory of {most} bytes of {owner}"
        raise InvalidAccess(int(lanes.index[past[0]]), int(addresses[past[0]]), reason)
    return wave.memories.shared, offsets + peers * wave.memories.shared_stride


def _check_ranks(wave: Wave, lanes: Lanes, addresses: Offsets, field: Values) -> None:
    """Check that the CTAs are there; raises InvalidAccess."""
    count = wave.cluster.count
    wrong = np.flatnonzero((field < 0) | (field == 1) | (field >= count + FIRST))
    if wrong.size:
        rank, kind = int(field[wrong[0]]) - FIRST, "the cluster has" if count > 1 else "there is no cluster:"
        reason = f"is in shared memory of a CTA of rank {rank}: {kind} {count} CTA{'s'[: count > 1]}"
        raise InvalidAccess(int(lanes.index[wrong[0]]), int(addresses[wrong[0]]), reason)
    peers = peers_of(wave, lanes, np.maximum(field - FIRST, 0))
    ended = np.flatnonzero((field > 0) & (wave.alive_of_cta[peers] == 0))
    if ended.size:
        reason = f"is in shared memory of {named(wave, int(peers[ended[0]]))}, which has ended"
        raise InvalidAccess(int(lanes.index[ended[0]]), int(addresses[ended[0]]), reason)


def near(wave: Wave, lanes: Lanes, addresses: Offsets) -> Offsets:
    """Return addresses of .shared::cta: the own CTA without its rank. Raises InvalidAccess for others."""
    field = rank_field(addresses)
    other = np.flatnonzero(
        (field > 0) & (field != ranks_of(wave, lanes) + FIRST) & (field < wave.cluster.count + FIRST)
    )
    if other.size:
        cta = int(peers_of(wave, lanes, field - FIRST)[other[0]])
        reason = f"is in shared memory of {named(wave, cta)}, which .shared::cluster reaches"
        raise InvalidAccess(int(lanes.index[other[0]]), int(addresses[other[0]]), reason)
    own: Offsets = np.where(field == ranks_of(wave, lanes) + FIRST, addresses % RANK_BYTES, addresses)
    return own


def named(wave: Wave, cta: int) -> str:
    """Name a CTA by its rank and place in the grid."""
    place = ", ".join(map(str, wave.ctas[cta].tolist()))
    return f"CTA ({place}), rank {cta % wave.cluster.count}"


def in_shared(wave: Wave, lane: int, offset: int) -> str:
    """Describe a byte of the wave's shared memory, as a lane sees it."""
    cta, place = divmod(offset, wave.memories.shared_stride)
    name = place_name(wave.entry.shared, place)
    known = f"{place:#x} of shared memory" + (f" ({name})" if name else "")
    return known + (f" of {named(wave, cta)}" if cta != wave.cta[lane] else "")


def far(wave: Wave, lanes: Lanes, offsets: Offsets) -> bool:
    """Return whether some of these places in the wave's shared memory are in another CTA than their lane."""
    if wave.cluster.count == 1:
        return False
    owners = np.resize(wave.cta[lanes.index], offsets.size)
    return bool((offsets // wave.memories.shared_stride != owners).any())
