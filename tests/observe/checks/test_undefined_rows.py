"""Metadata that PTX leaves undefined, executed literally: a finding only where a result depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpsim.base.errors import Fault, Location, Stopped, WarpsimError
from warpsim.machine.grid import Launch
from warpsim.machine.state.undefined_metadata import UndefinedField
from warpsim.observe.checks.findings import Findings
from warpsim.observe.checks.undefined_rows import judge_rows
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.repeated import repetition, taint

LOCATION = Location("k.ptx", 1, 2)
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
# D of a warp goes through shared memory, and rows below the first parameter are stored. The second statement
# adds to the result of the first; metadata are those of the lanes.
TEXT = f""".version 9.0
.target sm_80
.address_size 64
.entry k(.param .u64 p, .param .u64 m, .param .u32 rows) {{
.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d, %m; .reg .pred %p<3>;
.shared .align 16 .b8 s[512];
ld.param.u64 %d, [p]; ld.param.u64 %m, [m]; ld.param.u32 %r7, [rows];
mov.u32 %r1, %tid.x; mad.wide.u32 %m, %r1, 8, %m; ld.global.v2.b32 {{%r3, %r4}}, [%m];
mov.b32 %r2, 0x3C003C00; mov.b32 %f1, 0f3F800000;
{SPARSE} {{%f1, %f2, %f3, %f4}}, {{%r2, %r2}}, {{%r2, %r2}}, {{%f1, %f1, %f1, %f1}}, %r3, 0x0;
{SPARSE} {{%f1, %f2, %f3, %f4}}, {{%r2, %r2}}, {{%r2, %r2}}, {{%f1, %f2, %f3, %f4}}, %r4, 0x1;
shr.u32 %r5, %r1, 2; mov.u32 %r6, s; mad.lo.u32 %r6, %r1, 16, %r6;
st.shared.v4.f32 [%r6], {{%f1, %f2, %f3, %f4}}; bar.sync 0; ld.shared.v4.f32 {{%f5, %f6, %f7, %f8}}, [%r6];
mad.wide.u32 %d, %r1, 16, %d;
setp.lt.u32 %p1, %r5, %r7; @%p1 st.global.v2.f32 [%d], {{%f5, %f6}};
add.u32 %r5, %r5, 8; setp.lt.u32 %p2, %r5, %r7; @%p2 st.global.v2.f32 [%d+8], {{%f7, %f8}};
}}
"""
LEGAL = 0x44444444


def field(text: str) -> UndefinedField:
    return UndefinedField("mma.sp", lambda: LOCATION, lambda: text)


def launched(fields: Any, rows: int, text: str = TEXT, **options: Any) -> Any:
    metadata = np.full((32, 2), LEGAL, np.uint32)
    for lane, statement, value in fields:
        metadata[lane, statement] = value
    options = {"undefined": "fallback"} | options
    return load_text(text)["k"](1, 32, [np.zeros((32, 4), np.float32), metadata, rows], **options)


def messages(report: Any) -> list[str]:
    """Messages of the warnings; notes say which elements of the array are left as they were."""
    assert {(each.kind, each.severity) for each in report.hazards} <= {
        ("undefined metadata", "warning"),
        ("unwritten", "note"),
    }
    return [each.message for each in report.hazards if each.severity == "warning"]


# Selector s reads lane s of each quad: row r in the low half of lane 4 r + s, row r + 8 in the high half.
def test_rows_that_are_stored() -> None:
    report = launched([(12, 0, 0x44444404)], 16)
    (message,) = messages(report)
    assert message.startswith(
        f"{SPARSE}: metadata field 0b0000 in lane 12, bits 7..4 (row 3, chunk 1): indices 0, 0 are equal, "
        "which PTX leaves undefined [CTA (0, 0, 0), warp 0]; its row of D reaches a result: with other "
    )
    assert "holds other values in " in message
    assert report.hazards[0].location.text.index("%r3, 0x0") + 1 == report.hazards[0].location.column


def test_each_statement_is_judged_alone() -> None:
    """The field of row 11 is stored with 12 rows; that of row 12, of the second statement, is not."""
    fields = [(12, 0, 0x04444444), (17, 1, 0x00004444)]
    assert len(messages(launched(fields, 16))) == 2
    (message,) = messages(launched(fields, 12))
    assert "(row 11, chunk 3)" in message


@pytest.mark.parametrize(
    ("fields", "rows", "options"),
    [
        ([], 16, {}),  # nothing is undefined
        ([(28, 0, 0x00004444), (29, 1, 0x00004444)], 15, {}),  # rows behind the matrix, as CUTLASS fills them
        ([(lane, 0, 0) for lane in range(2, 32, 4)], 16, {}),  # lanes that selector 0 does not read
        ([(0, 0, 0)], 16, {"checks": "off"}),
    ],
)
def test_what_is_silent(fields: Any, rows: int, options: Any) -> None:
    assert messages(launched(fields, rows, **options)) == []


@pytest.mark.parametrize(
    ("use", "rows", "severities", "times"),
    [
        ("", 15, ["note", "note"], 3),  # both at once, with two fills
        ("", 16, ["note", "warning"], 1 + 1 + 1 + 2),  # at once and apart
        ("@%p1 st.global.b32 [%d+12], %r8;", 15, ["note", "warning"], 1 + 1 + 1 + 1),
    ],
)
@pytest.mark.parametrize("follows", [True, False])
def test_rows_and_unwritten_bytes_are_judged_at_once(
    use: str, rows: int, severities: list[str], times: int, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row 15 has undefined metadata, and a word of shared memory was never written.

    The launch is not executed again where values that are open were followed, and get nowhere; else a note
    says of each of them that other values have changed nothing.
    """
    if not follows:
        monkeypatch.setattr(taint, "none_leaks", lambda *given: False)
    if follows and severities == ["note", "note"]:
        severities, times = ["note"], 1
    text = TEXT.replace("s[512];", "s[512]; .shared .b32 t;").replace(
        "setp.lt.u32 %p1, %r5, %r7;", f"ld.shared.b32 %r8, [t]; setp.lt.u32 %p1, %r5, %r7; {use}"
    )
    launches = list[Launch]()
    executed = repetition.run
    monkeypatch.setattr(repetition, "run", lambda launch: launches.append(launch) or executed(launch))
    report = launched([(28, 0, 0x00004444)], rows, text)
    judged = [each for each in report.hazards if each.kind in ("undefined metadata", "uninitialised")]
    assert sorted(each.severity for each in judged) == severities
    assert len(launches) == times - 1 + follows  # the first is another's, and keys take one


def test_a_spread_launch_has_a_note() -> None:
    def made(places: frozenset[int]) -> str:
        raise AssertionError(places)

    found, findings = {1: field("field")}, Findings()
    judge_rows(found, None, findings)
    (finding,) = findings.found
    assert (finding.severity, finding.message.split("; ")[0]) == ("note", "mma.sp: field")
    judge_rows({}, made, findings)
    judge_rows(found, made, Findings(mode="off"))


def test_rows_that_reached_a_result_before_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that is new is tried, and so are the others with it."""
    kernel = load_text(TEXT)["k"]
    launches = list[Launch]()
    executed = repetition.run
    monkeypatch.setattr(repetition, "run", lambda launch: launches.append(launch) or executed(launch))

    def launch(*fields: tuple[int, int, int]) -> tuple[int, list[str]]:
        metadata = np.full((32, 2), LEGAL, np.uint32)
        for lane, statement, value in fields:
            metadata[lane, statement] = value
        launches.clear()
        report = kernel(1, 32, [np.zeros((32, 4), np.float32), metadata, 16], undefined="fallback")
        return len(launches), messages(report)

    first, second = (12, 0, 0x44444404), (17, 1, 0x00004444)
    times, (message,) = launch(first)
    assert (times, "with other values there" in message) == (2, True)  # with taint, and with other values
    times, (message,) = launch(first)
    assert times == 0
    assert message.endswith("; its row of D has reached a result in an earlier launch of the kernel")
    assert [launch(first, second)[0], launch(second)[0], len(launch(second, first)[1])] == [4, 0, 2]


def test_statements_behind_the_eighth_are_tried_together() -> None:
    found = {line: field(f"field {line}") for line in range(11)}
    asked = list[int]()

    def reaches(places: frozenset[int]) -> str:
        asked.append(len(places))
        return "all is another" if {3, 9} & places else ""

    findings = Findings()
    judge_rows(found, reaches, findings)
    assert asked == [11, *[1] * 8, 3]
    assert [(each.message.split(";")[0], each.count) for each in findings.found] == [
        ("mma.sp: field 3", 1),
        ("mma.sp: field 8", 3),
    ]


def test_what_stops_a_launch_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time-out of the second execution ends the launch; an error of the kernel there is a difference."""

    def failing(error: WarpsimError) -> Any:
        def run(launch: Launch) -> Any:
            raise error

        monkeypatch.setattr(repetition, "run", run)
        return launched([(0, 0, 0x44444440)], 16)

    with pytest.raises(Stopped):
        failing(Stopped("over"))
    (message,) = messages(failing(Fault("an address")))
    assert message.endswith("with other values there the launch ends with an error: an address")
