"""The Debug Adapter: a client that speaks the wire format, in a process of its own and in this process."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tests.show.debugger.small_kernel import TEXT, line, results, session
from tools.dap_client import Client, framed
from warpsim import OperandError
from warpsim.observe.stops.points import hit_condition
from warpsim.show.debugger import Session
from warpsim.show.debugger.dap.adapter import CAPABILITIES, Adapter

ADD = "add.u32 %r3, %r3, %r2;"


def begin(given: dict[str, Any]) -> Session:
    if "program" not in given:
        raise OperandError("launch: program is missing")
    return session(**given.get("options", {}))


class Served:
    """An adapter in a thread, and its client."""

    def __init__(self) -> None:
        (there, here), (back, sink) = os.pipe(), os.pipe()
        self.files = [
            os.fdopen(there, "rb"),
            os.fdopen(here, "wb"),
            os.fdopen(back, "rb"),
            os.fdopen(sink, "wb"),
        ]
        self.adapter = Adapter(self.files[0], self.files[3], begin)
        self.thread = Thread(target=self.adapter.serve)
        self.thread.start()
        self.client = Client(self.files[1], self.files[2])

    def end(self) -> None:
        if self.thread.is_alive():
            self.client.get("disconnect")
        self.thread.join(30)
        assert not self.thread.is_alive()
        for place in (1, 0, 3, 2):
            self.files[place].close()


@pytest.fixture
def served() -> Iterator[Served]:
    found = Served()
    yield found
    found.end()


@pytest.fixture
def client(served: Served) -> Client:
    """A client whose launch stands before its first statement."""
    talk = served.client
    assert talk.get("initialize", adapterID="warpsim") == CAPABILITIES
    talk.get("launch", program="k.ptx", stopOnEntry=True)
    talk.event("initialized")
    talk.get("configurationDone")
    assert talk.event("stopped")["reason"] == "entry"
    return talk


def frame(client: Client, thread: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = client.get("stackTrace", threadId=thread)["stackFrames"][0]
    return found


def variables(client: Client, scope: str) -> dict[str, str]:
    scopes = client.get("scopes", frameId=frame(client)["id"])["scopes"]
    number = next(each["variablesReference"] for each in scopes if each["name"] == scope)
    return {
        each["name"]: each["value"]
        for each in client.get("variables", variablesReference=number)["variables"]
    }


def stop_at(client: Client, text: str, **more: Any) -> dict[str, Any]:
    source = {"path": "/somewhere/<string>"}
    found = client.get("setBreakpoints", source=source, breakpoints=[{"line": line(text), **more}])
    point: dict[str, Any] = found["breakpoints"][0]
    return point


def test_a_process_is_debugged_over_its_standard_streams(tmp_path: Path) -> None:
    """The whole course: launch, breakpoints, steps both ways, values, the end."""
    (tmp_path / "k.ptx").write_text(TEXT)
    np.save(tmp_path / "good.npy", results())
    command = [sys.executable, "-m", "warpsim", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        client = Client(process.stdin, process.stdout)
        client.get("initialize", adapterID="warpsim")
        assert "program is missing" in client.refused("launch")
        assert "none.ptx" in client.refused("launch", program="none.ptx")
        given = {"program": "k.ptx", "block": 64, "args": ["zeros:f32:64", "u32:3"], "expect": ["0=good.npy"]}
        client.get("launch", **given)
        client.event("initialized")
        source = {"path": str(tmp_path / "k.ptx")}
        points = [{"line": line("bar.sync 0;"), "condition": "lane == 5"}, {"line": 9999}]
        found = client.get("setBreakpoints", source=source, breakpoints=points)["breakpoints"]
        assert [each["verified"] for each in found] == [True, False]
        client.get("configurationDone")
        stopped = client.event("stopped")
        assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("breakpoint", [found[0]["id"]])
        assert [each["name"] for each in client.get("threads")["threads"]] == [
            "CTA (0, 0, 0), warp 0",
            "CTA (0, 0, 0), warp 1",
        ]
        here = frame(client)
        assert (here["name"], here["line"]) == ("k", line("bar.sync 0;"))
        assert here["source"]["path"] == str(tmp_path / "k.ptx")
        assert client.get("evaluate", expression="%r4", frameId=here["id"])["result"] == "0x0000001e"
        client.moved("stepBack", granularity="instruction")
        assert frame(client)["line"] == line("st.shared.u32 [%r6], %r4;")
        client.moved("continue")
        assert client.moved("continue")["reason"] == "end"
        assert client.moved("reverseContinue")["reason"] == "breakpoint"
        client.moved("continue")
        client.get("continue", threadId=1)
        assert client.event("exited") == {"exitCode": 0}
        client.event("terminated")
        client.get("disconnect")
        assert process.wait(60) == 0
    outputs = [each["body"]["output"] for each in client.log if each.get("event") == "output"]
    assert any("64 elements equal, bit for bit" in text for text in outputs)


def test_scopes_show_registers_of_every_frame(client: Client) -> None:
    client.get("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    client.moved("continue")
    frames = client.get("stackTrace", threadId=1)["stackFrames"]
    assert [each["name"] for each in frames] == ["twice", "k"]
    assert client.get("stackTrace", threadId=1, startFrame=1, levels=1)["stackFrames"][0]["name"] == "k"
    client.moved("stepIn")
    assert variables(client, "Registers") == {"%t1": "0x00000000"}
    assert variables(client, "Special registers")["%laneid"] == "0"
    outer = client.get("stackTrace", threadId=1)["stackFrames"][1]
    scopes = client.get("scopes", frameId=outer["id"])["scopes"]
    assert [each["name"] for each in scopes] == ["At this statement", "Registers", "Special registers"]
    held = client.get("variables", variablesReference=scopes[1]["variablesReference"])["variables"]
    assert {"%r1", "%r2", "%r3"} <= {each["name"] for each in held}
    client.moved("stepOut")
    assert frame(client)["line"] == line("ld.param.b32 %r4, [b]; }")


def test_hit_counts_log_points_and_data_breakpoints(client: Client) -> None:
    assert stop_at(client, ADD, hitCondition=">= 3")["verified"]
    client.moved("continue")
    assert variables(client, "At this statement")["%r3"] == "0x00000000"
    client.get("evaluate", expression="%r1")
    assert client.get("evaluate", expression="%r1", context="hover")["result"] == "0x00000001"
    assert stop_at(client, ADD, logMessage="r1 is {%r1}")["verified"]
    client.get("restart")
    client.event("stopped")
    client.get("continue", threadId=1)
    lines = [client.event("output")["output"] for _ in range(3)]
    assert lines == [f"r1 is 0x0000000{count}\n" for count in (3, 2, 1)]
    client.event("stopped")
    stop_at(client, "bar.sync 0;")
    name = "arg0[44]"
    assert client.get("dataBreakpointInfo", name=name)["dataId"] == name
    assert client.get("dataBreakpointInfo", name="nothing")["dataId"] is None
    assert client.get("setDataBreakpoints", breakpoints=[{"dataId": name}])["breakpoints"][0]["verified"]
    assert client.moved("reverseContinue")["reason"] == "data breakpoint"
    assert frame(client, 2)["line"] == line("st.global.f32 [%rd3], %f1;")


def test_memory_statements_and_completions(client: Client) -> None:
    stop_at(client, "xor.b32 %r7, %r6, 4;")
    client.moved("continue")
    found = client.get("readMemory", memoryReference="shared 0", offset=8, count=8)
    assert np.frombuffer(base64.b64decode(found["data"]), np.uint32).tolist() == [12, 18]
    assert found["address"] == "0x8"
    part = client.get("readMemory", memoryReference="shared 240", count=64)
    assert part["unreadableBytes"] == 48
    assert client.get("readMemory", memoryReference="shared 4000", count=4)["unreadableBytes"] == 4
    pointer = frame(client)["instructionPointerReference"]
    statements = client.get("disassemble", memoryReference=pointer, instructionOffset=-1, instructionCount=3)[
        "instructions"
    ]
    assert [each["instruction"] for each in statements][1] == "xor.b32 %r7, %r6, 4;"
    early = client.get("disassemble", memoryReference="0x0", instructionOffset=-2, instructionCount=2)
    assert {each["presentationHint"] for each in early["instructions"]} == {"invalid"}
    assert "%r7" in [
        each["label"] for each in client.get("completions", text="print %r", column=9)["targets"]
    ]
    assert client.get("source", sourceReference=1)["content"] == TEXT
    assert client.get("evaluate", expression="info warps", context="repl")["result"].startswith("* warp 0")


def test_findings_and_errors_are_exceptions() -> None:
    found = Served()
    talk = found.client
    talk.get("launch", program="k.ptx", options={"most_statements": 20})
    talk.get("configurationDone")
    assert talk.event("stopped")["reason"] == "exception"
    about = talk.get("exceptionInfo", threadId=1)
    assert about["exceptionId"] == "Fault"
    assert "not ended after 20 statements" in about["description"]
    talk.get("stepBack", threadId=1)
    assert talk.event("stopped")["reason"] == "step"
    assert "for no exception" in talk.refused("exceptionInfo", threadId=1)
    found.end()


def test_breakpoints_before_the_launch_are_set_by_it(served: Served) -> None:
    client = served.client
    client.get("initialize", linesStartAt1=False)
    found = client.get("setFunctionBreakpoints", breakpoints=[{"name": "mnemonic bar"}])
    assert not found["breakpoints"][0]["verified"]
    client.get("launch", program="k.ptx")
    client.get("setExceptionBreakpoints", filters=[])
    client.get("configurationDone")
    assert client.event("stopped")["reason"] == "breakpoint"
    assert frame(client)["line"] == line("bar.sync 0;") - 1
    assert client.get("pause", threadId=1) == {}
    client.moved("next")


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("nonsense", {}, "not supported"),
        ("setVariable", {}, "not supported"),
        ("launch", {"program": "k.ptx"}, "has begun already"),
        ("attach", {}, "nothing to attach to"),
        ("continue", {}, "threadId is missing"),
        ("continue", {"threadId": "x"}, "expected a whole number"),
        ("next", {"threadId": 77}, "no thread 77"),
        ("stackTrace", {"threadId": True}, "expected a whole number"),
        ("scopes", {"frameId": 99}, "no frame 99"),
        ("variables", {"variablesReference": 99}, "no variables 99"),
        ("evaluate", {}, "expected a text"),
        ("evaluate", {"expression": "%r1 +"}, "something is missing"),
        ("evaluate", {"expression": "run", "context": "repl"}, "a button"),
        ("evaluate", {"expression": "1", "frameId": 7}, "no frame 7"),
        ("setBreakpoints", {}, "no path"),
        ("setBreakpoints", {"source": [], "breakpoints": []}, "expected an object"),
        ("setBreakpoints", {"source": {"path": "k"}, "breakpoints": [1]}, "a list of objects"),
        ("readMemory", {"memoryReference": "nowhere", "count": 4}, "nothing is named nowhere"),
        ("disassemble", {"memoryReference": "x"}, "the number of a statement"),
        ("completions", {"text": "a"}, "column is missing"),
    ],
)
def test_requests_that_are_wrong_are_answered_by_errors(
    client: Client, command: str, arguments: dict[str, Any], message: str
) -> None:
    assert message in client.refused(command, **arguments)
    assert frame(client)["name"] == "k"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"condition": "%r3 =="}, "something is missing"),
        ({"hitCondition": "often"}, "expected a count"),
        ({"condition": 3}, "expected a text"),
    ],
)
def test_breakpoints_that_are_wrong_are_not_verified(client: Client, more: Any, message: str) -> None:
    found = stop_at(client, ADD, **more)
    assert not found["verified"]
    assert message in found["message"]
    assert client.moved("continue")["reason"] == "end"


def test_a_disconnect_that_is_wrong_ends_the_session() -> None:
    """The stream stays open: a client that waits for the process waited for ever."""
    (there, here), sink = os.pipe(), io.BytesIO()
    last = b'{"seq": 1, "type": "request", "command": "disconnect", "arguments": "x"}'
    os.write(here, framed(last))
    with os.fdopen(there, "rb") as source:
        thread = Thread(target=Adapter(source, sink, begin).serve, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        os.close(here)
    assert b"disconnect: arguments are an object" in sink.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *(b"{", b"[]", b"\xff\xfe", b"{}", b"[" * 9999, b'{"type": 1}'),
        b'{"seq": 1, "type": "request", "command": 5}',
        b'{"seq": 1, "type": "request", "command": "launch", "arguments": 3}',
    ],
)
def test_nonsense_is_answered_and_the_session_goes_on(content: bytes) -> None:
    sink = io.BytesIO()
    last = {"seq": 2, "type": "request", "command": "disconnect"}
    Adapter(io.BytesIO(framed(content) + framed(last)), sink, begin).serve()
    said = sink.getvalue()
    assert b'"command": "disconnect", "success": true' in said
    assert said.count(b"Content-Length") == 2
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    "content", [b"", b"Content-Length: x\r\n\r\n{}", b"\r\n", b"Content-Length: 99\r\n\r\n{}", b"A" * 9999]
)
def test_streams_that_break_off_end_the_adapter(content: bytes) -> None:
    sink = io.BytesIO()
    Adapter(io.BytesIO(content), sink, begin).serve()
    assert b"Traceback" not in sink.getvalue()


def test_hit_conditions() -> None:
    assert [hits for hits in range(1, 8) if hit_condition("%3")(hits)] == [3, 6]
    assert [hits for hits in range(1, 8) if hit_condition("== 2")(hits)] == [2]
    assert [hits for hits in range(1, 8) if hit_condition("> 5")(hits)] == [6, 7]
    assert [hits for hits in range(1, 8) if hit_condition("6")(hits)] == [6, 7]
    with pytest.raises(OperandError, match="expected a count"):
        hit_condition("0")


def test_expressions_are_those_of_their_frame(client: Client) -> None:
    client.get("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    client.get("continue", threadId=1)
    client.event("stopped")
    frames = client.get("stackTrace", threadId=1)["stackFrames"]
    assert [each["name"] for each in frames] == ["twice", "k"]
    inner, outer = ({"expression": "%r2", "frameId": each["id"]} for each in frames)
    assert client.get("evaluate", **outer)["result"] == "0x00000000"
    assert "nothing is named %r2 here" in client.refused("evaluate", **inner)


def test_the_end_has_a_frame_without_variables(client: Client) -> None:
    client.get("continue", threadId=1)
    assert client.event("stopped")["reason"] == "end"
    (last,) = client.get("stackTrace", threadId=1)["stackFrames"]
    assert (last["name"], last["line"]) == ("the launch has ended", line("ret;"))
    assert client.get("scopes", frameId=last["id"]) == {"scopes": []}
    assert client.get("evaluate", expression="arg0[3]", frameId=last["id"])["result"] == "12 (0x41400000)"


def test_without_debugging_nothing_stops(served: Served) -> None:
    talk = served.client
    talk.get("initialize", adapterID="warpsim")
    talk.get("launch", program="k.ptx", noDebug=True, stopOnEntry=True)
    talk.event("initialized")
    answer = talk.get("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])
    assert not answer["breakpoints"][0]["verified"]
    talk.get("configurationDone")
    assert talk.event("exited") == {"exitCode": 0}
    talk.event("terminated")


def test_a_line_without_statements_stops_at_the_next(client: Client) -> None:
    source = client.get("stackTrace", threadId=1)["stackFrames"][0]["source"]
    name = source.get("path") or source["name"]
    wanted = [{"line": line("LOOP:")}]
    (found,) = client.get("setBreakpoints", source={"path": name}, breakpoints=wanted)["breakpoints"]
    assert (found["verified"], found["line"]) == (True, line(ADD))
