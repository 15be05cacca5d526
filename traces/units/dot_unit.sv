// A unit by hand, in place of golden_dot_unit of a folder that `warpsim model --name golden` wrote for
// mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 on sm_90a: 16 products and C, aligned, truncated, added, rounded.
// Three mistakes are seeded: bits of +wrong=N.
//   1  subnormal operands are read as zero
//   2  zeros count in the largest exponent
//   4  terms are cut by an arithmetic shift: negative ones are rounded down
module golden_dot_unit
  import golden_pkg::*;
(
    input  bit       clock,
    input  bit       start,
    input  a_codes_t a,
    input  b_codes_t b,
    input  c_codes_t c,
    output bit       done,
    output code_t    d,
    output trace_t   seen,
    output trace_t   shown
);
  localparam int K = 16, FRACTION_BITS = 25, FLOOR = -133, LEAST = -149;
  typedef bit signed [63:0] term_t;

  int wrong;
  bit shows;
  initial begin
    if (!$value$plusargs("wrong=%d", wrong)) wrong = 0;
    shows = $test$plusargs("shown") != 0;
  end

  function automatic bit [10:0] significand(bit [15:0] code);
    if (code[14:10] == 0 && wrong[0]) return 0;
    return {code[14:10] != 0, code[9:0]};
  endfunction

  function automatic int exponent(bit [15:0] code);
    return (code[14:10] == 0 ? 1 : int'(code[14:10])) - 15;
  endfunction

  // A term in units of 2**unit; scale is the exponent of its last bit.
  function automatic term_t cut(term_t value, int scale, int unit);
    int down = unit - scale;
    term_t magnitude = value < 0 ? -value : value, kept;
    if (down <= 0) return value <<< (-down > 63 ? 63 : -down);
    if (wrong[2]) return down > 63 ? (value < 0 ? -1 : 0) : value >>> down;
    kept = down > 63 ? 0 : magnitude >> down;
    return value < 0 ? -kept : kept;
  endfunction

  function automatic bit [31:0] rounded(term_t total, int unit);
    bit [63:0] magnitude = total < 0 ? -total : total;
    bit [31:0] code;
    int place;
    if (total == 0) return 0;
    for (place = 63; !magnitude[place]; place--);
    place = place + unit - 23;
    if (place < LEAST) place = LEAST;
    code = 32'(place - LEAST) << 23;
    code += place <= unit ? 32'(magnitude << (unit - place)) : 32'(magnitude >> (place - unit));
    if (code > 32'h7f800000) code = 32'h7f800000;
    code[31] = total < 0 && code != 0;
    return code;
  endfunction

  trace_t trace;
  bit negative, nan, plus_inf, minus_inf;
  bit [15:0] x, y;
  int top, exponent_c;
  term_t total;
  always @(posedge clock) begin
    done <= start;
    if (start) begin
      trace = '0;
      top = FLOOR;
      total = c[30:23] == 0 && wrong[0] ? 0 : term_t'({c[30:23] != 0, c[22:0]});
      exponent_c = (c[30:23] == 0 ? 1 : int'(c[30:23])) - 127;
      nan = c[30:23] == 255 && c[22:0] != 0;
      plus_inf = c == 32'h7f800000;
      minus_inf = c == 32'hff800000;
      for (int i = 0; i < K; i++) begin
        x = a[32*i+:16];
        y = b[32*i+:16];
        negative = x[15] ^ y[15];
        trace.P_exponent[i] = 64'(exponent(x) + exponent(y));
        trace.P_value[i] = 64'(significand(x) * 22'(significand(y)));
        if ((trace.P_value[i] != 0 || wrong[1]) && exponent(x) + exponent(y) > top) top = exponent(x) + exponent(y);
        if (x[14:10] == 31 || y[14:10] == 31) begin
          nan |= (x[14:10] == 31 && x[9:0] != 0) || (y[14:10] == 31 && y[9:0] != 0) || x[14:0] == 0 || y[14:0] == 0;
          plus_inf |= !negative;
          minus_inf |= negative;
        end
        if (negative) trace.P_value[i] = -trace.P_value[i];
      end
      if ((total != 0 || wrong[1]) && exponent_c > top) top = exponent_c;
      trace.top0 = 64'(top);
      trace.unit0 = 64'(top - FRACTION_BITS);
      for (int i = 0; i < K; i++)
        trace.kept0[i] = cut(trace.P_value[i], int'(trace.P_exponent[i]) - 20, top - FRACTION_BITS);
      trace.kept0[K] = cut(c[31] ? -total : total, exponent_c - 23, top - FRACTION_BITS);
      total = 0;
      for (int i = 0; i <= K; i++) total += trace.kept0[i];
      trace.total0 = total;
      trace.d0 = 64'(rounded(total, top - FRACTION_BITS));
      shown <= shows ? '1 : '0;
      if (nan || plus_inf || minus_inf) begin
        trace.d0 = nan || (plus_inf && minus_inf) ? 64'h7fffffff : minus_inf ? 64'hff800000 : 64'h7f800000;
        shown <= '0;
      end
      d <= 32'(trace.d0);
      seen <= trace;
    end
  end
endmodule
