"""Where the machine and ptxas 13.0 or 13.5 disagree about statements on purpose, each with its reason.

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
    (
        r"[^\[{]*(\{|[^\[]*, \{)(?!.*\.v[248]).*",
        "a vector where one register is wanted, of which ptxas makes a register",
    ),
    (r".*\{[^}]*(0f|0d|1\.5)[^}]*\}.*", "floats beside registers of other floats"),
    (r".*\{[^}]*%(tid|clock|lane)[^}]*\}.*", "a special register where a result is written"),
    (
        r"(add|sub|fma)\.[\w.]*f32\.bf16 .*",
        "integers for .bf16 in a sum of .f32, which 13.0 takes and 13.5 does not",
    ),
    (r"fence\.(acquire|release)\.\w+;", "before PTX 8.6 or sm_90, which 13.0 takes and 13.5 does not"),
    (r"mbarrier\.init\..*", "a count out of range, which 13.0 takes and 13.5 does not"),
    (r"(st|red)\.async\.mmio\.release\.gpu.*", "a scope that 13.0 takes and 13.5 does not"),
    (r".*\[%h\d\].*", "an address of 16 bits"),
    (
        r"(ld|st|prefetchu|tensormap|red\.async)\..*\[%r\d\].*",
        "an address of 32 bits, which ptxas does not look at in some forms",
    ),
    (r"fence\.proxy\.tensormap::generic\.acq_rel.*", "not in the manual; 13.5 takes it, 13.0 does not"),
    (
        r"cp\.[\w:.]*tensor\.[\w:.]* (%\w+,.*|.*\], %\w+(, %\w+)*;)",
        "a register without brackets for an address",
    ),
    (r"movmatrix\..*", "predicates and constants, of which ptxas makes registers"),
    (r"st\.async.*complete_tx.* [^\[\]]*;", "no mbarrier, for which the manual asks"),
    (r"cp\.reduce\.async\.bulk.*mbarrier.* %\w+;", "a register in the place of an mbarrier"),
    (r"fence\.[\w.:]*(async|global|cta).*", "a word that ptxas passes over"),
    (r"tcgen05\.(?!cp).*\.b(8x16|6x16_p32|4x16_p64)\b.*", "a format of copies that ptxas passes over"),
    (
        r"tensormap\.(replace\..*\.b(32|64)\..*b1024|cp_fenceproxy).*",
        "types in another order, or a word too many",
    ),
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
    (
        r"(div|rem|redux|match|vote|shfl|bar|barrier)\..* sm\+4.*",
        "ptxas makes calls of some divisions and, before sm_90, of what warps do together, and does not pass "
        "on addresses",
    ),
    (r"cvta\.param.* pf;", "a variable of calls, whose address ptxas does not take"),
)


def explained(text: str, *, by_ptxas: bool) -> bool:
    """Whether a table accounts for it that only ptxas, or only the machine, takes a statement."""
    table = ONLY_PTXAS if by_ptxas else ONLY_MACHINE
    return any(re.fullmatch(pattern, text) for pattern, _ in table)
