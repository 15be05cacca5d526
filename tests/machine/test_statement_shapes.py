"""One statement of each shape is bound when a kernel is taken: what is found so is what binding all finds."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from warpsim.base.errors import WarpsimError
from warpsim.machine.bind.scope import RegisterName, Scope
from warpsim.machine.load.function_body import execution_of
from warpsim.machine.load.program import Module, load_module
from warpsim.machine.run.wave import Execution, Record, bind_from
from warpsim.ptx.parser import parse
from warpsim.ptx.statements import NumberedNames

KERNELS = sorted((Path(__file__).parents[2] / "traces" / "kernels").rglob("*.ptx"))
HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
DECLARED = """\
.visible .entry k(.param .u64 out, .param .u32 n) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b16 %h<9>; .reg .v4 .b32 %v;
  .shared .align 16 .b8 tile[64]; .local .b8 own[64];
"""
MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
PAIRS = (  # a statement that can be executed, and one much like it that cannot
    ("add.u32 %r0, %r1, %r2;", "add.u32 %r0, %r1, %r9;"),
    ("add.u32 %r0, %r1, %r2;", "add.u32 %r0, %r1, %r02;"),
    ("add.u32 %r0, %r1, %r2;", "add.u32 %r0, %r1, %f2;"),
    ("add.u32 %r0, %r1, 4;", "add.u32 %r0, %r1, 0f40800000;"),
    ("add.f32 %f0, %f1, 0f40800000;", "add.f32 %f0, %f1, 4;"),
    ("mov.b32 %r0, 0f40800000;", "mov.b32 %r0, 0d4010000000000000;"),
    ("@%p1 add.u32 %r0, %r1, 4;", "@%r1 add.u32 %r0, %r1, 4;"),
    ("@%p1 add.u32 %r0, %r1, 4;", "@%p9 add.u32 %r0, %r1, 4;"),
    ("bfe.u32 %r0, %r1, 255, 255;", "bfe.u32 %r0, %r1, 255, 256;"),
    ("lop3.b32 %r0, %r1, %r2, %r3, 255;", "lop3.b32 %r0, %r1, %r2, %r3, %r4;"),
    ("bar.sync 15;", "bar.sync 16;"),
    ("pmevent 15;", "pmevent 16;"),
    ("ld.shared.u32 %r0, [tile+4];", "ld.shared.u32 %r0, [own+4];"),
    ("ld.shared.u32 %r0, [tile];", "ld.shared.u32 %r0, [absent];"),
    ("ld.param.u32 %r0, [n];", "ld.global.u32 %r0, [n];"),
    ("ld.global.u32 %r0, [%rd1+16];", "ld.global.u32 %r0, [%r1+16];"),
    ("ld.global.v2.u32 {%r0, %r1}, [%rd1];", "ld.global.v2.u32 {%r0, %r1, %r2}, [%rd1];"),
    ("ld.global.v4.u32 %v, [%rd1];", "ld.global.v2.u32 %v, [%rd1];"),
    ("mov.b32 %r0, {%h1, %h2};", "mov.b32 %r0, {%h1, %r2};"),
    ("mov.b32 {%h1, _}, %r0;", "mov.b32 {_, _}, %r0;"),
    ("mov.u32 %r0, %tid.x;", "mov.u64 %rd0, %tid.x;"),
    ("mov.u32 %r0, %laneid;", "mov.u32 %r0, %laneidx;"),
    ("setp.ne.u32 %p0|%p1, %r0, %r1;", "setp.ne.u32 %p0|%r1, %r0, %r1;"),
    ("cp.async.ca.shared.global [%r0], [%rd1], 8;", "cp.async.ca.shared.global [%r0], [%rd1], 7;"),
    ("bra END;", "bra %r0;"),
    (
        f"{MMA} {{%f0, %f1, %f2, %f3}}, {{%r0, %r1}}, {{%r2}}, {{%f0, %f1, %f2, %f3}};",
        f"{MMA} {{%f0, %f1, %f2, %f0}}, {{%r0, %r1}}, {{%r2}}, {{%f0, %f1, %f2, %f3}};",
    ),
    (
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%r2];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r0}, [%r2];",
    ),
)


def module_of(body: str) -> Module:
    return load_module(f"{HEAD}{DECLARED}{body}\nEND: ret;\n}}\n")


def wrongs(body: str) -> list[str]:
    return [problem.message for problem in module_of(body).problems]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_statement_can_be_bound_that_passed_by_its_shape(path: Path) -> None:
    module = load_module(path.read_text(), str(path))
    assert module.problems == []
    assert len(module.shapes) < len(module.code)
    for record in module.code:
        assert record.scope is not None
        execution, fidelity, note = execution_of(module, record.statement, record.scope)
        assert (record.fidelity, record.note, record.flow) == (fidelity, note, execution.flow)
        assert (record.matrix, callable(record.step)) == (execution.matrix, True)


@pytest.mark.parametrize(("good", "bad"), PAIRS)
def test_a_statement_is_refused_behind_those_that_are_much_like_it(good: str, bad: str) -> None:
    assert wrongs(good) == []
    assert len(alone := wrongs(bad)) == 1
    assert wrongs(f"{good}\n{bad}\n{good}\n{bad}") == alone * 2


def test_a_shape_holds_for_all_scopes_of_a_module() -> None:
    inner = "{{ .reg .{0} %r<2>, x; add.u32 x, %r1, 1; }}"
    assert wrongs(inner.format("b32") * 2) == []
    assert len(wrongs(inner.format("b32") + inner.format("f32"))) == 1
    assert len(wrongs("bra END; {{ .reg .b32 END; bra END; }}".format())) == 1


def test_a_statement_is_bound_when_it_is_first_executed() -> None:
    module = module_of("add.u32 %r0, %r1, %r2;\nadd.u32 %r3, %r4, %r5;")
    assert module.problems == []
    first, second, *_ = module.code
    bound: list[object] = []
    second.bind = lambda record: bound.append(record) or module.execution(record)  # type: ignore[func-returns-value]
    assert first.flow.written == {0}
    assert bound == []
    assert second.flow.written == {3}
    assert callable(second.step)
    assert bound == [second]
    assert second.stepping(first.step).flow == second.flow
    with pytest.raises(AttributeError):
        second.absent  # noqa: B018


def test_numbered_registers_are_names_as_others_are() -> None:
    statement = parse(".reg .b32 a;").statements[0]
    scope = Scope()
    assert scope.declare_numbered(NumberedNames("%r", 12), 5, "b32")
    assert [scope.find(name) for name in ("%r", "%r12", "%r01", "%r-1", "%s1")] == [None] * 5
    assert scope.find("%r0") == RegisterName(5, "b32")
    assert Scope(scope).find("%r11") == RegisterName(16, "b32")
    assert [Scope(scope).register_type(name) for name in ("%r11", "%r12")] == ["b32", None]
    assert sorted(scope.visible()) == sorted(NumberedNames("%r", 12))
    with pytest.raises(WarpsimError, match="%r3 is declared twice"):
        scope.declare("%r3", RegisterName(40, "b32"), statement)
    scope.declare("%r12", RegisterName(40, "b32"), statement)
    # What might overlap is declared name by name.
    assert not scope.declare_numbered(NumberedNames("%r", 2), 50, "b32")
    assert not scope.declare_numbered(NumberedNames("%r1", 2), 50, "b32")
    assert scope.declare_numbered(NumberedNames("%f", 2), 50, "f32")


def test_numbered_names_are_a_sequence() -> None:
    names = NumberedNames("%r", 3)
    assert names == ("%r0", "%r1", "%r2")
    assert (names[1:], names[-1], len(names), "%r2" in names) == (("%r1", "%r2"), "%r2", 3, True)
    assert (names == 5, hash(names) == hash(tuple(names))) == (False, True)
    assert repr(names) == "NumberedNames('%r', 3)"
    with pytest.raises(IndexError):
        names[3]


@pytest.mark.parametrize("second", ["%r<3>", "%r2", "%r1<2>"])
def test_registers_that_are_declared_twice(second: str) -> None:
    found = wrongs(f"{{ .reg .b32 %r<20>; .reg .b32 {second}; }}")
    assert len(found) == 1
    assert "is declared twice in this scope" in found[0]


def test_statements_share_what_they_have_in_common() -> None:
    """A large kernel has many statements: readers, writers and flows are made once for all of them."""
    module = module_of("add.u32 %r0, %r1, 7;\nadd.u32 %r0, %r1, 7;\nsub.u32 %r2, %r1, 7;")
    assert module.problems == []
    first, second, third, *_ = module.code
    assert first.flow is second.flow
    assert first.semantics is not None
    assert third.semantics is not None
    assert all(
        one is other for one, other in zip(first.semantics.sources, third.semantics.sources, strict=True)
    )
    assert third.flow.written == {2}


@pytest.mark.parametrize("enabled", [True, False])
def test_statements_are_bound_together_up_to_a_branch(enabled: bool) -> None:
    """No garbage is collected meanwhile, and afterwards as before."""
    module = module_of("add.u32 %r0, %r1, 7;\nsub.u32 %r2, %r1, %r0;\nbra END;\nsub.u32 %r2, %r0, %r1;")
    assert module.problems == []
    seen = list[bool]()

    def noting(record: Record) -> Execution:
        seen.append(gc.isenabled())
        return module.execution(record)

    others = [Record(statement=each.statement, bind=noting, scope=each.scope) for each in module.code]
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        bind_from(others, 0)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert [each.bound for each in others] == [True, True, True, False, False, False]
    assert seen == [False] * 3
