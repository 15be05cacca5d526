"""The mistakes: kernel, number, what was done, and what the verdict should say."""

from __future__ import annotations

from dataclasses import dataclass

from tools.mistakes.judging import Expected


@dataclass(frozen=True, kw_only=True)
class LaunchMistake(Expected):
    """``names`` is what the verdict should match, ``hints`` what it should at least say."""

    kernel: str
    number: int
    name: str
    defines: tuple[str, ...] = ()


def _of(kernel: str, *rows: tuple[int, str, str, str], defines: tuple[str, ...] = ()) -> list[LaunchMistake]:
    return [
        LaunchMistake(kernel=kernel, number=number, name=name, names=names, hints=hints, defines=defines)
        for number, name, names, hints in rows
    ]


_RIGHT = "nothing is wrong"

LIST: tuple[LaunchMistake, ...] = (
    *_of(
        "loop_f16",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "a: ldmatrix rows from lane % 8", r"(?s)operand a .*(row|lane)", "operand a"),
        (2, "a: read from the other stage", r"operand a .*stage", "operand a|uninitialised|race"),
        (3, "b: written with rows of 32, read with 40", r"row stride is 40 .* written with 32", "operand b"),
        (
            4,
            "a: the inner k step is not added",
            r"operand a .*(k step|not of the same k|again)",
            "operand a|same k",
        ),
        (
            5,
            "b: the inner k step is not added",
            r"operand b .*(k step|not of the same k|again)",
            "operand b|same k",
        ),
        (6, "a: a1 and a2 exchanged", r"registers a1 and a2 hold each other", "operand a"),
        (7, "no barrier after the tiles are written", r"(?s)race.*fix: .*(bar\.sync|__syncthreads)", "race"),
        (
            8,
            "a: rows r ^ 8 are loaded into the tile",
            r"operand a .*rows .*(r xor 8|0\.\.7 and 8\.\.15)",
            "operand a",
        ),
        (9, "a: rows 2g, 2g + 1 are loaded, D is stored as ever", r"operand a .*rows", "operand a"),
        (10, "none: rows of A and of D are permuted alike", _RIGHT, "$^"),
        (11, "sums of neighbouring tiles exchanged", r"c xor 8", "c xor 8"),
        (12, "b: .trans is missing", r"operand b .*transposed", "operand b"),
        (13, "a: read from the other stage, one xor", r"operand a .*stage", "operand a|uninitialised|race"),
        (
            14,
            "a: global k one tile late from the second on",
            r"operand a .*(stage|again|k step)",
            "operand a|same k",
        ),
    ),
    *_of(
        "loop_s8",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "a: order of registers rows then k", r"registers a1 and a2 hold each other", "operand a"),
        (2, "a: eight neighbours of k to a lane", r"operand a .*permuted along k", "operand a"),
        (3, "a: bytes of a word reversed", r"operand a .*(bytes|xor 3)", "operand a"),
        (4, "b: k is not added", r"operand b .*(k step|not of the same k|again)", "operand b|same k"),
        (5, "a is read as u8", r"(?s)operand a .*(int8|s8).*u8|u8.*(int8|s8)", "u8"),
    ),
    *_of(
        "loop_bf16",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "f16 is read as bf16", r"(?s)float16.*bf16|bf16.*float16", "bf16"),
        (2, "none: k is permuted in A and B alike", _RIGHT, "$^"),
        (3, "a: k is permuted in A alone", r"operand a .*permuted along k", "operand a"),
        (4, "every second k step is left out", r"(k step|columns|steps 1, 3, 5 left out)", "used"),
    ),
    *_of(
        "fragments_wmma",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "b: col_major for row_major", r"operand b .*transposed", "operand b"),
        (2, "a: ldm is n", r"operand a .*(stride|ldm)", "operand a|allocation"),
        (3, "a: k is not added", r"operand a .*(k step|same k|again)", "operand a|same k"),
        (4, "b: k is not added", r"operand b .*(k step|same k|again)", "operand b|same k"),
        (5, "sums begin with 1", r"too large by 1", "too large by 1"),
        (6, "b: all warps take the tile of the first", r"operand b .*|column", "column"),
        (7, "D is stored col_major", r"transposed|col", "transposed"),
        (8, "the first step is added twice", r"multiplied again", "again"),
    ),
    *_of(
        "warpgroup",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "start address without >> 4", r"(?i)start.*>> 4", "descriptor|start"),
        (2, "a: k steps of 16 elements for 128", r"operand a .*(start|step)", "operand a"),
        (3, "b: the start does not advance", r"operand b .*(k step|same k|again)", "operand b|same k"),
        (4, "a: LBO and SBO exchanged", r"operand a .*LBO and SBO.* exchanged", "operand a"),
        (5, "b: LBO and SBO exchanged", r"operand b .*LBO and SBO.* exchanged", "operand b"),
        (6, "b: SBO 512 for 1024", r"operand b .*SBO.* 512.* 1024|operand b .*SBO.* 1024.* 512", "operand b"),
        (
            7,
            "b: the start is two k steps on: it leaves its stage",
            r"operand b .*(start|leaves|stage|k step)",
            "operand b",
        ),
        (8, "b: swizzle 128B for none", r"operand b .*swizzle", "operand b"),
        (
            9,
            "no wait before the tiles are overwritten",
            r"(?s)(wgmma|in flight|race).*fix: .*wait_group",
            "wgmma",
        ),
        (10, "D: rows g and g + 8 exchanged", r"r xor 8", "r xor 8"),
        (11, "b: of the other stage", r"operand b .*stage", "operand b|uninit"),
    ),
    *_of(
        "attention",
        (0, "none: it is right", _RIGHT, "$^"),
        (
            1,
            "p: registers of D in the order of C, not of A",
            r"(?s)operand a .*registers a1 and a2",
            "operand a",
        ),
        (2, "v: .trans is missing", r"operand b .*transposed", "operand b"),
        (
            3,
            "the other half's maximum is subtracted",
            r"the maximum of another row .*0\.\.7 and 8\.\.15",
            "maximum|row",
        ),
        (4, "scores are not scaled", r"scale.*missing|scaled by 1[^/\d.]", "scale"),
        (5, "scores are scaled twice", r"scale.*twice", "scale"),
        (6, "o: rescaled by the other half's factor", r"(rescal|factor).*row", "factor|rescal"),
        (7, "o: not rescaled", r"(not rescaled|rescal)", "factor|rescal"),
        (9, "k: the k step of K is not added", r"operand b .*(k step|same k|again)", "operand b|same k"),
        (
            10,
            "the sum of weights is not rescaled",
            r"(sum|total|denominator|factor of its own)",
            "rows|factor",
        ),
        (11, "p: halves of words exchanged", r"operand a .*(k xor 1|r xor 1|halves)", "operand a"),
        (12, "o: factor by column, not by row", r"(rescal|factor).*row", "factor|rescal"),
    ),
    *_of(
        "attention",
        (0, "P in shared memory: it is right", _RIGHT, "$^"),
        (
            13,
            "P in shared memory: rows g and g + 8 exchanged",
            r"operand a .*r xor 8|operand a .*rows",
            "operand a",
        ),
        (14, "P in shared memory: ldmatrix without the column half", r"operand a ", "operand a"),
        defines=("-DSHARED=1",),
    ),
    *_of(
        "attention_turned",
        (0, "P is operand b: it is right", _RIGHT, "$^"),
        (1, "p: registers of the keys exchanged", r"operand b .*(registers b0 and b1|k 0\.\.7)", "operand b"),
        (2, "p: halves of words exchanged", r"operand b .*(k xor 1|r xor 1|halves)", "operand b"),
        (3, "scores are not scaled", r"scale.*missing", "scale"),
    ),
    *_of(
        "attention_turned",
        (0, "P is operand b, S in f16: it is right", _RIGHT, "$^"),
        (
            1,
            "p: registers of the keys exchanged, S in f16",
            r"operand b .*(registers b0 and b1|k 0\.\.7)",
            "operand b",
        ),
        (
            2,
            "p: halves of words exchanged, S in f16",
            r"operand b .*(k xor 1|r xor 1|halves)",
            "operand b",
        ),
        (3, "scores are not scaled, S in f16", r"scale.*missing", "scale"),
        defines=("-DHALVES=1",),
    ),
    *_of(
        "sparse",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "e: not advanced along k", r"metadata do(es)? not advance", "metadata"),
        (2, "e: one step ahead", r"metadata of k step 1 .*1 step ahead", "metadata"),
        (3, "e: words of lanes l ^ 4", r"lane l xor 4", "metadata"),
        (4, "e: halves exchanged", r"metadata of row g and g\+8 are exchanged|halves", "metadata"),
        (5, "b: one step behind from the second on", r"operand b .*(stage|k step|again)", "operand b|same k"),
        (6, "e: one word for the four lanes of a group", r"metadata", "metadata"),
    ),
    *_of(
        "scaled",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "scale_a: not advanced along k", r"scales of A do not advance", "scales of A"),
        (
            2,
            "scale_a: byte 0 for all four",
            r"scales of A do not advance|scales of A are used",
            "scales of A",
        ),
        (3, "scale_a: rows g and g + 8 exchanged", r"scales of A .*lane l xor 1", "scales of A"),
        (4, "scale_b: rows from lane % 8", r"scales of B", "scales of B"),
        (5, "a: e4m3 read as e5m2", r"(?s)e4m3.*e5m2|e5m2.*e4m3", "e5m2"),
    ),
    *_of(
        "staged",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "a: written without the swizzle", r"operand a .*swizzle", "operand a"),
        (
            2,
            "b: chunks c ^ 1 of a row are loaded",
            r"operand b .*(permuted along k|k xor 8|chunk)",
            "operand b",
        ),
        (3, "b: rows r ^ 1 are loaded into the tile", r"operand b .*rows .*(neighbours|xor 1)", "operand b"),
        (4, "a wait for one group too few", r"(?s)in flight.*fix: .*wait_group", "in flight|race"),
        (5, "b: the stage before in step 2", r"operand b .*(stage|k step)", "operand b|same k"),
        (6, "b: the inner k step is not added", r"operand b .*(k step|same k|again)", "operand b|same k"),
        (7, "b: registers in the order n, then k", r"operand b .*(k|rows|registers)", "operand b"),
        (
            8,
            "a: both tiles of 16 rows from the first",
            r"(?s)(operand a|row).*(again|row r|rows)",
            "operand a|row",
        ),
        (
            9,
            "a register of sums is cleared after a turn",
            r"(sum|C|accumulator).*(k step|step|clear|zero)",
            "row",
        ),
        (10, "D: rows r ^ 1", r"r xor 1", "row"),
        (11, "D: tiles of columns exchanged", r"c xor 16", "column"),
        (12, "D: neighbours exchanged", r"c xor 1", "column"),
        (13, "alpha is left out", r"(alpha|factor|times|scale)", "too large"),
        (14, "C is not added", r"(C|param_2|beta)", "too"),
        (15, "C of the column before in odd columns", r"param_2.*column|C .*column", "column"),
    ),
    *_of(
        "tensor_plain",
        (0, "none: it is right", _RIGHT, "$^"),
        (1, "a: LBO and SBO exchanged", r"operand a .*LBO and SBO.* exchanged", "operand a"),
        (2, "b: LBO and SBO exchanged", r"operand b .*LBO and SBO.* exchanged", "operand b"),
        (3, "a: the start does not advance", r"operand a .*(k step|same k|again|start)", "operand a|same k"),
        (4, "b: the start is a k step on", r"operand b .*(k step|same k|start)", "operand b|same k"),
        (5, "idesc: B is not N-major", r"operand b .*(transpose|major)|transpose-b|B .*major", "operand b|B"),
        (6, "idesc: A is M-major", r"operand a .*(transpose|major)|transpose-a|A .*major", "operand a|A"),
        (7, "idesc: N 32 for 64", r"(?s:N .*32.*64|never written)", "columns?|written"),
        (
            8,
            "added to what is there in the first k step",
            r"(?s:never written|enable-input-d)",
            "accumulator",
        ),
        (9, "sums begin anew in every k step", r"enable-input-d|accumulat", "k step|steps?|accumulat"),
        (10, "sums begin anew in every stage", r"enable-input-d|accumulat", "k step|steps?|accumulat"),
        (11, "a: swizzle 128B for none", r"operand a .*swizzle", "operand a|swizzle"),
        (12, "bits 48..46 of descriptors are 0", r"wgmma|Hopper|bits 4[68]", "descriptor"),
        (13, "the epilogue's columns advance by 4", r"column", "column"),
        (14, "the epilogue's lanes are those of warp 0", r"lane 0, but warp 1 .* reaches lanes 32", "lane"),
        (
            15,
            "the epilogue reads 16x256b as 32x32b",
            r"(tcgen05\.ld|layout|16x256b)|row and column: at",
            "row",
        ),
        (
            16,
            "m and n tile exchanged in the loads",
            r"(rows?|columns?|tile).*(another|other|transposed|\+|-)",
            "row|column",
        ),
        (
            17,
            "the last k step is missing",
            r"(not used|is used|no matrix instruction is given)",
            "used|given",
        ),
        (18, "idesc: A is negated", r"negat", "sign|negat|-1"),
        (19, "idesc: A is bf16", r"(?s:float16.*bf16|bf16.*f(loat)?16)", "bf16"),
        (20, "start addresses without >> 4", r"[Ss]tart.*>> 4", "descriptor|start"),
        (21, "a: of the other stage", r"operand a .*stage", "operand a|uninit|race|written|proxy"),
        (22, "the epilogue reads blocks of 8 columns exchanged", r"column c xor 8", "column"),
        (23, "idesc: M 64 for 128", r"(?s:M .*64.*128|never written)", "rows?|written"),
        (24, "a: SBO 512 for 1024", r"operand a .*SBO.* 512.* 1024", "operand a"),
        (25, "a: rows r ^ 8 are loaded", r"operand a .*rows .*(r xor 8|0\.\.7 and 8\.\.15)", "operand a"),
        (26, "no proxy fence behind the stores", r"fence\.proxy\.async", "proxy|race"),
        (27, "D is read before its commit has arrived", r"commit", "race|before|flight"),
        (28, "the epilogue stores rows of another warp", r"r xor 32", "row"),
        (29, "columns are not freed", r"(dealloc|freed)", "alloc"),
    ),
)
