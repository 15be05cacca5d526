// The unit: L products a clock, 2:4 selection of B where SPARSE, an accumulator register.
//
// d <= sum(a * b) + (first ? c : d). A longer dot product is a chain of clocks in ascending k, each
// partial sum fully rounded. No reset: the first clock of a dot product ignores the register.
// b and metadata hold 2 * L elements and L / 2 fields where SPARSE; otherwise b holds L, and metadata
// is not read. Element i lies at bits i * width.

module tensor_dot #(
    parameter int SPARSE          = 1,     // 1: a row of A is stored 2:4, with metadata
    parameter int L               = 16,
    parameter int F               = 25,
    parameter int EXPONENT_FLOOR  = -133,
    parameter int A_EXPONENT_BITS = 5,
    parameter int A_FRACTION_BITS = 10,
    parameter int A_SPECIALS      = 1,
    parameter int B_EXPONENT_BITS = 5,
    parameter int B_FRACTION_BITS = 10,
    parameter int B_SPECIALS      = 1,
    parameter int D_EXPONENT_BITS = 8,
    parameter int D_FRACTION_BITS = 23,
    parameter int PRECISION       = 24,
    parameter int NEAREST         = 0
) (
    input  logic                                                         clock,
    input  logic                                                         first,
    input  logic [            L*(1+A_EXPONENT_BITS+A_FRACTION_BITS)-1:0] a,
    input  logic [(SPARSE!=0?2:1)*L*(1+B_EXPONENT_BITS+B_FRACTION_BITS)-1:0] b,
    input  logic [                                              2*L-1:0] metadata,
    input  logic [                    D_EXPONENT_BITS+D_FRACTION_BITS:0] c,
    output logic [                    D_EXPONENT_BITS+D_FRACTION_BITS:0] d
);

  localparam int B_BITS = 1 + B_EXPONENT_BITS + B_FRACTION_BITS;

  logic [                     L*B_BITS-1:0] factors;
  logic [D_EXPONENT_BITS+D_FRACTION_BITS:0] sum;

  generate
    if (SPARSE != 0) begin : g_sparse
      select_2of4 #(
          .CHUNKS(L / 2),
          .BITS  (B_BITS)
      ) select (
          .b       (b),
          .metadata(metadata),
          .selected(factors)
      );
    end else begin : g_dense
      logic unused_metadata;
      assign unused_metadata = &metadata;
      assign factors = b;
    end
  endgenerate

  fused_dot #(
      .L              (L),
      .F              (F),
      .EXPONENT_FLOOR (EXPONENT_FLOOR),
      .A_EXPONENT_BITS(A_EXPONENT_BITS),
      .A_FRACTION_BITS(A_FRACTION_BITS),
      .A_SPECIALS     (A_SPECIALS),
      .B_EXPONENT_BITS(B_EXPONENT_BITS),
      .B_FRACTION_BITS(B_FRACTION_BITS),
      .B_SPECIALS     (B_SPECIALS),
      .D_EXPONENT_BITS(D_EXPONENT_BITS),
      .D_FRACTION_BITS(D_FRACTION_BITS),
      .PRECISION      (PRECISION),
      .NEAREST        (NEAREST)
  ) fused_dot (
      .a(a),
      .b(factors),
      .c(first ? c : d),
      .d(sum)
  );

  always_ff @(posedge clock) d <= sum;

endmodule
