"""Seeded mutations of matrix instructions: one or two mistakes in a mnemonic or in the operands.

Knows the words and operands that such instructions are made of, legal and illegal ones. Does not know
which mutants are legal: that is for an assembler to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from warpsim import Instruction
from warpsim.formats import FORMATS
from warpsim.instruction import Shape

# --- operands ------------------------------------------------------------------------------------

# Prefix of the names -> type: sixteen registers of every type there is.
REGISTER_TYPES = {
    "r": "b32", "u": "u32", "s": "s32", "f": "f32", "x": "f16x2", "p": "pred",
    "d": "b64", "w": "u64", "q": "s64", "g": "f64", "l": "b128",
    "h": "b16", "v": "u16", "t": "s16", "y": "f16", "z": "b8",
}  # fmt: skip
DECLARATIONS = " ".join(f".reg .{kind} {name}<64>;" for name, kind in REGISTER_TYPES.items())
DECLARATIONS += " .reg .v4 .b32 quad; .reg .v2 .b32 pair; .shared .b32 place;"

Operand = str | tuple[str, ...]  # a tuple is a vector
Operands = tuple[Operand, ...]

_PREFIX = {"f32": "f", "f64": "g"}
_FIRST = {"d": 0, "a": 16, "b": 32, "c": 48}


def vector(prefix: str, first: int, count: int) -> tuple[str, ...]:
    """Names of ``count`` registers in a row."""
    return tuple(f"{prefix}{first + i}" for i in range(count))


def legal_operands(form: Instruction) -> Operands:
    """Operands with which the form is legal."""
    counts = form.registers
    operands: list[Operand] = [
        vector(_PREFIX.get(form.format(role).name, "r"), _FIRST[role], counts[role]) for role in "dabc"
    ]
    if form.sparse:
        operands += ["r60", "0"]
    if form.scale:
        operands += ["r61", ("0", "0"), "r62", ("0", "0")]
    return tuple(operands)


def spelled(mnemonic: str, operands: Operands, guard: str = "") -> str:
    """The statement: a guard, a mnemonic and its operands."""
    listed = [one if isinstance(one, str) else f"{{{', '.join(one)}}}" for one in operands]
    return f"{guard and guard + ' '}{mnemonic} {', '.join(listed)};"


# --- mnemonics -----------------------------------------------------------------------------------

_SIZES = "m8n8k4 m8n8k16 m8n8k32 m8n8k64 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256"
_WORDS: dict[str, tuple[str, ...]] = {
    "shape": (*_SIZES.split(), *"m16n16k8 m16n16k16 m8n32k16 m32n8k16 m16n8k12 m16n8k512 m8n8k8 m64n8k16".split()),
    "type": tuple(
        "f64 f32 tf32 f16 bf16 e5m2 e4m3 e3m2 e2m3 e2m1 ue8m0 ue4m3 s32 u32 s8 u8 s4 u4 b1 s64 u64 s16 u16 "
        "b32 b16 b8 b64 f16x2 bf16x2 pred u2 s2 e8m0 ue5m3".split()
    ),
    "layout": ("row", "col"),
    "variant": ("sp", "sp::ordered_metadata", "sp::2to4", "ordered_metadata"),
    "kind": tuple(f"kind::{name}" for name in "f8f6f4 mxf8f6f4 mxf4 mxf4nvf4 i8 f16 tf32 f8".split()),
    "scale": (
        *(f"scale_vec::{size}" for size in ("1X", "2X", "4X", "8X", "1x")),
        *"block_scale block16 block32 scale_vec".split(),
    ),
    "rounding": ("rn", "rz", "rm", "rp", "rna", "rni", "rs"),
    "clamp": ("satfinite", "sat", "relu", "ftz", "saturate"),
    "bit operation": ("and", "xor", "or", "popc", "not"),
    "convergence": ("sync", "aligned", "async", "unaligned"),
    "other": ("to", "mma", "wgmma", "ws", "trans", "x4", "shared", "noinc", "v4", "lo", "cta_group::1"),
}
_KIND_OF = {word: kind for kind, words in _WORDS.items() for word in words}
_ALL_WORDS = tuple(word for words in _WORDS.values() for word in words)

Modifiers = list[str]


def _another(random: Random, word: str) -> str:
    """A word in place of another: mostly one of its own kind."""
    if random.random() < 0.8:
        return random.choice(_WORDS[_KIND_OF.get(word, "other")])
    return random.choice(_ALL_WORDS)


def _substitute(random: Random, words: Modifiers) -> None:
    place = random.randrange(len(words))
    words[place] = _another(random, words[place])


def _delete(random: Random, words: Modifiers) -> None:
    del words[random.randrange(len(words))]


def _insert(random: Random, words: Modifiers) -> None:
    kind = random.choice(tuple(_WORDS))
    words.insert(random.randint(0, len(words)), random.choice(_WORDS[kind]))


def _duplicate(random: Random, words: Modifiers) -> None:
    words.insert(random.randint(0, len(words)), random.choice(words))


def _swap(random: Random, words: Modifiers) -> None:
    first, second = random.randrange(len(words)), random.randrange(len(words))
    words[first], words[second] = words[second], words[first]


def _swap_neighbours(random: Random, words: Modifiers) -> None:
    place = random.randrange(len(words) - 1)
    words[place], words[place + 1] = words[place + 1], words[place]


def _move(random: Random, words: Modifiers) -> None:
    words.insert(random.randrange(len(words)), words.pop(random.randrange(len(words))))


def _substitute_all(random: Random, words: Modifiers) -> None:
    """One type in every place where another stood, as in changing both multiplicands."""
    old = random.choice([word for word in words if _KIND_OF.get(word) == "type"] or words)
    new = _another(random, old)
    words[:] = [new if word == old else word for word in words]


_MNEMONIC_MUTATIONS = (
    *(_substitute,) * 5, _substitute_all, *(_delete,) * 2, *(_insert,) * 2, _duplicate, _swap, _swap_neighbours, _move,
)  # fmt: skip


def mutated_mnemonics(form: Instruction, random: Random, count: int) -> Iterator[str]:
    """Mnemonics with one or two mistakes; now and then a mistake is none."""
    opcode, *modifiers = form.mnemonic.split(".")
    for _ in range(count):
        words = list(modifiers)
        for _ in range(random.choice((1, 1, 2))):
            random.choice(_MNEMONIC_MUTATIONS)(random, words)
        yield ".".join((opcode, *words))


def shuffled(form: Instruction, random: Random) -> str:
    """The form with its modifiers in another order that means the same.

    The order of types, that of layouts, and a bit operation before ``.popc`` carry meaning and are kept.
    """
    opcode, *words = form.mnemonic.split(".")
    order = {"type": iter([w for w in words if _KIND_OF[w] == "type"])}
    order["layout"] = iter([w for w in words if _KIND_OF[w] == "layout"])
    order["bit operation"] = iter([w for w in words if _KIND_OF[w] == "bit operation"])
    random.shuffle(words)
    return ".".join((opcode, *(next(order[_KIND_OF[w]]) if _KIND_OF[w] in order else w for w in words)))


def guessed_operands(mnemonic: str, form: Instruction) -> Operands:
    """Operands of a mutant: of the sizes that its shape and types would call for, were it a form.

    Falls back on those of ``form`` where the mutant names no such matrices.
    """
    try:
        return legal_operands(_hypothetical(mnemonic.split(".")[1:], form))
    except (KeyError, ValueError, IndexError, AssertionError):
        return legal_operands(form)


def _hypothetical(words: Sequence[str], form: Instruction) -> Instruction:
    shape = next((word for word in words if _KIND_OF.get(word) == "shape"), str(form.shape))
    m, n, k = (int(size) for size in shape[1:].replace("n", " ").replace("k", " ").split())
    types = [word for word in words if _KIND_OF.get(word) == "type"]
    d, a, b, c = (FORMATS[name] for name in types[:4])
    kind = next((word.removeprefix("kind::") for word in words if word.startswith("kind::")), "")
    sparse = any(word.startswith("sp") for word in words)
    guess = replace(form, shape=Shape(m, n, k), a=a, b=b, c=c, d=d, kind=kind)
    if not sparse:
        guess = replace(guess, pattern=None)
    if "block_scale" not in words:
        guess = replace(guess, scale=None)
    if not all(guess.registers[role] for role in "dabc"):
        raise ValueError(mnemonic_of(words))
    return guess


def mnemonic_of(words: Sequence[str]) -> str:
    """The words behind an ``mma``."""
    return ".".join(("mma", *words))


# --- mutations of operands -----------------------------------------------------------------------

_LITERALS = tuple(
    "0 1 -1 2 3 4 7 0x1F 4294967295 4294967296 -2147483649 18446744073709551615 1U 0U WARP_SZ 1-1 (2+3)*2 !0 ~0 "
    "0f3F800000 0f7FFFFFFF 1.0 -1.5 0d3FF0000000000000 1.5e3 (1.0+1.0) 07 0b11 -0.0".split()
)
_SELECTORS = (
    *"0 1 2 3 4 5 -1 16 0x0 0x1 0x2 0x3 0U 1U 2U 1-1 !0 !1 (1) (1+1) 3-2 1?0:1 0?5:1 ~0 4294967295 4294967296".split(),
    *"4294967297 18446744073709551615 0.0 1.0 0f00000000 r3 p0 h0 _ WARP_SZ 7&1 1<<1 2>>1 {0} zz 00 -0 +1 0b1".split(),
    *"(.s64)1 (.u64)0 0==0 1||0 5%4 0x100000000".split(),
)
_ODD = tuple("_ !p0 zz9 %laneid %tid.x %clock quad pair quad.x pair.y place h0 [r0] [place] r0+4 r0|p0 -r0 {} {r0 ()".split())
_SPECIAL = ("%laneid", "%tid.x", "%clock", "quad.x", "pair.y", "zz9", "place")
_GUARDS = ("@p0", "@!p0", "@p63", "@r0", "@!r0", "@zz", "@h0", "@f0", "@%p1", "@!zz", "@p0.x", "@place", "@quad")

Edit = Callable[[Random, list[Operand]], None]


def _vectors(operands: Sequence[Operand]) -> list[int]:
    return [i for i, operand in enumerate(operands) if isinstance(operand, tuple)]


def _scalars(operands: Sequence[Operand]) -> list[int]:
    return [i for i, operand in enumerate(operands) if isinstance(operand, str)]


def _any_vector(random: Random, operands: Sequence[Operand]) -> tuple[int, list[str]]:
    place = random.choice(_vectors(operands) or [0])
    operand = operands[place]
    return place, [operand] if isinstance(operand, str) else list(operand)


def _resize(random: Random, operands: list[Operand]) -> None:
    place, elements = _any_vector(random, operands)
    count = random.choice((1, 2, 3, 4, 5, 6, 8, 16, len(elements) + 1, max(1, len(elements) - 1)))
    stem = elements[0].rstrip("0123456789") or "r"
    operands[place] = vector(stem, 0, count)


def _retype(random: Random, operands: list[Operand]) -> None:
    """All elements of a vector, or a scalar, of another type of register."""
    place = random.randrange(len(operands))
    operand, prefix = operands[place], random.choice(tuple(REGISTER_TYPES))
    operands[place] = f"{prefix}5" if isinstance(operand, str) else vector(prefix, _FIRST["b"], len(operand))


def _mix(random: Random, operands: list[Operand]) -> None:
    """A vector of registers of two or three types."""
    place, elements = _any_vector(random, operands)
    narrow = "rrusfxp" if random.random() < 0.6 else "dwqg" if random.random() < 0.5 else "".join(REGISTER_TYPES)
    prefixes = [random.choice(narrow) for _ in range(3)]
    operands[place] = tuple(f"{random.choice(prefixes)}{i}" for i in range(len(elements)))


def _replace_element(random: Random, operands: list[Operand]) -> None:
    place, elements = _any_vector(random, operands)
    registers = tuple(f"{prefix}7" for prefix in REGISTER_TYPES)
    choices = random.choice((_LITERALS, registers, ("_",), _SPECIAL, ("!p0", "r1+4", "r0|p0", "[r0]")))
    elements[random.randrange(len(elements))] = random.choice(choices)
    operands[place] = tuple(elements)


def _literals(random: Random, operands: list[Operand]) -> None:
    """A vector of literals only, or of literals and registers."""
    place, elements = _any_vector(random, operands)
    chosen = [random.choice(_LITERALS) for _ in range(random.choice((1, 1, 2)))]
    keep = random.choice((0.0, 0.5))
    operands[place] = tuple(e if random.random() < keep else random.choice(chosen) for e in elements)


def _sinks(random: Random, operands: list[Operand]) -> None:
    place, elements = _any_vector(random, operands) if random.random() < 0.3 else (0, list(operands[0]))
    share = random.choice((0.3, 0.7, 1.0))
    operands[place] = tuple("_" if random.random() < share else element for element in elements)


def _unbrace(random: Random, operands: list[Operand]) -> None:
    place, elements = _any_vector(random, operands)
    operands[place] = random.choice((elements[0], "quad", "pair", f"[{elements[0]}]", f"({', '.join(elements)})"))


def _brace(random: Random, operands: list[Operand]) -> None:
    place = random.choice(_scalars(operands) or [0])
    operand = operands[place]
    operands[place] = (operand,) if isinstance(operand, str) else tuple(reversed(operand))


def _odd_operand(random: Random, operands: list[Operand]) -> None:
    choices = [word for word in _ODD if word not in ("{}", "{r0", "()")]
    operands[random.randrange(len(operands))] = random.choice(choices)


def _missing(random: Random, operands: list[Operand]) -> None:
    del operands[random.randrange(len(operands))]


def _extra(random: Random, operands: list[Operand]) -> None:
    operand = random.choice((random.choice(operands), "r0", "0", ("r0", "r1"), ("0", "0"), "p0"))
    operands.insert(random.randint(0, len(operands)), operand)


def _exchange(random: Random, operands: list[Operand]) -> None:
    first, second = random.randrange(len(operands)), random.randrange(len(operands))
    operands[first], operands[second] = operands[second], operands[first]


def _alias(random: Random, operands: list[Operand]) -> None:
    """The same registers twice, or one register several times in a vector."""
    places = _vectors(operands)
    first, second = random.choice(places), random.choice(places)
    operand = operands[first]
    operands[second] = operand if random.random() < 0.5 else (operand[0],) * len(operands[second])


def _metadata(random: Random, operands: list[Operand]) -> None:
    if len(operands) in (6, 10):
        registers = [f"{prefix}9" for prefix in REGISTER_TYPES]
        one: Operand = random.choice((random.choice(registers), random.choice(_LITERALS), random.choice(_ODD[:-3])))
        operands[4] = (one,) if random.random() < 0.3 else one


def _selector(random: Random, operands: list[Operand]) -> None:
    if len(operands) in (6, 10):
        operands[5] = random.choice(_SELECTORS)


def _scale(random: Random, operands: list[Operand]) -> None:
    if len(operands) in (8, 10):
        one: Operand = random.choice([f"{prefix}9" for prefix in REGISTER_TYPES] + list(_LITERALS[:9]) + ["_", "zz9"])
        operands[random.choice((-4, -2))] = (one,) if random.random() < 0.3 else one


def _identifiers(random: Random, operands: list[Operand]) -> None:
    if len(operands) in (8, 10):
        registers = ("h1", "v1", "t1", "y1", "r1", "z1", "p1", "d1", "_", "h1", "v2")
        values = (*"0 1 2 3 4 5 -1 0x2 1+1 !0 2U 65536 4294967296 1.0 0f00000000 WARP_SZ".split(), *registers)
        count = random.choice((2, 2, 2, 2, 2, 1, 3, 4))
        operands[random.choice((-3, -1))] = tuple(random.choice(values) for _ in range(count))


_OPERAND_MUTATIONS: tuple[Edit, ...] = (
    _resize, _retype, _retype, _mix, _mix, _replace_element, _replace_element, _literals, _sinks, _unbrace, _brace,
    _odd_operand, _missing, _extra, _exchange, _alias,
    _metadata, _metadata, _selector, _selector, _selector, _scale, _scale, _identifiers, _identifiers, _identifiers,
)  # fmt: skip


def mutated_operands(form: Instruction, random: Random, count: int) -> Iterator[str]:
    """Statements of a form with one or two mistakes in its operands or its guard."""
    for _ in range(count):
        operands = list(legal_operands(form))
        for _ in range(random.choice((1, 1, 2))):
            random.choice(_OPERAND_MUTATIONS)(random, operands)
            if not operands:
                break
        guard = random.choice(_GUARDS) if random.random() < 0.08 else ""
        yield spelled(form.mnemonic, tuple(operands), guard)
