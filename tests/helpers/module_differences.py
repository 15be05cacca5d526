"""Where the machine and ptxas 13.0 disagree about declarations and directives on purpose, each with a reason.

Knows patterns of lines; the first table is of what only ptxas takes, the second of what only the machine
takes.
"""

from __future__ import annotations

import re

_LONG = r"18446744073709551615|18446744073709551616|0x1ffffffffffffffff"
ONLY_PTXAS: tuple[tuple[str, str], ...] = (
    (_LONG, "a number beyond 64 bits, or beyond 32 in a directive: ptxas keeps its lowest bits"),
    (r"at most 524288$", "more local memory than a thread has, which the driver refuses"),
    (r"bytes of shared memory: at most", "more shared memory than a CTA may declare: the driver refuses it"),
    (r"power of two, 65536 at most$", "an alignment beyond what any memory has"),
    (r"bytes, but \.(global|const) has at most", "more than any chip has"),
    (r"\.reg \.attribute", "an attribute of numbered registers, which ptxas passes over"),
    (r"\.extern [^;]* is declared twice", "a name of .extern variables that a variable has, too"),
    (r"(tex|sampler|surf)ref", "textures are not modelled"),
    (r"\.(global|shared|const|local|param) [^;]*%\w+<", "variables that are numbered as registers are"),
    (r"^\.(extern|weak|visible) \.func.*expected '\{' or ';'", "a prototype without a semicolon"),
    (r"^\.target compute_", "a virtual target, which is none of a chip"),
    (r"^\.\w+; // PTX has no directive", "a type alone"),
    (r"^\.extern \.shared.*has initial values", "an initial value of .extern .shared, which nothing reads"),
    (r"is a variable, too$", "a function with the name of a variable that nothing else names"),
    (r"nothing in \.param has the type", "vectors and pairs of halves, in arrays and in prototypes"),
    (r"\.e4m3 \w+\b.*no variable has the type", "types of instructions in parameters that nothing reads"),
    (r"\.param [^;]*<.* // expected ',' or ';'", "variables that are numbered as registers are"),
    (r"\.(align \d+|attribute\(\.managed\)) \.reg", "a place or an attribute before .reg, which has none"),
    (r"\.param \.\w+ _ ?[,)].* // expected a variable name", "a parameter of a kernel without a name"),
    (r"\.callprototype.*\.ptr", "a parameter of a prototype with .ptr, which kernels alone have"),
    (r"\.param \.pred|\.param [^;]*\.f32x2", "predicates and pairs of f32 in .param, in prototypes"),
    (r"\d is no \.b\d+: ", "a number of more than 32 bits in a section: ptxas keeps its lowest bits"),
    (
        r"targets .*<\d+>.* // \.\w+targets takes",
        "a list of labels or functions that are numbered as registers are",
    ),
)
ONLY_HERE: tuple[tuple[str, str], ...] = (
    (
        r"does not match formal parameter",
        "types of arguments are not compared with those of parameters, but sizes are",
    ),
    (
        r"texmode_unified|(tex|sampler|surf)ref",
        "textures are not modelled: how they are declared is not checked",
    ),
    (r"Unsupported \.version 9\.[1-5]", "versions that 13.5 knows and 13.0 does not"),
    (r"\.reg \.v[24].*(Duplicate definition|Arguments mismatch)", "the name of a vector beside its elements"),
    (r"32-Bit compilation is no longer supported", "addresses of variables where no .address_size is given"),
    (r"Unresolved extern", "what links, which is not asked for"),
    (r"Debug information not found", "line tables, which nothing here needs"),
    (r"32-Bit ABI", "addresses of variables where no .address_size is given"),
    (r"^\.section \.\w+ *\{|^\.b\d+ \.\w+|\.b\d+ \.\w+$", "a modifier of opcodes as the name of a section"),
    (r"\.b(8|16|32|64) .*-0\b", "-0 in a section"),
    (r"not allowed for per-function compilation", "a pragma of whole programs, under the option -c of ptxas"),
    (r"\.align \d+ (\.ptr|\w+).*(\.ptr|parameter attribute)", "an alignment behind the type of a parameter"),
    (r"\.reg \.f16x2.*Arguments mismatch", "registers of two halves for words, in a statement"),
    (r"Internal error", "more bytes than ptxas can write"),
    (r"default SM version", "the option -arch of the run of ptxas, and not the text"),
)


def reason(line: str, by_ptxas: str, here: str) -> str:
    """Return why a changed line is judged otherwise: ``by_ptxas`` or ``here`` is why it is refused, or ""."""
    table = ONLY_HERE if by_ptxas else ONLY_PTXAS
    return next((why for pattern, why in table if re.search(pattern, f"{line} // {by_ptxas or here}")), "")
