"""A client of the Debug Adapter Protocol: ``python -m tools.dap_client FILE.ptx [OPTION=VALUE...]``.

It speaks the wire format with ``warpsim debug --dap``, stops at the first matrix instruction, goes back by a
statement, on to the end, and prints what both have sent, a message a line. Tests use it with other requests.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from typing import Any, BinaryIO

PATIENCE = 120  # seconds
WIDEST = 150  # characters of a body


def framed(message: Any) -> bytes:
    """Return a message as bytes."""
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(content) + content


class Client:
    """Sends requests to ``sink``, and takes answers and events from ``source``, which a thread reads."""

    def __init__(self, sink: BinaryIO, source: BinaryIO) -> None:
        self.sink, self.source = sink, source
        self.number = 0
        self.log: list[dict[str, Any]] = []
        self.events: queue.Queue[Any] = queue.Queue()
        self.answers: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while header := self.source.readline():
            size = int(header.partition(b":")[2])
            assert self.source.readline() == b"\r\n"
            message = json.loads(self.source.read(size))
            self.log.append(message)
            (self.events if message["type"] == "event" else self.answers).put(message)

    def send(self, message: Any) -> None:
        """Send a message, of any kind."""
        self.sink.write(framed(message))
        self.sink.flush()

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request; return its answer."""
        self.number += 1
        request = {"seq": self.number, "type": "request", "command": command, "arguments": arguments}
        self.log.append(request)
        self.send(request)
        answer = self.answers.get(timeout=PATIENCE)
        assert (answer["request_seq"], answer["command"]) == (self.number, command)
        return answer

    def get(self, command: str, **arguments: Any) -> Any:
        """Send a request that succeeds; return the body of its answer."""
        answer = self.ask(command, **arguments)
        assert answer["success"], answer
        return answer.get("body", {})

    def refused(self, command: str, **arguments: Any) -> str:
        """Send a request that fails; return why."""
        answer = self.ask(command, **arguments)
        assert not answer["success"], answer
        assert answer["body"]["error"]["format"]
        return answer["message"]

    def event(self, name: str) -> Any:
        """Return the next event of a name; what is before it is passed over."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            if event["event"] == name:
                return event.get("body", {})

    def moved(self, command: str, **arguments: Any) -> Any:
        """Send a request that moves; return where it stops."""
        self.get(command, threadId=1, **arguments)
        return self.event("stopped")


def shown(message: dict[str, Any]) -> str:
    """Return a message on a line: what it is, and its body."""
    kind = message["type"]
    name = message["event"] if kind == "event" else message["command"]
    arrow = "-->" if kind == "request" else "<--"
    body = message.get("arguments") or message.get("body") or message.get("message") or {}
    text = json.dumps(body)
    return f"{arrow} {kind} {name} {text if len(text) <= WIDEST else text[: WIDEST - 4] + ' ...'}"


def main(program: str, *options: str) -> None:
    """Debug a kernel, and print the log."""
    command = [sys.executable, "-m", "warpsim", "debug", "--dap"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        client = Client(process.stdin, process.stdout)
        client.get("initialize", adapterID="warpsim")
        given: dict[str, Any] = {"args": []}
        for name, _, value in (option.partition("=") for option in options):
            if name == "args":
                given["args"].append(value)
            else:
                given[name] = value
        client.get("launch", program=program, **given)
        client.event("initialized")
        client.get("setFunctionBreakpoints", breakpoints=[{"name": "mnemonic wgmma.mma_async"}])
        client.get("configurationDone")
        thread = client.event("stopped")["threadId"]
        client.get("threads")
        frame = client.get("stackTrace", threadId=thread)["stackFrames"][0]["id"]
        client.get("scopes", frameId=frame)
        client.get("evaluate", expression="fragment b[0,4]", frameId=frame, context="repl")
        client.get("stepBack", threadId=thread, granularity="instruction")
        client.event("stopped")
        client.get("setFunctionBreakpoints", breakpoints=[])
        client.get("continue", threadId=thread)
        client.event("stopped")
        client.get("disconnect")
        process.wait(PATIENCE)
    print("\n".join(map(shown, client.log)))


if __name__ == "__main__":
    main(*sys.argv[1:])
