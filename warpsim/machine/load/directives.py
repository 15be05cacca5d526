"""Directives between the parameters of a kernel and its body: sizes it asks for (PTX ISA 9.1, section 11.4).

Knows their numbers, and which go with which target, version and with each other; does not know launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import IllegalInstruction, Location
from ...isa.architectures import has, least_targets
from ...isa.features import Feature
from ...isa.numerals import whole_number
from ...ptx.statements import Kernel
from ..bind.tuning import Dimensions, Tuning

_LARGEST = (1 << 31) - 1  # threads of a CTA, CTAs of a cluster: less is checked where they are used
_DIRECTIVE = re.compile(r"\.(\w++)\s*+(\d++(?:\s*+,\s*+\d++)*+)?")
_CLUSTERS_SINCE = {  # the first PTX version of directives of clusters
    "reqnctapercluster": (7, 8),
    "explicitcluster": (7, 8),
    "maxclusterrank": (7, 8),
    "blocksareclusters": (9, 0),
}
_NUMBERS = {
    "explicitcluster": 0,
    "blocksareclusters": 0,
    "maxclusterrank": 1,
    "maxnreg": 1,
    "minnctapersm": 1,
}
_OF_KERNELS = _CLUSTERS_SINCE.keys() | {
    "reqntid",
    "maxntid",
    "minnctapersm",
    "maxnreg",
    "local_maxnreg",
    "pragma",
}
_STRING = re.compile(r'"[^"\n]*"')
_POSITIVE = frozenset({"reqntid", "maxntid", "maxnreg", "minnctapersm"})  # ptxas 13.0 takes no 0 for these


def tuning_of(kernel: Kernel) -> Tuning:
    """Return what the directives of a kernel say."""
    given = {name: _three(kernel, numbers) for name, numbers in _DIRECTIVE.findall(kernel.tuning)}
    most = given.get("maxntid")
    first = {name: numbers[0] for name, numbers in given.items()}
    return Tuning(
        block=given.get("reqntid"),
        most_threads=most[0] * most[1] * most[2] if most else None,
        cluster=given.get("reqnctapercluster"),
        most_cluster=first.get("maxclusterrank"),
        explicit_cluster="explicitcluster" in given,
        blocks_are_clusters="blocksareclusters" in given,
        most_registers=first.get("maxnreg"),
        least_ctas=first.get("minnctapersm"),
    )


def _three(kernel: Kernel, numbers: str) -> Dimensions:
    given = [whole_number(part.strip(), _LARGEST) for part in numbers.split(",") if part.strip()]
    known = [number for number in given if number is not None]
    if len(known) < len(given) or len(known) > 3:
        message = f"{kernel.name}: {numbers[:40]!r}: expected one to three numbers of 31 bits"
        raise IllegalInstruction(message, kernel.location())
    x, y, z = (*known, 1, 1, 1)[:3]
    return x, y, z


# --- what is wrong with them ------------------------------------------------------------------------------


def directive_problems(kernel: Kernel, target: str, version: tuple[int, int]) -> Iterator[IllegalInstruction]:
    """Yield what ptxas would not take, each with its place."""
    found = list(_DIRECTIVE.finditer(kernel.tuning))
    for match in found:
        name, since = match[1], _CLUSTERS_SINCE.get(match[1])
        if since is not None and not has(target, Feature.CLUSTERS):
            yield _problem(kernel, match, f".{name} needs {least_targets(Feature.CLUSTERS)}, not {target}")
        elif since is not None and version < since:
            yield _problem(kernel, match, f".{name} needs PTX {'.'.join(map(str, since))}")
        yield from _miscounted(kernel, match)
    if kernel.kind == "entry":
        yield from _unknown(kernel)
    yield from _conflicting(kernel, {match[1]: match for match in found})


def _miscounted(kernel: Kernel, match: re.Match[str]) -> Iterator[IllegalInstruction]:
    """Yield directives with more or fewer numbers than they have."""
    name, count = match[1], len(match[2].split(",")) if match[2] else 0
    if name in _NUMBERS and count != _NUMBERS[name]:
        wanted = _NUMBERS[name] or "no"
        yield _problem(kernel, match, f".{name} takes {wanted} number{'s'[: wanted != 1]}, not {count}")
    if name in _POSITIVE and "0" in re.findall(r"\d+", match[2] or ""):
        yield _problem(kernel, match, f".{name} {match[2]}: each number is at least 1")
    if name == "reqnctapercluster" and not 1 <= count <= 3:
        yield _problem(kernel, match, f".{name} takes 1 to 3 numbers, not {count}")


def _unknown(kernel: Kernel) -> Iterator[IllegalInstruction]:
    """Yield directives that kernels do not have."""
    text = _STRING.sub(lambda match: " " * len(match[0]), kernel.tuning)  # of .pragma
    for match in _DIRECTIVE.finditer(text):
        if match[1] not in _OF_KERNELS:
            yield _problem(kernel, match, f"kernels have no directive .{match[1]}")


def _conflicting(kernel: Kernel, given: dict[str, re.Match[str]]) -> Iterator[IllegalInstruction]:
    """Yield directives that do not go together, or not without others."""
    if {"reqnctapercluster", "maxclusterrank"} <= given.keys():
        message = ".reqnctapercluster and .maxclusterrank do not go together"
        yield _problem(kernel, given["maxclusterrank"], message)
    missing = {"reqntid", "reqnctapercluster"} - given.keys()
    if "blocksareclusters" in given and missing:
        message = ".blocksareclusters needs " + " and ".join(f".{name}" for name in sorted(missing))
        yield _problem(kernel, given["blocksareclusters"], message)


def _problem(kernel: Kernel, match: re.Match[str], message: str) -> IllegalInstruction:
    return IllegalInstruction(message, _place(kernel, match))


def _place(kernel: Kernel, match: re.Match[str]) -> Location:
    """Return where a directive of a kernel stands."""
    start = kernel.source.text.find(kernel.tuning, kernel.start) + match.start()
    return kernel.source.location(start, start + len(match[1]) + 1)
