"""The pipelines as far as SentryWard 0.1.1 follows them: what it has no meaning for is written otherwise.

    bfi                        as and, shl, or
    wgmma.mma_async            as loads of the first words of its tiles; its accumulators become one of them
    wgmma.wait_group           as a barrier of the warpgroup, whose warps all have to issue a wgmma
    wgmma.fence, commit_group  left out, as are bulk stores and reductions to global memory, and atom

Lines stay where they are. Knows PTX; does not know SentryWard's input or output.
"""

from __future__ import annotations

import re
from dataclasses import replace

from warpsim.programs.launch.launching import load_text

from .kernels import Pipeline

_WORD = "and.b64 wide, {0}, 16383; shl.b64 wide, wide, 4; cvt.u32.u64 at, wide; ld.shared.b32 {1}, [at];"
_WAIT = "{ .reg .b32 own; mov.u32 own, %tid.x; shr.u32 own, own, 7; add.u32 own, own, 8; bar.sync own, 128; }"


def _tiles(found: re.Match[str]) -> str:
    """Return loads in place of a wgmma."""
    loads = f"{_WORD.format(found['a'], 'one')} {_WORD.format(found['b'], 'two')} xor.b32 one, one, two;"
    sums = " ".join(f"mov.b32 {register}, one;" for register in found["d"].split(", "))
    return f"{{ .reg .b64 wide; .reg .b32 at, one, two; {loads} {sums} }}"


def _inserted(found: re.Match[str]) -> str:
    """Return and, shl and or in place of a bfi whose field reaches up to the highest bit."""
    place = int(found["place"])
    assert place + int(found["count"]) == 32, found[0]
    low = f"and.b32 low, {found['low']}, {(1 << place) - 1}"
    high = f"shl.b32 high, {found['high']}, {place}"
    return f"{{ .reg .b32 low, high; {low}; {high}; or.b32 {found['d']}, low, high; }}"


_RULES = (  # a statement, what stands in its place
    (
        r"bfi\.b32\s+(?P<d>%\w+), (?P<high>%\w+), (?P<low>%\w+), (?P<place>\d+), (?P<count>\d+);",
        _inserted,
    ),
    (r"wgmma\.mma_async\.[^;{]*\{(?P<d>[^}]*)\}, (?P<a>%?\w+), (?P<b>%?\w+),[^;]*;", _tiles),
    (r"wgmma\.wait_group[^;]*;", lambda found: _WAIT),
    (r"wgmma\.(?:fence|commit_group)[^;]*;", lambda found: ""),
    (r"(?:@!?%\w+\s+)?cp\.async\.bulk\.global\.shared::cta\.bulk_group[^;]*;", lambda found: ""),
    (r"(?:@!?%\w+\s+)?(?:cp\.reduce\.async\.bulk|(?<![\w.])red\.|atom\.global\.add)[^;]*;", lambda found: ""),
)


def reduced(text: str) -> str:
    """Return a text of PTX with the statements that the module's docstring names written otherwise."""
    for pattern, instead in _RULES:
        text = re.sub(pattern, instead, text)
    return text


def expecting(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with what the launch of its reduced text leaves as the expected outputs."""
    _, left = pipeline.left(load_text(reduced(pipeline.text), f"{pipeline.entry}.ptx"), "program")
    expected = {place: left[place] for place in pipeline.case.expected}
    case = replace(pipeline.case, expected=expected)
    return replace(pipeline, make=lambda rng: case)
