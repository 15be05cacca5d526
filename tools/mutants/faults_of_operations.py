# ruff: noqa: E501  (lines of source stand as they are, and a fault is a row)
"""Faults of f64, of f16 in software, of integers and of bits: what is added to what, and in which order."""

from __future__ import annotations

from warpsim.workbench.generation.sums import reasons
from warpsim.workbench.generation.sums.limits import Limits

from .behaviour import Behaviour, Edit, Proof, Where, bits, both, doubles, integers, never, quads

_FMA = "        steps.append(_ieee(joined([term, d.exact()]), element, mode, change))\n"
_TERM = "        term = products[..., k]\n"
_ORDER = "    for k in reversed(order) if change.reverse else order:\n"
_MODE = "    mode = _MODES[factors.product.rounding]\n"
_CHAIN = "            chain = add(term, chain)\n"
_ADD_C = "        add(c, chain)\n"
_QUAD16 = "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    add(add(add(c, upper), lower), element=F16)\n"
_TOTAL = "    total = terms.significand.sum(-1)\n    top ="
_CLIP = "    code = np.clip(total, -top, top - 1) if instruction.satfinite else total\n"
_BOTH = "    return replace(a, significand=both)\n"


def _line(
    name: str, old: str, new: str, where: Where, proof: Proof = never, module: str = "summing"
) -> Behaviour:
    return Behaviour(name=name, edits=(Edit(module=module, old=old, new=new),), where=where, proof=proof)


def _rounding(*names: str) -> Where:
    return both(doubles, lambda limits: (limits.instruction.rounding or "rn") in names)


def _additions(limits: Limits) -> bool:
    return doubles(limits) or quads(limits) or limits.emulated


def _mode(name: str, mode: str) -> Behaviour:
    others = tuple(x for x in ("rn", "rz", "rm", "rp") if x != mode)
    return _line(name, _MODE, f'    mode = "{mode}"\n', _rounding(*others))


F64 = (
    _line("f64 products in reversed order", _ORDER, "    for k in reversed(order):\n", doubles),
    _line("f64 products of odd columns first", _ORDER, "    for k in sorted(order, key=lambda k: k % 2 == 0):\n", doubles),
    _line("f64 products rounded before they are added", "        if change.round_products:\n", "        if True:\n", doubles),
    _line("f64 products lose what is below 2**-64 of them", _TERM, _TERM + "        size = bit_length(np.abs(term.significand)); drop = np.maximum(size - 64, 0)\n        term = replace(term, significand=np.sign(term.significand) * ((np.abs(term.significand) >> drop) << drop))\n", doubles),
    _line("f64 products of a bit less than 106", _TERM, _TERM + "        term = replace(term, significand=np.sign(term.significand) * (np.abs(term.significand) & ~1))\n", doubles),
    _line("C added last, f64", "    d = _accumulator(factors, change)\n    order =", "    d = _accumulator(factors, change); last = d; d = decode(np.zeros(factors.c.special.shape, np.uint64), element)\n    order =", doubles),
    _mode("f64 always to nearest", "rn"),
    _mode("f64 always toward zero", "rz"),
    _mode("f64 always down", "rm"),
    _mode("f64 always up", "rp"),
    _line("f64 .rm cancels to +0", '    both = terms.negative.all(-1) | (terms.negative.any(-1) & (mode == "rm"))\n', "    both = terms.negative.all(-1)\n", _rounding("rm")),
    _line("f64 cancels to -0", '    both = terms.negative.all(-1) | (terms.negative.any(-1) & (mode == "rm"))\n', "    both = terms.negative.any(-1)\n", both(doubles, _rounding("", "rn", "rz", "rp"))),
    _line("f64 sums of negative zeros are +0", '    both = terms.negative.all(-1) | (terms.negative.any(-1) & (mode == "rm"))\n', '    both = terms.negative.any(-1) & (mode == "rm")\n', _rounding("", "rn", "rz", "rp")),
    _line("subnormal results of additions become zero", "    special, negative = special_of(terms)\n    return Step(\n        kind=\"ieee\"", "    code = np.where(done.subnormal, np.uint64(0), code)\n    special, negative = special_of(terms)\n    return Step(\n        kind=\"ieee\"", _additions, lambda limits: reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1)),
    _line("f64 .rz overflows to Inf", '    "rz": lambda negative: np.zeros(negative.shape, np.bool_),', '    "rz": lambda negative: np.ones(negative.shape, np.bool_),', _rounding("rz"), module="exact_numbers"),
    _line("f64 .rm overflows to the largest number", '    "rm": lambda negative: negative,', '    "rm": lambda negative: negative & False,', _rounding("rm"), module="exact_numbers"),
    _line("f64 .rp overflows to the largest number", '    "rp": lambda negative: ~negative,\n}', '    "rp": lambda negative: negative & False,\n}', _rounding("rp"), module="exact_numbers"),
)  # fmt: skip


def _to_f32(limits: Limits) -> bool:
    return quads(limits) and limits.instruction.d.name == "f32"


def _to_f16(limits: Limits) -> bool:
    return quads(limits) and limits.instruction.d.name == "f16"


SOFTWARE = (
    _line("software, f32: products in reversed order", "        for term in p:\n", "        for term in reversed(p):\n", _to_f32),
    _line("software, f32: the last two exchanged", "        for term in p:\n", "        for term in (p[0], p[1], p[3], p[2]):\n", _to_f32),
    _line("software, f32: the first two exchanged", "        for term in p:\n", "        for term in (p[1], p[0], p[2], p[3]):\n", _to_f32,
          lambda limits: "the first product is exact in f32, and so is the one that is added to it: either way a0*b0 + a1*b1 is rounded once"),
    _line("software, f32: C first", "        chain = decode(np.zeros(c.special.shape, np.uint32), F32)\n", "        chain, c = c, decode(np.zeros(c.special.shape, np.uint32), F32)\n", _to_f32),
    _line("software, f32: products rounded toward zero", "    def add(*terms: Numbers, element: Format = F32) -> Numbers:\n        steps.append(_ieee(joined(list(terms)), element, \"rn\", change))\n", "    def add(*terms: Numbers, element: Format = F32) -> Numbers:\n        steps.append(_ieee(joined(list(terms)), element, \"rz\" if terms[0] is not c else \"rn\", change))\n", _to_f32),
    _line("software, f32: C added toward zero", _ADD_C, "        steps.append(_ieee(joined([c, chain]), F32, \"rz\", change))\n", _to_f32),
    _line("software, f32: pairs", "        for term in p:\n            chain = add(term, chain)\n", "        chain = add(add(p[1], add(p[0])), add(p[3], add(p[2])))\n", _to_f32),
    _line("software, f32: the sum starts at -0", "        chain = decode(np.zeros(c.special.shape, np.uint32), F32)\n", "        chain = decode(np.full(c.special.shape, 1 << 31, np.uint32), F32)\n", _to_f32),
    _line("software, f16: pairs exchanged", _QUAD16, "    upper, lower = add(p[1], add(p[0])), add(p[3], add(p[2]))\n    add(add(add(c, upper), lower), element=F16)\n", _to_f16),
    _line("software, f16: C last", _QUAD16, "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    add(add(add(upper, lower), c), element=F16)\n", _to_f16),
    _line("software, f16: C to the other pair", _QUAD16, "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    add(add(add(c, lower), upper), element=F16)\n", _to_f16),
    _line("software, f16: the last sum rounded once", _QUAD16, "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    add(add(c, upper), lower, element=F16)\n", _to_f16),
    _line("software, f16: C and its pair in f16", _QUAD16, "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    add(add(add(c, upper, element=F16), lower), element=F16)\n", _to_f16),
    _line("software, f16: pairs in f16", _QUAD16, "    upper, lower = add(p[3], add(p[2]), element=F16), add(p[1], add(p[0]), element=F16)\n    add(add(add(c, upper), lower), element=F16)\n", _to_f16),
    _line("software, f16: pairs cut", _QUAD16, "    upper, lower = (decode(_ieee(joined([x, y]), F32, 'rz', change).code, F32) for x, y in ((p[3], p[2]), (p[1], p[0])))\n    add(add(add(c, upper), lower), element=F16)\n", _to_f16),
    _line("software, f16: one chain", _QUAD16, "    chain = add(p[0], add(p[1], add(p[2], add(p[3], c))))\n    add(chain, element=F16)\n", _to_f16),
    _line("software, f16: cut to f16", _QUAD16, "    upper, lower = add(p[3], add(p[2])), add(p[1], add(p[0]))\n    last = add(add(c, upper), lower)\n    steps.append(_ieee(joined([last]), F16, 'rz', change))\n", _to_f16),
)  # fmt: skip


def _satfinite(limits: Limits) -> bool:
    return integers(limits) and limits.instruction.satfinite


def _wraps(limits: Limits) -> bool:
    return integers(limits) and not limits.instruction.satfinite


def _negative(limits: Limits) -> bool:
    return integers(limits) and (limits.instruction.a.signed or limits.instruction.b.signed)


def _products_fit(bits_of: int) -> Proof:
    def proof(limits: Limits) -> str:
        form, half = limits.instruction, 1 << (bits_of - 1)
        ends = [(-x.sign_bit, x.mask ^ x.sign_bit) for x in (form.a, form.b)]
        products = [x * y for x in ends[0] for y in ends[1]]
        if -half <= min(products) and max(products) < half:
            return f"products lie in {min(products)} to {max(products)}: {bits_of} bits hold them"
        return ""

    return proof


def _sums_fit(bits_of: int) -> Proof:
    def proof(limits: Limits) -> str:
        form, half = limits.instruction, 1 << (bits_of - 1)
        largest = max(x.sign_bit or x.mask for x in (form.a,)) * max(x.sign_bit or x.mask for x in (form.b,))
        total = largest * form.stored_k
        return f"sums of products reach {total} at most" if total < half else ""

    return proof


def _total(name: str, lines: str, where: Where, proof: Proof = never) -> Behaviour:
    new = f"    {lines}\n    total = terms.significand.sum(-1)\n    top ="
    return _line(name, _TOTAL, new, where, proof)


def _clip(name: str, code: str, where: Where, proof: Proof = never) -> Behaviour:
    return _line(name, _CLIP, f"    code = {code}\n", where, proof)


_PRODUCTS = "terms.significand[..., :-1]"
SUMS_OF_INTEGERS = (
    _clip("saturation missing", "total", _satfinite),
    _clip("saturates without .satfinite", "np.clip(total, -top, top - 1)", _wraps),
    _clip("saturates one too high", "np.clip(total, -top, top)", _satfinite),
    _clip("saturates one too low", "np.clip(total, -top, top - 2)", _satfinite),
    _clip("saturates at the negative of the largest", "np.clip(total, 1 - top, top - 1)", _satfinite),
    _clip("saturates upwards alone", "np.minimum(total, top - 1)", both(_satfinite, _negative)),
    _clip("saturates downwards alone", "np.maximum(total, -top)", _satfinite),
    _clip("saturates to zero", "np.where((total < -top) | (total >= top), 0, total)", _satfinite),
    _total("saturates at each product, ascending", "terms = replace(terms, significand=terms.significand.copy()); acc = terms.significand[..., -1].copy()\n    for k in range(terms.significand.shape[-1] - 1): acc = np.clip(acc + terms.significand[..., k], -(1 << 31), (1 << 31) - 1)\n    terms.significand[..., :-1] = 0; terms.significand[..., -1] = acc", both(_satfinite, _negative)),
    _total("saturates at each product, descending", "terms = replace(terms, significand=terms.significand.copy()); acc = terms.significand[..., -1].copy()\n    for k in reversed(range(terms.significand.shape[-1] - 1)): acc = np.clip(acc + terms.significand[..., k], -(1 << 31), (1 << 31) - 1)\n    terms.significand[..., :-1] = 0; terms.significand[..., -1] = acc", both(_satfinite, _negative)),
    _total("saturates after half of the products", "terms = replace(terms, significand=terms.significand.copy()); half = terms.significand.shape[-1] // 2\n    acc = np.clip(terms.significand[..., -1] + terms.significand[..., :half].sum(-1), -(1 << 31), (1 << 31) - 1)\n    terms.significand[..., :half] = 0; terms.significand[..., -1] = acc", both(_satfinite, _negative)),
    _total("products wrap at 16 bits", f"terms = replace(terms, significand=terms.significand.copy()); {_PRODUCTS} = (({_PRODUCTS} + 32768) & 65535) - 32768", integers, _products_fit(16)),
    _total("products saturate at 15 bits", f"terms = replace(terms, significand=terms.significand.copy()); {_PRODUCTS} = np.clip({_PRODUCTS}, -16384, 16383)", integers, _products_fit(15)),
    _total("products wrap at 8 bits", f"terms = replace(terms, significand=terms.significand.copy()); {_PRODUCTS} = (({_PRODUCTS} + 128) & 255) - 128", integers, _products_fit(8)),
    _total("sums of products wrap at 20 bits", f"terms = replace(terms, significand=np.concatenate([(({_PRODUCTS}.sum(-1, keepdims=True) + (1 << 19)) & ((1 << 20) - 1)) - (1 << 19), terms.significand[..., -1:]], -1))", integers, _sums_fit(20)),
    _total("sums of pairs saturate at 16 bits", f"pairs = np.clip({_PRODUCTS}[..., ::2] + {_PRODUCTS}[..., 1::2], -32768, 32767)\n    terms = replace(terms, significand=np.concatenate([pairs, terms.significand[..., -1:]], -1))", integers, _products_fit(15)),
    _total("C is not added to integers", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., -1] = 0", lambda x: integers(x) or bits(x)),
    _total("C is read as unsigned and saturates", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., -1] &= 0xffffffff", _satfinite),
    _total("the first integer product is lost", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., 0] = 0", lambda x: integers(x) or bits(x)),
    _total("the last integer product is lost", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., -2] = 0", lambda x: integers(x) or bits(x)),
    _total("carries do not pass bit 16", "total = terms.significand.sum(-1); low = (terms.significand & 0xffff).sum(-1) & 0xffff; high = (terms.significand & ~0xffff).sum(-1)\n    terms = replace(terms, significand=(low | high)[..., None])", lambda x: integers(x) or bits(x)),
)  # fmt: skip

SUMS_OF_BITS = (
    _line("XOR and AND exchanged", '{"and": np.bitwise_and, "xor": np.bitwise_xor}', '{"xor": np.bitwise_and, "and": np.bitwise_xor}', bits),
    _line("OR instead", '{"and": np.bitwise_and, "xor": np.bitwise_xor}', '{"xor": np.bitwise_or, "and": np.bitwise_or}', bits),
    _line("XNOR, or NAND", _BOTH, "    return replace(a, significand=1 - both)\n", bits),
    _line("A alone is counted", _BOTH, "    return replace(a, significand=both * 0 + a.significand)\n", bits),
    _line("B alone is counted", _BOTH, "    return replace(a, significand=both * 0 + b.significand)\n", bits),
    _total("counts wrap at 7 bits", f"terms = replace(terms, significand=np.concatenate([{_PRODUCTS}.sum(-1, keepdims=True) & 127, terms.significand[..., -1:]], -1))", bits),
    _total("counts saturate at 127", f"terms = replace(terms, significand=np.concatenate([np.minimum({_PRODUCTS}.sum(-1, keepdims=True), 127), terms.significand[..., -1:]], -1))", bits),
    _total("the last bit of each word is not counted", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., 31:-1:32] = 0", bits),
    _total("the second word is not counted", "terms = replace(terms, significand=terms.significand.copy()); terms.significand[..., 32:64] = 0", bits),
    _clip("1-bit sums saturate", "np.clip(total, -top, top - 1)", bits),
)  # fmt: skip

OPERATIONS = (*F64, *SOFTWARE, *SUMS_OF_INTEGERS, *SUMS_OF_BITS)
