// Truncated fused dot-product-add: d = a[0]*b[0] + ... + a[L-1]*b[L-1] + c, as tensor cores add.
//
// Every term is aligned to the largest exponent among them and cut, toward zero, F bits below it. The
// cut terms are added exactly; one rounding makes d. Combinational.
//
// Products are not normalised: 1.5 * 1.5 = 2.25 is aligned by exponent 0. The accumulator c takes part
// like one more product. A zero has no say in the alignment, but EXPONENT_FLOOR has.
//
// Formats by their widths; c and d are IEEE 754 formats of the same kind.

module fused_dot #(
    parameter int L               = 16,    // products summed at once
    parameter int F               = 25,    // fraction bits kept below the largest exponent
    parameter int EXPONENT_FLOOR  = -133,
    parameter int A_EXPONENT_BITS = 5,
    parameter int A_FRACTION_BITS = 10,
    parameter int A_SPECIALS      = 1,     // see float_decode
    parameter int B_EXPONENT_BITS = 5,
    parameter int B_FRACTION_BITS = 10,
    parameter int B_SPECIALS      = 1,
    parameter int D_EXPONENT_BITS = 8,
    parameter int D_FRACTION_BITS = 23,
    parameter int PRECISION       = 24,    // significant bits of d: 24 f32, 14 fp8 on Ada and Hopper, 11 f16
    parameter int NEAREST         = 0      // round d to nearest even; otherwise toward zero
) (
    input  logic [L*(1+A_EXPONENT_BITS+A_FRACTION_BITS)-1:0] a,
    input  logic [L*(1+B_EXPONENT_BITS+B_FRACTION_BITS)-1:0] b,
    input  logic [    D_EXPONENT_BITS+D_FRACTION_BITS:0]     c,
    output logic [    D_EXPONENT_BITS+D_FRACTION_BITS:0]     d
);

  localparam int A_BITS = 1 + A_EXPONENT_BITS + A_FRACTION_BITS;
  localparam int B_BITS = 1 + B_EXPONENT_BITS + B_FRACTION_BITS;
  localparam int D_BITS = 1 + D_EXPONENT_BITS + D_FRACTION_BITS;
  localparam int PRODUCT_FRACTION_BITS = A_FRACTION_BITS + B_FRACTION_BITS;

  // Three bits more than the widest field: a sum of two exponents, a difference of sums, a sign.
  localparam int MULTIPLICAND_EXPONENT_BITS =
      A_EXPONENT_BITS > B_EXPONENT_BITS ? A_EXPONENT_BITS : B_EXPONENT_BITS;
  localparam int EXPONENT_WIDTH =
      3 + (D_EXPONENT_BITS > MULTIPLICAND_EXPONENT_BITS ? D_EXPONENT_BITS : MULTIPLICAND_EXPONENT_BITS);

  // Before alignment a term has all its fraction bits, at least F. Two integer bits: products reach 4.
  localparam int TERM_FRACTION_BITS =
      PRODUCT_FRACTION_BITS > D_FRACTION_BITS
      ? (PRODUCT_FRACTION_BITS > F ? PRODUCT_FRACTION_BITS : F)
      : (D_FRACTION_BITS > F ? D_FRACTION_BITS : F);
  localparam int TERM_WIDTH = TERM_FRACTION_BITS + 2;
  localparam int SUM_WIDTH = F + 2 + $clog2(L + 1) + 1;

  // --- terms: the products, then c ---

  logic        [           L:0] negative;
  logic        [           L:0] infinite;
  logic        [           L:0] nan;
  logic signed [EXPONENT_WIDTH-1:0] exponent [0:L];
  logic        [    TERM_WIDTH-1:0] term     [0:L];

  generate
    for (genvar i = 0; i < L; i++) begin : g_product
      logic a_negative, a_infinite, a_nan, b_negative, b_infinite, b_nan;
      logic signed [EXPONENT_WIDTH-1:0] a_exponent, b_exponent;
      logic [A_FRACTION_BITS:0] a_significand;
      logic [B_FRACTION_BITS:0] b_significand;
      logic [PRODUCT_FRACTION_BITS+1:0] product;

      float_decode #(
          .EXPONENT_BITS (A_EXPONENT_BITS),
          .FRACTION_BITS (A_FRACTION_BITS),
          .SPECIALS      (A_SPECIALS),
          .EXPONENT_WIDTH(EXPONENT_WIDTH)
      ) a_decode (
          .code       (a[i*A_BITS+:A_BITS]),
          .negative   (a_negative),
          .exponent   (a_exponent),
          .significand(a_significand),
          .infinite   (a_infinite),
          .nan        (a_nan)
      );

      float_decode #(
          .EXPONENT_BITS (B_EXPONENT_BITS),
          .FRACTION_BITS (B_FRACTION_BITS),
          .SPECIALS      (B_SPECIALS),
          .EXPONENT_WIDTH(EXPONENT_WIDTH)
      ) b_decode (
          .code       (b[i*B_BITS+:B_BITS]),
          .negative   (b_negative),
          .exponent   (b_exponent),
          .significand(b_significand),
          .infinite   (b_infinite),
          .nan        (b_nan)
      );

      assign product = (B_FRACTION_BITS + 1 + A_FRACTION_BITS + 1)'(a_significand)
          * (B_FRACTION_BITS + 1 + A_FRACTION_BITS + 1)'(b_significand);
      assign term[i] = TERM_WIDTH'(product) << (TERM_FRACTION_BITS - PRODUCT_FRACTION_BITS);
      assign exponent[i] = a_exponent + b_exponent;
      assign negative[i] = a_negative ^ b_negative;
      assign nan[i] = a_nan || b_nan
          || (a_infinite && b_significand == '0) || (b_infinite && a_significand == '0);
      assign infinite[i] = (a_infinite || b_infinite) && !nan[i];
    end
  endgenerate

  logic [D_FRACTION_BITS:0] c_significand;

  float_decode #(
      .EXPONENT_BITS (D_EXPONENT_BITS),
      .FRACTION_BITS (D_FRACTION_BITS),
      .SPECIALS      (1),
      .EXPONENT_WIDTH(EXPONENT_WIDTH)
  ) c_decode (
      .code       (c),
      .negative   (negative[L]),
      .exponent   (exponent[L]),
      .significand(c_significand),
      .infinite   (infinite[L]),
      .nan        (nan[L])
  );

  assign term[L] = TERM_WIDTH'(c_significand) << (TERM_FRACTION_BITS - D_FRACTION_BITS);

  // --- the largest exponent ---

  logic signed [EXPONENT_WIDTH-1:0] maximum;

  always_comb begin
    maximum = EXPONENT_WIDTH'(EXPONENT_FLOOR);
    for (int i = 0; i <= L; i++) begin
      if (term[i] != '0 && exponent[i] > maximum) maximum = exponent[i];
    end
  end

  // --- align, cut toward zero, add ---

  // Magnitudes are cut, not two's complements: that would round negative terms down. The gap is
  // unsigned; a zero term may lie above the maximum, where it is shifted out as the zero it is.
  logic [EXPONENT_WIDTH-1:0] gap     [0:L];
  logic [     SUM_WIDTH-1:0] aligned [0:L];

  generate
    for (genvar i = 0; i <= L; i++) begin : g_align
      assign gap[i] = maximum - exponent[i];
      assign aligned[i] = SUM_WIDTH'({term[i] >> gap[i] >> (TERM_FRACTION_BITS - F)});
    end
  endgenerate

  logic signed [SUM_WIDTH-1:0] sum;

  always_comb begin
    sum = '0;
    for (int i = 0; i <= L; i++) sum = negative[i] ? sum - aligned[i] : sum + aligned[i];
  end

  // --- round; Inf and NaN override ---

  logic [D_BITS-1:0] rounded;

  round_pack #(
      .SUM_WIDTH     (SUM_WIDTH),
      .EXPONENT_WIDTH(EXPONENT_WIDTH),
      .F             (F),
      .EXPONENT_BITS (D_EXPONENT_BITS),
      .FRACTION_BITS (D_FRACTION_BITS),
      .PRECISION     (PRECISION),
      .NEAREST       (NEAREST)
  ) round (
      .sum     (sum),
      .exponent(maximum),
      .code    (rounded)
  );

  logic plus_infinity, minus_infinity;

  assign plus_infinity  = (infinite & ~negative) != '0;
  assign minus_infinity = (infinite & negative) != '0;

  always_comb begin
    d = rounded;
    if (plus_infinity) d = {1'b0, {D_EXPONENT_BITS{1'b1}}, {D_FRACTION_BITS{1'b0}}};
    if (minus_infinity) d = {1'b1, {D_EXPONENT_BITS{1'b1}}, {D_FRACTION_BITS{1'b0}}};
    // The one NaN there is: neither sign nor payload of an operand survives.
    if (nan != '0 || (plus_infinity && minus_infinity)) d = {1'b0, {(D_BITS - 1) {1'b1}}};
  end

endmodule
