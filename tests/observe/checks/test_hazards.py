"""The ordering rules of wgmma: programs that keep them, the same without one statement, every text.

Programs are lines of a small language, one event a line; what stands after '#' is what must be reported
once that line is left out, as '<later line><-<earlier line> <rule>', or '-' for nothing. Rules about what
is in flight go by what is touched: D, A, metadata, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.families import usual
from tests.helpers.naive_hazards import (
    A_OPERANDS,
    ALONE,
    BYTES,
    D_OPERANDS,
    E_OPERANDS,
    NAMES,
    RANGES,
    SHAPES,
    UNIT,
    Checked,
    Line,
    Naive,
    check,
    facts,
    feed,
    lines,
)
from warpsim.base.errors import UndefinedBehavior
from warpsim.observe.checks.wgmma.hazard import Hazard, HazardError

SHORT = {
    "accumulator-in-flight": "D",
    "fragment-in-flight": "A",
    "metadata-in-flight": "metadata",
    "shared-in-flight": "bytes",
}


def short(hazard: Hazard) -> str:
    first = hazard.first.line if hazard.first else ""
    return f"{hazard.second.line}<-{first} {SHORT.get(hazard.rule, hazard.rule)}"


def reports(program: Iterable[Line]) -> list[str]:
    return [short(hazard) for hazard in check(program)]


# Correct programs, and each without one statement

PROGRAMS = {
    "one SS wgmma": """
        store 0:128
        proxy                  # 4<-1 proxy-fence
        fence                  # 4<- first-fence
        wgmma d0,d1 0:128
        commit                 # 6<-4 uncommitted, 7<-4 D, 8<-4 uncommitted
        wait 0                 # 7<-4 D, 8<-4 unwaited
        read d0,d1
        end
    """,
    "the two fences in the other order": """
        store 0:64
        write d0,d1
        fence                  # 6<- first-fence
        bar                    # -
        proxy                  # 6<-1 proxy-fence
        wgmma d0,d1 0:64
        commit                 # 8<-6 uncommitted, 9<-6 D
        wait 0                 # 9<-6 D
        write d0
    """,
    "RS, A refilled after the wait": """
        write a0,a1,d0,d1
        fence                  # 3<- first-fence
        wgmma d0,d1 a0,a1
        commit                 # 5<-3 uncommitted, 6<-3 A, 7<-3 A
        wait 0                 # 6<-3 A, 7<-3 A
        write a0
        write a1
        fence                  # 9<-7 fence
        wgmma d0,d1 a0,a1
        commit                 # 11<-9 uncommitted, 12<-9 D
        wait 0                 # 12<-9 D
        read d0
    """,
    "back-to-back accumulation over groups": """
        fence                  # 2<- first-fence
        wgmma d0,d1 0:16 zero
        wgmma d0,d1 16:32
        commit                 # -
        wgmma d0,d1 32:48
        commit                 # 8<-5 bytes, 9<-5 D, 10<-5 uncommitted
        wait 0                 # 8<-5 bytes, 9<-5 D, 10<-5 unwaited
        store 0:48
        read d0
        end
    """,
    "two groups in flight": """
        fence                  # 2<- first-fence
        wgmma d0,d1 0:16
        commit                 # 6<-4 uncommitted, 7<-2 D, 8<-2 bytes
        wgmma d2,d3 16:32
        wait 1                 # -
        wait 0                 # 7<-2 D, 8<-2 bytes
        read d0,d1
        store 0:16
        commit                 # 10<-4 uncommitted, 11<-4 D
        wait 0                 # 11<-4 D
        read d2,d3
    """,
    "double buffering, wait_group 1": """
        store 0:32
        proxy                  # 4<-1 proxy-fence
        fence                  # 4<- first-fence
        wgmma d0,d1 0:32
        commit                 # 11<-4 bytes
        store 32:64
        proxy                  # 8<-6 proxy-fence
        wgmma d0,d1 32:64
        commit                 # 11<-4 bytes
        wait 1                 # 11<-4 bytes
        store 0:32
        proxy                  # 13<-11 proxy-fence
        wgmma d0,d1 0:32
        commit                 # 16<-13 D, 17<-13 uncommitted
        wait 0                 # 16<-13 D, 17<-13 unwaited
        read d0,d1
        end
    """,
    "two accumulators, the first read while the second is in flight": """
        fence                  # 2<- first-fence
        wgmma d0,d1 0:16 zero
        commit                 # 7<-2 D
        wgmma d2,d3 0:16 zero
        commit                 # 7<-2 D, 9<-4 D
        wait 1                 # 7<-2 D
        read d0,d1
        wait 0                 # 9<-4 D
        read d2,d3
    """,
    "RS and SS side by side, A in two register sets": """
        write a0,a1
        fence                  # 3<- first-fence
        wgmma d0,d1 a0,a1
        commit                 # 10<-3 A
        write a2,a3
        fence                  # 7<-5 fence
        wgmma d0,d1 a2,a3
        commit                 # 10<-3 A
        wait 1                 # 10<-3 A
        write a0,a1
        fence                  # 12<-10 fence
        wgmma d0,d1 a0,a1
        wgmma d0,d1 0:64
        commit                 # 16<-13 D
        wait 0                 # 16<-13 D
        read d0
    """,
    "D becomes A": """
        fence                  # 2<- first-fence
        wgmma d0,d1 0:16
        commit                 # 4<-2 uncommitted, 6<-2 D
        wait 0                 # 6<-2 D
        fence                  # 6<-2 fence-between
        wgmma D=d2,d3 A=d0,d1
        commit                 # 8<-6 uncommitted, 9<-6 D, 9<-6 A
        wait 0                 # 9<-6 D, 9<-6 A
        write d0,d2
    """,
    "A becomes D": """
        fence                  # 2<- first-fence
        wgmma D=d0 A=d1
        commit                 # 4<-2 uncommitted, 6<-2 A
        wait 0                 # 6<-2 A
        fence                  # 6<-2 fence-between
        wgmma D=d1
        commit                 # 8<-6 uncommitted, 9<-6 uncommitted
        wait 0                 # 9<-6 unwaited
        end
    """,
    "another shape on the same D": """
        fence                  # 2<- first-fence
        wgmma d0,d1 m64n8k16
        commit                 # 4<-2 uncommitted, 6<-2 D
        wait 0                 # 6<-2 D
        fence                  # 6<-2 fence-between
        wgmma d0,d1 m64n8k32
        commit                 # 8<-6 uncommitted, 9<-6 D
        wait 0                 # 9<-6 D
        read d0,d1
    """,
    "D read between two wgmma": """
        fence                  # 2<- first-fence
        wgmma d0,d1
        commit                 # 4<-2 uncommitted, 5<-2 D
        wait 0                 # 5<-2 D
        read d0,d1
        fence                  # 7<-5 fence
        wgmma d0,d1
        commit                 # 9<-7 uncommitted, 10<-7 D
        wait 0                 # 10<-7 D
        read d0,d1
    """,
    "the same A for two wgmma": """
        write a0,a1
        fence                  # 3<- first-fence
        wgmma d0,d1 a0,a1
        wgmma d2,d3 a0,a1
        commit                 # 6<-4 uncommitted, 7<-4 A, 8<-3 D, 8<-4 D
        wait 0                 # 7<-4 A, 8<-3 D, 8<-4 D
        write a0,a1
        read d0,d1,d2,d3
    """,
    "sparse: metadata after the fence, overwritten after the wait": """
        fence                  # 3<- first-fence
        write e0
        wgmma d0,d1 e0 0:16
        read e0
        commit                 # 6<-3 uncommitted, 7<-3 metadata
        wait 0                 # 7<-3 metadata
        write e0
        wgmma d0,d1 e0 0:16
        commit                 # 10<-8 uncommitted, 11<-8 D
        wait 0                 # 11<-8 D
        read d0
    """,
    "an empty group counts": """
        fence                  # 2<- first-fence
        wgmma d0,d1
        commit                 # 6<-2 D
        commit                 # 6<-2 D
        wait 1                 # 6<-2 D
        read d0,d1
        wait 0                 # -
        end
    """,
    "synchronisation with nothing to do": """
        fence                  # 8<- first-fence
        commit                 # -
        commit                 # -
        wait 7                 # -
        wait 0                 # -
        proxy                  # -
        bar                    # -
        wgmma d0,d1
        commit                 # 11<-8 uncommitted, 12<-8 D, 13<-8 uncommitted
        wait 9                 # -
        wait 0                 # 12<-8 D, 13<-8 unwaited
        read d0,d1
        end
    """,
    "bulk copies need no proxy fence": """
        bulk 0:64
        fence                  # 3<- first-fence
        wgmma d0,d1 0:64
        commit                 # 5<-3 uncommitted, 6<-3 bytes, 8<-3 bytes, 11<-3 uncommitted
        wait 0                 # 6<-3 bytes, 8<-3 bytes, 11<-3 unwaited
        bulk 0:64
        load 0:64
        store 0:64
        proxy                  # 10<-8 proxy-fence
        bulkload 0:64
        end
    """,
    "stores beside the tile, loads of the tile, other registers": """
        fence                  # 2<- first-fence
        wgmma d0,d1 a0,a1 64:128
        store 0:64
        store 128:130
        load 64:128
        write x0
        read x0
        commit                 # 9<-2 uncommitted, 10<-2 D, 11<-2 uncommitted
        wait 0                 # 10<-2 D, 11<-2 unwaited
        read d0
        end
    """,
}

SYNCHRONISING = ("fence", "commit", "wait", "proxy", "bar")
DELETIONS = [
    pytest.param(name, number, expected.strip(), id=f"{name}, line {number}")
    for name, program in PROGRAMS.items()
    for number, text in enumerate(program.strip().splitlines(), 1)
    for _, found, expected in [text.partition("#")]
    if found
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_program_has_no_hazards(name: str) -> None:
    assert reports(lines(PROGRAMS[name])) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_synchronising_line_says_what_leaving_it_out_does(name: str) -> None:
    for text in PROGRAMS[name].strip().splitlines():
        assert ("#" in text) == (text.split()[0] in SYNCHRONISING), text


@pytest.mark.parametrize(("name", "number", "expected"), DELETIONS)
def test_without_one_statement(name: str, number: int, expected: str) -> None:
    program = [line for line in lines(PROGRAMS[name]) if line.number != number]
    assert (", ".join(reports(program)) or "-") == expected


# One statement in another place


def moved(program: str, number: int, before: int) -> list[Line]:
    everything = lines(program)
    taken = everything.pop(number - 1)
    at = next((i for i, line in enumerate(everything) if line.number == before), len(everything))
    return [*everything[:at], taken, *everything[at:]]


@pytest.mark.parametrize(
    ("name", "number", "before", "expected"),
    [
        ("one SS wgmma", 2, 1, "4<-1 proxy-fence"),  # fence.proxy.async before the store
        ("one SS wgmma", 2, 5, "4<-1 proxy-fence"),  # ... after the wgmma
        ("one SS wgmma", 3, 1, ""),  # wgmma.fence before the store: it orders registers only
        ("one SS wgmma", 3, 5, "4<- first-fence"),
        ("one SS wgmma", 5, 4, "6<-4 uncommitted, 7<-4 D, 8<-4 uncommitted"),  # commit before the wgmma
        ("one SS wgmma", 6, 5, "6<-4 uncommitted, 7<-4 D, 8<-4 unwaited"),  # wait before the commit
        ("one SS wgmma", 6, 8, "7<-4 D"),  # wait after the read
        ("RS, A refilled after the wait", 8, 7, "9<-7 fence"),  # between the two writes of A
        ("RS, A refilled after the wait", 8, 6, "9<-7 fence"),
        ("RS, A refilled after the wait", 5, 7, "6<-3 A"),
        ("double buffering, wait_group 1", 10, 9, "11<-4 bytes"),  # before the second commit
        ("double buffering, wait_group 1", 10, 12, "11<-4 bytes"),  # after the store
        ("two accumulators, the first read while the second is in flight", 6, 5, "7<-2 D"),
        ("two accumulators, the first read while the second is in flight", 8, 7, ""),
        ("another shape on the same D", 5, 4, ""),  # a fence orders what was issued, complete or not
        ("another shape on the same D", 4, 7, "6<-2 D"),  # ... but it does not wait
        ("D becomes A", 4, 7, "6<-2 D"),
        ("A becomes D", 4, 7, "6<-2 A"),
        ("D read between two wgmma", 6, 5, "7<-5 fence"),
        ("sparse: metadata after the fence, overwritten after the wait", 6, 8, "7<-3 metadata"),
        ("an empty group counts", 4, 6, "6<-2 D"),
    ],
)
def test_one_statement_moved(name: str, number: int, before: int, expected: str) -> None:
    assert ", ".join(reports(moved(PROGRAMS[name], number, before))) == expected


# Two wgmma on the same registers: what is exempt from fence and wait


@pytest.mark.parametrize(
    ("first", "between", "second", "expected"),
    [
        ("d0,d1 m64n8k16", "", "d0,d1 m64n8k16", ""),
        ("d0,d1 m64n8k16 zero", "", "d0,d1 m64n8k16", ""),
        ("d0,d1 m64n8k16", "", "d0,d1 m64n8k16 zero", ""),  # PTX makes no difference by scale-d
        ("d0,d1 m64n8k16", "commit", "d0,d1 m64n8k16", ""),
        ("d0,d1 m64n8k16", "wgmma d2,d3 m64n8k32", "d0,d1 m64n8k16", ""),  # not literally back to back
        ("d0,d1 m64n8k16", "", "d0,d1 m64n8k32", "4<-2 D, 4<-2 fence-between"),
        ("d0,d1 m64n8k16", "fence", "d0,d1 m64n8k32", "4<-2 D"),
        ("d0,d1 m64n8k16", "", "d1,d0 m64n8k16", "4<-2 D, 4<-2 fence-between"),
        ("d0,d1 m64n8k16", "", "d1,d2 m64n8k16", "4<-2 D, 4<-2 fence-between"),
        ("d0,d1 m64n8k16", "read d0", "d0,d1 m64n8k16", "3<-2 D, 4<-3 fence"),
        ("d0,d1 m64n8k16", "write d1", "d0,d1 m64n8k16", "3<-2 D, 4<-3 fence"),
        ("D=d0,d1", "", "D=d2,d3 A=d0,d1", "4<-2 D, 4<-2 fence-between"),
        ("D=d0,d1", "fence", "D=d2,d3 A=d0,d1", "4<-2 D"),
        ("D=d0,d1 A=a0,a1", "", "D=a0,a1", "4<-2 A, 4<-2 fence-between"),
        ("D=d0,d1 A=a0,a1", "fence", "D=a0,a1", "4<-2 A"),
        ("D=d0,d1 A=a0,a1", "", "D=d2,d3 A=a0,a1", ""),  # two reads
        ("D=d0,d1 A=a0,a1", "read a0", "D=d2,d3 A=a0,a1", "3<-2 A, 4<-3 fence"),
        ("D=d0,d1 E=e0", "", "D=d2,d3 E=e0", ""),
        ("D=d0,d1 E=e0", "", "D=e0", "4<-2 metadata"),
        ("D=d0,d1", "", "D=d2,d3 E=d0", "4<-2 D"),
        ("D=d0,d1", "", "D=d0,d1 A=d0", "4<-2 D, 4<-2 fence-between"),
    ],
)
def test_two_wgmma_on_the_same_registers(first: str, between: str, second: str, expected: str) -> None:
    program = lines(f"fence\nwgmma {first}\n{between or 'bar'}\nwgmma {second}")
    assert ", ".join(reports(program)) == expected


def test_the_exemption_does_not_outlast_a_use_as_a() -> None:
    program = lines(
        "fence\nwgmma D=d0 A=a0\ncommit\nwait 0\nwgmma D=d1 A=d0\ncommit\nwait 0\nwgmma D=d0 A=a0"
    )
    assert reports(program) == ["5<-2 fence-between", "8<-5 fence-between"]


def test_a_wait_without_effect_is_no_mistake_while_a_group_is_pending() -> None:
    assert reports(lines("fence\nwgmma d0\ncommit\nwgmma d1\nwait 0\nread d0\ncommit\nwait 0\nread d1")) == []
    assert reports(lines("fence\nwgmma d0\nwait 1\ncommit\nwait 0\nread d0")) == []


def test_an_async_store_does_not_hide_a_generic_one() -> None:
    assert reports(lines("store 0:8\nbulk 0:8\nfence\nwgmma d0 0:8")) == ["4<-1 proxy-fence"]
    assert reports(lines("store 0:8\nproxy\nbulk 0:8\nfence\nwgmma d0 0:8")) == []
    assert reports(lines("store 0:8\nbulkload 4:12")) == ["2<-1 proxy-fence"]


# The texts

MESSAGES = {
    "first-fence": (
        "wgmma d0 a0",
        "k.ptx:1:1: error: no wgmma.fence comes before the first wgmma of the warpgroup",
        "k.ptx:1:1: fix: insert 'wgmma.fence.sync.aligned;' before k.ptx:1",
    ),
    "fence, one register": (
        "fence\nwrite d0\nwgmma d0,d1",
        "k.ptx:3:1: error: this wgmma uses d0, which was written after the last wgmma.fence",
        "k.ptx:2:1: note: d0 is written here",
        "k.ptx:3:1: fix: insert 'wgmma.fence.sync.aligned;' before k.ptx:3",
    ),
    "fence, several registers": (
        "fence\nwrite d0,d1,d2\nread a0,a1\nwgmma d0,d1,d2 a0,a1",
        "k.ptx:4:1: error: this wgmma uses d0, d1, d2, a0 and 1 more, which were read or written after the "
        "last wgmma.fence",
        "k.ptx:3:1: note: a0 is read here",
        "k.ptx:4:1: fix: insert 'wgmma.fence.sync.aligned;' before k.ptx:4",
    ),
    "fence-between": (
        "fence\nwgmma d0,d1 m64n8k16\ncommit\nwait 0\nwgmma d0,d1 m64n8k32",
        "k.ptx:5:1: error: this wgmma uses d0, d1 as D, the wgmma at k.ptx:2 as D, and no wgmma.fence stands "
        "between them; only wgmma of the same shape with the same D registers need none",
        "k.ptx:2:1: note: the earlier wgmma, of shape m64n8k16; the later wgmma is m64n8k32",
        "k.ptx:5:1: fix: insert 'wgmma.fence.sync.aligned;' before k.ptx:5",
    ),
    "D read, not waited for": (
        "fence\nwgmma d0,d1\ncommit\nread d0",
        "k.ptx:4:1: error: d0 is read while the wgmma that accumulates into it is in flight: no "
        "wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:4",
    ),
    "D written, the wait leaves it pending": (
        "fence\nwgmma d0,d1 zero\ncommit\nwgmma d2,d3\ncommit\nwait 2\nwrite d0,d1",
        "k.ptx:7:1: error: d0, d1 are written while the wgmma that writes them is in flight: "
        "wgmma.wait_group 2 at k.ptx:6 leaves the group pending (2 groups pending, N <= 1 covers it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:7:1: fix: insert 'wgmma.wait_group.sync.aligned 1;' before k.ptx:7",
    ),
    "D of the middle one of three groups, two waits": (
        "fence\nwgmma d0\ncommit\nwgmma d1\ncommit\nwgmma d2\ncommit\nwait 4\nwait 3\nread d1",
        "k.ptx:10:1: error: d1 is read while the wgmma that accumulates into it is in flight: "
        "wgmma.wait_group 3 at k.ptx:9 leaves the group pending (3 groups pending, N <= 1 covers it)",
        "k.ptx:4:1: note: this wgmma is still in flight",
        "k.ptx:10:1: fix: insert 'wgmma.wait_group.sync.aligned 1;' before k.ptx:10",
    ),
    "D read, not committed": (
        "fence\nwgmma d0,d1\nread d0",
        "k.ptx:3:1: error: d0 is read while the wgmma that accumulates into it is in flight: no "
        "wgmma.commit_group has followed",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:3:1: fix: insert 'wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;' before "
        "k.ptx:3",
    ),
    "A written": (
        "fence\nwgmma d0 a0,a1\ncommit\nwrite a0,a1",
        "k.ptx:4:1: error: a0, a1 are written while the wgmma that reads them as A is in flight: no "
        "wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:4",
    ),
    "D used as A": (
        "fence\nwgmma D=d0\ncommit\nfence\nwgmma D=d1 A=d0",
        "k.ptx:5:1: error: d0 is used as A by another wgmma while the wgmma that accumulates into it is in "
        "flight: no wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:5:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:5",
    ),
    "metadata": (
        "fence\nwgmma d0 e0\ncommit\nwrite e0",
        "k.ptx:4:1: warning: e0 is written while the wgmma that reads it as metadata (PTX does not say when) "
        "is in flight: no wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:4",
    ),
    "shared memory": (
        "fence\nwgmma d0 0:16,32:64\ncommit\nstore 8:40",
        "k.ptx:4:1: error: bytes 0x80..0xff, 0x200..0x27f of shared memory are written while a wgmma that "
        "reads them is in flight: no wgmma.wait_group has followed the commit (1 group pending, N = 0 covers "
        "it)",
        "k.ptx:2:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:4",
    ),
    "proxy fence": (
        "store 0:8\nstore 16:17,24:25,32:33,40:41,48:49\nfence\nwgmma d0 0:64",
        "k.ptx:4:1: error: bytes 0x0..0x7f, 0x100..0x10f, 0x180..0x18f, 0x200..0x20f and 2 more of shared "
        "memory are read through the async proxy, but were written through the generic proxy with no "
        "fence.proxy.async since",
        "k.ptx:2:1: note: the last of these generic stores",
        "k.ptx:4:1: fix: insert 'fence.proxy.async;' before k.ptx:4",
    ),
    "wait for nothing": (
        "fence\nwgmma d0\nwgmma d0\nwait 0",
        "k.ptx:4:1: warning: wgmma.wait_group 0 waits for nothing: no wgmma.commit_group follows 2 wgmmas",
        "k.ptx:3:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.commit_group.sync.aligned;' before k.ptx:4",
    ),
    "end, not waited for": (
        "fence\nwgmma d0\ncommit\nwgmma d1\ncommit\nwait 1\nend",
        "k.ptx:7:1: error: the program ends with 1 wgmma in flight: wgmma.wait_group 1 at k.ptx:6 leaves the "
        "group pending (1 group pending, N = 0 covers it)",
        "k.ptx:4:1: note: this wgmma is still in flight",
        "k.ptx:7:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:7",
    ),
    "end, not committed": (
        "fence\nwgmma d0\nwgmma d1\nend",
        "k.ptx:4:1: error: the program ends with 2 wgmmas in flight: no wgmma.commit_group has followed",
        "k.ptx:3:1: note: this wgmma is still in flight",
        "k.ptx:4:1: fix: insert 'wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;' before "
        "k.ptx:4",
    ),
    "differing warps": (
        "uniform b-desc 0x10 0x10 0x12 0x10",
        "k.ptx:1:1: error: b-desc must be the same in the whole warpgroup, but is 0x10 in warp 0 and 0x12 in "
        "warp 2",
        "k.ptx:1:1: fix: give all warps the same b-desc before k.ptx:1",
    ),
    "differing lanes": (
        "uniform a-desc " + "1 " * 37 + "0 " * 91,
        "k.ptx:1:1: error: a-desc must be the same in the whole warpgroup, but is 0x1 in lane 0 and 0x0 in "
        "lane 37",
        "k.ptx:1:1: fix: give all warps the same a-desc before k.ptx:1",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_text(name: str) -> None:
    program, *expected = MESSAGES[name]
    (hazard,) = check(lines(program))
    said = [text for text in hazard.render().splitlines() if text.startswith("k.ptx")]
    assert said == expected


def test_both_statements_are_shown_with_carets() -> None:
    (hazard,) = check(lines("fence\nwgmma d0,d1\ncommit\nread d0\n"))
    assert hazard.render() == (
        "k.ptx:4:1: error: d0 is read while the wgmma that accumulates into it is in flight: no "
        "wgmma.wait_group has followed the commit (1 group pending, N = 0 covers it)\n"
        "    read d0\n"
        "    ^~~~\n"
        "k.ptx:2:1: note: this wgmma is still in flight\n"
        "    wgmma d0,d1\n"
        "    ^~~~~\n"
        "k.ptx:4:1: fix: insert 'wgmma.wait_group.sync.aligned 0;' before k.ptx:4"
    )


def test_a_missing_commit_is_put_before_the_wait_that_was_meant_to_cover_it() -> None:
    pointless, early = check(lines("fence\nwgmma d0,d1\nwait 0\nread d0"))
    assert pointless.fix == early.fix == "insert 'wgmma.commit_group.sync.aligned;' before k.ptx:3"
    (early,) = check(lines("fence\nwgmma d0,d1\nwait 1\nread d0"))
    assert early.fix.endswith("wgmma.wait_group.sync.aligned 0;' before k.ptx:4")


def test_what_a_hazard_holds() -> None:
    program = lines("fence\nwgmma d0,d1,d2,d3,d4,d5 8:16\ncommit\nread d5,d4,d3,d2,d1,d0,x\nstore 0:12")
    early, overwritten = check(program)
    assert early.registers == ("d5", "d4", "d3", "d2", "d1", "d0")
    assert "d5, d4, d3, d2 and 2 more are read" in early.message
    assert (early.byte_ranges, overwritten.registers) == ((), ())
    assert overwritten.byte_ranges == ((UNIT * 8, UNIT * 12),)
    assert early.first == overwritten.first == program[1].place
    assert (early.second, overwritten.second) == (program[3].place, program[4].place)


def test_registers_and_bytes_are_listed_once_and_bytes_in_order() -> None:
    early, unproxied = check(lines("fence\nwgmma d0\nread d0,d0\nstore 0:256\nbulkload 9:12,2:3,0:1,10:14"))
    assert early.registers == ("d0",)
    assert unproxied.byte_ranges == ((0, 16), (32, 48), (144, 224))


# Modes

ALARMS = [param for param in DELETIONS if param.values[2] != "-"]


def state(checker: Checked) -> list[str]:
    """All of it, so that two states can be compared."""
    shadow, clocks = checker.rules.order.shared(checker.wave), checker.rules.order.clocks
    tables = [shadow.wrote, shadow.taken, shadow.writes, shadow.takes, clocks.state]
    registers = [f"{name}={value}" for name, value in vars(checker.rules.registers).items()]
    return [*registers, *(str(table.tolist()) for table in tables)]


@pytest.mark.parametrize(("name", "number", "expected"), ALARMS)
def test_errors_raise_and_leave_the_state_alone(name: str, number: int, expected: str) -> None:
    program = [line for line in lines(PROGRAMS[name]) if line.number != number]
    errors = [hazard for hazard in check(program) if hazard.severity == "error"]
    checker = Checked("error")
    for line in program:
        if not errors or line.place != errors[0].second:
            feed(checker, line)
            continue
        before = state(checker)
        with pytest.raises(HazardError) as caught:
            feed(checker, line)
        assert caught.value.hazard == errors[0]
        assert (caught.value.message, caught.value.location) == (errors[0].message, line.place)
        assert str(caught.value) == errors[0].render()
        assert state(checker) == before
        return
    assert not errors


def test_hazard_errors_are_undefined_behaviour() -> None:
    checker = Checked()
    with pytest.raises(UndefinedBehavior, match=r"no wgmma\.fence comes before"):
        feed(checker, Line(1, "wgmma d0"))
    assert checker.hazards == ()
    feed(checker, Line(2, "fence"))
    feed(checker, Line(3, "wgmma d0"))


def test_warnings_never_raise() -> None:
    checker = Checked("error")
    for line in lines("fence\nwgmma d0 e0\nwrite e0\nwait 0\ncommit\nwait 0\nread d0\nend"):
        feed(checker, line)
    assert [short(hazard) for hazard in checker.hazards] == ["3<-2 metadata", "4<-2 uncommitted"]
    assert {hazard.severity for hazard in checker.hazards} == {"warning"}


def test_a_loop_reports_a_hazard_once() -> None:
    checker = Checked("warn")
    body = lines("fence\nwgmma d0 0:8\ncommit\nwrite d0\nwait 0")
    for line in body * 5:
        feed(checker, line)
    assert [short(hazard) for hazard in checker.hazards] == ["4<-2 D"]


def test_equal_values_are_uniform() -> None:
    assert check(lines("uniform a-desc 7 7 7 7\nuniform b-desc " + "9 " * 128)) == ()


def test_the_whole_of_shared_memory() -> None:
    (unproxied,) = check(lines(f"store 0:{BYTES}\nfence\nwgmma d0 0:{BYTES}"))
    assert unproxied.byte_ranges == ((0, UNIT * BYTES),)


@st.composite
def wgmma_lines(draw: st.DrawFn) -> str:
    words = [f"wgmma D={draw(st.sampled_from(D_OPERANDS))}", draw(st.sampled_from(SHAPES))]
    if draw(st.booleans()):
        words.append(f"A={draw(st.sampled_from(A_OPERANDS))}")
    if draw(st.booleans()):
        words.append(f"E={draw(st.sampled_from(E_OPERANDS))}")
    if draw(st.booleans()):
        words.append(draw(st.sampled_from(RANGES)))
    return " ".join([*words, *draw(st.sampled_from(([], ["zero"])))])


def with_word(verbs: tuple[str, ...], words: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.builds("{} {}".format, st.sampled_from(verbs), st.sampled_from(words))


ANY_LINE = st.one_of(
    wgmma_lines(),
    wgmma_lines(),
    with_word(("read", "write"), NAMES),
    with_word(("store", "bulk", "load", "bulkload"), RANGES),
    with_word(("wait",), ("0", "0", "1", "2")),
    st.sampled_from(ALONE),
)


@settings(max_examples=usual(200, 400), deadline=None)
@given(st.lists(ANY_LINE, max_size=24))
def test_any_program_is_judged_as_the_naive_twin_judges_it(texts: list[str]) -> None:
    program = lines("\n".join(texts))
    assert facts(program) == Naive(program).found


@pytest.mark.parametrize(("name", "number", "expected"), DELETIONS)
def test_the_naive_twin_agrees_about_the_table(name: str, number: int, expected: str) -> None:
    for program in (lines(PROGRAMS[name]), [one for one in lines(PROGRAMS[name]) if one.number != number]):
        assert facts(program) == Naive(program).found


# Pipelines of every depth, each statement marked as necessary or not by how they are built


@dataclass
class Pipeline:
    """A correct multi-stage loop: ``depth`` groups stay in flight, over ``depth + 1`` buffers."""

    depth: int
    iterations: int
    accumulators: int
    texts: list[str]
    necessary: list[bool | None]  # None: not a synchronising statement

    def add(self, text: str, necessary: bool | None = None) -> None:
        self.texts.append(text)
        self.necessary.append(necessary)

    def program(self, without: int | None = None) -> list[Line]:
        return [line for line in lines("\n".join(self.texts)) if line.number != without]


@dataclass(frozen=True)
class Stage:
    """How one iteration feeds its wgmma."""

    form: str
    copy: str
    count: int
    zero: bool
    noise: str


NOISE = ("bar", "read x0", "write x0,x1", "load 0:256", "wait 8", "fence", "proxy", "store 240:256")
STAGES = st.builds(
    Stage,
    form=st.sampled_from(("SS", "RS", "sparse SS", "sparse RS")),
    copy=st.sampled_from(("store", "bulk")),
    count=st.integers(1, 3),
    zero=st.booleans(),
    noise=st.sampled_from(("", *NOISE)),
)


def load(pipeline: Pipeline, stage: Stage, i: int) -> None:
    """Fill the buffers of iteration i: the last wgmma that read them is complete."""
    buffer = i % (pipeline.depth + 1)
    if stage.noise:
        pipeline.add(stage.noise, False if stage.noise.split()[0] in SYNCHRONISING else None)
    pipeline.add(f"{stage.copy} {32 * buffer}:{32 * buffer + 32}")
    if stage.copy == "store":
        pipeline.add("proxy", True)
    if i < pipeline.accumulators:
        pipeline.add(f"write {accumulator(pipeline, i)}")
    if "RS" in stage.form:
        pipeline.add(f"write a{buffer}0,a{buffer}1")
    pipeline.add("fence", i < pipeline.accumulators or "RS" in stage.form)
    if "sparse" in stage.form:
        pipeline.add(f"write e{buffer}")


def multiply(pipeline: Pipeline, stage: Stage, i: int) -> None:
    """The wgmma of iteration i as a group, and the wait that frees the buffers of the next iteration.

    Without its commit they join the next group; that does harm unless the wait for everything at the
    end comes before anything else could. Without its wait the next store is early, if there is one.
    """
    depth, n, buffer = pipeline.depth, pipeline.iterations, i % (pipeline.depth + 1)
    d = accumulator(pipeline, i)
    a = f" A=a{buffer}0,a{buffer}1" if "RS" in stage.form else ""
    e = f" E=e{buffer}" if "sparse" in stage.form else ""
    for k in range(stage.count):
        zero = " zero" if stage.zero and k == 0 else ""
        shape = f"m64n{8 + 8 * (i % pipeline.accumulators)}k16"
        pipeline.add(f"wgmma D={d}{a}{e} {shape} {32 * buffer}:{32 * buffer + 32}{zero}")
    pipeline.add("commit", max(i, depth) + 1 < n or i == n - 1)
    pipeline.add(f"wait {depth}", i >= depth and i + 1 < n)


def accumulator(pipeline: Pipeline, i: int) -> str:
    which = i % pipeline.accumulators
    return ",".join(f"d{which}{j}" for j in range(2 + 2 * which))


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    stages = draw(st.lists(STAGES, min_size=1, max_size=7))
    n = len(stages)
    pipeline = Pipeline(draw(st.integers(0, 3)), n, draw(st.integers(1, min(2, n))), [], [])
    for i, stage in enumerate(stages):
        load(pipeline, stage, i)
        multiply(pipeline, stage, i)
    pipeline.add("wait 0", pipeline.depth > 0)
    for which in range(pipeline.accumulators):
        pipeline.add(f"read {accumulator(pipeline, which)}")
    pipeline.add("store 0:128")
    pipeline.add("end")
    return pipeline


@settings(max_examples=usual(100, 200), deadline=None)
@given(pipelines())
def test_correct_pipelines_never_alarm(pipeline: Pipeline) -> None:
    assert check(pipeline.program()) == ()


@settings(max_examples=usual(150, 300), deadline=None)
@given(pipelines(), st.data())
def test_leaving_out_what_is_necessary_always_alarms(pipeline: Pipeline, data: st.DataObject) -> None:
    numbers = [number for number, needed in enumerate(pipeline.necessary, 1) if needed is not None]
    number = data.draw(st.sampled_from(numbers))
    program = pipeline.program(without=number)
    found = facts(program)
    assert bool(found) == pipeline.necessary[number - 1]
    assert found == Naive(program).found
