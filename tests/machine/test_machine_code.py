"""Machine code of rows gives the bits of their functions; machine code that is kept, damaged or missing."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tests.helpers.families import usual
from tests.helpers.guarded_programs import refused_lanes
from tests.helpers.opcode_values import arrays_of, lanes_of, operations
from warpsim.machine.bind.pure_semantics import PureSemantics, Source
from warpsim.machine.native import objects
from warpsim.machine.native.array_layout import arrays_are_as_expected
from warpsim.machine.native.lane_functions import (
    APART,
    SAID,
    Piece,
    Uncompiled,
    Writer,
)
from warpsim.machine.native.objects import NoCompiler, available, function, is_kept
from warpsim.machine.opcodes import rows
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.operation import Operation
from warpsim.machine.run import basic_blocks, execute, native_blocks
from warpsim.machine.run.basic_blocks import STATEMENTS
from warpsim.machine.run.native_blocks import Native
from warpsim.programs.launch.launching import load_text

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM of version 20 or newer here")

_TOGETHER = 24  # operations in one function
_EACH = usual(1, 6)  # forms of an opcode that are tried
_WITHOUT = {"cos", "sin", "lg2", "ex2", "tanh", "rsqrt"}  # approximations, which NumPy computes
_UNTRACED = {"rcp", "sqrt", "div", "vabsdiff4"}  # some of their forms


def _pieces(operation: Operation, first: int, constant: bool) -> tuple[Piece, list[np.ndarray]]:
    """An operation whose registers begin at a number, and what the registers of its sources hold."""
    arrays = arrays_of(operation, lanes_of(operation, f"machine code {operation.sources}", 160))
    sources = [Source(register=first + place) for place in range(len(arrays))]
    fixed = range(len(arrays) - 1, len(arrays)) if constant and len(arrays) > 1 else operation.constants
    for place in fixed:
        value = np.asarray(arrays[place][7])
        sources[place] = Source(read=lambda wave, path, value=value: value, constant=value)
    targets = tuple(range(first + len(arrays), first + len(arrays) + len(operation.results)))
    semantics = PureSemantics(operation.compute, tuple(sources), targets, where=operation.where)
    return Piece(semantics=semantics), arrays


def _given(piece: Piece, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the sources of an operation are: arrays, or constants in their place."""
    pairs = zip(piece.semantics.sources, arrays, strict=True)
    return [array if source.constant is None else source.constant for source, array in pairs]


def _forms() -> Iterator[tuple[str, Operation]]:
    """Yield the first forms of each opcode, and some of the others."""
    scalar = [row for group in rows().values() for row in group if not isinstance(row, Effect)]
    tried: dict[str, int] = {}
    for opcode, words, operation in operations(scalar):
        number = tried[opcode] = tried.get(opcode, -1) + 1
        if number < _EACH or number % 17 == 0:
            yield f"{opcode} {words}", operation


def _check(batch: Sequence[tuple[str, Operation]], constant: bool) -> set[str]:
    """Compare a function of several operations with theirs; return those that have no machine code."""
    left = list(batch)
    without = set[str]()
    while left:
        types, pieces, content = list[np.dtype](), list[Piece](), list[np.ndarray]()
        for _, operation in left:
            piece, arrays = _pieces(operation, len(types), constant)
            results = operation.compute(*_given(piece, arrays))[: len(piece.semantics.targets)]
            types += [array.dtype for array in (*arrays, *results)]
            content += [*arrays, *(np.zeros_like(np.resize(result, arrays[0].size)) for result in results)]
            pieces.append(piece)
        try:
            _compare(left, types, pieces, content)
            return without
        except Uncompiled as error:
            without.add(left.pop(error.place)[0])
        except NoCompiler:  # a processor that lacks an instruction, as of halves
            if len(left) == 1:
                return without
            return without.union(*(_check([form], constant) for form in left))
    return without


def _compare(
    batch: Sequence[tuple[str, Operation]],
    types: Sequence[np.dtype],
    pieces: Sequence[Piece],
    content: Sequence[np.ndarray],
) -> None:
    places = Writer(types, (), False).write(pieces)
    made = {number: np.empty_like(content[number]) for number in places.outputs}
    active = np.ones(content[0].size, np.bool_)
    objects = [*(content[number] for number in places.reads), *[active] * places.mask, *places.tables]
    objects += made.values()
    addresses = (ctypes.c_size_t * len(objects))(*map(id, objects))
    answer = function(places.text)(addresses, active.size, (ctypes.c_uint64 * 1)(), (ctypes.c_uint64 * 1)())
    said = False
    for (name, operation), piece in zip(batch, pieces, strict=True):
        given = _given(piece, [content[source.register] for source in piece.semantics.sources])
        expected = operation.compute(*given)
        refused = refused_lanes(operation, given, active.size)
        said |= bool(refused.any())
        for target, result in zip(piece.semantics.targets, expected, strict=False):
            wanted = np.broadcast_to(result, active.shape)[~refused]
            assert made[target][~refused].tobytes() == wanted.tobytes(), name
        if operation.where is not None:
            said |= bool(np.any(operation.where(given, expected)))
    assert answer == SAID * said


@pytest.mark.parametrize("constant", [False, True], ids=["registers", "constants"])
def test_every_opcode(constant: bool) -> None:
    """Nasty values, of all opcodes and many of their forms; what has no machine code is known."""
    forms, without = _forms(), set[str]()
    while batch := list(islice(forms, _TOGETHER)):
        without |= _check(batch, constant)
    assert {name.split()[0] for name in without} <= _WITHOUT | _UNTRACED


# --- programs with guards, loads and divergent paths ------------------------------------------------------

_PROGRAM = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 times) {
.reg .b32 %r<12>; .reg .b16 %h<4>; .reg .b64 %d<6>; .reg .pred %p<4>; .shared .align 16 .b8 s[1024];
.reg .b32 %n, %t, %u, %never;
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %n, [times]; mov.u32 %t, %tid.x; mov.u32 %u, s;
shl.b32 %r0, %t, 2; add.u32 %r1, %u, %r0; st.shared.u32 [%r1], %r0; bar.sync 0; cvta.to.global.u64 %d0, %d0;
SETUP
AGAIN:
BODY
sub.u32 %n, %n, 1; setp.ne.u32 %p3, %n, 0;
@%p3 bra AGAIN;
mul.wide.u32 %d2, %t, 48; add.u64 %d1, %d1, %d2;
STORES
ret; }"""
_THREADS, _WORDS = 96, 64
_PLAIN = (
    "add.u32 {d}, {a}, {b};",
    "xor.b32 {d}, {a}, {b};",
    "mad.lo.s32 {d}, {a}, {b}, {d};",
    "shr.u32 {d}, {a}, 3;",
)
_LOADS = (
    "and.b32 {d}, {a}, 63; mul.wide.u32 %d2, {d}, 4; add.u64 %d3, %d0, %d2; {g}ld.global.u32 {d}, [%d3];",
    "and.b32 {d}, {a}, 31; mul.wide.u32 %d2, {d}, 8; add.u64 %d3, %d0, %d2; "
    "{g}ld.global.v2.u32 {{{d}, {e}}}, [%d3];",
    "and.b32 {d}, {a}, 255; cvt.u64.u32 %d2, {d}; add.u64 %d3, %d0, %d2; {g}ld.global.s8 {d}, [%d3];",
    "and.b32 {d}, {a}, 63; shl.b32 {d}, {d}, 2; add.u32 {d}, {d}, %u; {g}ld.shared.u32 {d}, [{d}+64];",
)


def _body(random: Random, lines: int, label: str = "SKIP") -> Iterator[str]:
    register = lambda: f"%r{random.randrange(12)}"  # noqa: E731
    for _ in range(lines):
        guard = random.choice(["", "", f"@%p{random.randrange(3)} ", f"@!%p{random.randrange(3)} "])
        given = {"d": register(), "e": register(), "a": register(), "b": register(), "g": guard}
        kind = random.random()
        if kind < 0.45:
            yield guard + random.choice(_PLAIN).format(**given)
        elif kind < 0.65:
            yield f"setp.lt.u32 %p{random.randrange(3)}, {given['a']}, {given['b']};"
        elif kind < 0.9:
            yield random.choice(_LOADS).format(**given)
        elif label:
            name = f"{label}_{random.getrandbits(30)}"
            yield f"@%p{random.randrange(3)} bra {name};"
            yield from _body(random, 4, "")
            yield f"{name}:"


def _kernel(random: Random, more: str = "") -> Any:
    ready = [
        f"mov.u32 %r{number}, {random.getrandbits(31)};" for number in range(12) if random.random() < 0.8
    ]
    ready += [f"xor.b32 %r{number}, %r{number}, %t;" for number in range(6)]
    ready += [f"setp.gt.u32 %p{number}, %t, {random.randrange(96)};" for number in range(3)]
    stores = [f"st.global.u32 [%d1+{4 * number}], %r{number};" for number in range(12)]
    text = _PROGRAM.replace("SETUP", "\n".join(ready)).replace("STORES", "\n".join(stores))
    lines = [*_body(random, 30), more, *(_body(random, 30, "") if more else ())]
    return load_text(text.replace("BODY", "\n".join(lines)))["k"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compile every basic block at once; collect the first statements of those that ran as machine code."""
    found, run = list[int](), Native.run

    def noted(native: Native, wave: Any, path: Any, first: int) -> bool:
        if done := run(native, wave, path, first):
            found.append(first)
        return done

    for module in (execute, basic_blocks):
        monkeypatch.setattr(module, "HOT", 1)
    monkeypatch.setattr(native_blocks, "COLD", 1)
    monkeypatch.setattr(Native, "run", noted)
    return found


@pytest.mark.parametrize("checks", ["off", "warn"])
@pytest.mark.parametrize("seed", range(usual(3, 10)))
def test_programs_with_guards_and_loads(
    seed: int, checks: str, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes, findings and counts are those of the interpreter, twice: registers lack a value at first."""
    kernel = _kernel(Random(f"machine code {seed}"))
    given = np.random.default_rng(seed).integers(0, 1 << 32, _WORDS, np.uint32)

    def launch(way: str) -> Any:
        monkeypatch.setenv(STATEMENTS, way)
        out = np.zeros((2 * _THREADS, 12), np.uint32)
        report = kernel(2, _THREADS, [given.copy(), out, 3], checks=checks, schedule=f"random:{seed}")
        return out.tobytes(), list(map(str, report.hazards)), report.fidelity

    expected = launch("interpreted")
    assert launch("compiled") == expected
    assert launch("compiled") == expected
    assert ran


# --- what is kept, and what is refused --------------------------------------------------------------------

_TEXT = "define i64 @basic_block(ptr %o, i64 %n, ptr %w, ptr %r) {{\n  ret i64 {}\n}}"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user, in a process that has loaded nothing."""
    assert objects._passes(objects._compiler())  # which compiles, too
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _forgotten()
    return tmp_path / "warpsim" / "machine-code"


def _forgotten() -> None:
    """Forget which functions are loaded, as another process does not know them."""
    compiler = objects._compiler()
    assert compiler is not None
    compiler.functions.clear()


def test_objects_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _TEXT.format(11)
    assert not is_kept(text)
    assert function(text)(None, 0, None, None) == 11
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    _forgotten()
    assert is_kept(text)
    monkeypatch.setattr(objects.Compiler, "compiled", None)
    assert function(text)(None, 0, None, None) == 11


@pytest.mark.parametrize("more", ["", "@%p1 ex2.approx.f32 %r2, %r2;"], ids=["whole", "parted"])
def test_notes_say_what_was_compiled_before(more: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a note no text is written until a basic block is worth a compiler; with one it runs at once.

    A statement that has no machine code parts a basic block.
    """
    happened, write, run = list[int](), Writer.write, Native.run
    monkeypatch.setenv(STATEMENTS, "compiled")
    monkeypatch.setattr(execute, "HOT", 1)
    monkeypatch.setattr(basic_blocks, "HOT", 1)
    monkeypatch.setattr(native_blocks, "COLD", 4)
    monkeypatch.setattr(Writer, "write", lambda *given: happened.append(-1) or write(*given))
    monkeypatch.setattr(Native, "run", lambda *given: happened.append(given[-1]) or run(*given))

    def launched(times: int) -> set[int]:
        """Return what ran as machine code, by its first statement, and -1 for a text that was written."""
        kernel, out = _kernel(Random("machine code 1"), more), np.zeros((_THREADS, 12), np.uint32)
        happened.clear()
        _forgotten()
        for _ in range(times):
            kernel(1, _THREADS, [np.arange(_WORDS, dtype=np.uint32), out, 1])
        return set(happened)

    notes = cache.with_name("machine-code-notes")
    assert launched(3) == set()
    assert not [*notes.glob("*")]
    every = launched(6)
    assert len(every) > 2
    assert launched(12) == every
    kept = {file.name for file in notes.iterdir()}
    assert launched(3) == every
    assert {file.name for file in notes.iterdir()} == kept
    for file in cache.iterdir():
        file.unlink()
    assert launched(2) == {-1}  # the notes are right, but the functions are gone
    for file in notes.iterdir():
        file.write_bytes(b"damaged")
    assert launched(2) == set()


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda content: b"", lambda content: b"x" * 99]
)
def test_damaged_objects_are_compiled_again(cache: Path, damage: Any) -> None:
    text = _TEXT.format(12)
    function(text)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    _forgotten()
    assert not is_kept(text)
    assert function(text)(None, 0, None, None) == 12
    assert file.read_bytes() == whole


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert function(_TEXT.format(13))(None, 0, None, None) == 13


def test_full_disk_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be written whole is not there at all."""

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert function(_TEXT.format(17))(None, 0, None, None) == 17
    assert not list(cache.iterdir())


def test_interpreted_leaves_machine_code_out(ran: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of basic blocks that have machine code already, too."""
    kernel, out = _kernel(Random("machine code 0")), np.zeros((_THREADS, 12), np.uint32)
    arguments = [np.arange(_WORDS, dtype=np.uint32), out, 3]
    monkeypatch.setenv(STATEMENTS, "compiled")
    for _ in range(2):
        kernel(1, _THREADS, arguments)
    assert ran
    ran.clear()
    monkeypatch.setenv(STATEMENTS, "interpreted")
    kernel(1, _THREADS, arguments)
    assert not ran


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 on, of forks with threads
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "compiling"])
def test_forks_do_not_wait_for_a_thread_that_they_lack(cache: Path, busy: bool) -> None:
    """They have the functions that are known, and others where nothing was compiled at that moment."""
    known, other = _TEXT.format(18), _TEXT.format(19)
    function(known)
    compiler, held, done = objects._compiler(), Event(), Event()
    assert compiler is not None

    def compiling() -> None:
        with compiler.lock:
            held.set()
            done.wait()

    thread = Thread(target=compiling) if busy else None
    if thread is not None:
        thread.start()
        held.wait()
    child = os.fork()
    if not child:
        os._exit(_in_child(known, other, busy))
    done.set()
    if thread is not None:
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _in_child(known: str, other: str, busy: bool) -> int:
    """Return 0 where functions of a fork are as they should be, else 1."""
    try:
        if function(known)(None, 0, None, None) != 18:
            return 1
        function(other)
    except NoCompiler:
        return int(not busy)
    except BaseException:
        return 1
    return int(busy)


def test_cache_keeps_its_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest objects go."""
    function(_TEXT.format(14))
    (first,) = cache.iterdir()
    monkeypatch.setattr(objects._KEPT, "most", first.stat().st_size * 2 + 1)
    os.utime(first, (1, 1))
    function(_TEXT.format(15))
    function(_TEXT.format(16))
    assert len(list(cache.iterdir())) == 2
    assert not first.exists()


def test_code_that_calls_a_library_is_refused(cache: Path) -> None:
    text = (
        "define i64 @basic_block(ptr %o, i64 %n, ptr %w, ptr %r) {\n  %d = load double, ptr %o\n"
        "  %h = fptrunc double %d to half\n  store half %h, ptr %o\n  ret i64 0\n}"
    )
    with pytest.raises(NoCompiler, match="needs functions of a library"):
        function(text)
    assert not [*cache.glob("*")]


_CUTS = {
    "gaps": lambda array: np.repeat(array, 2)[::2],
    "one value": lambda array: np.broadcast_to(array[:1], array.shape),
    "too few": lambda array: array[:-1],
    "two axes": lambda array: array.reshape(2, -1),
    "no axis": lambda array: np.asarray(array[0]),
    "wider": lambda array: array.astype(np.uint64),
}


@pytest.mark.parametrize("cut", _CUTS.values(), ids=_CUTS)
def test_arrays_of_another_shape_are_refused(cut: Any) -> None:
    """Nothing is read behind an array, and nothing is written."""
    assert arrays_are_as_expected()
    semantics = PureSemantics(
        lambda a, b: (a + b,), (Source(register=0), Source(register=1)), (2,), widened=(None,)
    )
    places = Writer([np.dtype(np.uint32)] * 3, (), False).write([Piece(semantics=semantics)])
    array, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    words = (ctypes.c_uint64 * 1)()

    def call(first: np.ndarray) -> int:
        taken = [first, array, out]
        return function(places.text)((ctypes.c_size_t * 3)(*map(id, taken)), 64, words, words)

    assert call(cut(array)) == APART
    assert not out.any()
    assert call(array) == 0
    assert (out == 2 * array).all()


def test_text_that_is_none_is_refused() -> None:
    with pytest.raises(NoCompiler):
        function("define i64 @basic_block(")


def test_a_small_launch_loads_no_compiler(tmp_path: Path) -> None:
    """Where nothing was kept, and statements are executed a few times: LLVM takes longer than the launch."""
    code = (
        "import sys; from tests.helpers import kernel_cases as cases; "
        "from warpsim.programs.launch.launching import load_text; case = cases.case('softmax'); "
        "kernel = load_text((cases.FOLDER / case.file).read_text())[case.entry]; "
        "kernel(case.grid, case.block, case.passed(case.arguments), case.shared_bytes); "
        "print('llvmlite.binding' in sys.modules)"
    )
    given = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]
