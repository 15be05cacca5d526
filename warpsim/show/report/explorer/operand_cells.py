"""What the explorer knows of tensor memory: where tcgen05.mma has its operands, and what ld, st and cp move.

A layout is ``(row, column) -> (CTA, lane, column, bit)`` as modes; forms name layouts by keys. Does not know
how a page shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as choices

from ....isa.descriptors.instruction_descriptor import (
    SCALED_FOURS,
    InstructionDescriptor,
    legal_m,
    legal_n,
)
from ....isa.families.tcgen05 import FIRST_BYTES, Form, forms, letter_of, product_of
from ....isa.layouts.strides import Mode, Modes, modes
from ....isa.layouts.tensor_memory import (
    COLUMNS,
    COPIES,
    LANES,
    TRANSFERS,
    Copy,
    TensorLayout,
    Transfer,
    accumulator,
    column_scales,
    metadata,
    multiplicand,
    row_scales,
)
from ....isa.products import Product
from .distinct import Document, Table, written


def tensor_document() -> Document:
    """Return forms, layouts of operands by keys such as ``d D 64``, and the shapes of ld, st and cp."""
    layouts, keys = Table(), dict[str, int | None]()
    described = [_form(form, layouts, keys) for form in forms()]
    return {
        "lanes": LANES,
        "columns": COLUMNS,
        "forms": described,
        "layouts": layouts.entries,
        "keys": keys,
        "transfers": {name: _transfer(shape) for name, shape in TRANSFERS.items()},
        "copies": [_copied(name, multicast, copy) for (name, multicast), copy in COPIES.items()],
    }


def _form(form: Form, layouts: Table, keys: dict[str, int | None]) -> Document:
    letters = {m: letter_of(form, m) for m in legal_m(form.kind, form.issue)}
    types = list(_types(form))
    for m, n in choices(letters, legal_n(form.kind, form.issue)):
        for kind in types:
            for key, layout in _layouts(form, m, letters[m], n, kind):
                if key not in keys:
                    keys[key] = None if layout is None else layouts.number(_layout(layout))
    return {
        "mnemonic": form.mnemonic,
        "kind": form.kind.name,
        "ctas": form.ctas,
        "sparse": form.sparse,
        "m": list(letters.items()),
        "n": legal_n(form.kind, form.issue),
        "types": types,
    }


def _types(form: Form) -> Iterator[Document]:
    """Yield what A can be: its type and that of scales, and the numbers that its layouts are made of."""
    kind = form.kind
    scales = kind.scales if kind.scales and form.factors != 2 else {1: "ue8m0"}
    deeper = (0, 1) if kind.group == SCALED_FOURS and not form.sparse else (0,)
    for a_type, scale, deep in choices(kind.multiplicands, scales, deeper):
        fields = {"a_type": a_type, "b_type": a_type, "d_type": max(kind.results, default=0), "k_96": deep}
        m, n = legal_m(kind, form.issue)[-1], legal_n(kind, form.issue)[-1]
        fields |= {"scale_type": scale} if kind.is_scaled else {}
        word = InstructionDescriptor(kind=kind.name, sparse=int(form.sparse), m=m, n=n, **fields)
        yield _type(product_of(form, word.encode()))


def _type(product: Product) -> Document:
    storage = product.storage("a")
    return {
        "a": product.a.name,
        "bits": product.a.bits,
        "storage": storage.bits,
        "shift": storage.shift,
        "k": product.shape.k,
        "stored_k": product.stored_k,
        "chunks": product.shape.k // product.pattern.chunk if product.pattern else 0,
        "factors": product.scale_chunks,
        "first": FIRST_BYTES.get(product.scale_chunks, ()),
        "scale": product.scale.name if product.scale else None,
    }


def _layouts(
    form: Form, m: int, letter: str, n: int, kind: Document
) -> Iterator[tuple[str, TensorLayout | None]]:
    """Yield the key and the layout of every operand; None where the manual has figures only."""
    stored, storage, factors = kind["stored_k"], kind["storage"], kind["factors"]
    yield f"d {letter} {n}", accumulator(letter, n)
    yield f"a {letter} {stored} {storage}", multiplicand(letter, stored, storage)
    if form.sparse:
        yield f"e {letter} {storage} {kind['chunks']}", metadata(letter, storage, kind["chunks"])
    for first in kind["first"]:
        yield f"scale_a {m} {factors} {form.ctas} {first}", row_scales(m, factors, form.ctas, first)
        yield f"scale_b {n} {factors} {letter} {first}", column_scales(n, factors, letter, first)


def _layout(layout: TensorLayout) -> Document:
    return {
        "shape": layout.shape,
        "rows": written(layout.rows),
        "columns": written(layout.columns),
        "copies": layout.copies,
        "first": layout.first,
    }


# --- ld, st and cp -----------------------------------------------------------------------------------


def _transfer(shape: Transfer) -> Document:
    return {
        "thread": written(shape.thread),
        "register": written(shape.register),
        "repeat": shape.repeat,
        "registers": shape.registers,
        "counts": shape.counts,
        "lanes": shape.lanes,
        "split": shape.split,
    }


def _copied(name: str, multicast: str, copy: Copy) -> Document:
    rows = _spread(copy.rows)
    layout = {
        "shape": (copy.lanes.shape[1], copy.columns),
        "rows": written(rows),
        "columns": written(modes((copy.columns, (0, 0, 1, 0)))),
        "copies": copy.copies,
        "first": 0,
    }
    return {"name": f"{name}.{multicast}" if multicast else name, "layout": layout}


def _spread(rows: Modes) -> Modes:
    """Return modes whose steps are lanes as modes of all four coordinates."""
    return tuple(Mode(extent, (0, lanes, 0, 0)) for extent, (lanes,) in rows)
