"""Seeded mutations of matrix instructions: one or two mistakes in a mnemonic or in the operands.

Knows the words and operands that such instructions are made of, legal and illegal ones. Does not know
which mutants are legal: that is for an assembler to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

from warpsim import Instruction
from warpsim.isa.formats import FORMATS
from warpsim.isa.products import Shape

# --- legal operands --------------------------------------------------------------------------------

# Prefix of the names -> type of register: all types there are.
REGISTER_TYPES = {
    "r": "b32", "u": "u32", "s": "s32", "f": "f32", "x": "f16x2", "p": "pred",
    "d": "b64", "w": "u64", "q": "s64", "g": "f64", "l": "b128",
    "h": "b16", "v": "u16", "t": "s16", "y": "f16", "z": "b8",
}  # fmt: skip
_PREFIXES = tuple(REGISTER_TYPES)
DECLARATIONS = " ".join(f".reg .{kind} {name}<40>;" for name, kind in REGISTER_TYPES.items())
DECLARATIONS += " .reg .v4 .b32 quad; .shared .b32 place;"

Operand = str | tuple[str, ...]  # a tuple is a vector
Operands = tuple[Operand, ...]

_VECTOR_SIZES = (1, 2, 4, 8)  # that PTX has at all
_FIRST = {"d": 0, "a": 8, "b": 16, "c": 24}
_PREFIX_OF = {"f32": "f", "f64": "g"}


def vector(prefix: str, first: int, count: int) -> tuple[str, ...]:
    """Names of ``count`` registers in a row."""
    return tuple(f"{prefix}{first + i}" for i in range(count))


def legal_operands(form: Instruction) -> Operands:
    """Operands with which the form is legal."""
    counts = form.registers
    operands: list[Operand] = [
        vector(_PREFIX_OF.get(form.format(role).name, "r"), _FIRST[role], counts[role]) for role in "dabc"
    ]
    if form.sparse:
        operands += ["r33", "0"]
    if form.scale:
        operands += ["r34", ("0", "0"), "r35", ("0", "0")]
    return tuple(operands)


def spelled(mnemonic: str, operands: Operands, guard: str = "") -> str:
    """The statement: a guard, a mnemonic and its operands."""
    listed = [one if isinstance(one, str) else f"{{{', '.join(one)}}}" for one in operands]
    return f"{guard and guard + ' '}{mnemonic} {', '.join(listed)};"


# --- mutations of mnemonics ------------------------------------------------------------------------

WORDS: dict[str, tuple[str, ...]] = {
    "shape": (
        "m8n8k4", "m8n8k16", "m8n8k32", "m8n8k64", "m8n8k128", "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32",
        "m16n8k64", "m16n8k128", "m16n8k256", "m16n16k8", "m16n16k16", "m8n32k16", "m32n8k16", "m16n8k12",
        "m16n8k512", "m8n8k8", "m64n8k16",
    ),
    "type": (
        *FORMATS, "u32", "s64", "u64", "s16", "u16", "b32", "b16", "b8", "b64", "f16x2",
        "bf16x2", "pred", "u2", "s2", "e8m0", "ue5m3",
    ),
    "layout": ("row", "col"),
    "variant": ("sp", "sp::ordered_metadata", "sp::2to4", "ordered_metadata"),
    "kind": (
        "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4", "kind::i8", "kind::f16",
        "kind::tf32", "kind::f8",
    ),
    "scale": (
        "block_scale", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "scale_vec::8X", "scale_vec::1x",
        "scale_vec", "block16", "block32",
    ),
    "rounding": ("rn", "rz", "rm", "rp", "rna", "rni", "rs"),
    "clamp": ("satfinite", "sat", "relu", "ftz", "saturate"),
    "bit operation": ("and", "xor", "or", "popc", "not"),
    "convergence": ("sync", "aligned", "async", "unaligned"),
    "other": (
        "to", "mma", "wgmma", "mma_async", "ws", "trans", "x4", "shared", "noinc", "v2", "v4", "v8",
        "cta_group::1",
    ),
}  # fmt: skip
_KIND_OF = {word: kind for kind, words in WORDS.items() for word in words}
_ALL_WORDS = tuple(_KIND_OF)
_ORDERED = ("type", "layout", "bit operation")  # kinds of words whose order carries meaning

Tokens = list[str]


def kind_of(word: str) -> str:
    """The kind of a modifier, a key of WORDS."""
    return _KIND_OF.get(word, "other")


def _another(random: Random, word: str) -> str:
    """A word in place of another: mostly one of its own kind."""
    return random.choice(WORDS[kind_of(word)] if random.random() < 0.8 else _ALL_WORDS)


def _substitute(random: Random, words: Tokens) -> None:
    place = random.randrange(len(words))
    words[place] = _another(random, words[place])


def _substitute_all(random: Random, words: Tokens) -> None:
    """Another type wherever one type stands, as in changing both multiplicands."""
    old = random.choice([word for word in words if kind_of(word) == "type"] or words)
    new = _another(random, old)
    words[:] = [new if word == old else word for word in words]


def _delete(random: Random, words: Tokens) -> None:
    del words[random.randrange(len(words))]


def _insert(random: Random, words: Tokens) -> None:
    words.insert(random.randint(0, len(words)), random.choice(WORDS[random.choice(tuple(WORDS))]))


def _duplicate(random: Random, words: Tokens) -> None:
    words.insert(random.randint(0, len(words)), random.choice(words))


def _swap(random: Random, words: Tokens) -> None:
    first, second = random.randrange(len(words)), random.randrange(len(words))
    words[first], words[second] = words[second], words[first]


def _swap_neighbours(random: Random, words: Tokens) -> None:
    place = random.randrange(len(words) - 1)
    words[place], words[place + 1] = words[place + 1], words[place]


def _move(random: Random, words: Tokens) -> None:
    word = words.pop(random.randrange(len(words)))
    words.insert(random.randint(0, len(words)), word)


_MNEMONIC_MUTATIONS: dict[Callable[[Random, Tokens], None], int] = {  # with their weights
    _substitute: 5,
    _substitute_all: 1,
    _delete: 2,
    _insert: 2,
    _duplicate: 1,
    _swap: 1,
    _swap_neighbours: 1,
    _move: 1,
}


def mutated_mnemonics(form: Instruction, random: Random, count: int) -> Iterator[str]:
    """Mnemonics with one or two mistakes; now and then a mistake is none."""
    opcode, *modifiers = form.mnemonic.split(".")
    mutations, weights = tuple(_MNEMONIC_MUTATIONS), tuple(_MNEMONIC_MUTATIONS.values())
    for _ in range(count):
        words = list(modifiers)
        for mutate in random.choices(mutations, weights, k=random.choice((1, 1, 2))):
            mutate(random, words)
        yield ".".join((opcode, *words))


def shuffled(form: Instruction, random: Random) -> str:
    """The form with its modifiers in another order that means the same."""
    opcode, *words = form.mnemonic.split(".")
    in_order = {kind: iter([word for word in words if kind_of(word) == kind]) for kind in _ORDERED}
    random.shuffle(words)
    kept = (next(in_order[kind_of(word)]) if kind_of(word) in in_order else word for word in words)
    return ".".join((opcode, *kept))


def guessed_operands(mnemonic: str, form: Instruction) -> Operands:
    """Operands of a mutant of ``form``: of the sizes that its shape and types would call for.

    Those of ``form`` where the mutant names no such matrices.
    """
    try:
        return legal_operands(_hypothetical(mnemonic.split(".")[1:], form))
    except (KeyError, ValueError, ZeroDivisionError, AssertionError):
        return legal_operands(form)


def _hypothetical(words: Sequence[str], form: Instruction) -> Instruction:
    shape = next((word for word in words if kind_of(word) == "shape"), str(form.shape))
    types = [word for word in words if kind_of(word) == "type" and not word.startswith("ue")]
    d, a, b, c = (FORMATS[name] for name in types)
    sparse = any(word.startswith("sp") for word in words)
    product = replace(
        form.product,
        shape=Shape(*map(int, re.findall(r"\d+", shape))),
        a=a,
        b=b,
        c=c,
        d=d,
        kind=next((word.removeprefix("kind::") for word in words if kind_of(word) == "kind"), ""),
        pattern=form.pattern if sparse else None,
        scale=form.scale if "block_scale" in words else None,
    )
    guess = replace(form, product=product)
    if not all(guess.registers[role] in _VECTOR_SIZES for role in "dabc"):
        raise ValueError(f"no such vectors: {guess.registers}")
    return guess


# --- mutations of operands -------------------------------------------------------------------------

_LITERALS = (
    "0", "1", "-1", "2", "3", "4", "7", "0x1F", "4294967295", "4294967296", "-2147483649",
    "18446744073709551615", "1U", "0U", "WARP_SZ", "1-1", "(2+3)*2", "!0", "~0", "0f3F800000", "0f7FFFFFFF",
    "1.0", "-1.5", "0d3FF0000000000000", "1.5e3", "(1.0+1.0)", "07", "0b11", "-0.0",
)  # fmt: skip
_SELECTORS = (
    "0", "1", "2", "3", "4", "5", "-1", "16", "0x0", "0x1", "0x2", "0x3", "0U", "1U", "2U", "1-1", "!0",
    "!1", "(1)", "(1+1)", "3-2", "1?0:1", "0?5:1", "~0", "4294967295", "4294967296", "4294967297",
    "18446744073709551615", "0.0", "1.0", "0f00000000", "r3", "p0", "h0", "_", "WARP_SZ", "7&1", "1<<1",
    "2>>1", "{0}", "zz", "00", "-0", "+1", "0b1", "(.s64)1", "(.u64)0", "0==0", "1||0", "5%4",
    "0x100000000",
)  # fmt: skip
_NAMES = ("zz9", "%laneid", "%tid.x", "%clock", "quad.x", "quad.y", "place")
_NO_ELEMENTS = ("_", "!p0", "quad", "[r0]", "[place]", "r0+4", "r0|p0", "-r0")
_ODD_OPERANDS = (*_NAMES, *_NO_ELEMENTS, "h0")
_ODD_ELEMENTS = ("!p0", "r1+4", "r0|p0", "[r0]")
_GUARDS = (
    "@p0", "@!p0", "@p39", "@r0", "@!r0", "@zz", "@h0", "@f0", "@%p1", "@!zz", "@p0.x", "@place", "@quad",
)  # fmt: skip
_IDS = (
    "0", "1", "2", "3", "4", "5", "-1", "0x2", "1+1", "!0", "2U", "65536", "4294967296", "1.0",
    "0f00000000", "WARP_SZ", "h1", "v1", "t1", "y1", "r1", "z1", "p1", "d1", "_", "h2", "v2",
)  # fmt: skip

Edited = list[Operand]


def _any_vector(random: Random, operands: Sequence[Operand]) -> tuple[int, list[str]]:
    """The place of some vector and its elements; the first operand where there is none."""
    places = [i for i, operand in enumerate(operands) if isinstance(operand, tuple)] or [0]
    place = random.choice(places)
    operand = operands[place]
    return place, [operand] if isinstance(operand, str) else list(operand)


def _in_braces(random: Random, operand: str) -> Operand:
    """The operand, sometimes as a vector of one."""
    return (operand,) if random.random() < 0.3 else operand


def _resize(random: Random, operands: Edited) -> None:
    place, elements = _any_vector(random, operands)
    count = random.choice((1, 2, 3, 4, 5, 6, 8, 16, len(elements) + 1, max(1, len(elements) - 1)))
    operands[place] = vector(elements[0].rstrip("0123456789") or "r", 0, count)


def _retype(random: Random, operands: Edited) -> None:
    """All elements of a vector, or a scalar, of another type of register."""
    place = random.randrange(len(operands))
    operand, prefix = operands[place], random.choice(_PREFIXES)
    operands[place] = f"{prefix}5" if isinstance(operand, str) else vector(prefix, 16, len(operand))


def _mix(random: Random, operands: Edited) -> None:
    """A vector of registers of two or three types, mostly of one width."""
    place, elements = _any_vector(random, operands)
    prefixes = random.choices(random.choice(("rrusfxp", "rrusfxp", "dwqg", _PREFIXES)), k=3)
    operands[place] = tuple(f"{random.choice(prefixes)}{i}" for i in range(len(elements)))


def _replace_element(random: Random, operands: Edited) -> None:
    place, elements = _any_vector(random, operands)
    registers = tuple(f"{prefix}7" for prefix in _PREFIXES)
    choices = random.choice((_LITERALS, registers, ("_",), _NAMES, _ODD_ELEMENTS))
    elements[random.randrange(len(elements))] = random.choice(choices)
    operands[place] = tuple(elements)


def _fill_with_literals(random: Random, operands: Edited) -> None:
    """A vector of literals only, or of literals and registers."""
    place, elements = _any_vector(random, operands)
    chosen, kept = random.choices(_LITERALS, k=random.choice((1, 1, 2))), random.choice((0.0, 0.5))
    operands[place] = tuple(e if random.random() < kept else random.choice(chosen) for e in elements)


def _sink(random: Random, operands: Edited) -> None:
    """Sinks in some vector, mostly in D."""
    place, elements = _any_vector(random, operands if random.random() < 0.3 else operands[:1])
    share = random.choice((0.3, 0.7, 1.0))
    operands[place] = tuple("_" if random.random() < share else element for element in elements)


def _remove_braces(random: Random, operands: Edited) -> None:
    place, elements = _any_vector(random, operands)
    operands[place] = random.choice((elements[0], "quad", f"[{elements[0]}]", f"({', '.join(elements)})"))


def _add_braces(random: Random, operands: Edited) -> None:
    place = random.randrange(len(operands))
    operand = operands[place]
    operands[place] = (operand,) if isinstance(operand, str) else tuple(reversed(operand))


def _replace_operand(random: Random, operands: Edited) -> None:
    operands[random.randrange(len(operands))] = random.choice(_ODD_OPERANDS)


def _remove(random: Random, operands: Edited) -> None:
    if len(operands) > 1:
        del operands[random.randrange(len(operands))]


def _add(random: Random, operands: Edited) -> None:
    operand = random.choice((random.choice(operands), "r0", "0", ("r0", "r1"), ("0", "0"), "p0"))
    operands.insert(random.randint(0, len(operands)), operand)


def _exchange(random: Random, operands: Edited) -> None:
    first, second = random.randrange(len(operands)), random.randrange(len(operands))
    operands[first], operands[second] = operands[second], operands[first]


def _alias(random: Random, operands: Edited) -> None:
    """The same registers in two operands, or one register several times in a vector."""
    (_, elements), (place, others) = _any_vector(random, operands), _any_vector(random, operands)
    operands[place] = tuple(elements) if random.random() < 0.5 else (elements[0],) * len(others)


def _change_metadata(random: Random, operands: Edited) -> None:
    if len(operands) in (6, 10):
        registers = [f"{prefix}9" for prefix in _PREFIXES]
        operand = random.choice(random.choice((registers, _LITERALS, _ODD_OPERANDS)))
        operands[4] = operand if operand in _NO_ELEMENTS else _in_braces(random, operand)


def _change_selector(random: Random, operands: Edited) -> None:
    if len(operands) in (6, 10):
        operands[5] = random.choice(_SELECTORS)


def _change_scale(random: Random, operands: Edited) -> None:
    if len(operands) in (8, 10):
        operand = random.choice((*(f"{prefix}9" for prefix in _PREFIXES), *_LITERALS[:9], "_", "zz9"))
        operands[random.choice((-4, -2))] = _in_braces(random, operand)


def _change_ids(random: Random, operands: Edited) -> None:
    if len(operands) in (8, 10):
        count = random.choice((2, 2, 2, 2, 2, 1, 3, 4))
        operands[random.choice((-3, -1))] = tuple(random.choices(_IDS, k=count))


_OPERAND_MUTATIONS: dict[Callable[[Random, Edited], None], int] = {  # with their weights
    _resize: 1,
    _retype: 2,
    _mix: 2,
    _replace_element: 2,
    _fill_with_literals: 1,
    _sink: 1,
    _remove_braces: 1,
    _add_braces: 1,
    _replace_operand: 1,
    _remove: 1,
    _add: 1,
    _exchange: 1,
    _alias: 1,
    _change_metadata: 2,
    _change_selector: 3,
    _change_scale: 2,
    _change_ids: 3,
}


def mutated_operands(form: Instruction, random: Random, count: int) -> Iterator[str]:
    """Statements of a form with one or two mistakes in its operands or its guard."""
    mutations, weights = tuple(_OPERAND_MUTATIONS), tuple(_OPERAND_MUTATIONS.values())
    for _ in range(count):
        operands = list(legal_operands(form))
        for mutate in random.choices(mutations, weights, k=random.choice((1, 1, 2))):
            mutate(random, operands)
        guard = random.choice(_GUARDS) if random.random() < 0.08 else ""
        yield spelled(form.mnemonic, tuple(operands), guard)
