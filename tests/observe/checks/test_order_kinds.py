"""What statements some code has: looked at once, and again only where the code has grown or is another."""

from __future__ import annotations

from typing import Any

import pytest

from warpsim.observe.checks import order_kinds
from warpsim.observe.checks.order_kinds import Kinds, kinds_of, places_of
from warpsim.programs.launch.launching import load_text

PLAIN = "mov.u32 %r0, 1;"
FLAG = "fence.acq_rel.gpu;"
COPY = "cp.async.bulk.commit_group;"
SOME = "bar.sync 1, 32;"


def code_of(*statements: str) -> list[Any]:
    """Return the records of a kernel with these statements and a ret."""
    body = "\n".join(statements)
    head = ".version 8.6\n.target sm_90a\n.address_size 64\n.entry k() { .reg .b32 %r<4>; .reg .b64 %d<2>;"
    text = f"{head}\n{body}\nret; }}"
    return load_text(text)["k"].module.entry("k").code


@pytest.fixture(autouse=True)
def _none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_kinds, "_KEPT", type(order_kinds._KEPT)())


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        (PLAIN, Kinds()),
        (FLAG, Kinds(flags=True)),
        ("st.release.gpu.global.u32 [%d0], %r0;", Kinds(flags=True, strong=True)),
        ("ld.volatile.global.u32 %r0, [%d0];", Kinds(strong=True)),
        ("red.global.add.u32 [%d0], %r0;", Kinds(strong=True)),
        ("fence.proxy.async;", Kinds()),
        (SOME, Kinds(of_some=True)),
        ("bar.sync 0;", Kinds()),
        (COPY, Kinds(asynchronous=True)),
    ],
)
def test_kinds(statement: str, kinds: Kinds) -> None:
    assert kinds_of(code_of(PLAIN, statement)) == kinds


def test_places() -> None:
    code = code_of(PLAIN, SOME, PLAIN, SOME)
    assert list(places_of(code, "bar")) == [1, 3]
    assert list(places_of(code, "tcgen05")) == []


def test_code_that_grows_has_its_new_statements_looked_at_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    code, more = code_of(PLAIN, SOME), code_of(FLAG, SOME, COPY)
    assert kinds_of(code) == Kinds(of_some=True)
    looked, ordered = list[Any](), order_kinds._is_ordered
    monkeypatch.setattr(order_kinds, "_is_ordered", lambda record: looked.append(record) or ordered(record))
    assert kinds_of(code) == Kinds(of_some=True)
    assert not looked
    count = len(code)
    code += more
    assert kinds_of(code) == Kinds(True, True, True)
    assert looked[0] is more[0]
    assert list(places_of(code, "bar")) == [1, count + 1]


def test_code_that_is_another_is_looked_at_anew() -> None:
    """Also where it is the same list with other records in it."""
    code, other = code_of(PLAIN, SOME), code_of(COPY, PLAIN)
    kinds_of(code)
    code[:] = other
    assert kinds_of(code) == Kinds(asynchronous=True)
    assert list(places_of(code, "bar")) == []
    del code[:]
    assert kinds_of(code) == Kinds()


def test_only_the_latest_codes_are_kept() -> None:
    codes = [code_of(PLAIN) for _ in range(order_kinds._MOST + 2)]
    for code in codes:
        kinds_of(code)
    assert len(order_kinds._KEPT) == order_kinds._MOST
    assert kinds_of(codes[0]) == Kinds()
