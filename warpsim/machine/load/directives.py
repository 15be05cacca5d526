"""Directives between the parameters of a kernel and its body: sizes it asks for (PTX ISA 9.1, section 11.4).

Knows their numbers, and which go with which target, version and with each other; does not know launches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ...base.errors import IllegalInstruction, Location
from ...isa.architectures import has, least_targets
from ...isa.features import Feature
from ...ptx.constants import read_integer
from ...ptx.source import Cursor, Source
from ...ptx.statements import Directive, Kernel
from ..bind.tuning import Dimensions, Tuning

_LONGEST = 18  # characters of a number that has 64 bits at most
_LARGEST = (1 << 32) - 1  # threads of a CTA, CTAs of a cluster: less is checked where they are used
_NUMBER = r"(?:0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?|WARP_SZ)(?!\w)"
_DIRECTIVE = re.compile(rf"\.(\w++)\s*+({_NUMBER}(?:\s*+,\s*+{_NUMBER})*+)?")
_CLUSTERS_SINCE = {  # the first PTX version of directives of clusters
    "reqnctapercluster": (7, 8),
    "explicitcluster": (7, 8),
    "maxclusterrank": (7, 8),
    "blocksareclusters": (9, 0),
}
_SINCE = {  # and of directives of registers, two of which need sm_80
    "abi_preserve": (9, 0),
    "abi_preserve_control": (9, 0),
    "local_maxnreg": (8, 8),
    "language": (9, 2),
}
_LANGUAGES = (  # names for 0 to 10, in any case; ptxas 13.5
    *("unknown", "nvsal", "nvvm", "cuda c++", "cuda c++ tile", "tile ir", "python-cutile"),
    *("fortran", "optix", "ptx", "sass"),
)
_LANGUAGE = re.compile(rf'\.(language)\s*((?:{_NUMBER}|"[^"\n]*")(?:\s*,\s*(?:{_NUMBER}|"[^"\n]*"))*)')
_MOST = {"abi_preserve": 237, "abi_preserve_control": 11}  # registers, under ptxas 13.0 on sm_80 to sm_120
_ORDER = {"noreturn": 0, "abi_preserve": 1, "abi_preserve_control": 1, "local_maxnreg": 2, "language": 3}
_NUMBERS = {  # how many numbers a directive has
    "reqntid": range(1, 4),
    "maxntid": range(1, 4),
    "reqnctapercluster": range(1, 4),
    "minnctapersm": range(1, 2),
    "maxclusterrank": range(1, 2),
    "maxnreg": range(1, 2),
    "local_maxnreg": range(1, 2),
    "abi_preserve": range(1, 2),
    "abi_preserve_control": range(1, 2),
    "explicitcluster": range(1),
    "blocksareclusters": range(1),
    "noreturn": range(1),
}
_OF_FUNCTIONS = frozenset({"noreturn", "abi_preserve", "abi_preserve_control", "local_maxnreg", "language"})
_OF_KERNELS = (_NUMBERS.keys() - _OF_FUNCTIONS) | {"local_maxnreg", "language", "pragma"}
OF_BODIES = re.compile(r'"(?:used_bytes_mask|enable_smem_spilling|frequency)\b')
_STRING = re.compile(r'"[^"\n]*"')
_PRAGMA = re.compile(r'"\s*(\w+)[\s,=]?([^"]*)"')
_INTEGER = r"0[xX][0-9a-fA-F]+|\d+"
_PRAGMAS = {  # of functions: the first PTX version, and what may stand behind the word
    "used_bytes_mask": ((8, 3), re.compile(rf"\s*-?(?:{_INTEGER})")),
    "enable_smem_spilling": ((8, 7), re.compile(".*")),
    "frequency": ((9, 0), re.compile(rf"(?!0+$)\s*(?:{_INTEGER})")),
}
_POSITIVE = frozenset(
    {"reqntid", "maxntid", "maxnreg", "local_maxnreg", "minnctapersm"}
)  # ptxas 13.0 takes no 0 for these


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
    given = _numbers_of(numbers)
    if any(number > _LARGEST for number in given) or len(given) > 3:
        message = f"{kernel.name}: {numbers[:40]!r}: expected one to three numbers of 32 bits"
        raise IllegalInstruction(message, kernel.location())
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


def _numbers_of(text: str | None) -> list[int]:
    """Return the numbers behind a directive; a number too long to be read is too large."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    return [read_integer(Cursor(Source(part))) if len(part) < _LONGEST else 1 << 99 for part in parts]


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
        yield from _too_early(kernel, match, target, version)
        yield from _wrong_counts(kernel, match)
    yield from _languages(kernel)
    yield from _unknown_directives(kernel)
    yield from _declaration_problems(kernel, found)
    yield from _conflicting(kernel, {match[1]: match for match in found})


def _too_early(
    kernel: Kernel, match: re.Match[str], target: str, version: tuple[int, int]
) -> Iterator[IllegalInstruction]:
    """Yield directives of registers that the version or the target does not have."""
    name, since = match[1], _SINCE.get(match[1], (0, 0))
    if version < since:
        yield _problem(kernel, match, f".{name} needs PTX {'.'.join(map(str, since))}")
    elif name in _MOST and not has(target, Feature.CP_ASYNC):
        yield _problem(kernel, match, f".{name} needs {least_targets(Feature.CP_ASYNC)}, not {target}")


def check_pragma(statement: Directive, version: tuple[int, int]) -> None:
    """Raise IllegalInstruction for a pragma in a function that the version does not have, or without its
    number.
    """
    for name, value in _PRAGMA.findall(statement.text):
        since, wanted = _PRAGMAS.get(name, ((0, 0), None))
        message = ""
        if version < since:
            message = f'the pragma "{name}" needs PTX {".".join(map(str, since))}'
        elif wanted is not None and not wanted.fullmatch(value):
            message = f'the pragma "{name}" takes a number, not {value!r}'
        if message:
            raise IllegalInstruction(message, statement.location())


def _wrong_counts(kernel: Kernel, match: re.Match[str]) -> Iterator[IllegalInstruction]:
    """Yield directives with more or fewer numbers than they have."""
    name, numbers = match[1], _numbers_of(match[2])
    wanted = _NUMBERS.get(name)
    if wanted is not None and len(numbers) not in wanted:
        most = wanted[-1]
        counted = "1 to 3 numbers" if most > 1 else f"{most or 'no'} number{'s'[: most != 1]}"
        yield _problem(kernel, match, f".{name} takes {counted}, not {len(numbers)}")
    if name in _POSITIVE and 0 in numbers:
        yield _problem(kernel, match, f".{name} {match[2]}: each number is at least 1")
    if name in _MOST and any(number > _MOST[name] for number in numbers):
        yield _problem(kernel, match, f".{name} {match[2][:40]}: at most {_MOST[name]}")
    elif any(number > _LARGEST for number in numbers):
        yield _problem(kernel, match, f".{name} {match[2][:40]}: each number has 32 bits at most")


def _languages(kernel: Kernel) -> Iterator[IllegalInstruction]:
    """Yield languages that do not exist, and .language where no body follows."""
    for match in _LANGUAGE.finditer(kernel.tuning):
        if kernel.kind == "func" and kernel.body is None:
            yield _problem(kernel, match, ".language belongs to a function with a body")
        for word in re.findall(rf'{_NUMBER}|"[^"\n]*"', match[2]):
            known = (
                word[1:-1].lower() in _LANGUAGES if word[0] == '"' else _numbers_of(word)[0] < len(_LANGUAGES)
            )
            if not known:
                yield _problem(
                    kernel, match, f'.language {word}: expected 0 to 10, or "{_LANGUAGES[5]}" or the like'
                )


def _unknown_directives(kernel: Kernel) -> Iterator[IllegalInstruction]:
    """Yield directives that kernels, or functions, do not have."""
    known, whose = (_OF_KERNELS, "kernels") if kernel.kind == "entry" else (_OF_FUNCTIONS, "functions")
    if kernel.kind == "entry" and (found := OF_BODIES.search(kernel.tuning)):
        message = f"the pragma {found[0]} stands in functions, not before them"
        yield IllegalInstruction(message, kernel.location())
    text = _STRING.sub(lambda match: " " * len(match[0]), kernel.tuning)  # of .pragma
    for match in _DIRECTIVE.finditer(text):
        if match[1] not in known:
            yield _problem(kernel, match, f"{whose} have no directive .{match[1]}")


def _declaration_problems(kernel: Kernel, found: list[re.Match[str]]) -> Iterator[IllegalInstruction]:
    """Yield directives of a kernel without a body, those of a function that are there twice or in another
    order, and .noreturn of a function with results.
    """
    if kernel.kind == "entry" and kernel.body is None and found:
        yield _problem(kernel, found[0], f".{found[0][1]} belongs to a kernel with a body")
    if kernel.kind == "entry":
        return
    ends = [match for match in found if match[1] == "noreturn"]
    if ends and kernel.results:
        yield _problem(kernel, ends[-1], ".noreturn is for functions without results")
    known = [match for match in found if match[1] in _ORDER]
    for before, match in pairwise(known):
        if _ORDER[match[1]] < _ORDER[before[1]]:
            yield _problem(kernel, match, f".{match[1]} stands before .{before[1]}")
    for place, match in enumerate(known):
        if match[1] in (other[1] for other in known[:place]):
            yield _problem(kernel, match, f".{match[1]} is there twice")


def _conflicting(kernel: Kernel, given: dict[str, re.Match[str]]) -> Iterator[IllegalInstruction]:
    """Yield directives that do not go together, or not without others."""
    if {"reqnctapercluster", "maxclusterrank"} <= given.keys():
        message = ".reqnctapercluster and .maxclusterrank do not go together"
        yield _problem(kernel, given["maxclusterrank"], message)
    missing = {"reqntid", "reqnctapercluster"} - given.keys()
    if {"reqntid", "maxntid"} <= given.keys():
        yield _problem(kernel, given["maxntid"], ".reqntid and .maxntid do not go together")
    if "blocksareclusters" in given and missing:
        message = ".blocksareclusters needs " + " and ".join(f".{name}" for name in sorted(missing))
        yield _problem(kernel, given["blocksareclusters"], message)


def _problem(kernel: Kernel, match: re.Match[str], message: str) -> IllegalInstruction:
    return IllegalInstruction(message, _place(kernel, match))


def _place(kernel: Kernel, match: re.Match[str]) -> Location:
    """Return where a directive of a kernel stands."""
    start = kernel.source.text.find(kernel.tuning, kernel.start) + match.start()
    return kernel.source.location(start, start + len(match[1]) + 1)
