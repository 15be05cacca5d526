"""A Debug Adapter: requests of an editor become moves of a session, and stops become events.

Requests are answered in their order, while a thread reads: pause and disconnect stop a launch that runs. A
request that is wrong is answered by an error, whatever it is. Knows the order of the protocol; what requests
return is in state_requests.py. ``begin`` takes the arguments of the launch request and returns a session.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from ....base.errors import OperandError, WarpsimError
from ....observe.stops.points import Stop
from ..commands.moving import change_lines
from ..commands.results import differs, result_lines
from ..session import Session
from .point_requests import Points
from .state_requests import State
from .wire import Arguments, Malformed, Message, Writer, read_message

Begin = Callable[[dict[str, Any]], Session]
_REASONS = {  # of stops, as the protocol calls them
    "start": "entry",
    "breakpoint": "breakpoint",
    "watch": "data breakpoint",
    "finding": "exception",
    "error": "exception",
    "interrupt": "pause",
    "time": "goto",
    "end": "end",
}
CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsDataBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsStepBack": True,
    "supportsSteppingGranularity": True,
    "supportsRestartRequest": True,
    "supportsTerminateRequest": True,
    "supportsCompletionsRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsReadMemoryRequest": True,
    "supportsDisassembleRequest": True,
    "supportsDelayedStackTraceLoading": True,
}


class Adapter:
    """Serves a client on two streams until it disconnects."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, begin: Begin) -> None:
        self._source, self._writer, self._begin = source, Writer(sink), begin
        self._requests: queue.SimpleQueue[Message | Malformed | None] = queue.SimpleQueue()
        self.session: Session | None = None
        self.points = Points()
        self._state: State | None = None
        self._stops_at_entry = self._is_plain = False
        self._ended = False
        self._is_moving = False
        self._moves: dict[str, Callable[[Session, bool], str]] = {
            "continue": lambda session, step: session.do("continue"),
            "next": lambda session, step: session.do("nexti" if step else "next"),
            "stepIn": lambda session, step: session.do("stepi" if step else "step"),
            "stepOut": lambda session, step: session.do("finish"),
            "stepBack": lambda session, step: session.do("reverse-nexti" if step else "reverse-next"),
            "reverseContinue": lambda session, step: session.do("reverse-continue"),
        }

    def serve(self) -> None:
        """Answer requests until the client disconnects, or its stream ends."""
        reader = threading.Thread(target=self._read, name="warpsim-dap", daemon=True)
        reader.start()
        try:
            while not self._ended and (request := self._requests.get()) is not None:
                self._answer(request)
        finally:
            if self.session is not None:
                self.session.close()

    def _read(self) -> None:
        """Read requests; those that stop a launch do so at once."""
        while True:
            try:
                message: Message | Malformed | None = read_message(self._source)
            except Malformed as error:
                message = error
            except (OSError, ValueError):  # the stream is closed
                message = None
            if isinstance(message, dict) and message.get("command") in ("pause", "disconnect", "terminate"):
                session = self.session
                if session is not None and self._is_moving:
                    session.interrupt()
            self._requests.put(message)
            if isinstance(message, dict):
                is_last = message.get("command") == "disconnect"
            else:
                is_last = message is None or message.lost
            if is_last:  # the stream is not held while the process ends
                self._requests.put(None)
                return

    # --- answers --------------------------------------------------------------------------------------

    def event(self, name: str, **body: Any) -> None:
        """Send an event."""
        self._writer.write({"type": "event", "event": name, **({"body": body} if body else {})})

    def output(self, text: str, category: str = "console") -> None:
        """Show a text in the client's console."""
        if text:
            self.event("output", category=category, output=text if text.endswith("\n") else f"{text}\n")

    def _answer(self, request: Message | Malformed) -> None:
        if isinstance(request, Malformed):
            self.output(f"warpsim: {request}", "stderr")
            return
        number, command = request.get("seq"), request.get("command")
        answer = {"type": "response", "request_seq": number if isinstance(number, int) else 0}
        answer["command"] = command if isinstance(command, str) else ""
        after: list[Callable[[], None]] = []
        try:
            body = self._body(request, after)
        except WarpsimError as error:
            self._writer.write({**answer, "success": False, **_failure(error.message)})
        except Exception as error:  # a mistake of the adapter must not end the session
            self._writer.write({**answer, "success": False, **_failure(f"a mistake of warpsim: {error!r}")})
        else:
            self._writer.write({**answer, "success": True, **({} if body is None else {"body": body})})
        for action in after:
            action()

    def _body(self, request: Message, after: list[Callable[[], None]]) -> Any:
        """Return the body of an answer; ``after`` gets what is done behind it. Raises OperandError."""
        command, given = request.get("command"), request.get("arguments", {})
        if request.get("type") != "request" or not isinstance(command, str):
            raise OperandError("the message is not a request with a command")
        if not isinstance(given, dict):
            raise OperandError(f"{command}: arguments are an object")
        arguments = Arguments(command, given)
        if command in self._moves:
            return self._move(command, arguments, after)
        handler = getattr(self, f"_on_{_snake(command)}", None)
        if handler is not None:
            return handler(arguments, after)
        if command.startswith("set") and hasattr(self.points, _snake(command)):
            return getattr(self.points, _snake(command))(arguments)
        state = self._stopped_state()
        known = state.requests.get(command)
        if known is None:
            raise OperandError(f"{command} is not supported")
        return known(arguments)

    def _stopped_state(self) -> State:
        if self._state is None:
            raise OperandError("there is no launch yet: the launch request comes first")
        return self._state

    # --- the course of a session ----------------------------------------------------------------------

    def _on_initialize(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        self.points.first_line = 1 if arguments.flag("linesStartAt1", default=True) else 0
        return CAPABILITIES

    def _on_launch(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        if self.session is not None:
            raise OperandError("the launch has begun already: restart begins it again")
        self._is_plain = arguments.flag("noDebug")
        self._stops_at_entry = arguments.flag("stopOnEntry") and not self._is_plain
        session = self._begin(arguments.given)
        session.log = lambda text: self.output(session.filled(text))
        self.session = session
        self._state = State(session, self.points.first_line)
        if not self._is_plain:
            self.points.take(session)
        after.append(lambda: self.event("initialized"))

    def _on_attach(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        raise OperandError("there is nothing to attach to: launch begins a kernel")

    def _on_configuration_done(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        session = self._stopped_state().session
        after.append(lambda: self._run(session, "start" if self._stops_at_entry else "run"))

    def _on_restart(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        session = self._stopped_state().session
        after.append(lambda: self._run(session, "start" if self._stops_at_entry else "run"))

    def _on_pause(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        self._stopped_state()

    def _on_terminate(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        after.append(self._terminate)

    def _on_disconnect(self, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        self._ended = True

    def _terminate(self) -> None:
        session = self.session
        execution = None if session is None else session.execution
        failed = execution is not None and execution.ended is not None and execution.ended.error is not None
        wrong = session is not None and execution is not None and execution.ended is not None
        self.event("exited", exitCode=int(failed or (wrong and session is not None and differs(session))))
        self.event("terminated")

    # --- moving ---------------------------------------------------------------------------------------

    def _move(self, command: str, arguments: Arguments, after: list[Callable[[], None]]) -> Any:
        """Move after the answer; the stop is an event. At the end of a launch, continue ends the session."""
        session = self._stopped_state().session
        self._stopped_state().look_at_thread(arguments.number("threadId"))
        if session.execution is None:
            raise OperandError("the kernel is not running: configurationDone comes first")
        by_statement = arguments.text("granularity", default="line") == "instruction"
        if command == "continue" and session.execution.ended is not None:
            after.append(self._terminate)
        else:
            move = self._moves[command]
            after.append(lambda: self._moved(session, lambda: move(session, by_statement)))
        return {"allThreadsContinued": True} if command in ("continue", "reverseContinue") else None

    def _run(self, session: Session, command: str) -> None:
        self._moved(session, lambda: session.do(command))

    def _moved(self, session: Session, move: Callable[[], str]) -> None:
        """Move, and send the stop."""
        before = session.last
        self._is_moving = True
        try:
            move()
        except WarpsimError as error:
            self.output(error.message, "stderr")
            session.last = Stop(kind="step", time=session.time) if session.last is before else session.last
        finally:
            self._is_moving = False
        self.output(session.output(), "stdout")
        self.stopped(session)

    def stopped(self, session: Session) -> None:
        """Send where the session has stopped, and why."""
        state, stop = self._stopped_state(), session.last
        state.forget()
        for line in self._stop_lines(session, stop):
            self.output(line)
        if self._is_plain and stop.kind in ("end", "error"):
            self._terminate()
            return
        reason = _REASONS.get(stop.kind, "step")
        body: dict[str, Any] = {"reason": reason, "threadId": state.thread(), "allThreadsStopped": True}
        if stop.hit is not None:
            body["hitBreakpointIds"] = [stop.hit.point.number]
        if stop.error is not None:
            body |= {"description": "error", "text": stop.error.message}
        if stop.finding is not None:
            body |= {"description": stop.finding.kind, "text": stop.finding.message}
        if stop.kind == "end":
            body["description"] = "the launch has ended: step back, or continue to end the session"
        self.event("stopped", **body)

    def _stop_lines(self, session: Session, stop: Stop) -> Iterator[str]:
        """Yield what the console shows of a stop."""
        if stop.kind == "end":
            yield from result_lines(session)
        for change in stop.changes:
            yield from change_lines(session, change)
        if stop.error is not None:
            yield str(stop.error)
        if stop.finding is not None:
            yield str(stop.finding)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _failure(message: str) -> Message:
    """Return the fields of an answer that says what is wrong."""
    body = {"error": {"id": 1, "format": message.replace("{", "(").replace("}", ")"), "showUser": True}}
    return {"message": message, "body": body}
