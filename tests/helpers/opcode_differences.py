"""Where the machine and ptxas 13.0 disagree about statements on purpose, each with its reason.

Knows patterns of statements; the first table is of what only ptxas takes, the second of what only the machine
takes.
"""

from __future__ import annotations

import re

_WORDS = r"[\w:.]*"
ONLY_PTXAS: tuple[tuple[str, str], ...] = (
    (rf"{_WORDS}\.([\w:]+)(\.{_WORDS})?\.\1\b.*", "a modifier twice, which ptxas passes over"),
    (r".*[ |]k\b.*", "the name of a function where a register is wanted: ptxas reads its address"),
    (r"vote\.sync\.(uni|any|all)\.\1.*", "a decision twice"),
    (r".*\{.*", "a vector where one register is wanted, of which ptxas makes a register"),
    (r"match\.[\w.]*any.* %r6\|_, .*", "match.any has no predicate, and ptxas passes over its place"),
    (r"fence\.(?!proxy\.async::).*proxy.*sync_restrict.*", "a restriction that ptxas passes over"),
    (
        r"fence\..*(tensormap::generic.*shared::|shared::.*tensormap::|sync_restrict.*mbarrier_init).*",
        "a space, or an order of words, that ptxas passes over",
    ),
    (r"(add|sub|fma)\.[\w.]*f32\.bf16 .*%i1.*", "a .u16 register for .bf16 in a sum of .f32"),
    (r"prefetch\.tensormap \[%r9\];", "an address of 32 bits, which no descriptor has"),
    (r"fma\.(rz|rm|rp)\..*bf16.*", "not in the manual; ptxas generates the code of f16 sums"),
    (r"set\..*!%p1;|set\..* %i1, .*", "a predicate, or a .u16, as a number: ptxas passes over its type"),
    (r"atom\..*\.(and|or|xor|exch)\.b\d+ .*, .*, .*, .*", "an operand too many, which ptxas passes over"),
    (r"[\w.]*\.pred\b.*", "a .pred beside another type is passed over"),
    (r"(addc|subc|madc\.(lo|hi))\.[us]16.*", "16 bits, which the manual does not have"),
    (r"testp\.f(32|64) .*", "no class; the manual demands one"),
    (r"vabsdiff4\..*", "selectors and forms that nvcc 13.0 does not write"),
    (r"cvt\.pack\..* %d1, .*", "a wider register for the result of cvt.pack"),
    (r"mov\.v[24].* (%\w+|4);", "one register or a constant for all elements"),
)
ONLY_MACHINE: tuple[tuple[str, str], ...] = (
    (r"vabsdiff4\..*", "ptxas wants a register, and wrongly speaks of selectors"),
    (r"(div|rem)\..* sm\+4.*", "ptxas makes calls of some divisions, and does not pass on addresses"),
    (r"cvta\.param.* pf;", "a variable of calls, whose address ptxas does not take"),
    (r"createpolicy\.cvt.* (0\.5|0f3F000000);", "bits of a float constant as a policy"),
)


def explained(text: str, *, by_ptxas: bool) -> bool:
    """Whether a table accounts for it that only ptxas, or only the machine, takes a statement."""
    table = ONLY_PTXAS if by_ptxas else ONLY_MACHINE
    return any(re.fullmatch(pattern, text) for pattern, _ in table)
