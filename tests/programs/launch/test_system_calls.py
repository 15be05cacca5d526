"""printf, assertions, malloc and free of device code, as nvcc calls them."""

from __future__ import annotations

import io

import numpy as np
import pytest

import warpsim
from warpsim.machine.state.heap import HEAP_BYTES

HEAD = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 e, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 text[64] = {%s};
"""
CALL_PRINTF = """\
{ .param .b64 f; st.param.b64 [f], %%rf; .param .b64 a; st.param.b64 [a], %%ra; .param .b32 v;
  call.uni (v), vprintf, (f, a); ld.param.b32 %%r1, [v]; }
"""


def bytes_of(text: bytes) -> str:
    return ", ".join(map(str, text + b"\0"))


def module(body: str, text: bytes = b"") -> warpsim.LoadedModule:
    registers = ".reg .b32 %r<8>; .reg .b64 %rd<8>, %rf, %ra; .reg .pred %p; .reg .f64 %x;"
    head = HEAD % bytes_of(text)
    opening = f".visible .entry k(.param .u64 out) {{ {registers} .local .align 8 .b8 list[32];"
    return warpsim.load(f"{head}{opening}\n{body}\nret; }}\n")


def printing(setup: str) -> str:
    """Store arguments, then print and keep what vprintf returns."""
    return f"""
    mov.u64 %rf, text; cvta.global.u64 %rf, %rf; mov.u64 %ra, list; cvta.local.u64 %ra, %ra;
    mov.u32 %r0, %tid.x;
    {setup}
    {CALL_PRINTF % ()}
    ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], %r1;
    """


def launched(kernel: warpsim.LoadedModule, threads: int = 4, ctas: int = 1, **options: object):
    out = np.zeros(threads, np.int32)
    return out, kernel["k"](ctas, threads, [out], checks="warn", **options)


TWO = "st.local.u32 [list], %r0; mov.f64 %x, 0d3FE0000000000000; st.local.f64 [list+8], %x;"


def test_lanes_print_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    out, report = launched(module(printing(TWO), b"lane %d: %08x\n"[:9] + b"%g\n"), threads=3)
    assert capsys.readouterr().out == "lane 0: 0.5\nlane 1: 0.5\nlane 2: 0.5\n"
    assert [str(one) for one in report.printed] == ["lane 0: 0.5\n", "lane 1: 0.5\n", "lane 2: 0.5\n"]
    assert out.tolist() == [2, 2, 2]
    assert not report.hazards


def test_a_text_knows_who_printed_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, report = launched(module(printing(TWO), b"%d"), threads=40, ctas=2, output=None)
    assert capsys.readouterr().out == ""
    assert len(report.printed) == 80
    last = report.printed[-1]
    assert (last.cta, last.warp, last.lane, last.text) == ((1, 0, 0), 1, 7, "39")
    assert last.location.line > 1
    assert last.source is None


def test_words_and_strings_in_every_memory() -> None:
    setup = """
    st.local.u32 [list+16], 0x00636261; cvta.local.u64 %rd1, 0; mov.u64 %rd1, list; cvta.local.u64 %rd1, %rd1;
    add.u64 %rd1, %rd1, 16; st.local.u64 [list], %rd1; st.local.u64 [list+8], %rf;
    """.replace("cvta.local.u64 %rd1, 0; ", "")
    _, report = launched(module(printing(setup), b"<%s|%.3s>"), threads=1, output=None)
    assert report.printed[0].text == "<abc|<%s>"


@pytest.mark.parametrize(
    ("text", "setup", "printed", "note"),
    [
        (
            b"%d %d %d %d %d",
            "st.local.u32 [list+16], 5; mov.u64 %rd1, 16; add.u64 %ra, %ra, %rd1;",
            "5 0 0 0 0",
            None,
        ),
        (b"%llx %d", "mov.u64 %rd1, 1000000; add.u64 %ra, %ra, %rd1;", "0 0", "2 of the 2 arguments"),
        (b"%s", "mov.u64 %rd1, 12345; st.local.u64 [list], %rd1;", "<no string at 0x3039>", None),
        (b"%d", "mov.u64 %ra, 0;", "0", "1 of the 1 arguments"),
        (b"plain", "", "plain", None),
    ],
)
def test_mistakes_of_printf_never_end_a_launch(
    text: bytes, setup: str, printed: str, note: str | None
) -> None:
    _, report = launched(module(printing(setup), text), threads=1, output=None)
    assert report.printed[0].text == printed
    notes = [one for one in report.hazards if one.kind == "printf"]
    assert [one.severity for one in notes] == ["note"] * (note is not None)
    assert note is None or note in notes[0].message


def test_a_format_that_is_not_there() -> None:
    out, report = launched(module(printing("mov.u64 %rf, 64;"), b"x"), threads=1, output=None)
    assert out.tolist() == [-1]
    assert not report.printed
    assert "no format lies at 0x40" in report.hazards[0].message


ALLOCATE = """
{ .param .b64 n; st.param.b64 [n], %rd2; .param .b64 v; call.uni (v), malloc, (n); ld.param.b64 %rd1, [v]; }
"""
FREE = "{ .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }"
INDEX = "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;"


def test_blocks_hold_what_is_stored() -> None:
    body = f"""
        mov.u64 %rd2, 16; {ALLOCATE} {INDEX} st.u32 [%rd1+12], %r0; ld.u32 %r1, [%rd1+12];
        st.global.u32 [%rd0], %r1; {FREE}
    """
    out, report = launched(module(body), threads=64)
    assert out.tolist() == list(range(64))
    assert not report.hazards


def test_blocks_that_are_not_freed_are_noted() -> None:
    _, report = launched(module(f"mov.u64 %rd2, 24; {ALLOCATE}"), threads=3)
    assert [(one.kind, one.severity) for one in report.hazards] == [("leak", "note")]
    assert report.hazards[0].message == "malloc: 3 blocks, 72 bytes, not freed at the end of the launch"


def test_a_heap_used_up_gives_null() -> None:
    body = f"""
        mov.u64 %rd2, {HEAP_BYTES}; {ALLOCATE} {INDEX} cvt.u32.u64 %r1, %rd1;
        setp.ne.u64 %p, %rd1, 0; selp.u32 %r1, 1, 0, %p; st.global.u32 [%rd0], %r1; {FREE}
    """
    out, _ = launched(module(body), threads=2)
    assert out.tolist() == [1, 0]


def test_the_heap_of_a_device_lives_on() -> None:
    device = warpsim.Device("sm_80", heap_bytes=32)
    keep = module(
        f"""mov.u64 %rd2, 16;
        {ALLOCATE} ld.param.u64 %rd0, [out]; st.global.u64 [%rd0], %rd1; st.u32 [%rd1], 7;"""
    )
    use = module(
        f"""ld.param.u64 %rd0, [out]; ld.global.u64 %rd1, [%rd0]; ld.u32 %r1, [%rd1];
        st.global.u32 [%rd0], %r1; {FREE}"""
    )
    address = np.zeros(1, np.uint64)
    report = keep["k"](1, 1, [address], device=device, checks="warn")
    assert not report.hazards
    assert len(device.heap.blocks) == 1
    use["k"](1, 1, [address], device=device, checks="warn")
    assert address.view(np.uint32)[0] == 7
    assert not device.heap.blocks


@pytest.mark.parametrize("setup", ["add.u64 %rd1, %rd1, 8;", f"{FREE}", "mov.u64 %rd1, 4096;"])
def test_free_of_what_is_no_block_is_a_fault(setup: str) -> None:
    with pytest.raises(warpsim.Fault, match=r"free\(0x.*\): no block that malloc gave begins there"):
        launched(module(f"mov.u64 %rd2, 16; {ALLOCATE} {setup} {FREE}"), threads=1)


def test_free_of_null_is_nothing() -> None:
    launched(module(f"mov.u64 %rd1, 0; {FREE}"))


def test_outside_a_block_is_a_fault() -> None:
    with pytest.raises(warpsim.Fault, match=r"past the end of malloc\(16\)"):
        launched(module(f"mov.u64 %rd2, 16; {ALLOCATE} st.u32 [%rd1+16], 1;"), threads=1)


def test_reading_a_block_before_it_is_written() -> None:
    _, report = launched(module(f"mov.u64 %rd2, 16; {ALLOCATE} ld.u32 %r1, [%rd1];"), threads=1)
    assert report.hazards[0].kind == "uninitialised"


def test_an_assertion_names_expression_place_and_thread() -> None:
    body = """
    mov.u64 %rf, text; cvta.global.u64 %rf, %rf; mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 33; @%p bra ok;
    { .param .b64 e; st.param.b64 [e], %rf; .param .b64 f; st.param.b64 [f], %rf; .param .b32 l;
      st.param.b32 [l], 12; .param .b64 n; st.param.b64 [n], %rf; .param .b64 c; st.param.b64 [c], 1;
      call.uni __assertfail, (e, f, l, n, c); }
    ok:
    """
    with pytest.raises(warpsim.Fault) as caught:
        launched(module(body, b"i < n"), threads=64)
    assert caught.value.message == (
        "assertion 'i < n' failed at i < n:12, in i < n [CTA (0, 0, 0), warp 1, lane 1 and 30 more]"
    )


def test_a_function_without_a_body_is_still_refused() -> None:
    text = HEAD % "0" + ".extern .func other(); .visible .entry k() { call other; ret; }"
    with pytest.raises(warpsim.NotModelled, match="the function other has no body here"):
        warpsim.load(text)["k"]


def test_a_stdout_that_lacks_characters_never_ends_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    _, report = launched(module(printing(""), b"\xc3\xa9 %%"), threads=1)
    assert raw.getvalue() == rb"\xe9 %"
    assert report.printed[0].text == "\u00e9 %"
    monkeypatch.setattr("sys.stdout", None)
    assert launched(module(printing(""), b"x"), threads=1)[1].printed[0].text == "x"
