"""Commands at random: what is wrong is an OperandError, and the session goes on."""

from __future__ import annotations

from random import Random

import pytest

from tests.show.debugger.small_kernel import session
from warpsim import WarpsimError
from warpsim.show.debugger.commands.command_table import COMMANDS, ELSEWHERE

WORDS = (
    *(
        "",
        "0",
        "1",
        "7",
        "-1",
        "1e3",
        "99999999999999999999",
        "x",
        "[",
        "]",
        "[0,0]",
        "if",
        "(((",
        "é",
        "\x00",
    ),
    *("%r3", "%r99", "%p1", "%tid.x", "lane", "warp", "cells", "arg0", "arg0[3]", "arg1[0]", "smem", "tmem"),
    *("%r3 lanes", "/x %r3", "/8xw cells", "/0x", "shared+0x10", "shared+999999", "local 4", "tmem[0,0]"),
    *(
        "twice",
        "kernel",
        "k if %r3 > 4",
        "k if lan == 1",
        "mnemonic add if lane == %r2",
        "mnemonic",
        "*5",
        "*999",
    ),
    *("fragment a", "tile cells as f16 4x4", "tile cells as b1 99999x99999", "as f16", "%r3 / 0", "1 << 70"),
    *(
        "breakpoints",
        "warps",
        "lanes",
        "barriers",
        "async",
        "locals",
        "registers",
        "time",
        "tmem",
        "b",
        "1 2 3",
    ),
)
SLOW = ("origins", "why")  # execute the launch again


@pytest.mark.parametrize("seed", range(3))
def test_no_command_breaks_a_session(seed: int) -> None:
    random = Random(seed)
    names = [
        *sorted({row.names[0] for row in COMMANDS.values()} - {*SLOW}),
        *ELSEWHERE,
        "rev",
        "stpe",
        "",
        "#",
    ]
    with session() as debugged:
        for _ in range(120):
            line = f"{random.choice(names)} {random.choice(WORDS)}"
            try:
                text = debugged.do(line)
            except WarpsimError as error:
                text = str(error)
            assert "object at 0x" not in text, line
            debugged.completions(line)
        debugged.do("delete")
        assert debugged.do("run").startswith("the launch has ended, time ")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_commands_of_other_debuggers_say_what_there_is(name: str) -> None:
    with session() as debugged, pytest.raises(WarpsimError, match=f"there is no command {name}: "):
        debugged.do(f"{name} 3")
