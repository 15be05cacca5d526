"""Mistakes in kernels of tcgen05: those of ``sources/tensor_plain.cu``, and changes of traces/kernels.

A change is text that is replaced: in the kernel itself, or in what it includes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.mistakes.judging import Expected


@dataclass(frozen=True, kw_only=True)
class Change(Expected):
    """A mistake in a kernel of traces/kernels: ``old`` text of ``file`` that is ``new``; none for a right
    kernel.

    ``names`` is what the verdict should match, ``hints`` what it should at least say.
    """

    file: str
    kernel: str
    name: str
    old: str = ""
    new: str = ""


def _of(file: str, kernel: str, *rows: tuple[str, str, str, str, str]) -> list[Change]:
    right = Change(file=file, kernel=kernel, name="none: it is right", names="nothing is wrong", hints="$^")
    return [
        right,
        *(
            Change(file=file, kernel=kernel, name=name, old=old, new=new, names=names, hints=hints)
            for name, old, new, names, hints in rows
        ),
    ]


CHANGES: tuple[Change, ...] = (
    *_of(
        "tensor_core",
        "tensor_f16",
        (
            "a: swizzle 64B in the descriptor",
            "stage.a + part * 32, 1024, SWIZZLE_128B",
            "stage.a + part * 32, 1024, 4",
            r"operand a .*swizzle .*64B.*128B",
            "operand a|swizzle",
        ),
        (
            "b: no swizzle in the descriptor",
            "stage.b[0] + part * 32, 1024, SWIZZLE_128B",
            "stage.b[0] + part * 32, 1024, NO_SWIZZLE",
            r"operand b .*swizzle .*none.*128B",
            "operand b|swizzle",
        ),
        (
            "b: the swizzle code of Hopper",
            "stage.b[0] + part * 32, 1024, SWIZZLE_128B",
            "stage.b[0] + part * 32, 1024, 1",
            r"operand b .*swizzle .*128B",
            "operand b|swizzle",
        ),
        (
            "a: a k step of 64 bytes",
            "stage.a + part * 32, 1024",
            "stage.a + part * 64 % 128, 1024",
            r"operand a .*(advances by 64|start|k step|same k)",
            "operand a|same k",
        ),
        (
            "a: SBO 512 for 1024",
            "stage.a + part * 32, 1024",
            "stage.a + part * 32, 512",
            r"operand a .*SBO.* 512.* 1024",
            "operand a",
        ),
        (
            "a: coordinates of the TMA exchanged",
            "load_box(stage.a, a, step * 64, y, one)",
            "load_box(stage.a, a, y, step * 64, one)",
            r"operand a .*|cp\.async\.bulk\.tensor",
            "operand a|rows|unused",
        ),
        (
            "b: tile of y for that of x",
            "load_box(stage.b[0], b, step * 64, x, one)",
            "load_box(stage.b[0], b, step * 64, blockIdx.y * COLUMNS, one)",
            r"operand b .*|columns? .*(another|tile)|rows 64\.\.127 of b",
            "columns?|operand b| b",
        ),
        (
            "b: one k step ahead in the box",
            "load_box(stage.b[0], b, step * 64, x, one)",
            "load_box(stage.b[0], b, (step + 1) % (k / 64) * 64, x, one)",
            r"operand b .*(stage|k step|same k|ahead)",
            "operand b|same k",
        ),
        (
            "the last k step is missing",
            "d, n, k / 64,",
            "d, n, k / 64 - 1,",
            r"192\.\.255|(not used|is used|no matrix instruction is given)",
            "used|given",
        ),
        (
            "sums begin anew with every stage",
            "step > 0 || part > 0",
            "part > 0",
            r"enable-input-d|scale-d|accumulat|begins? (anew|again)",
            "k step|steps?|accumulat",
        ),
        (
            "the first sum of a tile is added to what is there",
            "SHAPE | F32, step > 0 || part > 0",
            "SHAPE | F32, true",
            r"(?s:accumulator D.*never written|enable-input-d)",
            "written|accumul",
        ),
        (
            "a: negated in the instruction descriptor",
            "SHAPE | F32, step",
            "SHAPE | F32 | 1 << 13, step",
            r"negat",
            "sign|negat|-1",
        ),
        (
            "b: transposed in the instruction descriptor",
            "SHAPE | F32, step",
            "SHAPE | F32 | 1 << 16, step",
            r"(transpose|major)",
            "operand b",
        ),
        (
            "a is read as bf16",
            "SHAPE | F32, step",
            "SHAPE | F32 | 1 << 7, step",
            r"(?s:float16.*bf16|bf16.*f(loat)?16)",
            "bf16",
        ),
        (
            "n of the instruction is 32",
            "SHAPE | F32, step",
            "(SHAPE ^ 12 << 17) | F32, step",
            r"(?s:N .*32.*64|n .*32.*64|never written)",
            "columns?|written",
        ),
        (
            "the epilogue stores rows of another warp",
            "blockIdx.y * ROWS + threadIdx.x) * n",
            "blockIdx.y * ROWS + (threadIdx.x ^ 32)) * n",
            r"r xor 32",
            "row",
        ),
        (
            "the epilogue's columns advance by 8",
            "(warp * 32 << 16) + column)",
            "(warp * 32 << 16) + column / 2)",
            r"column .*(tensor memory|D)|columns? .*c - |column c|row and column: at",
            "column",
        ),
        (
            "the epilogue reads lanes as columns",
            "row[column + each] = values[each]",
            "d[static_cast<size_t>(blockIdx.y * ROWS + (threadIdx.x & ~15) + each) * n + "
            "blockIdx.x * COLUMNS + "
            "column + threadIdx.x % 16] = values[each]",
            r"transposed",
            "row|column",
        ),
        (
            "n and m tile exchanged",
            "const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS;",
            "const int y = blockIdx.x * ROWS, x = blockIdx.y * COLUMNS;",
            r"(rows?|columns?|tile).*(another|other|transposed|\+|-)",
            "row|column",
        ),
    ),
    *_of(
        "tensor_core",
        "tensor_sparse_f16",
        (
            "the selector is missing",
            "SPARSE | part % 2;",
            "SPARSE;",
            r"selector 1",
            "selector|metadata",
        ),
        (
            "the selector is the other one",
            "SPARSE | part % 2;",
            "SPARSE | (part % 2 ^ 1);",
            r"selector [01]",
            "selector|metadata",
        ),
        (
            "metadata columns do not advance with the stage",
            "METADATA + step * 4 + part / 2 * 2",
            "METADATA + part / 2 * 2",
            r"metadata .*(do(es)? not advance|k step|column)",
            "metadata",
        ),
        (
            "metadata of the next tile of rows",
            "metadata[(blockIdx.y * words",
            "metadata[((blockIdx.y + 1) % gridDim.y * words",
            r"metadata .*(rows|tile)",
            "metadata",
        ),
        (
            "metadata of lane ^ 8",
            "* ROWS + threadIdx.x];",
            "* ROWS + (threadIdx.x ^ 8)];",
            r"metadata .*(lane l xor 8|rows)",
            "metadata",
        ),
        (
            "b: the halves of a stage exchanged",
            "tile_descriptor(stage.b[part / 2] + part % 2 * 64",
            "tile_descriptor(stage.b[part / 2 ^ 1] + part % 2 * 64",
            r"operand b .*(k step|stage|same k|start)",
            "operand b|same k",
        ),
        (
            "stores of metadata are not waited for",
            "wait_for_stores();",
            "",
            r"(?s:wait::st)",
            "tcgen05.st",
        ),
    ),
    *_of(
        "tensor_core",
        "tensor_mxf8",
        (
            "sfa: of the k block after its own",
            "(blockIdx.y * steps + step) * 512, 512, one)",
            "(blockIdx.y * steps + (step + 1) % steps) * 512, 512, one)",
            r"scales of A .*k step|SFA of k block",
            "scales of A|SFA|scale_a",
        ),
        (
            "sfb: the byte is that of the next factor",
            "part << 4 | part << 29",
            "((part + 1) % 4) << 4 | part << 29",
            r"scales of B .*k step|SFB of k block|scale-factor id|SFB id",
            "scales of B|SFB|scale_b",
        ),
        (
            "sfa: the byte does not advance",
            "part << 4 | part << 29",
            "part << 4",
            r"scales of A (do not advance|.*k step)|SFA of k block 0|SFA id",
            "scales of A|SFA|scale_a",
        ),
        (
            "sfa and sfb exchanged",
            "form, tensor_memory + SCALES_A, tensor_memory + SCALES_B",
            "form, tensor_memory + SCALES_B, tensor_memory + SCALES_A",
            r"(scales of A|SFA).*(scales of B|SFB|scales_b)",
            "scale",
        ),
        (
            "sfa: of another tile of rows",
            "scales_a + (blockIdx.y * steps",
            "scales_a + ((blockIdx.y + 1) % gridDim.y * steps",
            r"scales of A .*(rows|tile)",
            "scales of A|scale_a",
        ),
        (
            "sfa: rows of quarters read from the next column",
            "form, tensor_memory + SCALES_A, tensor",
            "form, tensor_memory + SCALES_A + 1, tensor",
            r"scales of A .*(rows|column)|SFA .*column",
            "scales of A|scale_a|scale factors of A",
        ),
        (
            "e5m2 for a",
            "const word form = SHAPE | UE8M0",
            "const word form = SHAPE | 1 << 7 | UE8M0",
            r"(?s:e5m2.*e4m3|e4m3.*e5m2)",
            "e5m2|type",
        ),
    ),
    *_of(
        "tensor_core",
        "tensor_nvf4",
        (
            "sfb: k blocks exchanged in pairs",
            "copy_in(stage.b[1] + 2048 + part * 512",
            "copy_in(stage.b[1] + 2048 + (part ^ 1) * 512",
            r"scales of B .*k step|SFB of k block",
            "scales of B|SFB|scale_b",
        ),
        (
            "scales of the step before",
            "scales_a + ((blockIdx.y * steps + step) * 4",
            "scales_a + ((blockIdx.y * steps + (step + steps - 1) % steps) * 4",
            r"scales of A .*k step|SFA of k block",
            "scales of A|SFA|scale_a",
        ),
    ),
    *_of(
        "tensor_kinds",
        "tensor_s8",
        (
            "a is unsigned",
            "SHAPE | S32 | S8",
            "SHAPE | S32 | 1 << 10",
            r"(?s:int8.*u8|u8.*s8|s8.*u8)",
            "u8|type",
        ),
    ),
    *_of(
        "tensor_kinds",
        "tensor_copied_metadata",
        (
            "metadata columns advance with every part",
            "where + part / 2 * 2, SHAPE",
            "where + part, SHAPE",
            r"metadata .*(k step|column)",
            "metadata",
        ),
        (
            "metadata of the stage before",
            "metadata_of(stage), metadata + (blockIdx.y * steps + step)",
            "metadata_of(stage), metadata + (blockIdx.y * steps + (step ^ 1))",
            r"metadata .*k step",
            "metadata",
        ),
    ),
    *_of(
        "tensor_kinds",
        "tensor_stationary_f16",
        (
            "the epilogue takes quarters of D in another order",
            "blockIdx.x * COLUMNS + warp * (COLUMNS / 4)",
            "blockIdx.x * COLUMNS + (warp ^ 1) * (COLUMNS / 4)",
            r"column c xor 16",
            "column",
        ),
        (
            "the epilogue reads layout D: rows in 128 lanes",
            "static_cast<size_t>(lane) * n + blockIdx.x * COLUMNS + warp * (COLUMNS / 4)",
            "static_cast<size_t>(warp * 8 + lane % 8) * n + blockIdx.x * COLUMNS + lane / 8 * (COLUMNS / 4)",
            r"(layout G|row and column: at|column)",
            "row|column",
        ),
    ),
    *_of(
        "tensor_pipelines",
        "tensor_pair",
        (
            "a: ranks exchanged in the load",
            "a, step * STEP, rank * ROWS,",
            "a, step * STEP, (rank ^ 1) * ROWS,",
            r"(row r xor 128|operand a .*(rows|CTA|rank|half))",
            "row",
        ),
        (
            "b: ranks exchanged in the load",
            "b, step * STEP, rank * COLUMNS / 2,",
            "b, step * STEP, (rank ^ 1) * COLUMNS / 2,",
            r"(column c xor 32|operand b .*(columns|CTA|rank|half))",
            "column",
        ),
        (
            "b: both CTAs load the first half",
            "b, step * STEP, rank * COLUMNS / 2,",
            "b, step * STEP, 0,",
            r"(rows? 32\.\.63 of b|operand b )",
            "columns?| b",
        ),
        (
            "the epilogue exchanges the ranks",
            "static_cast<size_t>(rank * ROWS + threadIdx.x)",
            "static_cast<size_t>((rank ^ 1) * ROWS + threadIdx.x)",
            r"row r xor 128",
            "row",
        ),
    ),
    *_of(
        "tensor_pipelines",
        "tensor_stored",
        (
            "a: written with the swizzle of another row",
            "(tile + swizzled(row, chunk)) = a",
            "(tile + row * 128 + ((chunk ^ row / 8 % 8) << 4)) = a",
            r"operand a .*swizzle",
            "operand a",
        ),
        (
            "a: chunks of 16 bytes exchanged in the loads",
            "= a[row * pitch + from];",
            "= a[row * pitch + (from ^ 1)];",
            r"operand a .*(k |xor 8|0\.\.7 and 8\.\.15)",
            "operand a",
        ),
        (
            "b: of the other stage",
            "multiply(tensor_memory, tile, tile + TILE, step > 0)",
            "multiply(tensor_memory, tile, memory + (turn.stage ^ 1) * (TILE + SMALL) + TILE, step > 0)",
            r"operand b .*stage",
            "operand b|uninit|written|race|proxy",
        ),
        (
            "no proxy fence behind the stores",
            "fence_for_copies();",
            "",
            r"fence\.proxy\.async",
            "proxy|race",
        ),
    ),
    *_of(
        "tensor_pipelines",
        "tensor_attention",
        (
            "p: a k step of 16 columns",
            "p + part * 8,",
            "p + part * 16,",
            r"operand a .*(tensor memory|k step|column)|never written",
            "operand a|written",
        ),
        (
            "p: halves of words exchanged",
            '"=r"(pairs[each]) : "f"(high), "f"(low)',
            '"=r"(pairs[each]) : "f"(low), "f"(high)',
            r"operand a .*(k xor 1|halves)",
            "operand a",
        ),
    ),
)
