"""Compares declarations and directives of whole modules with ptxas: ``python -m tools.legality.modules``.

Takes modules of traces/kernels, one of declarations in all spaces and one of sections and lists of labels,
changes one or two words in lines that begin with a point, or with a label and a point (left out, doubled,
exchanged, added, another number, type or space), and compares what ``warpsim check`` finds with what ptxas
says. A false accept is what only the machine takes, a false reject what only ptxas takes; each that no table
explains is printed.

    python -m tools.legality.modules --count 9000 --seed 1

Exit code: 0 where every difference is explained, 1 where not, 4 without ptxas.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.helpers import ptxas
from tests.helpers.module_differences import reason
from warpsim.base.errors import NotModelled, WarpsimError
from warpsim.programs.launch.launching import load_text

ROOT = Path(__file__).parent.parent.parent
REAL = ("softmax", "reduction", "functions", "ragged", "cooperation", "sparse_e4m3", "bulk_ring")
DECLARATIONS = """.version 9.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 16 .b8 table[16] = {1, 2, 0x3, 4};
.global .u32 one = 1, two;
.visible .global .align 8 .u64 places[2] = {table, generic(one)+4};
.const .f32 half[2] = {0.5, 0f3F800000};
.extern .shared .align 16 .b8 room[];
.shared .f64 d;
.func (.reg .b32 %out) twice (.reg .b32 %in) { add.s32 %out, %in, %in; ret; }
.visible .func (.param .b32 r) same (.param .align 4 .b8 p[8]) { .reg .b32 %v; ret; }
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[24], .param .u64 .ptr .global .align 16 q)
.maxntid 256, 1, 1
.minnctapersm 2
.pragma "nounroll";
{
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f; .reg .pred %p<2>;
.reg .v2 .f32 %w;
.local .align 8 .b8 stack[64];
.shared .align 4 .b32 tile[8][4];
.param .b32 x;
.pragma "nounroll";
L: mov.u32 %r1, tile;
bra L;
}
"""
SECTIONS = """.version 8.3
.target sm_80
.address_size 64
.weak .func (.param .b32 r) other (.param .b32 x);
.file 1 "a.cu"
.visible .func (.param .b32 r) same (.param .b32 x) { ret; }
.alias other, same;
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<4>;
.loc 1 3 5
L: mov.u32 %r1, 0;
.pragma "nounroll";
targets: .branchtargets L, M;
brx.idx %r1, targets;
M: mov.u64 %d1, same;
calls: .calltargets same;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
ret;
}
.section .debug_str {
info: .b8 97,98, 0
.b8 -1
.b16 1, 0xffff
}
.section .debug_info
{
.b32 end-info
.b32 .debug_str .b64 L
.b32 info+4
.b8 1,2,3 .b16 4
.b64 18446744073709551615, -5
end: }
"""
_WORD = re.compile(r'"[^"\n]*"|\.?[A-Za-z_$%][\w$]*|0[xX][0-9a-fA-F]+U?|[0-9][\w.]*|\S')
_CHANGED = re.compile(r"\s*\)?\s*(?:\w+:\s*)?\.(?!loc\b|file\b)")  # lines
_KINDS = tuple(  # a word is exchanged for another of its kind, mostly
    tuple(kind.split("|"))
    for kind in (
        ".global|.const|.shared|.local|.param|.reg|.tex",
        ".extern|.visible|.weak|.common",
        ".b8|.b16|.b32|.b64|.b128|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f16|.f16x2|.bf16|.bf16x2"
        "|.tf32|.e4m3|.f32|.f64|.f32x2|.pred|.b4|.texref|.samplerref|.surfref|.v2 .b32|.v4 .f32|."
        "v2 .b64|.v4 .b64|.v8 .b16|.v3 .b32|.v2 .b8|.v2 .pred|.v4 .f16x2|.v2 .b128|.v2",
        "0|1|2|3|4|7|8|16|24|32|64|128|256|1024|1025|4096|49152|49153|65536|65537|70000|524289|21"
        "47483648|4294967295|4294967296|-1|+1|~0|1.5|1.5e3|0f3F800000|0d3FF0000000000000|0x10|0X1"
        "F|017|0b101|1U|WARP_SZ|(2)|2+2|-(3)|1<2|3?4:5|18446744073709551615|18446744073709551616|"
        "0x1ffffffffffffffff|6.0|7.9|8.0|8.9|9.0|9.1|9.6|10.0",
        "one|two|table|places|half|room|twice|same|k|%r|%d|$x|_|x|image|L",
        "info|end|other|targets|calls|proto|M|L|.debug_str|.debug_info|.nope|1|-1|255|256|-128|-129|65535|65536|+|-|:|,",
        "sm_52|sm_75|sm_80|sm_86|sm_89|sm_90|sm_90a|sm_100a|sm_999|compute_90",
        "texmode_unified|texmode_independent|debug|map_f64_to_f32",
        ".entry|.func",
        ".maxntid|.reqntid|.minnctapersm|.maxnctapersm|.maxnreg|.noreturn|.nope|.reqnctapercluste"
        "r|.explicitcluster|.maxclusterrank|.blocksareclusters|.local_maxnreg",
        ".version|.target|.address_size|.pragma|.alias|.section|.branchtargets|.attribute",
        '"nounroll"|"no.such"|""|"used_bytes_mask 1"|"frequency 2"',
    )
)
_PLACED = (  # what is added at a place or, mostly, where it may stand
    ".align 8|.align 3|.align 0|.align 16|.ptr|.ptr .global|.ptr .shared .align 8|.v2|.v4|.at"
    "tribute(.managed)|.attribute(.unified(1, 2))|.attribute(.nope)|= 1|= 1.5|= {1, 2}|= {}|="
    " one|= generic(one)|= 0xff(one)|[2]|[]|[0]|[2][]|<4>|<0>|= half|= twice|.maxntid 0|.maxn"
    "tid 2000|.maxnreg 0|.maxnreg 24|.reqntid 32, 2|.noreturn|.minnctapersm 0|.explicitcluste"
    'r|.reqnctapercluster 2|.maxclusterrank 4|.pragma "nounroll";|.visible|.extern|.weak|.com'
    "mon|.nope|, z|, z[2]|= {{1}, {2}}|.unified|.managed|.maxnctapersm 2|.abi_preserve 4|.abi"
    "_preserve_control 2|.maxntid 16, 16, 16|.reqntid 32 .maxntid 64"
)
_PHRASES = tuple(_PLACED.split("|"))


@dataclass(frozen=True)
class Changed:
    """A changed module; ``line`` is what its lines that changed are now."""

    name: str
    line: str
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Change, judge and compare."""
    options = _parser().parse_args(arguments)
    if why := ptxas.missing():
        print(f"cannot check: {why}", file=sys.stderr)
        return 4
    cases = list(changed(options.count, options.seed))
    with ThreadPoolExecutor(ptxas.PROCESSES) as pool:
        verdicts = list(pool.map(said, cases))
    left, explained = list[tuple[Changed, str, str]](), 0
    for case, verdict in zip(cases, verdicts, strict=True):
        ours = problem(case.text)
        if bool(ours) == bool(verdict):
            continue
        if reason(case.line, verdict or "", ours):
            explained += 1
        else:
            left.append((case, verdict, ours))
    accepts = sum(bool(verdict) for _, verdict, _ in left)
    legal = sum(not verdict for verdict in verdicts)
    print(f"ptxas {ptxas.release()}: {len(cases):,} changed modules, {legal:,} legal, {explained} explained")
    print(f"{accepts} false accepts, {len(left) - accepts} false rejects")
    for case, verdict, ours in left:
        side = f"only ptxas refuses: {verdict}" if verdict else f"only warpsim refuses: {ours}"
        print(f"{case.name}: {case.line}\n    {side}")
    return int(bool(left))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.legality.modules", description="modules against ptxas"
    )
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="0")
    return parser


def changed(count: int, seed: str) -> Iterator[Changed]:
    """Yield so many different changes of the modules, drawn by a seed."""
    texts = {name: (ROOT / "traces/kernels" / f"{name}.ptx").read_text() for name in REAL}
    texts |= {"declarations": DECLARATIONS, "sections": SECTIONS}
    names = [*texts, *["declarations", "sections"] * len(REAL)]
    random, seen = Random(f"modules {seed}"), set[str]()
    while len(seen) < count:
        name = random.choice(names)
        lines = texts[name].split("\n")
        places = [place for place, line in enumerate(lines) if _CHANGED.match(line)]
        place = random.choice(places)
        lines[place] = _changed_line(lines[place], random)
        text = "\n".join(lines)
        if text not in seen and text != texts[name]:
            seen.add(text)
            yield Changed(name=name, line=lines[place].strip(), text=text)


def _changed_line(line: str, random: Random) -> str:
    words = _WORD.findall(line.partition("//")[0])
    for _ in range(random.choice((1, 1, 1, 2))):
        place = random.randrange(len(words))
        kind = random.choice(("out", "twice", "exchange", "add", "add", "other", "other", "other", "other"))
        if kind == "add":
            ends = [at for at, word in enumerate(words) if word in (";", "{", ",", ")")]
            starts = [at + 1 for at, word in enumerate(words) if word.startswith(".")]
            words.insert(random.choice([*ends, *starts, place]), random.choice(_PHRASES))
        elif kind == "out":
            del words[place]
        elif kind == "twice":
            words.insert(place, words[place])
        elif kind == "exchange":
            other = random.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        else:
            words[place] = _other(words[place], random)
        if not words:
            break
    return re.sub(r" (?=[<>\[\],;(])|(?<=<) ", "", " ".join(words))


def _other(word: str, random: Random) -> str:
    """Return a word of the same kind, where there is such a kind, else any."""
    own = [kind for kind in _KINDS if word in kind]
    if not own and re.fullmatch(r"[0-9].*", word):
        own = [kind for kind in _KINDS if "16" in kind]
    if not own and re.fullmatch(r"[A-Za-z_$%][\w$]*", word):
        own = [kind for kind in _KINDS if "table" in kind]
    return random.choice(random.choice(own or _KINDS))


def problem(text: str) -> str:
    """Return the first thing that a module is refused for here, "" for nothing."""
    try:
        found = load_text(text, "module.ptx").problems
    except WarpsimError as error:
        found = [error]
    refused = [each for each in found if not isinstance(each, NotModelled)]
    return refused[0].message if refused else ""


def said(case: Changed) -> str:
    """Return the first error of ptxas, "" for none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.ptx"
        path.write_text(case.text, encoding="utf-8")
        found = re.search(r"^\s*\.target\s+(sm_\w+)", case.text, re.MULTILINE)
        target = found[1] if found else "sm_90a"
        command = [str(ptxas.program()), f"-arch={target}", "-O0", "-c", "-o", "/dev/null", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode <= 0:  # or ptxas has crashed
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line or "fatal" in line]
    return re.sub(r"^ptxas \S*, ", "", lines[0]) if lines else f"exit code {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
