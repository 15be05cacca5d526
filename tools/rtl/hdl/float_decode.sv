// One floating-point code taken apart, exactly.
//
// value = (-1)^negative * significand * 2^(exponent - FRACTION_BITS)
//
// A subnormal number keeps its leading zeros and the exponent of the smallest normal number: the unit
// aligns by that exponent, so normalising here would change results. Nothing is flushed.

module float_decode #(
    parameter int EXPONENT_BITS  = 5,
    parameter int FRACTION_BITS  = 10,
    parameter int SPECIALS       = 1,  // 1: as IEEE 754; 2: no Inf, one NaN, all ones (e4m3)
    parameter int EXPONENT_WIDTH = 8   // of the output; wide enough for sums of two exponents
) (
    input  logic        [EXPONENT_BITS+FRACTION_BITS:0] code,
    output logic                                        negative,
    output logic signed [           EXPONENT_WIDTH-1:0] exponent,
    output logic        [              FRACTION_BITS:0] significand,
    output logic                                        infinite,
    output logic                                        nan
);

  localparam int BIAS = (1 << (EXPONENT_BITS - 1)) - 1;

  logic [EXPONENT_BITS-1:0] field;
  logic [FRACTION_BITS-1:0] fraction;
  logic                     normal;

  assign {negative, field, fraction} = code;
  assign normal = field != '0;
  assign significand = {normal, fraction};

  // The field of a subnormal number is 0 but means 1.
  assign exponent = EXPONENT_WIDTH'(field) + EXPONENT_WIDTH'(!normal) - EXPONENT_WIDTH'(BIAS);

  generate
    if (SPECIALS == 1) begin : g_ieee
      assign infinite = &field && fraction == '0;
      assign nan = &field && fraction != '0;
    end else begin : g_one_nan
      assign infinite = 1'b0;
      assign nan = &{field, fraction};
    end
  endgenerate

endmodule
