"""Requests that look: threads, frames, scopes, variables, expressions, memory, statements.

Warps are threads. References that a client was given are valid until the launch goes on. Knows what a client
sees; does not know how a launch is moved.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ....base.errors import OperandError, SourceLine
from ....isa.numerals import integer_in
from ....isa.warps import WARP
from ....machine.opcodes.special_registers import REGISTERS
from ....machine.run.wave import Wave
from ....observe.stops.areas import memory_of
from ....observe.stops.contexts import At, Standing, names_in, register_named, registers_of, written_registers
from ....observe.stops.values import shown
from ....workbench.debugger.addresses import address_of, offset_of
from ....workbench.debugger.call_frames import Call, calls_of
from ..commands.command_table import COMMANDS, completions, split
from ..commands.fragment_commands import fragment_at, has_fragments
from ..commands.value_commands import printed
from ..session import Session
from .wire import Arguments

_SPECIAL = ("%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%laneid", "%warpid", "%ntid.x")
_MOST_THREADS = 512
_MOST_STATEMENTS = 4096
_ENDED = 1  # the thread of a launch that has ended
Variables = Callable[[], Iterator[dict[str, Any]]]


class State:
    """What a client asks about a session that stands."""

    def __init__(self, session: Session, first_line: int) -> None:
        self.session = session
        self.first_line = first_line
        self._frames: list[tuple[Standing, Call] | None] = []  # None of a launch that has ended
        self._variables: list[Variables] = []
        self.requests: dict[str, Callable[[Arguments], Any]] = {
            "threads": self._threads,
            "stackTrace": self._stack_trace,
            "scopes": self._scopes,
            "variables": self._of_reference,
            "evaluate": self._evaluate,
            "completions": self._completions,
            "source": self._source,
            "readMemory": self._read_memory,
            "disassemble": self._disassemble,
            "exceptionInfo": self._exception_info,
            "dataBreakpointInfo": self._data_breakpoint_info,
        }

    def forget(self) -> None:
        """Forget the references that a client was given: the launch has gone on."""
        self._frames.clear()
        self._variables.clear()

    # --- threads --------------------------------------------------------------------------------------

    def _warps(self) -> Iterator[tuple[int, Wave, int]]:
        """Yield number, wave and warp of the threads: the warps of the waves that run."""
        execution = self.session.execution
        for wave in () if execution is None else execution.waves:
            if wave is None:
                continue
            x, y, _ = wave.grid
            ctas = wave.ctas @ np.array([1, x, x * y])
            for warp in range(len(ctas) * wave.warps):
                if wave.alive_mask[WARP * warp : WARP * (warp + 1)].any():
                    yield int(ctas[warp // wave.warps]) * wave.warps + warp % wave.warps + 1, wave, warp

    def thread(self) -> int:
        """Return the thread of the focus."""
        try:
            _, wave, lane = self.session.wave()
        except OperandError:
            return _ENDED
        return next(
            (number for number, own, warp in self._warps() if own is wave and warp == lane // WARP), _ENDED
        )

    def look_at_thread(self, number: int) -> None:
        """Move the focus to a thread; the lane stays where the warp is that of the focus. Raises
        OperandError.
        """
        if number == self.thread():
            return
        for known, wave, warp in self._warps():
            if known == number:
                alive = np.flatnonzero(wave.alive_mask[WARP * warp : WARP * (warp + 1)])
                self.session.look_at(wave, WARP * warp + int(alive[0]))
                return
        raise OperandError(f"there is no thread {number}")

    def _threads(self, arguments: Arguments) -> Any:
        found = []
        for number, wave, warp in self._warps():
            cta = ", ".join(map(str, wave.ctas[warp // wave.warps].tolist()))
            found.append({"id": number, "name": f"CTA ({cta}), warp {warp % wave.warps}"})
        ended = [{"id": _ENDED, "name": "the launch has ended"}]
        return {"threads": found[:_MOST_THREADS] or ended}

    # --- frames ---------------------------------------------------------------------------------------

    def _stack_trace(self, arguments: Arguments) -> Any:
        self.look_at_thread(arguments.number("threadId"))
        try:
            here = self.session.standing()
        except OperandError:
            return self._end_frames()
        calls = [*calls_of(here, self.session.kernel.name)]
        first, levels = arguments.number("startFrame", 0), arguments.number("levels", 0)
        wanted = calls[max(first, 0) :][: levels if levels > 0 else None]
        return {"stackFrames": [self._frame(here, call) for call in wanted], "totalFrames": len(calls)}

    def _end_frames(self) -> Any:
        """Return the line at which a launch has ended, so that an editor has a place to show."""
        execution = self.session.execution
        if execution is None or execution.ended is None or execution.moment is None:
            return {"stackFrames": [], "totalFrames": 0}
        self._frames.append(None)
        location = self.session.module.code[execution.moment.pc].statement.location()
        place = self._place(location.source, location.line)
        frame = {"id": len(self._frames), "name": "the launch has ended", "column": 1, **place}
        return {"stackFrames": [frame], "totalFrames": 1}

    def _frame(self, here: Standing, call: Call) -> dict[str, Any]:
        self._frames.append((here, call))
        code, wanted = self.session.module.code, call.record.statement
        pc = next((pc for pc, each in enumerate(code) if each.statement is wanted), 0)
        return {
            "id": len(self._frames),
            "name": call.name,
            "column": 1,
            "instructionPointerReference": hex(pc),
            **self._place(call.source, call.location.line),
        }

    def _place(self, source: SourceLine | None, line: int) -> dict[str, Any]:
        """Return source and line: of the CUDA source where it can be read, else ``line`` of the PTX."""
        shift = self.first_line - 1
        if source is not None and Path(source.file).exists():
            path = Path(source.file).resolve()
            return {"source": {"name": path.name, "path": str(path)}, "line": source.line + shift}
        return {"source": self._ptx(), "line": line + shift}

    def _ptx(self) -> dict[str, Any]:
        """Return the source that the PTX is: a file, or the text that a compiler gave."""
        path = Path(self.session.module.program.source.file)
        if path.exists():
            return {"name": path.name, "path": str(path.resolve())}
        return {"name": path.name, "sourceReference": 1}

    def _source(self, arguments: Arguments) -> Any:
        return {"content": self.session.module.program.source.text, "mimeType": "text/x-ptx"}

    # --- variables ------------------------------------------------------------------------------------

    def _kept_frame(self, arguments: Arguments) -> tuple[Standing, Call] | None:
        number = arguments.number("frameId")
        if not 1 <= number <= len(self._frames):
            raise OperandError(f"there is no frame {number} where the launch stands")
        return self._frames[number - 1]

    def _look_at_frame(self, arguments: Arguments) -> None:
        """Move the focus to the lane and the call of a frame. Raises OperandError."""
        kept = self._kept_frame(arguments)
        if kept is None:
            return
        here, call = kept
        self.session.look_at(here.wave, here.lane)
        levels = [calls[0].frame for calls in self.session.frames()]
        self.session.look_at_frame(next(level for level, own in enumerate(levels) if own is call.frame))

    def _scopes(self, arguments: Arguments) -> Any:
        kept = self._kept_frame(arguments)
        if kept is None:
            return {"scopes": []}
        here, call = kept
        at = replace(self.session.at_record(here, call.record), frame=call.frame)
        scopes = [
            ("At this statement", "registers", lambda: _registers(here, at, registers_of(call.record))),
            ("Registers", "registers", lambda: _registers(here, at, names_in(call.record.scope))),
            ("Special registers", "registers", lambda: _special(here, at)),
        ]
        if call.frame is here.frame and has_fragments(here, at):
            scopes.append(("Fragments", "locals", lambda: self._fragments(here, at)))
        return {
            "scopes": [
                {
                    "name": name,
                    "presentationHint": hint,
                    "variablesReference": self._kept(make),
                    "expensive": False,
                }
                for name, hint, make in scopes
            ]
        }

    def _kept(self, make: Variables) -> int:
        self._variables.append(make)
        return len(self._variables)

    def _of_reference(self, arguments: Arguments) -> Any:
        number = arguments.number("variablesReference")
        if not 1 <= number <= len(self._variables):
            raise OperandError(f"there are no variables {number} where the launch stands")
        found = [*self._variables[number - 1]()]
        start, count = arguments.number("start", 0), arguments.number("count", 0)
        return {"variables": found[max(start, 0) :][: count if count > 0 else None]}

    def _fragments(self, here: Standing, at: At) -> Iterator[dict[str, Any]]:
        """Yield the operands of the matrix instruction, each of which has its rows."""
        for operand in ("a", "b", "c", "d", "e", "scale_a", "scale_b"):
            try:
                found = fragment_at(here, at, operand)
            except OperandError:
                continue
            name = "metadata" if operand == "e" else operand.upper()

            def rows(found: Any = found) -> Iterator[dict[str, Any]]:
                for row in range(found.shape[0]):
                    keys = [key for key in found.values if key[0] == row]

                    def cells(keys: Any = keys, found: Any = found) -> Iterator[dict[str, Any]]:
                        for key in keys:
                            yield _variable(
                                f"[{key[0]},{key[1]}]", f"{found.values[key]}: {found.details[key]}"
                            )

                    text = ", ".join(found.values[key] for key in keys)
                    yield {**_variable(f"row {row}", text), "variablesReference": self._kept(cells)}

            text = f"{found.shape[0]} x {found.shape[1]}"
            yield {**_variable(name, text), "variablesReference": self._kept(rows)}

    # --- expressions ----------------------------------------------------------------------------------

    def _evaluate(self, arguments: Arguments) -> Any:
        text, context = arguments.text("expression"), arguments.text("context", default="watch")
        if "frameId" in arguments.given:
            self._look_at_frame(arguments)
        name, _ = split(text)
        if context == "repl" and name in COMMANDS:
            return {"result": self._command(name, text), "variablesReference": 0}
        letters = ""
        if text.rstrip().endswith((",x", ",d", ",t", ",f", ",h2", ",bf2")):
            text, _, letters = text.rstrip().rpartition(",")
        return {"result": printed(self.session, text, letters), "variablesReference": 0}

    def _command(self, name: str, text: str) -> str:
        """Execute a command that looks; those that move have buttons."""
        moving = ("Forwards", "Backwards", "Stops", "Session")
        from ..commands.command_table import GROUPS

        row = COMMANDS[name]
        if name not in ("help", "h") and any(
            row in group.commands for group in GROUPS if group.title in moving
        ):
            raise OperandError(f"{row.names[0]} is a button or a breakpoint of the editor")
        return self.session.do(text)

    def _completions(self, arguments: Arguments) -> Any:
        text, column = arguments.text("text"), arguments.number("column")
        line = text[: max(column - self.first_line, 0)]
        length = len(line.rpartition(" ")[2])
        return {"targets": [{"label": word, "length": length} for word in completions(self.session, line)]}

    # --- memory and statements ------------------------------------------------------------------------

    def _read_memory(self, arguments: Arguments) -> Any:
        given = address_of(self.session, arguments.text("memoryReference"))
        given = replace(given, address=given.address + arguments.number("offset", 0))
        count = min(max(arguments.number("count"), 0), 1 << 20)
        readable = count
        while readable:
            try:
                first = offset_of(self.session, given, readable)
                break
            except OperandError:
                readable = readable // 2 if readable > 1 else 0
        memory = memory_of(self.session.wave()[1], given.space)
        content = memory[first : first + readable].tobytes() if readable else b""
        unread = {"unreadableBytes": count - readable} if readable < count else {}
        return {"address": hex(given.address), "data": base64.b64encode(content).decode(), **unread}

    def _disassemble(self, arguments: Arguments) -> Any:
        pc = integer_in(arguments.text("memoryReference"))
        if pc is None:
            raise OperandError("disassemble: memoryReference is the number of a statement")
        first = pc + arguments.number("instructionOffset", 0)
        count = min(max(arguments.number("instructionCount"), 0), _MOST_STATEMENTS)
        return {"instructions": [self._statement(number) for number in range(first, first + count)]}

    def _statement(self, number: int) -> dict[str, Any]:
        code = self.session.module.code
        address = hex(max(number, 0)) if number >= 0 else f"-{hex(-number)}"
        if not 0 <= number < len(code):
            return {"address": address, "instruction": "", "presentationHint": "invalid"}
        statement = code[number].statement
        line = statement.location().line + self.first_line - 1
        return {"address": address, "instruction": str(statement), "location": self._ptx(), "line": line}

    # --- exceptions and data --------------------------------------------------------------------------

    def _exception_info(self, arguments: Arguments) -> Any:
        stop = self.session.last
        if stop.error is not None:
            kind = getattr(getattr(stop.error, "finding", None), "kind", type(stop.error).__name__)
            text, details = stop.error.message, str(stop.error)
        elif stop.finding is not None:
            kind, text, details = stop.finding.kind, stop.finding.message, str(stop.finding)
        else:
            raise OperandError("the launch has stopped for no exception")
        return {
            "exceptionId": kind,
            "description": text,
            "breakMode": "always",
            "details": {"message": text, "typeName": kind, "stackTrace": details},
        }

    def _data_breakpoint_info(self, arguments: Arguments) -> Any:
        name = arguments.text("name")
        if name.startswith("%") and name not in REGISTERS:
            here = self.session.standing()
            if register_named(here.record.scope, name) is not None:
                return {"dataId": name, "description": f"{name} is written", "accessTypes": ["write"]}
        try:
            address_of(self.session, name)
        except OperandError as error:
            return {"dataId": None, "description": error.message}
        return {"dataId": name, "description": f"{name} is written", "accessTypes": ["write"]}


def _registers(here: Standing, at: At, names: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield registers that have been written in a lane."""
    for name, kind, word in written_registers(at, names, here.lane):
        yield {**_variable(name, shown(word, kind)), "type": f".{kind}", "evaluateName": name}


def _special(here: Standing, at: At) -> Iterator[dict[str, Any]]:
    for name in _SPECIAL:
        value = at.named(name)
        yield {
            **_variable(name, str(int(value.words[here.lane]))),
            "type": f".{value.type}",
            "evaluateName": name,
        }


def _variable(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value, "variablesReference": 0}
