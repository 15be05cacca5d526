"""Sessions: forwards and backwards, stops, conditions, watches, printing, and what is not a command."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import warpsim
from tests.show.debugger.small_kernel import TEXT, line, results, session
from warpsim import OperandError
from warpsim.show.debugger import Session
from warpsim.show.debugger.commands.command_table import COMMANDS, is_end, repeats

ADD = "add.u32 %r3, %r3, %r2;"


@pytest.fixture
def debugged() -> Iterator[Session]:
    with session() as found:
        yield found


def at(debugged: Session) -> tuple[int, int]:
    """Time and line."""
    place = debugged.place()
    assert place is not None
    return debugged.time, place.line


# --- time ------------------------------------------------------------------------------------------------


def test_every_position_is_reached_forwards_and_backwards_with_the_same_state(debugged: Session) -> None:
    """The machine is deterministic: what a lane sees at a time is what it saw there before."""
    debugged.do("start")
    seen = []
    while debugged.moment is not None:
        seen.append((*at(debugged), debugged.do("info locals"), str(debugged.focus)))
        debugged.do("stepi")
    assert [time for time, *_ in seen] == sorted({time for time, *_ in seen})
    for expected in reversed(seen):
        debugged.do("reverse-stepi")
        assert (*at(debugged), debugged.do("info locals"), str(debugged.focus)) == expected
    assert debugged.time == 0
    assert "the launch begins" in debugged.do("reverse-stepi")


def test_goto_and_the_end(debugged: Session) -> None:
    assert "time 7," in debugged.do("goto 7")
    assert "time 3," in debugged.do("goto 3")
    assert debugged.do("continue").startswith("the launch has ended, time ")
    end = debugged.time
    assert debugged.do("goto 1000000").startswith("the launch has ended")
    assert debugged.do("continue").startswith("the launch has ended")
    debugged.do("reverse-stepi")
    assert at(debugged) == (end - 1, line("ret;"))


def test_lines_steps_over_calls_and_into_them(debugged: Session) -> None:
    debugged.do(f"break {line('call (b), twice, (a);')}")
    debugged.do("run")
    debugged.do("next")
    assert at(debugged)[1] == line("ld.param.b32 %r4, [b]; }")
    debugged.do("reverse-next")
    assert at(debugged)[1] == line("call (b), twice, (a);")
    debugged.do("step")
    assert at(debugged)[1] == line("ld.param.b32 %t1, [given];")
    assert debugged.do("backtrace").splitlines()[0].startswith("#0 twice at ")
    assert debugged.do("backtrace").splitlines()[1].startswith("#1 k at ")
    debugged.do("stepi")
    debugged.do("finish")
    assert at(debugged)[1] == line("ld.param.b32 %r4, [b]; }")
    debugged.do("reverse-step")
    assert debugged.do("backtrace").startswith("#0 twice")
    debugged.do("reverse-finish")
    assert at(debugged)[1] == line("call (b), twice, (a);")


def test_until_is_behind_a_loop_or_at_a_place(debugged: Session) -> None:
    debugged.do(f"tbreak {line('@%p1 bra LOOP;')}")
    debugged.do("run")
    debugged.do("until")
    assert at(debugged)[1] == line("setp.lt.u32 %p2, %r2, 40;")
    assert debugged.value("%r1") == 0
    debugged.do(f"until {line('bar.sync 0;')}")
    assert at(debugged)[1] == line("bar.sync 0;")


def test_counts_repeat_steps(debugged: Session) -> None:
    debugged.do("start")
    debugged.do("stepi 5")
    assert debugged.time == 5
    debugged.do("reverse-stepi 3")
    assert debugged.time == 2
    with pytest.raises(OperandError, match="expected how often"):
        debugged.do("stepi 0")


def test_waves_that_follow_each_other_are_one_time() -> None:
    """65 CTAs of 64 threads are two waves: the focus goes where something runs."""
    kernel = warpsim.load(TEXT)["k"]
    given = [np.zeros(64, np.float32), np.uint32(3)]
    with Session(kernel, 65, 64, given, checks="off") as waves:
        waves.do("run")
        end = waves.time
        assert waves.focus.cta == (64, 0, 0)
        waves.do("watch arg0[3]")
        assert "by CTA (64, 0, 0), warp 0, lane 3" in waves.do("reverse-continue")
        waves.do("reverse-stepi 5")
        assert waves.focus.cta == (64, 0, 0)
        assert waves.time < end
        waves.do("goto 5")
        assert waves.focus.cta == (0, 0, 0)
        with pytest.raises(OperandError, match="has not begun"):
            waves.do("cta 64")


@pytest.mark.parametrize("schedule", [7, "latest", "earliest"])
def test_schedules_go_back_the_way_they_came(schedule: str | int) -> None:
    with session(schedule=schedule) as scheduled:
        scheduled.do(f"tbreak {line('st.shared.u32 [%r6], %r4;')}")
        scheduled.do("run")
        before = scheduled.time, scheduled.do("info warps"), scheduled.do("print %r4 lanes")
        scheduled.do("stepi 4")
        scheduled.do("reverse-stepi 4")
        assert (scheduled.time, scheduled.do("info warps"), scheduled.do("print %r4 lanes")) == before


# --- stops -----------------------------------------------------------------------------------------------


def test_breakpoints_stop_each_time_and_backwards(debugged: Session) -> None:
    debugged.do(f"break {line(ADD)}")
    debugged.do("run")
    times = [debugged.time]
    for _ in range(2):
        debugged.do("continue")
        times.append(debugged.time)
    assert debugged.do("continue").startswith("the launch has ended")
    for time in reversed(times):
        debugged.do("reverse-continue")
        assert debugged.time == time
    assert debugged.do("reverse-continue").startswith("the launch begins")


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("%r3 == 5 && lane == 5", 5),
        ("%r3 > 2*%tid.x - 1 and warp == 1", 64),
        ("tid.x == 33 || lane == 40", 0),
        ("%r1 == 1 and !(lane != 7)", 14),
        ("(%r3 & 0xff) >= 60 and thread == 63", 63),
        ("s32(%r1) - 4 < -2 and f32(%r3) <= 1.5 and cta == 0 and tid == 1", 2),
    ],
)
def test_conditions_choose_lanes(debugged: Session, condition: str, value: int) -> None:
    debugged.do(f"break {line(ADD)} if {condition}")
    text = debugged.do("run")
    assert debugged.value("%r3") == value, text
    time = debugged.time
    debugged.do("stepi")
    debugged.do("reverse-continue")
    assert debugged.time == time


def test_places_are_functions_mnemonics_and_statements(debugged: Session) -> None:
    assert "1: twice" in debugged.do("break twice")
    assert "2: mnemonic bar" in debugged.do("break mnemonic bar")
    assert "3: *0" in debugged.do("break *0")
    assert "temporary breakpoint 4: kernel" in debugged.do("tbreak kernel")
    debugged.do("run")
    assert debugged.time == 0
    debugged.do("continue")
    assert debugged.do("backtrace").startswith("#0 twice")
    debugged.do("disable 1")
    debugged.do("continue")
    assert at(debugged)[1] == line("bar.sync 0;")
    listed = debugged.do("info breakpoints")
    assert "breakpoint 1: twice: 1 statement, hit" in listed
    assert ", disabled" in listed
    assert "temporary" not in listed
    assert debugged.do("delete 1 2") == "deleted: 1, 2"
    assert debugged.do("delete") == "deleted: 3"
    assert debugged.do("info breakpoints") == "none"


def test_ignored_hits_are_passed_over(debugged: Session) -> None:
    debugged.do(f"break {line(ADD)}")
    debugged.do("ignore 1 2")
    debugged.do("run")
    assert debugged.value("%r1") == 1


def test_a_register_is_watched_in_both_directions(debugged: Session) -> None:
    debugged.do("start")
    debugged.do("lane 9")
    debugged.do("watch %r3")
    text = debugged.do("continue")
    assert "before: never written" in text
    text = debugged.do("continue")
    assert "after:  0x00000001" in text  # of lane 1, the first whose value is another
    assert f"<string>:{line(ADD)}" in text
    assert debugged.do("continue") != text
    debugged.do("delete")
    debugged.do("watch %r3 if %r1 == 1")
    debugged.do("continue")
    debugged.do("reverse-continue")
    assert at(debugged)[1] == line(ADD)


def test_shared_bytes_are_watched_to_the_lane_that_writes_them(debugged: Session) -> None:
    debugged.do("run")
    debugged.do("watch cells+4*45")
    text = debugged.do("reverse-continue")
    assert "before: 0x00000000" in text
    assert "after:" not in text or "0x" in text
    assert "written by CTA (0, 0, 0), warp 1, lane 13" in text
    assert at(debugged)[1] == line("st.shared.u32 [%r6], %r4;")
    assert debugged.focus.warp == 1
    assert debugged.focus.lane == 13
    assert debugged.value("%r4") == 2 * (3 * 45 + 1000)
    assert debugged.do("continue").startswith("watchpoint 1")
    assert debugged.value("shared[cells + 4 * 45]") == 2 * (3 * 45 + 1000)


def test_an_element_of_an_array_is_followed_to_its_origin(debugged: Session) -> None:
    debugged.do("run")
    assert debugged.do("x arg0[44]") == f"global {0x200000000000 + 176:#x}:  2270 (0x450de000)"
    debugged.do("watch arg0[44]")
    debugged.do("reverse-continue")
    assert at(debugged)[1] == line("st.global.f32 [%rd3], %f1;")
    assert debugged.value("%r8") == 2270
    assert debugged.value("tid.x") == 44


def test_an_error_in_a_condition_names_its_breakpoint(debugged: Session) -> None:
    debugged.do("break k if arg0[3,5] == 3")
    debugged.do("break k if lane == 5")
    wrong = r"breakpoint 1, if arg0\[3,5\] == 3: arg0 has the shape \(64,\): expected 1 numbers in brackets"
    with pytest.raises(OperandError, match=wrong):
        debugged.do("run")
    debugged.do("delete 1")
    assert debugged.do("run").startswith("breakpoint 2")


def test_findings_stop_and_errors_end_with_their_statement() -> None:
    text = TEXT.replace("    bar.sync 0;\n", "").replace("%r6, 4;", "%r6, 128;")
    kernel = warpsim.load(text)["k"]
    given = [np.zeros(64, np.float32), np.uint32(3)]
    with Session(kernel, 1, 64, given) as stopped:
        assert "the launch ends with an error" in stopped.do("run")
        assert "race" in stopped.do("why")
        assert at(stopped)[1] == text.splitlines().index("    ld.shared.u32 %r8, [%r7];") + 1
        stopped.do("reverse-stepi")
        assert "xor.b32" in stopped.do("where")
    with Session(kernel, 1, 64, given, checks="warn") as warned:
        assert "race" in warned.do("run")
        assert warned.moment is not None
        assert "race" in warned.do("info findings")
        assert warned.do("continue").startswith("the launch has ended")
    assert not given[0].any()


def test_the_end_is_compared_with_what_is_expected() -> None:
    expected = results()
    with session(expected={0: expected}) as right:
        assert "argument 0: 64 elements equal, bit for bit" in right.do("run")
    expected[7] += 1
    with session(expected={0: expected}) as wrong:
        assert "first: arg0[7] is 36, expected 37" in wrong.do("run")
    with session(expected={0: expected}, tolerance=0.1) as near:
        assert "63 equal bit for bit, 1 more within the tolerance 0.1; largest" in near.do("run")


# --- looking ---------------------------------------------------------------------------------------------


def test_values_and_formats(debugged: Session) -> None:
    debugged.do(f"break {line('st.global.f32 [%rd3], %f1;')}")
    debugged.do("run")
    debugged.do("lane 3")
    assert debugged.do("print %f1") == "%f1 = 12 (0x41400000)"
    assert debugged.do("print/x %f1") == "%f1 = 0x41400000"
    assert debugged.do("p/t %r8").endswith("00001100")
    assert debugged.do("p/h2 %f1") == "%f1 = {0, 2.625}"
    assert debugged.do("p/bf2 %f1") == "%f1 = {0, 12}"
    assert debugged.do("p/e4m3 %f1") == "%f1 = {0, 0, 2, 2.25}"
    assert debugged.do("p %r8 / 5 + 1") == "%r8 / 5 + 1 = 3"
    assert debugged.do("p %p1") == "%p1 = false"
    assert debugged.do("p shared.u32[%r7]") == "shared.u32[%r7] = 12 (0x0000000c)"
    lanes = debugged.do("p/d %r8 lanes").splitlines()
    assert lanes[1].split()[:4] == ["0:", "6", "1:", "0"]
    assert len(lanes) == 9
    assert debugged.do("x/4dw shared 0").endswith(":   0   6  12  18")
    assert debugged.do("x/2xh cells") == "shared 0x0:  0x0000  0x0000"
    assert debugged.do("print tile cells as b1 2x4 [0:1,0:2]").splitlines()[0].split() == ["0", "1"]


def test_where_warps_and_lanes_stand(debugged: Session) -> None:
    debugged.do(f"break {line('add.u32 %r3, %r3, 1000;')}")
    debugged.do("run")
    assert "24 lanes of 1 warp" in debugged.do("run")
    warps = debugged.do("info warps").splitlines()
    assert len(warps) == 3
    assert debugged.focus.warp == 1
    assert "lanes 8-31: at" in debugged.do("info lanes")
    assert "others have their turn" in (debugged.do("warp 0"), debugged.do("why"))[1]
    debugged.do("delete")
    debugged.do("run")
    for topic in ("barriers", "async", "kernel", "time"):
        assert debugged.do(f"info {topic}")


def test_lanes_at_a_barrier_say_what_they_wait_for() -> None:
    with session(schedule="earliest") as early:
        early.do("break mnemonic bar")
        early.do("run")
        early.do("continue")
        early.do("warp 0")
        assert "waits for barrier 0" in early.do("why")
        assert "has not come: it stands at" in early.do("why")
        assert "barrier 0 has 32" in early.do("info barriers")
        assert "wait for barrier 0" in early.do("schedule")
        assert "waits for barrier 0" in early.do("info warps")


def test_registers_lists_and_help(debugged: Session) -> None:
    debugged.do(f"break {line(ADD)}")
    debugged.do("run")
    assert [row.split()[0] for row in debugged.do("info registers").splitlines()[1:]] == ["%r3", "%r2"]
    assert "%rd1" in debugged.do("info locals")
    assert f"=>    {line(ADD)}  " in debugged.do("list")
    assert "Backwards:" in debugged.do("help")
    assert "also: rc" in debugged.do("help reverse-continue")
    assert all(debugged.do(f"help {name}") for name in COMMANDS)
    assert repr(debugged).startswith("<session of k: time ")


def test_completion_knows_commands_topics_and_registers(debugged: Session) -> None:
    debugged.do("start")
    assert "reverse-continue" in debugged.completions("rev")
    assert debugged.completions("info lo") == ["locals"]
    assert "%r3" in debugged.completions("print %r")
    assert "twice" in debugged.completions("break t")
    assert debugged.completions("nonsense x") == []


def test_log_points_print_and_go_on(debugged: Session) -> None:
    debugged.do(f"break {line(ADD)} if lane == 2")
    debugged.breakpoints[0].log = "r3 is {%r3}, {%nothing}"
    text = debugged.do("run")
    assert text.splitlines()[:2] == [
        "r3 is 0x00000000, <nothing is named %nothing here>",
        "r3 is 0x00000002, <nothing is named %nothing here>",
    ]
    assert "the launch has ended" in text


# --- what is wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("brek 3", "did you mean break?"),
        ("s", None),
        ("re", "may be reverse-continue"),
        ("break 9999", "the nearest are at"),
        ("break gemm.cu:3", "names no lines of a source"),
        ("break", "break where?"),
        ("break mnemonic wgmma", "no statement is wgmma"),
        ("break *999", r"numbered from \*0"),
        ("break nowhere", "functions are"),
        ("break 20 if lane ==", "something is missing"),
        ("break 20 if lane == 5 )", "ends before this"),
        ("break 20 if __import__('os')", "ends before this"),
        ("break 20 if 'x'", "belongs to no expression"),
        ("break 20 if " + "(" * 99, "nested deeper"),
        ("print %q7", "nothing is named %q7"),
        ("break k if", "if what. An expression, as in lane == 5"),
        ("\x01", r"there is no command .\\x01.; help lists the commands"),
        ("print %r33", "near to it are"),
        ("print", "print what?"),
        ("print/zz %r3", "is not a format"),
        ("watch", "watch what?"),
        ("watch %tid.x", "special register"),
        ("watch shared+0x4000", "shared memory has 256 bytes"),
        ("watch global 16", "is in no allocation"),
        ("watch arg0[64]", "outside of an array"),
        ("watch arg1[0]", "is not an array"),
        ("x shared 3", "not a multiple"),
        ("x/99999 shared", "from 1 to"),
        ("lane 32", "from 0 to 31"),
        ("warp 2", "from 0 to 1"),
        ("cta 1", "the grid is"),
        ("cta a", "expected one to three numbers"),
        ("delete 4", "is not a breakpoint"),
        ("ignore x", "takes the number"),
        ("goto x", "expected a position"),
        ("info", "topics are"),
        ("info nothing", "topics are"),
        ("print fragment a", "has no fragments"),
        ("print tile cells", "expected a tile"),
        ("print tile cells as f99 2x2", "is not a format"),
        ("print tile cells as f16 swizzle 1B 2x2", "expected none"),
        ("list 4000", "lines"),
    ],
)
def test_what_is_wrong_is_said(debugged: Session, command: str, message: str | None) -> None:
    debugged.do("start")
    if message is None:
        assert debugged.do(command)
        return
    with pytest.raises(OperandError, match=message):
        debugged.do(command)
    assert debugged.do("where").startswith("time 0,")


def test_before_the_launch_and_empty_lines(debugged: Session) -> None:
    for command in ("where", "info breakpoints", "# a comment", "", "list"):
        debugged.do(command)
    for command in ("continue", "reverse-stepi", "print %r3", "info warps", "finish", "until", "why"):
        with pytest.raises(OperandError, match="is not running"):
            debugged.do(command)
    assert is_end("quit")
    assert is_end("q")
    assert not is_end("")
    assert repeats("si 3")
    assert not repeats("print %r3")


def test_an_interrupt_stops_before_the_next_statement(debugged: Session) -> None:
    debugged.do("start")
    debugged.interrupt()
    assert debugged.do("continue").startswith("interrupted")
    assert debugged.do("continue").startswith("the launch has ended")


def test_launches_that_are_not_possible() -> None:
    kernel = warpsim.load(TEXT)["k"]
    with pytest.raises(OperandError, match="block"):
        Session(kernel, 1, 4096, [None, 1]).do("run")
    with pytest.raises(OperandError):
        Session(kernel, 1, 32, [None]).do("run")
