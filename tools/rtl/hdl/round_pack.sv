// The code of an exact sum: sum * 2^(exponent - F), rounded once to PRECISION significant bits.
//
// Toward zero or to nearest even; gradual underflow; what is too large becomes Inf, never the largest
// finite number. Zero, and what rounds to zero, is +0 whatever the sign.

module round_pack #(
    parameter int SUM_WIDTH      = 32,
    parameter int EXPONENT_WIDTH = 11,
    parameter int F              = 25,
    parameter int EXPONENT_BITS  = 8,
    parameter int FRACTION_BITS  = 23,
    parameter int PRECISION      = 24,  // at most FRACTION_BITS + 1; below that the low bits are 0
    parameter int NEAREST        = 0
) (
    input  logic signed [               SUM_WIDTH-1:0] sum,
    input  logic signed [          EXPONENT_WIDTH-1:0] exponent,
    output logic        [EXPONENT_BITS+FRACTION_BITS:0] code
);

  localparam int MINIMUM_EXPONENT = 2 - (1 << (EXPONENT_BITS - 1));
  localparam int FIELDS = EXPONENT_BITS + FRACTION_BITS;
  localparam int POSITION_WIDTH = $clog2(SUM_WIDTH);
  // Below the smallest normal number bits go into the rounding one by one; after PRECISION + 1 of them
  // nothing is left to keep and the rest is less than half a unit, however far down it is.
  localparam int FRAME_WIDTH = SUM_WIDTH + PRECISION + 1;
  localparam int REST_WIDTH = FRAME_WIDTH - PRECISION;
  localparam int SHIFT_WIDTH = $clog2(PRECISION + 2);
  localparam int CODE_WIDTH = EXPONENT_WIDTH + FRACTION_BITS + 1;
  localparam logic [CODE_WIDTH-1:0] INFINITY =
      CODE_WIDTH'((1 << EXPONENT_BITS) - 1) << FRACTION_BITS;

  // --- magnitude, and where its leading one is ---

  logic                             negative;
  logic        [     SUM_WIDTH-1:0] magnitude;
  logic        [     SUM_WIDTH-1:0] normalised;
  logic        [POSITION_WIDTH-1:0] leading;
  logic signed [EXPONENT_WIDTH-1:0] binade;  // exponent of the leading one, above the smallest normal

  assign negative  = sum[SUM_WIDTH-1];
  assign magnitude = negative ? -sum : sum;

  always_comb begin
    leading = '0;
    for (int i = 0; i < SUM_WIDTH; i++) if (magnitude[i]) leading = POSITION_WIDTH'(i);
  end

  assign normalised = magnitude << (POSITION_WIDTH'(SUM_WIDTH - 1) - leading);
  assign binade = exponent + EXPONENT_WIDTH'(leading) - EXPONENT_WIDTH'(F + MINIMUM_EXPONENT);

  // --- cut to PRECISION bits, or fewer where the result is subnormal ---

  logic                      subnormal;
  logic [EXPONENT_WIDTH-1:0] below;
  logic [   SHIFT_WIDTH-1:0] shift;
  logic [   FRAME_WIDTH-1:0] frame;
  logic [     PRECISION-1:0] kept;
  logic [    REST_WIDTH-1:0] rest;
  logic                      increment;

  assign subnormal = binade < 0;
  assign below = -binade;
  assign shift = !subnormal ? '0
      : below > EXPONENT_WIDTH'(PRECISION + 1) ? SHIFT_WIDTH'(PRECISION + 1) : below[SHIFT_WIDTH-1:0];
  assign frame = {normalised, {(PRECISION + 1) {1'b0}}} >> shift;
  assign {kept, rest} = frame;
  assign increment = NEAREST != 0 && rest[REST_WIDTH-1] && (kept[0] || rest[REST_WIDTH-2:0] != '0);

  // --- pack: the hidden bit, and the carry of a rounding, run into the exponent field ---

  logic [CODE_WIDTH-1:0] rounded;
  logic [CODE_WIDTH-1:0] packed_code;
  logic                  overflow;

  assign rounded = (CODE_WIDTH'(kept) + CODE_WIDTH'(increment)) << (FRACTION_BITS + 1 - PRECISION);
  assign packed_code = rounded + (subnormal ? '0 : CODE_WIDTH'(binade) << FRACTION_BITS);
  assign overflow = packed_code >= INFINITY;

  assign code = magnitude == '0 || packed_code == '0 ? '0
      : {negative, overflow ? INFINITY[FIELDS-1:0] : packed_code[FIELDS-1:0]};

endmodule
