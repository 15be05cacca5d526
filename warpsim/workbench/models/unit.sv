// @ABOUT@:
// the unit under test, to be replaced. Either module may be: the dot product alone, or the whole instruction.

// A dot product: codes one a word, in stored order. This one is the model itself, with a mistake where +mistake=N
// says so. seen are its intermediates; shown has 1 bits where it shows them: all of them with +shown.
module @NAME@_dot_unit
  import @NAME@_pkg::*;
(
    input  bit     clock,
    input  bit     start,
@DOT_PORTS@
    output bit     done,
    output code_t  d,
    output trace_t seen,
    output trace_t shown
);
  int mistake;
  initial begin
    if (!$value$plusargs("mistake=%d", mistake)) mistake = 0;
    shown = $test$plusargs("shown") != 0 ? '1 : '0;
  end

  code_t code;
  trace_t trace;
  always @(posedge clock) begin
    done <= start;
    if (start) begin
      @NAME@_dot_dpi(mistake, @DOT_NAMES@, code, trace);
      d <= code;
      seen <= trace;
    end
  end
endmodule

// The instruction, an element of D after the other: what an element is made of, and where it goes, is the model's.
module @NAME@_unit
  import @NAME@_pkg::*;
(
    input  bit clock,
    input  bit start,
@PORTS@
    output bit done,
    output d_t d
);
@DOT_DECLARED@
  bit go, ready;
  code_t code;
  trace_t seen, shown;
  int element = -1;
  d_t next;

  @NAME@_dot_unit dot (
      .clock(clock), .start(go), @DOT_CONNECTED@, .done(ready), .d(code), .seen(seen), .shown(shown)
  );
  @NAME@_dot_checker dots (
      .clock(clock), .start(go), @DOT_CONNECTED@, .done(ready), .d(code), .seen(seen), .shown(shown)
  );

  always @(posedge clock) begin
    done <= 0;
    go <= 0;
    if (start) begin
      element <= 0;
      go <= 1;
      @NAME@_element_dpi(0, @PASSED@, @DOT_PASSED@);
    end else if (ready) begin
      @NAME@_put_dpi(element, code, d, next);
      d <= next;
      if (element == @ELEMENTS@ - 1) done <= 1;
      else begin
        element <= element + 1;
        go <= 1;
        @NAME@_element_dpi(element + 1, @PASSED@, @DOT_PASSED@);
      end
    end
  end
endmodule
