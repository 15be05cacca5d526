// 2:4 operand selection: the elements of B that the stored elements of a row of A multiply.
//
// Of every four consecutive elements of B (a chunk) two are chosen. Four bits of metadata name them:
// the low two bits choose the partner of the first stored element, the high two that of the second.
// What is not chosen goes nowhere: a NaN there does not matter.

module select_2of4 #(
    parameter int CHUNKS = 4,
    parameter int BITS   = 16  // of one element
) (
    input  logic [CHUNKS*4*BITS-1:0] b,
    input  logic [     CHUNKS*4-1:0] metadata,
    output logic [CHUNKS*2*BITS-1:0] selected
);

  generate
    for (genvar stored = 0; stored < 2 * CHUNKS; stored++) begin : g_stored
      logic [       1:0] index;
      logic [4*BITS-1:0] chunk;
      assign index = metadata[2*stored+:2];
      assign chunk = b[(stored/2)*4*BITS+:4*BITS];
      assign selected[stored*BITS+:BITS] = chunk[index*BITS+:BITS];
    end
  endgenerate

endmodule
