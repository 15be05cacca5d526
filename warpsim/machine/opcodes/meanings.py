"""What opcodes mean as formulas: the rule that computes with keys beside values (observe/algebra), by name.

An opcode that has none is an uninterpreted function there: ``Row.meaning`` is "" then, and a test counts
them. Does not know how a rule computes.
"""

from __future__ import annotations

_OPCODES = {
    # formulas of a field, of all types
    "sum": ("add", "sub", "neg"),
    "product": ("mul", "fma", "mad", "mul24", "mad24"),
    "quotient": ("div", "rcp"),
    "remainder": ("rem",),
    "sum of products": ("dp4a", "dp2a"),
    "sum of differences": ("sad", "vabsdiff4"),
    # functions that have one law, or none
    "exponential": ("ex2",),
    "function": ("tanh", "sqrt", "rsqrt", "lg2", "sin", "cos"),
    "conversion": ("cvt",),
    # the operand that the values choose
    "choice": ("min", "max"),
    "selection": ("selp", "slct"),
    "sign": ("abs", "copysign"),
    # bits that move
    "logic": ("and", "or", "xor", "not", "lop3"),
    "shift": ("shl", "shr", "shf"),
    "field": ("bfe", "bfi", "szext", "brev"),
    "bytes": ("prmt",),
    # values that decide, or describe: they have no keys
    "decision": (
        "setp", "set", "testp", "vote", "match", "elect", "activemask", "isspacep", "bmsk", "popc",
        "clz",
    ),
    "count": ("bfind", "fns", "cnot"),
    # copies
    "copy": ("mov", "cvta"),
    "load": ("ld", "ldu"),
    "store": ("st",),
    "atomic": ("atom", "red"),
    "matrices": ("ldmatrix", "stmatrix", "movmatrix"),
    "exchange": ("shfl", "redux"),
    "asynchronous": ("cp",),
    "matrix product": ("mma", "wgmma", "wmma", "tcgen05"),
    # control, order, addresses
    "control": (
        "bra", "brx", "call", "ret", "exit", "trap", "brkpt", "bar", "barrier", "fence", "membar",
        "mbarrier", "nanosleep", "pmevent", "setmaxnreg", "griddepcontrol", "prefetch",
        "prefetchu", "discard", "applypriority", "createpolicy", "mapa", "getctarank",
        "clusterlaunchcontrol", "tensormap", "alloca", "stacksave", "stackrestore",
    ),
}  # fmt: skip
MEANINGS = {opcode: meaning for meaning, opcodes in _OPCODES.items() for opcode in opcodes}
