"""C++ names of symbols: what is shown, and which texts find a kernel."""

from __future__ import annotations

import sys

import pytest

from warpsim.ptx.symbols import demangled, matching, qualified_name, short_name

FLOAT = "_Z4tmplIfLi3EEvPT_N2ns1SIXT0_ES0_EE"
INT = "_Z4tmplIiLi4EEvPT_N2ns1SIXT0_ES0_EE"
SGEMM = "_Z5sgemmPKfPF7__half2iEN2ns6ParamsE"
HIDDEN = "_ZN38_GLOBAL__N__f33e4e4f_6_dmt_cu_c80f462c4anonEPi"
LAMBDA = "_Z5applyIZ1hvEUliE_EvT_Pi"
SHARED = "_ZZ4bodyILi1EEvPKfE4full"
OTHER = "_ZN2ns5sgemmEPf"  # ns::sgemm(float*)
PLAIN = "matmul_kernel"
ALL = (FLOAT, INT, SGEMM, HIDDEN, LAMBDA, PLAIN)


def test_signatures() -> None:
    assert demangled(SGEMM) == "sgemm(float const*, __half2 (*)(int), ns::Params)"
    assert demangled(FLOAT) == "void tmpl<float, 3>(float*, ns::S<3, float>)"
    assert demangled(PLAIN) == PLAIN


@pytest.mark.parametrize("name", ["_Z", "_Zxyz", "_ZN", "_Z5sgem", "_Z\udce9", "", "_Z" + "N" * 70_000])
def test_names_that_are_not_mangled_stay(name: str) -> None:
    assert demangled(name) == name


@pytest.mark.parametrize(
    ("symbol", "name", "short"),
    [
        (FLOAT, "tmpl<float, 3>", "tmpl"),
        (SGEMM, "sgemm", "sgemm"),
        (HIDDEN, "(anonymous namespace)::anon", "anon"),
        (LAMBDA, "apply<h()::{lambda(int)#1}>", "apply"),
        (OTHER, "ns::sgemm", "sgemm"),
        (PLAIN, PLAIN, PLAIN),
    ],
)
def test_names(symbol: str, name: str, short: str) -> None:
    assert qualified_name(demangled(symbol)) == name
    assert short_name(symbol) == short


def test_a_variable_of_a_function() -> None:
    assert short_name(SHARED) == "full"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (SGEMM, [SGEMM]),
        ("sgemm", [SGEMM]),
        ("sgemm(float const*, __half2 (*)(int), ns::Params)", [SGEMM]),
        ("tmpl", [FLOAT, INT]),
        ("tmpl<float,3>", [FLOAT]),
        ("tmpl< int, 4 >", [INT]),
        ("tmpl<int>", []),
        ("anon", [HIDDEN]),
        ("(anonymous namespace)::anon(int*)", [HIDDEN]),
        ("matmul_kernel", [PLAIN]),
        ("matmul", []),
        ("", []),
    ],
)
def test_what_finds_a_kernel(wanted: str, found: list[str]) -> None:
    assert matching(wanted, ALL) == found


def test_a_scope_may_be_left_out_where_that_is_unique() -> None:
    assert matching("sgemm", [OTHER]) == [OTHER]
    assert matching("ns::sgemm", [OTHER, SGEMM]) == [OTHER]
    assert matching("sgemm", [OTHER, SGEMM]) == [SGEMM]  # by its whole name
    assert matching("sgemm(float*)", [OTHER, SGEMM]) == [OTHER]


def test_without_a_demangler_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cxxfilt", None)
    demangled.cache_clear()
    try:
        assert demangled(SGEMM) == SGEMM
        assert matching(SGEMM, ALL) == [SGEMM]
    finally:
        demangled.cache_clear()
