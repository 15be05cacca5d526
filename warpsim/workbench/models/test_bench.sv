// @ABOUT@:
// runs a unit on corner cases that are made while it runs, counts coverage, and keeps a scoreboard.
// +cases=N        cases; 200 if not given
// +seed=N         another sequence
// +timeout=N      clocks that a case may take
// +mistake=N      plants a mistake in the unit that is here: what the scoreboard says of it
// +shown          that unit shows its intermediates, which are compared, too

module @NAME@_tb;
  import @NAME@_pkg::*;

  bit clock = 0, start = 0, done;
@DECLARED@
  d_t d;
  int cases, timeout, waited, wrong = 0;
  longint seed;
  string line;

  @NAME@_unit unit (.clock(clock), .start(start), @CONNECTED@, .done(done), .d(d));
  @NAME@_checker #(.SHOW(0)) check (.clock(clock), .start(start), @CONNECTED@, .done(done), .d(d));

  always #5 clock = !clock;

  task automatic say();
    line = @NAME@_line();
    while (line != "") begin
      $display("%s", line);
      line = @NAME@_line();
    end
  endtask

  initial begin
    if (!$value$plusargs("cases=%d", cases)) cases = 200;
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 1000000;
    for (int at = 0; at < cases; at++) begin
      @(negedge clock);
      @NAME@_stimulate_dpi(seed, at, @PASSED@);
      start = 1;
      @(negedge clock);
      start = 0;
      for (waited = 1; !done && waited < timeout; waited++) @(negedge clock);
      if (!done) $fatal(1, "case %0d: not done within %0d clocks", at, timeout);
      wrong += @NAME@_score_dpi(at, @PASSED@, d);
      say();
    end
    @(negedge clock);
    @NAME@_end();
    say();
    if (check.checked != cases || (check.wrong != 0) != (wrong != 0))
      $fatal(1, "the checker saw %0d cases, %0d wrong words", check.checked, check.wrong);
    if (wrong != 0) $fatal(1, "FAILED: %0d elements of D are wrong", wrong);
    $display("passed: %0d cases", cases);
    $finish;
  end
endmodule
