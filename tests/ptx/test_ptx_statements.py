"""The text layer: what PTX text becomes, what is refused with which words, and that both readers agree."""

from __future__ import annotations

import gc
import re
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.families import usual
from warpsim.base import errors
from warpsim.base.errors import Location, PtxError, WarpsimError
from warpsim.ptx import parser
from warpsim.ptx.constants import Immediate
from warpsim.ptx.operands import (
    Address,
    Arguments,
    Displacement,
    NegatedPredicate,
    Operand,
    Pair,
    Register,
    Sink,
    Vector,
)
from warpsim.ptx.parser import parse, parse_instruction
from warpsim.ptx.source import Source
from warpsim.ptx.statements import (
    Binding,
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
)

NOTHING = re.compile("(?!)")  # in place of the fast pattern: every statement is then read token by token

MMA_SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
OPERANDS = "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%f1,%f2,%f3,%f4}, %r9, 0x0"


def registers(*names: str) -> Vector:
    return Vector(tuple(map(Register, names)))


def operand(text: str) -> Operand:
    _, second = parse_instruction(f"op x, {text}").operands or ()
    return second


def statement(text: str) -> Statement:
    (only,) = parse(text).statements
    return only


def instruction(text: str) -> InstructionStatement:
    only = statement(text)
    assert isinstance(only, InstructionStatement)
    return only


def refusal(text: str) -> str:
    with pytest.raises(PtxError) as caught:
        parse(text, "k.ptx")
    return str(caught.value)


# Instructions


def test_an_instruction_is_taken_apart() -> None:
    mma = instruction(f"@!%p1 {MMA_SP} {OPERANDS};")
    assert mma.guard == (True, "%p1")
    assert mma.opcode == "mma"
    assert mma.modifiers[:4] == ("sp::ordered_metadata", "sync", "aligned", "m16n8k32")
    assert mma.mnemonic == MMA_SP
    d = registers("%f1", "%f2", "%f3", "%f4")
    a, b = registers("%r1", "%r2", "%r3", "%r4"), registers("%r5", "%r6", "%r7", "%r8")
    assert mma.operands == (d, a, b, d, Register("%r9"), Immediate(0))


@pytest.mark.parametrize("text", [MMA_SP, f"{MMA_SP};", f" {MMA_SP}\n;  // done", f"/* bare */ {MMA_SP} "])
def test_a_bare_mnemonic_has_no_operands(text: str) -> None:
    assert parse_instruction(text).mnemonic == MMA_SP
    assert parse_instruction(text).operands is None


@pytest.mark.parametrize("end", ["", ";", " ; // end", " /* no semicolon */"])
def test_a_single_instruction_needs_no_semicolon(end: str) -> None:
    assert parse_instruction(f"mov.u32 %r1, 5{end}") == instruction("mov.u32 %r1, 5;")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", Register("%r1")),
        ("$L__BB0_2", Register("$L__BB0_2")),
        ("_x", Register("_x")),
        ("%tid.x", Register("%tid.x")),
        ("%v.b3", Register("%v.b3")),
        ("_", Sink()),
        ("!p", NegatedPredicate("p")),
        ("! /* not */ %p", NegatedPredicate("%p")),
        ("d|p", Pair(Register("d"), Register("p"))),
        ("_ | %p", Pair(Sink(), Register("%p"))),
        ("p|_", Pair(Register("p"), Sink())),
        ("{a}", registers("a")),
        ("{ a , _, 1, %tid.x }", Vector((Register("a"), Sink(), Immediate(1), Register("%tid.x")))),
        ("{0f3F800000, 1+1}", Vector((Immediate(0x3F800000, "f32"), Immediate(2)))),
        ("[%r1]", Address(Register("%r1"))),
        ("[%r1+16]", Address(Register("%r1"), 16)),
        ("[ tile + 4*2 ]", Address(Register("tile"), 8)),
        ("[%r1+-4]", Address(Register("%r1"), -4)),
        ("[64]", Address(None, 64)),
        ("[WARP_SZ+4]", Address(None, 36)),
        ("[map, {x, 1}]", Address(Register("map"), 0, (Vector((Register("x"), Immediate(1))),))),
        ("[tex, sampler, {x}]", Address(Register("tex"), 0, (Register("sampler"), registers("x")))),
        ("buffer+16", Displacement(Register("buffer"), 16)),
        ("WARP_SZ", Immediate(32)),
    ],
)
def test_operands(text: str, expected: Operand) -> None:
    assert operand(text) == expected
    assert operand(str(expected)) == expected


def test_parentheses_are_argument_lists_in_a_call_only() -> None:
    call = instruction("call.uni (r0, _), f, (a0, 1+1), proto;")
    results, arguments = Arguments((Register("r0"), Sink())), Arguments((Register("a0"), Immediate(2)))
    assert call.operands == (results, Register("f"), arguments, Register("proto"))
    assert instruction("call f, ();").operands == (Register("f"), Arguments(()))
    assert instruction("call (r), f, (1);").operands == (
        Arguments((Register("r"),)),
        Register("f"),
        Arguments((Immediate(1),)),
    )
    assert operand("(1)") == Immediate(1)


def test_blanks_comments_and_line_ends_mean_nothing() -> None:
    plain = instruction("@p mma.sync.aligned {a,b}, c, 7 % 3;")
    assert instruction("@ p\tmma .sync\r\n/*x*/.aligned{ a , // first\n b}\n,c,7 % 3\n;") == plain
    assert [str(s) for s in parse("ret;ret; ret;\n\nret;").statements] == ["ret;"] * 4


def test_instructions_are_equal_when_they_say_the_same() -> None:
    first, second, third = parse("mov.u32 a, 0x10; mov.u32 a,  16; mov.u32 a, 17;").statements
    assert first == second != third
    assert hash(first) == hash(second)


# Constants


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The last 64 bits of each value are what ptxas 13.0 stores for the expression.
        ("0", 0), ("017", 15), ("0b101", 5), ("0B11U", 3), ("0X1f", 31), ("0xabcU", 0xABC), ("00", 0),
        ("1-1", 0), ("!0", 1), ("!5", 0), ("!!5", 1), ("- -1", 1), ("--1", 1), ("5--1", 6), ("~-1", 0),
        ("1+2*3", 7), ("(1+2)*3", 9), ("10-4-3", 3), ("1<<2+1", 8), ("1|2==2", 1), ("3>2>1", 0), ("6^3", 5),
        ("0?2:1?5:6", 5), ("1?2?3:4:5", 3), ("1==1", 1), ("1!=1", 0), ("1&&0", 0), ("1||0", 1), ("6&3", 2),
        ("-1<1", 1), ("-1<0U", 0), ("(1==1)-2<0", 1), ("-1==0xFFFFFFFFFFFFFFFF", 1), ("(.u64)-1 > 0", 1),
        ("-8>>1", -4), ("(-8)/3", -2), ("-7/2", -3), ("-7 % 3", 0), ("7 % 3", 1), ("-1/2", 0),
        ("1<<63", -(1 << 63)), ("1<<64", 1), ("1<<65", 2), ("1<<-1", -(1 << 63)), ("-1>>64", -1),
        ("(.s64)0xFFFFFFFFFFFFFFFF>>1", -1), ("9223372036854775807+1", -(1 << 63)), ("(1?-1:0U)>>1", -1),
        ("WARP_SZ*2", 64), ("1.5>1.0", 1), ("1.5!=1.0", 1),
        ("~0", (1 << 64) - 1), ("~0>>1", (1 << 63) - 1), ("-1U/2", (1 << 63) - 1), ("0U-1", (1 << 64) - 1),
        ("0x8000000000000000>>1", 1 << 62),
        ("1<<62", 1 << 62), ("0x3FFFFFFFFFFFFFFF*2", (1 << 63) - 2),
        ("-7/2U", 0x7FFFFFFFFFFFFFFC), ("9223372036854775808", 1 << 63),
    ],
)  # fmt: skip
def test_integer_constants(text: str, expected: int) -> None:
    assert operand(text) == Immediate(expected)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("1.5", 0x3FF8000000000000),
        ("1.", 0x3FF0000000000000),
        (".5", 0x3FE0000000000000),
        ("1e3", 0x408F400000000000),
        ("1.e3", 0x408F400000000000),
        ("1.5E-3", 0x3F589374BC6A7EFA),
        ("-0.0", 0x8000000000000000),
        ("0d7FF8000000000001", 0x7FF8000000000001),
        ("-0d3FF0000000000000", 0xBFF0000000000000),
        ("0d3FF0000000000000+1.0", 0x4000000000000000),
        ("1.5*2.0", 0x4008000000000000),
        ("1.0/4.0", 0x3FD0000000000000),
        ("1e308*10.0", 0x7FF0000000000000),
    ],
)
def test_float_constants(text: str, bits: int) -> None:
    assert operand(text) == Immediate(bits, "f64")


def test_decimals_at_the_smallest_normal_number() -> None:
    # As ptxas 13.0: a decimal is refused that is below 2**-1022 with 53 digits, and not exact as a subnormal.
    smallest, unit = Fraction(2) ** -1022, Fraction(2) ** -1074
    for value, taken in (
        (smallest, True),
        (smallest - unit, True),
        (smallest / 2, True),
        (unit, True),
        (unit / 2, False),
        (smallest - unit / 4, True),
        (smallest - unit / 2, False),
        (smallest - unit * 3 / 5, False),
    ):
        exact = value.denominator & (value.denominator - 1) == 0
        digits = 1200 if exact else 400
        text = f"0.{value.numerator * 10**digits // value.denominator:0{digits}d}"
        text = text.rstrip("0")
        if taken:
            assert isinstance(operand(text), Immediate)
        else:
            assert "is subnormal as a 64-bit float" in refusal(f"mov.f64 a, {text};")
    assert "0d0000000000000000" in refusal("mov.f64 a, 1e-99999999999999999999;")
    assert operand("0.000e-99999999999999999999") == Immediate(0, "f64")


def test_hexadecimal_f32_constants_keep_their_bits() -> None:
    assert operand("0f7F800001") == operand("0F7f800001") == Immediate(0x7F800001, "f32")


# Everything else that can be a statement


def test_register_declarations_are_expanded() -> None:
    declaration = statement(".reg .b32 %r<3>, x, y <0x2>;")
    assert isinstance(declaration, RegisterDeclaration)
    assert (declaration.type, declaration.vector) == ("b32", 1)
    assert declaration.names == ("%r0", "%r1", "%r2", "x", "y0", "y1")
    vector = statement(".reg .v4 .f32 q;")
    assert isinstance(vector, RegisterDeclaration)
    assert (vector.type, vector.names, vector.vector) == ("f32", ("q",), 4)


TYPES = {"pred", "b128", "f16", "f16x2", "f32", "f64"} | {
    f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)
}


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_register_type(name: str) -> None:
    declaration = statement(f".reg .{name} x;")
    assert isinstance(declaration, RegisterDeclaration)
    assert declaration.type == name


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (".shared .align 1024 .b8 sm[1024];", [("shared", 1024, "b8", "sm", 1024, None)]),
        (".extern .shared .align 16 .b8 dyn[];", [("shared", 16, "b8", "dyn", 0, None)]),
        (".global .v4 .f32 a[2][3];", [("global", None, "f32", "a", 96, None)]),
        (
            ".const .b64 x = 5, y;",
            [("const", None, "b64", "x", 8, "5"), ("const", None, "b64", "y", 8, None)],
        ),
        (".visible .global .b16 t[2][1] = {{1}, {2}};", [("global", None, "b16", "t", 4, "{{1}, {2}}")]),
        (".param .b32 p;", [("param", None, "b32", "p", 4, None)]),
    ],
)
def test_variable_declarations(text: str, fields: list[tuple[object, ...]]) -> None:
    variables = [s for s in parse(text).statements if isinstance(s, VariableDeclaration)]
    assert [(v.space, v.align, v.type, v.name, v.size, v.initializer) for v in variables] == fields


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        (".version 8.7", "version", "8.7"),
        (".target sm_90a, debug", "target", "sm_90a, debug"),
        (".address_size 64", "address_size", "64"),
        ('.file 1 "a;b.cu"', "file", '1 "a;b.cu"'),
        (".loc 1 5 3", "loc", "1 5 3"),
        (".loc 1 5 3, function_name $L__s0, inlined_at 1 7 5", "loc", None),
        ('.pragma "nounroll; really";', "pragma", '"nounroll; really"'),
        (".branchtargets A, B;", "branchtargets", "A, B"),
        (".callprototype (.param .b32 _) _ (.param .b64 _);", "callprototype", None),
        (".section .debug_str { .b8 1,2 }", "section", ".debug_str { .b8 1,2 }"),
    ],
)
def test_other_directives(text: str, name: str, arguments: str | None) -> None:
    expected = text.removeprefix(f".{name} ").removesuffix(";") if arguments is None else arguments
    assert statement(text) == Directive(name, expected, source=Source(""), start=0)


def test_directives_may_share_a_line() -> None:
    names = [
        s.name
        for s in parse(".version 8.7 .target sm_90a .address_size 64").statements
        if isinstance(s, Directive)
    ]
    assert names == ["version", "target", "address_size"]


def test_labels_and_blocks() -> None:
    label, other, block = parse("L: %M :{ ret; { N: } }").statements
    assert (label, other) == (parse("L:").statements[0], parse("%M:").statements[0])
    assert isinstance(block, Block)
    ret, inner = block.statements
    assert str(ret) == "ret;"
    assert isinstance(inner, Block)
    assert isinstance(inner.statements[0], Label)


def test_bindings_are_statements_and_other_comments_are_not() -> None:
    text = "// no\n //! load %a = a  \nret; //! also\n///! no\n//!"
    kinds = [s.text if isinstance(s, Binding) else str(s) for s in parse(text).statements]
    assert kinds == ["load %a = a", "ret;", "also", ""]


def test_a_kernel_wraps_its_body() -> None:
    text = """.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .align 4 .b8 q[12])
              .maxntid 128, 1, 1 .minnctapersm 2 { ret; }"""
    kernel = statement(text)
    assert isinstance(kernel, Kernel)
    assert (kernel.kind, kernel.name, kernel.tuning) == ("entry", "k", ".maxntid 128, 1, 1 .minnctapersm 2")
    assert [(p.name, p.size, p.align) for p in kernel.parameters if isinstance(p, VariableDeclaration)] == [
        ("p", 8, None),
        ("q", 12, 4),
    ]
    assert [str(s) for s in kernel.body or ()] == ["ret;"]


def test_functions_have_results_and_may_lack_a_body() -> None:
    declared, defined = parse(
        ".extern .func (.param .b32 r) f (.param .b64 a); .func (.reg .b32 r) g () .noreturn { trap; }"
    ).statements
    assert isinstance(declared, Kernel)
    assert isinstance(defined, Kernel)
    assert (declared.kind, declared.name, declared.body) == ("func", "f", None)
    assert [type(r) for r in (*declared.results, *defined.results)] == [
        VariableDeclaration,
        RegisterDeclaration,
    ]
    assert (defined.parameters, defined.tuning) == ((), ".noreturn")


def test_no_text_is_no_statements() -> None:
    assert parse("").statements == parse(" \n// nothing\n/* here */").statements == ()


# Locations


def at(text: str, place: Location) -> str:
    """The characters that a location marks, found again from its line and column."""
    line = text.split("\n")[place.line - 1]
    assert line.rstrip("\r") == place.text
    return line[place.column - 1 : place.column - 1 + place.length]


def test_every_part_of_an_instruction_can_be_located() -> None:
    text = f"ret;\r\n\t@p {MMA_SP} {{a, b}},\n {{ %r1 ,_}}, [x+4], d|p, (1)+1,\n\t7; ret;"
    _, mma, _ = parse(text).statements
    assert isinstance(mma, InstructionStatement)
    assert at(text, mma.location()) == MMA_SP
    assert at(text, mma.modifier_location(0)) == ".sp::ordered_metadata"
    assert at(text, mma.modifier_location(8)) == ".f16"
    assert [at(text, mma.operand_location(i)) for i in range(6)] == [
        "{a, b}", "{ %r1 ,_}", "[x+4]", "d|p", "(1)+1", "7",
    ]  # fmt: skip
    elements = [(0, 1), (1, 0), (1, 1), (3, 0), (3, 1), (5, 0)]
    assert [at(text, mma.operand_location(*which)) for which in elements] == ["b", "%r1", "_", "d", "p", "7"]
    assert (mma.operand_location(5).line, mma.operand_location(5).column) == (4, 2)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("ret;\n .reg .b32 x;", ".reg"),
        ("ret;\n L: ", "L:"),
        ("ret; //! load x", "//! load x"),
        ("ret; {ret;}", "{"),
        ("ret; .entry k(){}", ".entry"),
        ("ret; @p bra L;", "bra"),
    ],
)
def test_every_statement_can_be_located(text: str, word: str) -> None:
    assert at(text, parse(text).statements[1].location()) == word


def test_locations_name_the_file() -> None:
    assert str(parse("ret;", "a.ptx").statements[0].location()) == "a.ptx:1:1"
    assert str(parse_instruction("ret", "b.ptx").location()) == "b.ptx:1:1"
    assert str(parse("ret;").statements[0].location()) == "<string>:1:1"


# Refusals: the exact words


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("mov r1 r2;", "1:8", "expected ',' or ';', found 'r2'"),
        ("mov r1,;", "1:8", "expected an operand, found ';'"),
        ("mov , r1;", "1:5", "expected an operand or ';', found ','"),
        ("ret }", "1:5", "expected an operand or ';', found '}'"),
        ("mov {a, b c}, d;", "1:11", "expected ',' or '}', found 'c'"),
        ("mov {}, d;", "1:6", "expected a register or a constant, found '}'"),
        ("mov {a, {b}}, d;", "1:9", "expected a register or a constant, found '{'"),
        ("mov a|1, d;", "1:7", "expected a register or '_', found '1'"),
        ('mov a, "b";', "1:8", "expected an operand, found '\"b\"'"),
        ("mov a, -b;", "1:9", "expected a constant, found 'b'"),
        ("mov a, (b);", "1:9", "expected a constant, found 'b'"),
        ("mov a, 08;", "1:8", "expected a constant (a 0 in front is of octal digits), found '08'"),
        ("mov a, 1u;", "1:8", "expected a constant (the suffix of unsigned integers is U), found '1u'"),
        (
            "mov a, 0f3F8;",
            "1:8",
            "expected a constant (an f32 in hexadecimal is 0f and 8 digits), found '0f3F8'",
        ),
        (
            "mov a, 0d0;",
            "1:8",
            "expected a constant (an f64 in hexadecimal is 0d and 16 digits), found '0d0'",
        ),
        (
            "mov a, 1.5f;",
            "1:8",
            "expected a constant (a number has no suffix here: decimals are of 64 bits, an f32 is 0f and 8 "
            "hexadecimal digits), found '1.5f'",
        ),
        ("mov a, 1x;", "1:8", "expected a constant, found '1x'"),
        ("mov a, 7%3;", "1:9", "expected ',' or ';', found '%3'"),
        ("mov a, 1?2;", "1:11", "expected ':', found ';'"),
        ("mov a, (1;", "1:10", "expected ')', found ';'"),
        ("mov a, 1/(2-2);", "1:8", "division by zero in a constant expression"),
        ("mov a, 0&&1 % 0;", "1:11", "division by zero in a constant expression"),
        ("mov a, 1+1.5;", "1:8", "the operator '+' cannot mix an integer and a float"),
        ("mov a, 1.5<<1.5;", "1:8", "the operator '<<' takes integers only"),
        ("mov a, 2+~1.5;", "1:10", "the operator '~' takes an integer"),
        ("mov a, 1?1.5:2.5;", "1:8", "the operator '?:' takes integers only"),
        ("mov a, 18446744073709551616;", "1:8", "the integer 18446744073709551616 does not fit in 64 bits"),
        ("mov a, 1e999;", "1:8", "the number 1e999 is too large for a 64-bit float"),
        (
            "mov a, 2.0e-308;",
            "1:8",
            "the number 2.0e-308 is subnormal as a 64-bit float, which ptxas does not take: "
            "write 0d000E61ACF033D1A4",
        ),
        ("ld a, [b-4];", "1:9", "an address has no '-': PTX writes a negative offset as '+-'"),
        ("ld a, [b+1.5];", "1:10", "the offset of an address is an integer"),
        ("ld a, [b c];", "1:10", "expected '+', ',' or ']', found 'c'"),
        ("ld a, [b+1 c];", "1:12", "expected ']', found 'c'"),
        ("@!1 ret;", "1:3", "expected a predicate, found '1'"),
        ("@p ;", "1:4", "expected an instruction, found ';'"),
        (";", "1:1", "expected an instruction, found ';'"),
        ("mov. u32 a, b;", "1:4", "expected a modifier, found '.'"),
        ("ld.shared:: cta a;", "1:10", "expected an operand or ';', found '::'"),
        ("mov //! x\n a;", "1:5", "expected an operand or ';', found '//!'"),
        (".reg .tf32 r;", "1:6", "no register has the type '.tf32': declare it by its size, as '.b32' etc."),
        (
            ".shared .pred p;",
            "1:9",
            "no variable has the type '.pred': declare it by its size, as '.b32' etc.",
        ),
        (".reg b32 r;", "1:6", "expected a type, such as '.b32', found 'b32'"),
        (".reg .b32 r<x>;", "1:13", "expected an integer, found 'x'"),
        (".reg .b32 r<2000000>;", "1:13", "2000000 registers are more than the 1048576 supported"),
        (
            ".reg .b32 r<99999999999999999999>;",
            "1:13",
            "the integer 99999999999999999999 does not fit in 64 bits",
        ),
        (".regs .b32 r;", "1:1", "PTX has no directive '.regs'"),
        (".visible .reg .b32 r;", "1:1", "'.visible' is for '.entry', '.func' and variables only"),
        (".shared .b8 a = ;", "1:17", "expected a value, found ';'"),
        (".version 8", "1:10", "expected a version, such as 8.7, found '8'"),
        (".entry k(.param .u64 p {", "1:24", "expected ',' or ')', found '{'"),
        (".entry k(.u64 p) {}", "1:10", "expected '.param' or '.reg', found '.u64'"),
        (".entry k() ret;", "1:12", "expected '{' or ';', found 'ret'"),
        ("{ ret; { ret; }", "1:1", "this '{' is never closed: no '}' follows"),
        ("ret; }", "1:6", "this '}' closes no '{'"),
        ("ret; /* x", "1:6", "this comment is never closed: no '*/' follows"),
        ("ret; // caf\u00e9", "1:12", "PTX is ASCII text, found '\\xe9'"),
        ("{" * 101, "1:101", "braces are nested more than 100 deep"),
        ("mov a, " + "(" * 40, "1:41", "this constant expression is nested more than 32 deep"),
    ],
)
def test_refusals(text: str, place: str, message: str) -> None:
    headline, *excerpt = refusal(text).split("\n")
    assert headline == f"k.ptx:{place}: error: {message}"
    assert excerpt[0] == "    " + text.split("\n")[0]
    assert excerpt[1].strip(" ~") == "^"


def test_the_caret_stands_under_the_mistake() -> None:
    assert refusal("ret;\n\tmov.u32\t%r1,  %r2 %r3;") == (
        "k.ptx:2:20: error: expected ',' or ';', found '%r3'\n"
        "    \tmov.u32\t%r1,  %r2 %r3;\n"
        "    \t       \t          ^~~"
    )


def test_a_missing_semicolon_is_reported_where_it_belongs() -> None:
    assert refusal("mov.u32 a, b // copy\n\nret;") == (
        "k.ptx:1:13: error: expected ',' or ';', found 'ret' on line 3\n"
        "    mov.u32 a, b // copy\n"
        "                ^"
    )
    assert refusal("mov.u32 a, b\n") == (
        "k.ptx:1:13: error: expected ',' or ';', found the end of the text\n"
        "    mov.u32 a, b\n"
        "                ^"
    )


def test_long_lines_are_cut_around_the_caret() -> None:
    headline, line, caret = refusal(f"mov {{{', '.join(f'%f{i}' for i in range(200))}}} x;").split("\n")
    assert headline == "k.ptx:1:1296: error: expected ',' or ';', found 'x'"
    assert line.startswith("    ...")
    assert line.endswith("%f199} x;")
    assert line[caret.index("^")] == "x"


def test_control_characters_are_not_shown() -> None:
    assert refusal("mov \x1b[31m;").split("\n")[1] == "    mov ?[31m;"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an instruction, found the end of the text"),
        ("ret; ret;", "expected one instruction and nothing more, found 'ret'"),
        ("mov a b", "expected ',' or ';', found 'b'"),
        ("ret;;", "expected one instruction and nothing more, found ';'"),
    ],
)
def test_parse_instruction_takes_exactly_one(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        parse_instruction(text)
    assert caught.value.message == message


# Errors in general


def test_an_error_without_a_location_is_its_message() -> None:
    error = errors.IllegalInstruction("no such form")
    assert (str(error), error.message, error.location) == ("no such form", "no such form", None)


def test_an_error_can_be_located_later() -> None:
    error = errors.UndefinedBehavior("indices are equal")
    assert error.at(instruction("mma.sync {a}, b;").operand_location(0)) is error
    assert str(error) == "<string>:1:10: error: indices are equal\n    mma.sync {a}, b;\n             ^~~"


def test_a_location_may_lack_its_text() -> None:
    assert str(errors.TraceError("no such array", Location("a.ptx", 3))) == "a.ptx:3:1: error: no such array"


def test_the_tree_of_errors() -> None:
    for name in set(errors.__all__) - {"Location", "SourceLine", "inline_stack", "located", "present"}:
        assert issubclass(getattr(errors, name), WarpsimError)
    assert issubclass(errors.OperandError, ValueError)


def test_parsing_leaves_garbage_collection_as_it_was() -> None:
    parse("ret;")
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(PtxError):
            parse("}")
        assert not gc.isenabled()
    finally:
        gc.enable()


# Properties

NAMES = st.from_regex(re.compile(r"[a-zA-Z][\w$]{0,3}|[_$%][\w$]{1,3}", re.ASCII), fullmatch=True)
BLANKS = st.sampled_from(["", "", " ", "  ", "\t", "\n", " // c\n", "/* , ; */"])
INTEGERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(str),
    st.integers(0, 2**64 - 1).map(hex),
    st.sampled_from(
        ["7 % 3", "(1)", "1+2", "0b11", "017", "1U", "~0", "1?2:3", "0f3F800000", "1.5", "WARP_SZ"]
    ),
)
ATOMS = st.one_of(NAMES, NAMES, INTEGERS, st.just("_"), st.just("%tid.x"), st.just("WARP_SZ.x"))
WORDS = st.one_of(
    ATOMS,
    NAMES.map("!{}".format),
    st.tuples(NAMES, NAMES).map("|".join),
    st.tuples(NAMES, INTEGERS).map("+".join),
    st.builds("[{}{}]".format, NAMES, st.one_of(st.just(""), INTEGERS.map("+{}".format))),
)


@st.composite
def instructions(draw: st.DrawFn) -> str:
    """One instruction, plain or not, now and then illegal."""

    def gap() -> str:
        return draw(BLANKS)

    def listed(items: list[str]) -> str:
        return f"{gap()},{gap()}".join(items)

    vectors = st.lists(ATOMS, min_size=1, max_size=4).map(lambda atoms: f"{{{gap()}{listed(atoms)}{gap()}}}")
    guard = draw(st.one_of(st.just(""), NAMES.map("@{} ".format), NAMES.map("@!{} ".format)))
    mnemonic = ".".join(
        draw(st.lists(st.sampled_from(["mma", "sync", "sp::x", "x", "2d", "u32"]), min_size=1, max_size=4))
    )
    operands = draw(st.lists(st.one_of(WORDS, vectors), max_size=4))
    return f"{gap()}{guard}{mnemonic}{' ' if operands else ''}{listed(operands)}{gap()};{gap()}"


def outcome(text: str, plain: re.Pattern[str]) -> object:
    """What the program says, operands included, or the words with which it is refused."""
    try:
        statements = parser._read_program(Source(text), plain)
    except PtxError as error:
        return str(error)
    return statements, [(str(s), s.start) for s in statements]


@settings(max_examples=usual(75, 150), deadline=None)
@given(st.lists(instructions(), max_size=3).map("".join))
@example("mov.b32 WARP_SZ.x, 1;")
@example("mov a, {7 % 3, -1};call f, (1);")
def test_the_fast_reader_agrees_with_the_slow_one(text: str) -> None:
    assert outcome(text, parser._PLAIN) == outcome(text, NOTHING)


PIECES = st.one_of(
    instructions(),
    st.sampled_from(
        [
            *(
                "L:",
                "L : ",
                "L::",
                ".loc 1 2 3\n",
                ".loc 1 2\n",
                ".loc 1 2 3, function_name f, inlined_at 1 2 3\n",
            ),
            *("{", "}", "{ .reg .b32 x; }", "//! x\n", "// }\n", "/* } */", "/*", '.pragma "nounroll";'),
            *(
                "a.b %r1|%p1, %r2;",
                "a [%rd1+-16], 0d3FF0000000000000;",
                "a.b::c x, {y, -1};",
                "a..b x;",
                "a x, y",
            ),
            *("call (r), f, (x);", ".entry other() { ret; }", ".section .debug { .b8 1, 2 }", "\x80"),
        ]
    ),
)


@settings(max_examples=usual(150, 300), deadline=None)
@given(st.lists(PIECES, max_size=6).map("".join))
@example("a;" * 3 + "b")
@example("{" * 99 + "}" * 99)
@example("{" * 100 + "}" * 100)
def test_functions_that_are_read_later_are_as_those_read_at_once(text: str) -> None:
    """Whatever stands in a function is well-formed or not at once, and the same statements later."""
    kernel = f".entry k()\n{{{text}}}\n.func f() {{ret;}}"
    assert outcome(kernel, parser._PLAIN) == outcome(kernel, NOTHING)


def test_a_function_is_read_when_it_is_asked_for() -> None:
    text = ".entry k() { add.u32 %r0, %r1, 1; L: .loc 1 2 3\n @%p bra L; { ret; } }"
    kernel = parse(text).statements[0]
    assert isinstance(kernel, Kernel)
    assert kernel.body is not None
    assert kernel.body._statements is None
    assert [type(one).__name__ for one in kernel.body] == [
        *("InstructionStatement", "Label", "Directive", "InstructionStatement", "Block")
    ]
    assert kernel.body is not None
    assert kernel.body[0] is kernel.body.all()[0]
    assert kernel.body[:2] == kernel.body.all()[:2]
    assert kernel.body == list(kernel.body)
    assert kernel.body != 5
    assert repr(kernel.body) == repr(kernel.body.all())
    assert hash(parse(text).statements[0]) == hash(kernel)
    assert text[kernel.body.start : kernel.body.end] == text[12:-1]


@settings(max_examples=usual(75, 150), deadline=None)
@given(st.lists(instructions(), max_size=3).map("".join))
def test_what_is_printed_reads_back_the_same(text: str) -> None:
    try:
        statements = parse(text).statements
    except PtxError:
        return
    assert parse("\n".join(map(str, statements))).statements == statements


TOKENS = st.sampled_from(
    [
        *(
            ".reg",
            ".b32",
            ".version",
            ".entry",
            ".param",
            ".shared",
            ".section",
            ".align",
            "mma",
            "call",
            "%r",
        ),
        *("a:", "//!", "1", "0x", "1.5", "0f3F800000", "//", "/*", "*/", "::", "<<"),
        *'{}[]()<>;,.@!|+-*/%?:~^&_"# \n\t\0',
    ]
)


@settings(max_examples=usual(150, 300), deadline=None)
@given(
    st.one_of(
        st.text(), st.lists(TOKENS, max_size=12).map("".join), st.lists(TOKENS, max_size=12).map(" ".join)
    )
)
def test_no_text_raises_anything_but_ptx_error(text: str) -> None:
    for read in (parse, parse_instruction):
        try:
            repr(read(text))
        except PtxError as error:
            place = error.location
        else:
            continue
        assert place is not None
        assert place.text == text.split("\n")[place.line - 1].rstrip("\r")


@settings(max_examples=usual(75, 150), deadline=None)
@given(instructions(), st.data())
def test_a_damaged_instruction_raises_nothing_but_ptx_error(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 3, len(text))))
    damaged = text[:start] + data.draw(TOKENS) + text[stop:]
    assert outcome(damaged, parser._PLAIN) == outcome(damaged, NOTHING)


EXPRESSIONS = st.recursive(
    st.integers(0, 2**63).map(str),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-~"), inner).map(" ".join),
        st.tuples(inner, st.sampled_from("+-*&|^"), inner).map(" ".join),
        inner.map("({})".format),
    ),
    max_leaves=12,
)


@settings(max_examples=usual(100, 200), deadline=None)
@given(EXPRESSIONS)
def test_arithmetic_is_that_of_python_modulo_two_to_the_64(text: str) -> None:
    # For these operators C and Python have the same precedence, and only the last 64 bits matter.
    constant = operand(text)
    assert isinstance(constant, Immediate)
    assert (constant.value - eval(text)) % 2**64 == 0
