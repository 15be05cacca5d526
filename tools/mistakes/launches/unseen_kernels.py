"""Mistakes planted in the kernels of tests/workbench/unseen_kernels, written down before any of them was run.

They are habits from the issue trackers of the projects that the kernels imitate. Each row is an edit of the
source. The guilty line is where the edit begins; ``at`` has texts of other lines that name the place as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["other", "finding", "values", "equal"]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """An edit of a kernel: ``old``, which occurs once in its source, becomes ``new``.

    ``outcome`` is what is right: "other" formulas; a "finding" of the checks, whatever the formulas are;
    "values" out of tolerance with equal formulas; "equal" where the edit is no mistake.
    """

    kernel: str
    category: str
    old: str
    new: str
    wrong: str
    outcome: Outcome = "other"
    at: tuple[str, ...] = ()


def _of(
    kernel: str, *rows: tuple[str, str, str, str] | tuple[str, str, str, str, Outcome, tuple[str, ...]]
) -> list[Planted]:
    names = ("category", "old", "new", "wrong", "outcome", "at")
    return [Planted(kernel=kernel, **dict(zip(names, row, strict=False))) for row in rows]  # type: ignore[arg-type]


MISSING = ("missing", "missing term", "double term")
KINDS: dict[str, tuple[str, ...]] = {  # a certain cause of these names the mistake, whatever its line
    "tail": MISSING,
    "fix-up": MISSING,
    "accumulate": MISSING,
    "reduction": MISSING,
    "rescale": ("rescaling",),
    "stores": ("never stored", "stored twice", "moved"),
}
CONSUMED = (
    "index",
    "scale",
    "scale id",
    "bias",
    "zero point",
    "metadata",
    "swizzle",
    "descriptor",
    "stage",
    "pad",
)

# fmt: off
_FIRST_LEFT = "load_a(a[0], &xs"
LIST: tuple[Planted, ...] = (
    *_of(
        "marlin",
        ("zero point", "zeros >> (local % 8 * 4) & 15;", "(zeros >> (local % 8 * 4) & 15) + 1;", "the zero point of GPTQ's first format, plus 1"),
        ("scale", "scale + group * n + column", "scale + group / 2 * n + column", "scales of groups of 64 rows"),
        ("zero point", "(local % 8 * 4)", "((7 - local % 8) * 4)", "nibbles of zero points in the other order"),
        ("constant", "-64.f", "-72.f", "the magic number of the symmetric format"),
        ("index", "q >>= 8", "q >>= 4", "the second half of the word is shifted by 4 bits"),
        ("sync", "wait<STAGES - 2>();", "wait<STAGES - 1>();", "a group too few is awaited", "finding", (_FIRST_LEFT, "load_a(a[1]", "qs[stage][local", "ss[stage][local")),
        ("sync", "        __syncthreads();\n", "", "no barrier in the loop", "finding", (_FIRST_LEFT, "load_a(a[1]", "qs[stage][local", "ss[stage][local", "copy16(&")),
        ("rounding", "reinterpret_cast<half2&>(b[2 * half_]) = __hmul2(first, scale);", "reinterpret_cast<half2&>(b[2 * half_]) = __hfma2(reinterpret_cast<half2&>(even), scale, __hneg2(__hmul2(low, scale)));", "1024 + q is scaled before the zero point is subtracted, which rounds q away", "values", ()),
        ("index", "a[1], b[2], b[3]", "a[1], b[3], b[2]", "registers of B exchanged"),
        ("stores", "(to + 8 * n)", "(to + n)", "rows 8 to 15 are stored over rows 1 to 8"),
        ("benign", "            multiply(d[part], a[0], b[0], b[1]);\n            multiply(d[part], a[1], b[2], b[3]);", "            multiply(d[part], a[1], b[2], b[3]);\n            multiply(d[part], a[0], b[0], b[1]);", "another order of sums", "equal", ()),
    ),
    *_of(
        "flash",
        ("mask", "column <= row", "column < row", "the causal mask leaves the diagonal out"),
        ("rescale", "                o[part][2 * side + 1] *= factor;\n", "", "odd columns of the accumulator are not rescaled"),
        ("rescale", "            sum[side] *= factor;\n", "", "the running sum is not rescaled"),
        ("constant", "exp2f((s[part][each] - top) * LOG2E)", "exp2f(s[part][each] - top)", "2 to the power instead of e"),
        ("constant", "__log2f(total) * LN2", "__log2f(total)", "the logarithm has base 2"),
        ("softcap", "cap * tanh_approx(s[part][each] * scale / cap)", "cap * tanh_approx(s[part][each] / cap) * scale", "the softcap precedes the scale"),
        ("stage", "&vs[tile % 2][lane", "&vs[(tile + 1) % 2][lane", "values of the other stage", "finding", ()),
        ("sync", "        wait<1>();\n", "        wait<2>();\n", "the tile in use is not awaited", "finding", ("word(row)", "load_b_rows(b")),
        ("rescale", "            top = over_quad(top, true);\n", "", "each lane has a maximum of its own, the sums of the quad are added", "other", ("over_quad(sum",)),
        ("index", "pair(s[0][2], s[0][3]), pair(s[1][0], s[1][1])", "pair(s[1][0], s[1][1]), pair(s[0][2], s[0][3])", "registers 1 and 2 of P exchanged"),
        ("epilogue", "pair(o[part][2 * side] / total,", "pair(o[part][2 * side] / sum[side],", "divided by the sum of one lane"),
        ("index", "v += head * rows * DIM;", "v += head * DIM;", "the stride of heads of V is that of a row"),
        ("benign", "o[part][2 * side + 1] / total", "o[part][2 * side + 1] * __frcp_rn(total)", "a reciprocal instead of a division", "equal", ()),
    ),
    *_of(
        "decode",
        ("index", "values_of = v + head / group", "values_of = v + head % group", "heads of values are shared in turn, heads of keys in blocks"),
        ("tail", "min(from + SHARE, keys)", "min(from + SHARE, keys - 1)", "the last key is left out"),
        ("rescale", "total += one.y * weight;", "total += one.y;", "sums of the splits are added without rescaling"),
        ("epilogue", "partial[place * DIM + lane] = o;", "partial[place * DIM + lane] = o / sum;", "each split is divided by its sum, then all by the total"),
        ("sync", "    __threadfence();\n    __syncwarp();\n", "", "no fence between the partial results and the counter", "finding", ("partial[place", "state[place]", "__ldcg(&partial", "__ldcg(&state", "atomicAdd")),
        ("sync", "before != splits - 1", "before != splits - 2", "the last but one combines", "finding", ("__ldcg(&partial", "__ldcg(&state", "partial[place", "state[place]")),
        ("constant", "q[head * DIM + lane]) * scale", "q[head * DIM + lane]) * (scale * 1.44269504f)", "scores are scaled for exp2, but exp is taken"),
        ("benign", "step = 16; step; step /= 2", "step = 1; step < 32; step *= 2", "another order of the butterfly", "equal", ()),
    ),
    *_of(
        "deepgemm",
        ("scale", "scale_b[blockIdx.x * blocks + block]", "scale_b[block * gridDim.x + blockIdx.x]", "the scales of B are read transposed"),
        ("scale", "scale_a[block * m + row + 8]", "scale_a[block * m + row]", "rows 8 to 15 have the scales of rows 0 to 7"),
        ("accumulate", "step * 32), step > 0);", "step * 32), 0);", "each product of a block starts at zero"),
        ("sync", "full[stage], block / STAGES & 1", "full[stage], block & 1", "the parity changes with each block, not with each round", "finding", ()),
        ("sync", "        wgmma_wait();\n", "", "sums are used while wgmma writes them", "finding", ("sums[each] +=", "wgmma_e4m3", "arrive(empty")),
        ("index", "load_box(stages[stage].b, b, block * K, column0", "load_box(stages[stage].b, b, block * K, row0", "rows of B by the index of rows of A"),
        ("sync", "        wgmma_commit();\n        wgmma_wait();\n        arrive(empty[stage]);\n", "        arrive(empty[stage]);\n        wgmma_commit();\n        wgmma_wait();\n", "the stage is given back before it was read", "finding", ("load_box", "wgmma_e4m3")),
        ("scale", "(each / 2 % 2 ? lower : upper)", "(each % 2 ? lower : upper)", "scales of rows are chosen by the column"),
        ("scale", "scale_a[block * m + row] * right", "scale_a[row * blocks + block] * right", "the scales of A are read row by row"),
        ("benign", "tile(stages[stage].a + step * 32), tile(stages[stage].b + step * 32)", "tile(stages[stage].a + (3 - step) * 32), tile(stages[stage].b + (3 - step) * 32)", "another order of sums", "equal", ()),
    ),
    *_of(
        "streamk",
        ("sync", "                while (atomicAdd(&flags[peer], 0) == 0) {\n                }\n", "                atomicAdd(&flags[peer], 0);\n", "the flag of the peer is not awaited", "finding", ("__ldcg(&workspace", "__stcg(&workspace")),
        ("fix-up", "peer * share < (tile + 1) * steps &&", "peer * share < (tile + 1) * steps - 1 &&", "a peer that has the last step alone is left out"),
        ("epilogue", "alpha * sums[each] + beta * c[to]", "alpha * (sums[each] + beta * c[to])", "alpha scales C, too"),
        ("fix-up", "__ldcg(&workspace[(peer * 4", "__ldcg(&workspace[((peer - 1) * 4", "the place of another peer in the workspace", "finding", ()),
        ("benign", "row = tile / columns * 16 + lane / 4, column = tile % columns * 8", "row = tile % columns * 16 + lane / 4, column = tile / columns * 8", "tiles in another order", "equal", ()),
        ("index", "word(right), word(right + 8)", "word(right), word(right + 4)", "the second register of B begins at k 4"),
        ("index", "word(left + 8 * k), word(left + 8), ", "word(left + 8), word(left + 8 * k), ", "registers 1 and 2 of A exchanged"),
        ("sync", "            __threadfence();\n            __syncwarp();\n            if (lane == 0) atomicExch", "            if (lane == 0) atomicExch", "no fence before the flag", "finding", ("__ldcg(&workspace", "__stcg(&workspace")),
        ("fix-up", "sums[each] += __ldcg", "sums[each] += alpha * __ldcg", "alpha twice on what peers have left"),
        ("epilogue", "beta * c[to]", "beta * d[to]", "D is read in place of C"),
    ),
    *_of(
        "matvec_q4",
        ("zero point", "4.f * scale.y", "8.f * scale.y", "the offset of a whole block, in each half of it"),
        ("index", "bytes[each + 4]", "bytes[each + 2]", "high nibbles meet the wrong bytes"),
        ("mask", "nibbles[each] >> 4 & 0x0F0F0F0F", "nibbles[each] >> 4 & 0x1F1F1F1F", "a mask with a bit too many"),
        ("scale", "d4[row * blocks + block]", "d4[row * blocks + block / 2]", "the scale of another block"),
        ("tail", "block < blocks;", "block < blocks - 1;", "the last block is left out"),
        ("reduction", "step = 16; step; step /= 2) sum", "step = 8; step; step /= 2) sum", "half of the warp is not added"),
        ("type", "__dp4a(low, bytes[each], dot)", "static_cast<int>(__dp4a(static_cast<u32>(low), static_cast<u32>(bytes[each]), static_cast<u32>(dot)))", "bytes of the vector as unsigned"),
        ("benign", "(dot * scale.x", "(__half2float(__int2half_rn(dot)) * scale.x", "the dot product is rounded to f16", "equal", ()),
    ),
    *_of(
        "rmsnorm",
        ("eps", "rsqrtf(squares / K + eps)", "1.f / (sqrtf(squares / K) + eps)", "eps outside the root"),
        ("constant", "squares / K", "squares / N", "the mean is over the columns of the output"),
        ("reduction", "    squares += __shfl_xor_sync(~0u, squares, 2);\n", "", "half of the row is summed"),
        ("epilogue", "__bfloat162float(gamma[from + each]);", "1.f + __bfloat162float(gamma[from + each]);", "the gain of Gemma, 1 + gamma"),
        ("epilogue", "__bfloat162float(residual[to])", "__bfloat162float(residual[to - first * N])", "rows of the residual begin at 0 in every CTA"),
        ("epilogue", "__bfloat162float(residual[to])", "2.f * __bfloat162float(residual[to])", "the residual is added twice"),
        ("sync", "    __syncthreads();\n", "", "no barrier between stores and ldmatrix", "finding", ("load_a(a, &xs", "load_b_rows(b, &ws", "xs[row][from")),
        ("sync", "    wait<0>();\n", "", "copies of W are not awaited", "finding", ("load_b_rows(b, &ws",)),
        ("predicate", "first + row < m", "first + row < N", "the predicate takes N for M", "finding", ("x[(first + row)",)),
        ("benign", "        values[each] = inside ? __bfloat162float(x[(first + row) * K + from + each]) : 0.f;\n        squares += values[each] * values[each];\n    }\n", "        values[each] = inside ? __bfloat162float(x[(first + row) * K + from + each]) : 0.f;\n    }\n    for (int each = 15; each >= 0; each--) squares = fmaf(values[each], values[each], squares);\n", "squares in another order, by fma", "equal", ()),
    ),
    *_of(
        "moe",
        ("index", "x + id / top * k", "x + id % (pairs / top) * k", "pairs are taken as all first choices, then all second"),
        ("scale", "weight[to];", "weight[to / top];", "the weight of the token's first choices"),
        ("index", "experts[block];", "experts[block / 2];", "an expert for two blocks"),
        ("predicate", "        if (to >= pairs) continue;\n", "", "padding is stored", "finding", ("weight[to]", "make_float2", "<float2*>(y")),
        ("benign", "id < pairs ? 16 : 0", "16", "padding has values of the first token, which are not stored", "equal", ()),
        ("stage", "copy16(&ws[step % 2]", "copy16(&ws[0]", "weights always go to stage 0", "finding", ("word(right)",)),
        ("index", "lane / 4 + half_ * 8", "lane / 4 * 2 + half_", "rows are stored as if lanes had neighbours"),
        ("tail", "step < steps) {\n            copy", "step < steps - 1) {\n            copy", "the last step is not loaded", "other", ("load_a(a", "word(right)", "copy16(")),
        ("index", "lane % 16 * PITCH + lane / 16 * 8", "(lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8", "A is loaded in the order of B"),
    ),
    *_of(
        "swiglu",
        ("epilogue", "gated / (1.f + __expf(-gated)) * u[each + side]", "u[each + side] / (1.f + __expf(-u[each + side])) * gated", "silu of up instead of gate"),
        ("epilogue", "__expf(-gated)", "__expf(gated)", "a sign in the sigmoid"),
        ("constant", "__expf(-gated)", "__expf(-1.702f * gated)", "the constant of quick gelu"),
        ("swizzle", "(column ^ row % 8)", "(column ^ row % 4)", "a swizzle of four rows", "other", ("wgmma_bf16",)),
        ("sync", "        publish_stores();\n", "", "no proxy fence before wgmma", "finding", ("wgmma_bf16", "<uint4*>(to")),
        ("sync", "        wgmma_wait();\n        __syncthreads();\n", "        wgmma_wait();\n", "tiles are overwritten while others read them", "finding", ("wgmma_bf16", "<uint4*>(to")),
        ("accumulate", "tile(ups + step * 32), from > 0 || step > 0", "tile(ups + step * 32), step > 0", "up starts again at each 64 columns"),
        ("bias", "bias[column + side]", "bias[column - column0 + side]", "the bias of the first tile"),
        ("epilogue", "(1.f + __expf(-gated))", "(1.f + __expf(-g[each + side]))", "the sigmoid lacks the bias"),
        ("index", "up + column0 * k", "gate + column0 * k", "up is staged from gate"),
    ),
    *_of(
        "sparse24",
        ("bias", "bias[row + side * 8]", "bias[column + pair]", "the bias goes by columns"),
        ("epilogue", "fmaxf(sums[2 * side + 1] + shift, 0.f)", "sums[2 * side + 1] + shift", "odd columns lack relu"),
        ("metadata", "upper | lower << 16", "lower | upper << 16", "metadata of rows 0 to 7 and 8 to 15 exchanged", "other", ("const u32 upper", "const u32 lower")),
        ("metadata", "+ step] >> lane % 2 * 16 & 0xFFFF;\n        const u32 lower", "+ step] >> lane / 2 % 2 * 16 & 0xFFFF;\n        const u32 lower", "the half of the word by the wrong bit of the lane"),
        ("benign", "%12, 0x0;", "%12, 0x1;", "the other selector, whose lanes hold the same words", "equal", ()),
        ("epilogue", "fmaxf(sums[2 * side] + shift, 0.f)", "fmaxf(sums[2 * side], 0.f) + shift", "relu before the bias"),
        ("metadata", "e[(row + 8) * (k / 32)", "e[row * (k / 32)", "rows 8 to 15 have the metadata of rows 0 to 7"),
        ("index", "word(right + 8), word(right + 16)", "word(right + 16), word(right + 8)", "registers 1 and 2 of B exchanged"),
    ),
    *_of(
        "mxfp8",
        ("scale id", "step << 4 | step << 29", "step << 29", "the factor of B is always the first"),
        ("scale", "scales_b + (blockIdx.x * blocks + block) * 512", "scales_b + block * 512", "scales of B of the first columns"),
        ("accumulate", "block > 0 || step > 0", "step > 0", "sums start again at each block"),
        ("descriptor", "descriptor(stage.a + step * 32, 1024, 2)", "descriptor(stage.a + step * 32, 512, 2)", "the stride of 8 rows of A is halved"),
        ("sync", "+ sizeof(stage.b) + 1024", "+ sizeof(stage.b)", "bytes of the scales are not expected", "finding", ("copy_scales", "load_bytes", "load_box", "expect(", "wait_for")),
        ("sync", "                if (block > 0) wait_for(done[(block + 1) % 2], (block - 1) / 2 & 1);\n", "", "a stage is filled while tcgen05 reads it", "finding", ("load_box", "load_bytes", "multiply_scaled", "copy_scales", "load(block + 1)")),
        ("sync", '        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");\n', "", "loads from tensor memory are not awaited", "finding", ("values[each]", "load_cells")),
        ("descriptor", "descriptor(stage.b + step * 32, 1024, 2)", "descriptor(stage.b + step * 32, 1024, 4)", "the swizzle of 64 bytes for B"),
        ("sync", "wait_for(done[last % 2], last / 2 & 1)", "wait_for(done[0], 0)", "D is read after the first block", "finding", ("load_cells",)),
        ("index", "stage.b + step * 32", "stage.b + step * 64", "B goes on by two steps along k"),
        ("scale", "scales_a + block * 512", "scales_a + blockIdx.x * 512", "scales of A by the index of columns"),
    ),
    *_of(
        "rope",
        ("sign", "first * c - second * s", "first * c + second * s", "a sign in the rotation"),
        ("index", "from[row * DIM + column]);\n        const float second = __half2float(from[row * DIM + column + HALF]", "from[row * DIM + 2 * column]);\n        const float second = __half2float(from[row * DIM + 2 * column + 1]", "neighbours are rotated, as in GPT-J"),
        ("index", "sine, offset + row0", "sine, row0", "positions of queries begin at 0"),
        ("index", "cosine, sine, column0", "sine, cosine, column0", "tables exchanged for keys"),
        ("sign", "second * c + first * s", "second * s + first * c", "sine and cosine exchanged in the second half"),
        ("index", "(head * keys + column0)", "(head * queries + column0)", "the stride of heads of keys is that of queries"),
        ("scale", "d[part][each] * scale", "d[part][each] * scale * scale", "scaled twice"),
        ("sync", "    __syncwarp();\n", "", "no barrier between stores and ldmatrix", "finding", ("load_a(a, &qs", "word(right)", "to[row * PITCH")),
        ("benign", "__float2half(first * c - second * s)", "__hsub(__float2half(first * c), __float2half(second * s))", "both products are rounded to f16", "equal", ()),
    ),
    *_of(
        "conv",
        ("pad", "tap / 3 - 1,", "tap / 3,", "no padding above"),
        ("index", "* 9 + tap)", "* 9 + tap % 3 * 3 + tap / 3)", "the filter is transposed"),
        ("index", "* 9 + tap)", "* 9 + 8 - tap)", "the filter is turned around"),
        ("predicate", "ix < width", "ix < height", "the height bounds the columns"),
        ("index", "(iy * width + ix)", "(iy * height + ix)", "the height is the stride of rows"),
        ("epilogue", "sum > 0 ? sum : sum * slope", "sum > 0 ? sum : slope", "the slope itself where the sum is negative"),
        ("tail", "tap < 9)", "tap < 8)", "the last tap is not loaded", "other", ("load_a(a",)),
        ("pad", "inside ? 16 : 0", "16", "the first pixel in place of zeros"),
        ("sync", "        wait<1>();\n", "", "copies are not awaited", "finding", ("load_a(a",)),
        ("predicate", "if (to_pixel < pixels) y", "y", "pixels past the end are stored", "finding", ()),
        ("benign", "sum > 0 ? sum : sum * slope", "fmaxf(sum, sum * slope)", "a maximum instead of a selection", "equal", ()),
    ),
    *_of(
        "layernorm_backward",
        ("constant", "over_warp(product[0] + product[1]) / COLUMNS", "over_warp(product[0] + product[1])", "c2 is a sum, not a mean"),
        ("constant", "(second - mean)) / COLUMNS", "(second - mean)) / (COLUMNS - 1)", "the variance without bias"),
        ("eps", "rsqrtf(variance + eps)", "rsqrtf(variance) + eps", "eps outside the root"),
        ("gradient", "weights[side] += gradient * normal[side]", "weights[side] += product[side] * normal[side]", "w enters its own gradient"),
        ("accumulate", "biases[side] += gradient", "biases[side] = gradient", "the last row alone"),
        ("gradient", "(normal[side] * c1 + c2)) * rstd", "(normal[side] * c1 + c2))", "dx lacks rstd"),
        ("gradient", "normal[side] * c1 + c2", "normal[side] * c2 + c1", "c1 and c2 exchanged"),
        ("sync", "atomicAdd((which ? db : dw) + column, total);", "(which ? db : dw)[column] += total;", "CTAs add without atomics", "finding", ()),
        ("sync", "    __syncthreads();\n", "", "sums of other warps are read early", "finding", ("sums[0][warp]", "sums[1][warp]", "sums[which]")),
        ("benign", "over_warp((first - mean) * (first - mean) + (second - mean) * (second - mean)) / COLUMNS", "over_warp(first * first + second * second) / COLUMNS - mean * mean", "the variance from squares", "equal", ()),
    ),
    *_of(
        "requant",
        ("zero point", "- zero_a * sums_b", "+ zero_a * sums_b", "the sign of the correction"),
        ("clamp", "max(-128,", "max(-127,", "clamped to a symmetric range"),
        ("rounding", "__float2int_rn", "__float2int_rz", "truncated instead of rounded"),
        ("zero point", "__float2int_rn(corrected * scale[to]) + zero_d", "__float2int_rn((corrected + zero_d) * scale[to])", "the zero point of D is scaled"),
        ("bias", "bias[to];", "bias[to_row];", "the bias goes by rows"),
        ("scale", "scale[to]", "scale[to - column]", "scales of the first columns"),
        ("clamp", "max(-128, min(127, rounded))", "rounded", "not clamped, so that int8 wraps"),
        ("tail", "at < k;", "at < k - 32;", "the last 32 of k are left out"),
        ("range", "(corrected * scale[to])", "(__half2float(__int2half_rn(corrected)) * scale[to])", "sums become infinite in f16", "values", ()),
        ("index", "sums_b[batch * n + to]", "sums_b[to]", "column sums of the first batch"),
    ),
    *_of(
        "lora",
        ("scale", "pair(down[1][2] * scale, down[1][3] * scale)", "pair(down[1][2], down[1][3])", "a register without the scale"),
        ("index", "adapters[blockIdx.y]", "adapters[blockIdx.x]", "adapters go by columns"),
        ("index", "pair(down[0][2] * scale, down[0][3] * scale),\n                        pair(down[1][0] * scale, down[1][1] * scale)", "pair(down[1][0] * scale, down[1][1] * scale),\n                        pair(down[0][2] * scale, down[0][3] * scale)", "registers 1 and 2 of the low rank exchanged"),
        ("tail", "at < k;", "at < k - 16;", "the last 16 of k are left out"),
        ("stores", "(to + 8 * n)", "(to + 8)", "rows 8 to 15 are stored over columns of the next tile"),
        ("epilogue", "multiply_bf16(down[part], words, word(adapted)", "multiply_bf16(base[part], words, word(adapted)", "x a' is added to y itself"),
        ("index", "multiply_bf16(base[part], low, word(right), word(right + 8))", "multiply_bf16(base[part], low, word(right), word(right))", "half of the rank twice"),
        ("rounding", "base[part], low, word(right), word(right + 8));\n", "base[part], low, word(right), word(right + 8));\n        for (float& each : base[part]) each = __half2float(__float2half(each));\n", "y is rounded to f16 on its way", "equal", ()),
    ),
)
