"""Compare golden models in C with the kernels, on many dot products of every program of a rule.

    python -m tools.soak.models [--dots N] [--only TEXT] [--reference N] [--machine NAME] [--json FILE]

Every distinct arithmetic of every form on every target is compiled strictly for each machine that is here:
by gcc and clang, for 32 bits, and for big endian under qemu-user, with sanitizers for addresses and undefined
behaviour (of qemu-user without addresses). It computes raw random bits, each kind of corner of
tests/helpers/nasty.py, and, of formats of up to 8 bits, every pair of codes of A and B, in changing places of
the sum, beside each C of a catalogue (of wider pairs than 12 bits each fifth). The kernels compute the same,
and the reference the first of each batch. Exit code 1 where a code differs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product as pairs
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import numpy as np
import numpy.typing as npt

from tests.helpers import nasty
from warpsim.isa.families import tcgen05
from warpsim.isa.instruction import Instruction
from warpsim.ptx.qualifiers import on_target
from warpsim.sums.arithmetic import numerics, reference
from warpsim.sums.execution.interface import instructions
from warpsim.sums.execution.pipeline import rule_for
from warpsim.sums.rule_programs.rule_operations import Program
from warpsim.sums.rule_programs.rule_templates import program_of
from warpsim.workbench.models.c_dot import DotProduct
from warpsim.workbench.models.c_model import declared_field

Array = npt.NDArray[Any]
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function")
SANE = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all")
TRAPS = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-static")


class Machine(NamedTuple):
    """A compiler with its options, what runs its programs, and the byte order of those."""

    compiler: tuple[str, ...]
    runs: tuple[str, ...] = ()
    order: Literal["<", ">"] = "<"

    def is_here(self) -> bool:
        """Whether an empty program can be built and run."""
        names = (self.compiler[0], *self.runs)
        with tempfile.TemporaryDirectory() as folder:
            return all(map(shutil.which, names)) and self.build(
                "int main(void) { return 0; }\n", Path(folder)
            )

    def build(self, source: str, folder: Path) -> bool:
        """Compile a source to the program ``model``; return whether that succeeds."""
        (folder / "model.c").write_text(source, encoding="utf-8")
        command = [*self.compiler, *STRICT, "-o", "model", "model.c"]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        print(ended.stderr, end="", file=sys.stderr)
        return ended.returncode == 0


MACHINES = {
    "gcc": Machine(("gcc", *SANE)),
    "clang": Machine(("clang", *SANE)),
    "32 bits": Machine(("gcc", "-m32", *SANE)),
    "big endian": Machine(("s390x-linux-gnu-gcc", *TRAPS), ("qemu-s390x",), ">"),
}
NARROW = 8  # bits of formats whose pairs of codes are all tried
_BATCH = 20_000


@dataclass
class Result:
    """What was compared of a program: dot products by kind, those that differ, and the first of them."""

    form: str
    rule: str
    forms: int
    random: int = 0
    corners: int = 0
    pairs: int = 0
    referenced: int = 0
    differences: int = 0
    first: str = ""
    seconds: float = field(default=0.0, repr=False)


@cache
def programs() -> dict[Program, list[Instruction]]:
    """Return the forms of each program on their targets; of tcgen05.mma those of a common shape."""
    found = dict[Program, list[Instruction]]()
    described = [on_target(form, target) for form in tcgen05.typical() for target in sorted(form.targets)]
    named = [on_target(form, target) for form in instructions() for target in sorted(form.targets)]
    for form in (*named, *described):
        found.setdefault(program_of(rule_for(form).bare, form.product), []).append(form)
    return found


def source_of(program: Program) -> str:
    """Return a program in C that reads the codes of dot products, one after the other, and writes their D."""
    dot = DotProduct("model", program)
    header = ["#include <stdint.h>", "#include <stdio.h>"]
    header += ["typedef struct {", *map(declared_field, dot.fields), "} model_trace;"]
    given = [each.name if each.count > 1 else f"{each.name}[0]" for each in program.inputs]
    main = [
        "int main(void) {",
        *(f"  {dot.word} {each.name}[{each.count}];" for each in program.inputs),
        f"  {dot.word} d;",
        "  for (;;) {",
        *(
            f"    if (fread({each.name}, sizeof d, {each.count}, stdin) != {each.count}) return 0;"
            for each in program.inputs
        ),
        f"    d = model_dot({', '.join(given)}, 0);",
        "    if (!fwrite(&d, sizeof d, 1, stdout)) return 1;",
        "  }",
        "}",
    ]
    return "\n".join([*header, f"{dot.prototype};", *dot.functions(), *dot.body(), *main]) + "\n"


Model = Callable[[Array], Array]


def compiled(source: str, folder: Path, machine: Machine) -> Model:
    """Return a function from rows of words, the inputs of dot products, to their D."""
    if not machine.build(source, folder):
        raise RuntimeError(f"{machine.compiler[0]} refuses the model")
    command = [*machine.runs, str(folder / "model")]

    def run(words: Array) -> Array:
        kind = words.dtype.newbyteorder(machine.order)
        ended = subprocess.run(command, input=words.astype(kind).tobytes(), capture_output=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(machine.compiler)}: {ended.stderr.decode()[:2000]}")
        return np.frombuffer(ended.stdout, kind).astype(words.dtype)

    return run


def words_of(program: Program, form: Instruction, dots: nasty.Dots) -> Array:
    """Return the inputs of dot products, those of each in a row."""
    word = np.uint64 if max(form.a.bits, form.d.bits) > 32 else np.uint32
    width = form.stored_k // form.scale_chunks if form.scale else 1
    given = [
        np.repeat(codes, width, axis=1) if name.startswith("scale") else codes.reshape(len(dots), -1)
        for name, codes in ((each.name, getattr(dots, each.name)) for each in program.inputs)
    ]
    return np.concatenate([each.astype(word) for each in given], axis=1)


def every_pair(form: Instruction) -> Iterator[nasty.Dots]:
    """Yield all pairs of codes of A and B, each beside other codes of a sum; nothing for wider formats."""
    if max(form.a.bits, form.b.bits) > NARROW:
        return
    codes = np.array(list(pairs(range(form.a.mask + 1), range(form.b.mask + 1))), np.uint64)
    least = -(-form.stored_k // len(codes))  # so that every place has a pair
    codes = np.tile(codes, (least, 1))
    rng = np.random.default_rng(0)
    for c in nasty.catalogue(form.c)[:: 1 if len(codes) <= 4096 else 5]:
        for filled in (False, True):
            dots = nasty.raw(form, len(codes), rng)
            a, b = (dots.a, dots.b) if filled else (np.zeros_like(dots.a), np.zeros_like(dots.b))
            place = (np.arange(len(codes)) + rng.integers(form.stored_k)) % form.stored_k
            a[np.arange(len(codes)), place], b[np.arange(len(codes)), place] = codes.T
            yield replace(dots, a=a, b=b, c=np.full(len(codes), c, form.c.code_dtype))


def batches(form: Instruction, dots: int) -> Iterator[tuple[str, nasty.Dots]]:
    """Yield random dot products, a twentieth as many of each kind of corner, and pairs of codes."""
    rng = np.random.default_rng(1)
    for start in range(0, dots, _BATCH):
        yield "random", nasty.raw(form, min(_BATCH, dots - start), rng)
    for make in nasty.makers(form):
        if make is not nasty.raw:
            yield "corners", make(form, max(1, dots // 20), rng)
    yield from (("pairs", each) for each in every_pair(form))


def compare(
    program: Program, forms: list[Instruction], models: Mapping[str, Model], dots: int, referenced: int = 0
) -> Result:
    """Compare a program on each machine with the kernels, and a few of each batch with the reference."""
    form = forms[0]
    rule, rng = rule_for(form), np.random.default_rng(2)
    result, started = Result(nasty.name(form), type(rule).__name__, len(forms)), time.monotonic()
    for kind, batch in batches(form, dots):
        operands, words = nasty.operands(form, batch, rng), words_of(program, form, batch)
        expected = numerics.compute(operands, rule).ravel()
        few = numerics.cases(operands, slice(referenced))
        slow = reference.compute(few, rule).ravel() if referenced else expected[:0]
        setattr(result, kind, getattr(result, kind) + len(batch))
        result.referenced += len(slow)
        result.differences += int((slow != expected[: len(slow)]).sum())
        for machine, model in models.items():
            found = model(words)
            wrong = int((found != expected).sum())
            result.differences += wrong
            if wrong and not result.first:
                text = nasty.difference(form, operands, found.reshape(-1, 1, 1), expected.reshape(-1, 1, 1))
                result.first = f"{machine}, {kind}: {text}"
    result.seconds = time.monotonic() - started
    return result


def lines(results: list[Result]) -> Iterator[str]:
    """Yield a line for each rule, and the sums."""
    counts = ("forms", "random", "corners", "pairs", "referenced", "differences")
    yield f"{'rule':18}{'programs':>10}" + "".join(f"{name:>14}" for name in counts)
    for rule in (*dict.fromkeys(each.rule for each in results), ""):
        some = [each for each in results if rule in ("", each.rule)]
        numbers = (sum(getattr(each, name) for each in some) for name in counts)
        yield f"{rule or 'all':18}{len(some):>10,}" + "".join(f"{number:>14,}" for number in numbers)


@click.command(help=__doc__)
@click.option("--dots", default=100_000, show_default=True, help="Random dot products of each program.")
@click.option("--reference", "referenced", default=20, show_default=True, help="Of each batch, by reference.")
@click.option("--only", default="", help="Only programs whose first form contains this text.")
@click.option(
    "--machine", "names", multiple=True, type=click.Choice(list(MACHINES)), help="Those that are here."
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers here as well.")
def main(dots: int, referenced: int, only: str, names: tuple[str, ...], path: Path | None) -> None:
    """Run the command."""
    results = list[Result]()
    chosen = [(each, forms) for each, forms in programs().items() if only in nasty.name(forms[0])]
    here = {name: MACHINES[name] for name in names or MACHINES if MACHINES[name].is_here()}
    if missing := set(names or MACHINES) - set(here):
        print(f"not here: {', '.join(sorted(missing))}", file=sys.stderr)
    for number, (program, forms) in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory() as scratch:
            models = dict[str, Model]()
            for place, (name, machine) in enumerate(here.items()):
                folder = Path(scratch) / str(place)
                folder.mkdir()
                models[name] = compiled(source_of(program), folder, machine)
            results.append(compare(program, forms, models, dots, referenced))
        print(f"{number} of {len(chosen)}: {results[-1]}", file=sys.stderr, flush=True)
    print(f"machines: {', '.join(here)}", *lines(results), sep="\n")
    if path is not None:
        path.write_text(json.dumps([vars(each) for each in results], indent=1) + "\n", encoding="utf-8")
    sys.exit(not here or any(each.differences for each in results))


if __name__ == "__main__":
    main()
