"""All commands by name, with their usage; how a line becomes a command, and what completes it.

To add a command: a function that takes session and text, and a row here. Knows names; not what they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from ....base.errors import OperandError
from ....workbench.debugger.stepping import Unit
from ....workbench.debugger.travel import Travel
from . import (
    fragment_commands,
    frame_commands,
    memory_commands,
    moving,
    point_commands,
    thread_commands,
    value_commands,
)
from .origin_commands import origins

Action = Callable[[Travel, str], str]


@dataclass(frozen=True)
class Command:
    """A command: its names, the first in full, what follows them, what it does in words, and what it does."""

    names: tuple[str, ...]
    usage: str
    summary: str
    action: Action


@dataclass(frozen=True)
class Group:
    """Commands that belong together."""

    title: str
    commands: tuple[Command, ...]


def _help(session: Travel, text: str) -> str:
    """Return the commands, or one of them with its names."""
    if not text:
        return "\n".join(_listing())
    found = find(text.split()[0])
    other = f"\n  also: {', '.join(found.names[1:])}" if found.names[1:] else ""
    return f"{found.names[0]} {found.usage}".rstrip() + f"\n  {found.summary}{other}"


def _why(session: Travel, text: str) -> str:
    """Return what the lane waits for, or where an element comes from."""
    return origins(session, text) if text else thread_commands.why(session, text)


def _listing() -> Iterator[str]:
    width = max(len(f"{row.names[0]} {row.usage}") for group in GROUPS for row in group.commands)
    for group in GROUPS:
        yield f"{group.title}:"
        for row in group.commands:
            yield f"  {f'{row.names[0]} {row.usage}':<{min(width, 34)}}  {row.summary}"
    yield "A prefix of a name that is no other's is enough. An empty line repeats a step."


def _stepping(step: Callable[..., str]) -> Iterator[Action]:
    """Yield a step by line, over calls, by statement, and by statement over calls."""
    units: tuple[Unit, ...] = ("line", "statement")
    return (partial(step, unit=unit, over=over) for unit in units for over in (False, True))


_step, _next, _stepi, _nexti = _stepping(moving.step)
_back, _back_over, _backi, _backi_over = _stepping(moving.reverse_step)
# fmt: off
_STEPS = "[COUNT]"
GROUPS = (
    Group(
        "Forwards",
        (
            Command(("run", "r"), "", "begin the launch again, and go to the first stop", moving.run),
            Command(("start",), "", "begin the launch again, stop before its first statement", moving.start),
            Command(("continue", "c"), _STEPS, "go on to the next stop", moving.continue_),
            Command(("step", "s"), _STEPS, "go on to another line of the source", _step),
            Command(("next", "n"), _STEPS, "the same, over functions that are called", _next),
            Command(("stepi", "si"), _STEPS, "go on to the next statement of the PTX", _stepi),
            Command(("nexti", "ni"), _STEPS, "the same, over functions that are called", _nexti),
            Command(("finish", "fin"), "", "go on until the function returns", moving.finish),
            Command(("until", "u"), "[PLACE]", "go on behind a loop, or to a place", moving.until),
            Command(("goto",), "TIME", "go to a position in time, forwards or backwards", moving.goto),
        ),
    ),
    Group(
        "Backwards",
        (
            Command(
                ("reverse-continue", "rc"), _STEPS, "go back to the last stop", moving.reverse_continue
            ),
            Command(("reverse-step", "rs"), _STEPS, "go back to where a line begins", _back),
            Command(("reverse-next", "rn"), _STEPS, "the same, over functions", _back_over),
            Command(("reverse-stepi", "rsi"), _STEPS, "go back by a statement", _backi),
            Command(("reverse-nexti", "rni"), _STEPS, "the same, over functions", _backi_over),
            Command(("reverse-finish",), "", "go back to the call of the function", moving.reverse_finish),
        ),
    ),
    Group(
        "Stops",
        (
            Command(
                ("break", "b"),
                "PLACE [if EXPRESSION]",
                "stop at gemm.cu:153, 120, a function, kernel, mnemonic mma",
                point_commands.break_,
            ),
            Command(("tbreak", "tb"), "PLACE [if EXPRESSION]", "the same, once", point_commands.tbreak),
            Command(
                ("watch", "w"),
                "WHAT [if EXPRESSION]",
                "stop where it is written: %r5, shared+0x400, u16 shared+4, arg2[3,5], tmem[3,5]",
                point_commands.watch,
            ),
            Command(("delete", "d"), "[NUMBER ...]", "delete these, or all", point_commands.delete),
            Command(("enable",), "NUMBER ...", "let them stop again", point_commands.enable),
            Command(("disable",), "NUMBER ...", "let them stop no more", point_commands.disable),
            Command(("ignore",), "NUMBER COUNT", "pass over the next COUNT hits", point_commands.ignore),
        ),
    ),
    Group(
        "Looking",
        (
            Command(
                ("print", "p", "inspect"),
                "[/FORMAT] EXPRESSION [lanes]",
                "print a value, of the lane or of all lanes; /x /d /u /f /t /h2 /bf2 /e4m3 ...",
                value_commands.print_,
            ),
            Command(
                ("fragment",),
                "a|b|c|d|metadata[PART]",
                "print an operand of the mma at hand: [0:8,0:8], [3,5], lane 5",
                fragment_commands.fragment,
            ),
            Command(
                ("tile",),
                "ADDRESS as FORMAT ... ROWSxCOLUMNS",
                "print memory as a matrix: tile smem+0x400 as f16 swizzle 128B 64x64",
                memory_commands.tile,
            ),
            Command(
                ("x",),
                "[/COUNT FORMAT SIZE] ADDRESS",
                "print memory, as in x/8xw shared+0x400, tmem[3,0]; sizes b h w g",
                memory_commands.examine,
            ),
            Command(("origins",), "[OPERAND]", "print which elements of arrays b, or b[0,4], is", origins),
            Command(("list", "l"), "[LINE]", "print lines of the source or the PTX", value_commands.list_),
            Command(("info", "i"), "TOPIC", ", ".join(thread_commands.TOPICS), thread_commands.info),
            Command(("where",), "", "print where the session stands", value_commands.where),
            Command(("backtrace", "bt"), "", "print the calls", frame_commands.backtrace),
            Command(("frame", "f"), "[NUMBER]", "look at a call, by its number there", frame_commands.frame),
            Command(("up",), "[COUNT]", "look at the caller", frame_commands.up),
            Command(("down",), "[COUNT]", "look at what is called", frame_commands.down),
            Command(("why",), "[ELEMENT]", "print what the lane waits for, the error, or as origins", _why),
            Command(("schedule",), "", "print which lanes are next, which wait", thread_commands.schedule),
        ),
    ),
    Group(
        "Focus",
        (
            Command(("cta",), "X[,Y[,Z]]", "look at another CTA", thread_commands.cta),
            Command(("warp",), "NUMBER", "look at another warp", thread_commands.warp),
            Command(("lane",), "NUMBER", "look at another lane", thread_commands.lane),
        ),
    ),
    Group(
        "Session",
        (
            Command(("help", "h"), "[COMMAND]", "print the commands, or about a command", _help),
            Command(("quit", "q", "exit"), "", "end the session", lambda session, text: ""),
        ),
    ),
)
COMMANDS = {name: row for group in GROUPS for row in group.commands for name in row.names}


ELSEWHERE = {  # commands of other debuggers, and what there is in their place
    "block": "cta X,Y,Z looks at another CTA",
    "call": "a launch is looked at, not changed",
    "checkpoint": "goto TIME goes to any position, and info time lists checkpoints",
    "condition": "delete the breakpoint, and set it again with if EXPRESSION",
    "cuda": "cta, warp, lane and info warps are commands without cuda before them",
    "disassemble": "list LINE prints lines of the source, and stepi goes by statements of the PTX",
    "display": "print shows a value where the launch stands",
    "file": "the kernel is an argument of warpsim debug",
    "jump": "goto TIME goes to a position in time; a launch is looked at, not changed",
    "record": "every launch goes backwards: reverse-step, reverse-continue",
    "set": "a launch is looked at, not changed: give it other arguments",
    "thread": "warp NUMBER and lane NUMBER look at another thread, info lanes lists them",
    "tui": "list prints the source around the statement",
}


def find(name: str) -> Command:
    """Return the command of a name, or of a prefix of a name. Raises OperandError with what is near."""
    if name in COMMANDS:
        return COMMANDS[name]
    found = {row.names[0]: row for known, row in COMMANDS.items() if known.startswith(name)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise OperandError(f"{name} may be {', '.join(found)}")
    if name in ELSEWHERE:
        raise OperandError(f"there is no command {name}: {ELSEWHERE[name]}")
    near = get_close_matches(name, COMMANDS, 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else "; help lists the commands"
    raise OperandError(f"there is no command {name if name.isprintable() else ascii(name)}{hint}")


def split(line: str) -> tuple[str, str]:
    """Return the name and the rest of a line; print/x and x/8xw are a name and a format."""
    stripped = line.strip()
    end = next((place for place, letter in enumerate(stripped) if letter in " \t/"), len(stripped))
    return stripped[:end], stripped[end:].strip()


def is_end(line: str) -> bool:
    """Return whether a line ends the session."""
    name, _ = split(line)
    try:
        return bool(name) and find(name).names[0] == "quit"
    except OperandError:
        return False


def repeats(line: str) -> bool:
    """Return whether an empty line repeats a line: commands that move do, from where they came to."""
    name, _ = split(line)
    try:
        row = find(name) if name else None
    except OperandError:
        return False
    return any(row is each for group in GROUPS[:2] for each in group.commands)


def execute(session: Travel, line: str) -> str:
    """Execute a line; return what it prints. Empty lines and comments (#) do nothing. Raises OperandError."""
    name, rest = split(line)
    if not name or name.startswith("#"):
        return ""
    text = find(name).action(session, rest)
    return "\n".join(filter(None, (session.output().rstrip("\n"), text)))


def completions(session: Travel, line: str) -> list[str]:
    """Return the words that the last word of a line may become."""
    name, space, rest = line.lstrip().partition(" ")
    if not space:
        return sorted(known for known in COMMANDS if known.startswith(name))
    word = rest.rpartition(" ")[2]
    try:
        command = find(name).names[0]
    except OperandError:
        return []
    return sorted({each for each in _known(session, command) if each.startswith(word)})[:_MOST]


def _known(session: Travel, command: str) -> Iterable[str]:
    """Return the words that a command takes."""
    match command:
        case "info":
            return thread_commands.TOPICS
        case "help":
            return COMMANDS
        case "break" | "tbreak" | "until":
            return point_commands.places(session)
        case "print" | "watch":
            return value_commands.names(session)
    return ()


_MOST = 200
