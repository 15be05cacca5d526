// @ABOUT@:
// the golden model by DPI-C, and modules that check a unit. With @NAME@_dpi.c and @NAME@_bench.c.

package @NAME@_pkg;
@TYPES@

  // Intermediates of a dot product, as @NAME@_trace has them: the first in the lowest bits, 64 bits each.
@TRACE@

  import "DPI-C" function void @NAME@_dpi(@GIVEN@, output d_t d);
  import "DPI-C" function void @NAME@_dot_dpi(input int mistake, @DOT_GIVEN@, output code_t d, output trace_t trace);
  import "DPI-C" function void @NAME@_element_dpi(input int element, @GIVEN@, @DOT_WRITTEN@);
  import "DPI-C" function void @NAME@_put_dpi(input int element, input code_t code, input d_t known, output d_t d);
  import "DPI-C" function string @NAME@_intermediate(input int intermediate);

  import "DPI-C" function void @NAME@_stimulate_dpi(input longint seed, input int at, @WRITTEN@);
  import "DPI-C" function int @NAME@_score_dpi(input int at, @GIVEN@, input d_t d);
  import "DPI-C" function string @NAME@_line();
  import "DPI-C" function void @NAME@_end();
  import "DPI-C" function int @NAME@_mistakes();
endpackage

// Compares D of each instruction: inputs are taken at a clock edge with start, D at an edge with done. A unit may
// be pipelined: results are in the order of the inputs.
module @NAME@_checker
  import @NAME@_pkg::*;
#(
    parameter int SHOW = 20
) (
    input bit clock,
    input bit start,
@PORTS@
    input bit done,
    input d_t d
);
  d_t expected[$];
  d_t wanted;
  int checked = 0, wrong = 0;

  always @(posedge clock) begin
    if (start) begin
      @NAME@_dpi(@PASSED@, wanted);
      expected.push_back(wanted);
    end
    if (done) begin
      if (expected.size() == 0) $error("case %0d: done without start", checked);
      else begin
        wanted = expected.pop_front();
        for (int word = 0; word < D_WORDS; word++)
          if (d[word*WORD_BITS+:WORD_BITS] != wanted[word*WORD_BITS+:WORD_BITS]) begin
            wrong = wrong + 1;
            if (wrong <= SHOW)
              $display("checker: case %0d, @LANE@ %0d, @WORD@%0d: expected %h, got %h", checked, word / D_COLUMNS,
                       word % D_COLUMNS, wanted[word*WORD_BITS+:WORD_BITS], d[word*WORD_BITS+:WORD_BITS]);
          end
      end
      checked = checked + 1;
    end
  end
endmodule

// Compares each dot product of a unit, and the intermediates that it shows: where a bit of shown is 1, that of
// seen counts. The first that differs is reported, in the order in which the rule computes them; wrong counts.
module @NAME@_dot_checker
  import @NAME@_pkg::*;
#(
    parameter int SHOW = 20
) (
    input bit clock,
    input bit start,
@DOT_PORTS@
    input bit done,
    input code_t d,
    input trace_t seen,
    input trace_t shown
);
  code_t codes[$], wanted;
  trace_t traces[$], trace, differs;
  int checked = 0, wrong = 0, first;

  always @(posedge clock) begin
    if (start) begin
      @NAME@_dot_dpi(0, @DOT_NAMES@, wanted, trace);
      codes.push_back(wanted);
      traces.push_back(trace);
    end
    if (done && codes.size() != 0) begin
      wanted = codes.pop_front();
      trace = traces.pop_front();
      differs = (trace ^ seen) & shown;
      if (d != wanted || differs != 0) begin
        wrong = wrong + 1;
        first = -1;
        for (int at = INTERMEDIATES - 1; at >= 0; at--) if (differs[64*at+:64] != 0) first = at;
        if (wrong <= SHOW && first >= 0)
          $display("dot %0d: expected %h, got %h; %s is %0d, expected %0d", checked, wanted, d,
                   @NAME@_intermediate(first), $signed(seen[64*first+:64]), $signed(trace[64*first+:64]));
      end
      checked = checked + 1;
    end
  end
endmodule
