"""One mistake of unrolled code is one finding, with the number of pairs of statements."""

from __future__ import annotations

import warpsim
from warpsim.observe.checks.findings import LaunchFinding
from warpsim.show.views.launches import report_document

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{{
  .shared .b32 tile[256];
  .reg .b32 %t, %a, %b, %r<8>; .reg .pred %p;
  mov.u32 %t, %tid.x; shl.b32 %a, %t, 2; xor.b32 %b, %a, 128;
  mov.u32 %r0, tile; add.u32 %a, %a, %r0; add.u32 %b, %b, %r0;
  st.shared.b32 [%a], %t;
  st.shared.b32 [%a+256], %t;
  st.shared.b32 [%a+512], %t;
  {between}
  ld.shared.b32 %r1, [%b];
  ld.shared.b32 %r2, [%b+256];
  {then}
  ld.shared.b32 %r3, [%b+512];
  ret;
}}
"""


def findings(between: str = "", then: str = "") -> tuple[LaunchFinding, ...]:
    kernel = warpsim.load(TEXT.format(between=between, then=then))["k"]
    return kernel(1, 64, [], checks="warn").hazards


def test_one_finding_for_statements_that_stand_together() -> None:
    (found,) = findings()
    assert found.other is not None
    assert (found.kind, found.count, found.location.line, found.other.line) == ("race", 3, 14, 10)
    assert [(here.line, there.line) for here, there in found.others] == [(15, 11), (17, 12)]
    assert "note: 3 pairs of statements do this, also lines 15 and 11, 17 and 12\n" in f"{found}\n"


def test_labels_and_branches_part_them() -> None:
    assert [one.count for one in findings(between="LOOP:")] == [3]
    assert [one.count for one in findings(then="LOOP:")] == [2, 1]
    branch = "setp.eq.u32 %p, %t, 99; @%p bra END; END:"
    assert [one.count for one in findings(then=branch)] == [2, 1]


def test_one_pair_is_shown_as_before() -> None:
    (found,) = findings(between="bar.sync 0; st.shared.b32 [%a], %t; bar.sync 0; st.shared.b32 [%a+256], %t;")
    assert (found.count, found.others) == (1, ())
    assert "pairs of statements" not in str(found)


def test_the_first_error_is_raised_alone_and_json_has_all() -> None:
    kernel = warpsim.load(TEXT.format(between="", then=""))["k"]
    (hazard,) = report_document(kernel(1, 64, [], checks="warn"))["hazards"]
    assert hazard["count"] == 3
    assert [[place["line"] for place in pair] for pair in hazard["others"]] == [[15, 11], [17, 12]]
