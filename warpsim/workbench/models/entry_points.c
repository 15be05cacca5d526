void @NAME@_element(int element_number, @INPUTS@, @CODE_OUTPUTS@) {
  int row = element_number / COLUMNS, column = element_number % COLUMNS;
  element(@ELEMENT@, row, column, a_codes, b_codes@PASSED_CODES@);
  c_codes[0] = c_code(c, row, column);
}

void @NAME@_put(int element_number, @WORD@ code, @WORD@ *d) {
  put_d(d, element_number / COLUMNS, element_number % COLUMNS, code);
}

void @NAME@_flat(const @NAME@_trace *trace, int64_t *values) { flat_trace(trace, values); }

const char *@NAME@_intermediate(int intermediate) {
  return intermediate < 0 || intermediate >= INTERMEDIATES ? "" : intermediate_name(intermediate);
}
void @NAME@_stimulate(uint64_t seed, int at, @OUTPUTS@) {
  current_seed = seed;
  draw_tile(seed, at);
  put_tile(@ARGUMENTS@);
}

@PLANTED@ {
  if (mistake < 1 || mistake > MISTAKES) return @NAME@_dot(@CODES@, trace);
  return mistakes[mistake - 1].dot(@CODES@, trace);
}

static void see_settings(@INPUTS@) {
@UNUSED@
@SETTINGS@
}

int @NAME@_score(int at, @INPUTS@, const @WORD@ *d) {
  word_t left[STORED], right[STORED], expected, got;@SCALES@
  int row, column, wrong = 0, i, others;
  current_case = at;
  cases++;
  see_settings(@ARGUMENTS@);
  for (row = 0; row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      element(@ELEMENT@, row, column, left, right@PASSED@);
@UNSELECTED@      expected = seen_dot(left, right, c_code(c, row, column)@PASSED@);
      count_hits();
      got = d_code(d, row, column);
      elements++;
      wrong += expected != got;
      for (i = 0; i < MISTAKES; i++)
        if (needed(i)) weigh(i, expected, got, mistakes[i].dot(left, right, c_code(c, row, column)@PASSED@, 0));
    }
  wrong_elements += wrong;
  wrong_cases += wrong > 0;
  for (row = 0; wrong && row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      @NAME@_trace model, unit;
      if (lines_shown >= SHOWN) return wrong;
      element(@ELEMENT@, row, column, left, right@PASSED@);
      expected = @NAME@_dot(left, right, c_code(c, row, column)@PASSED@, &model);
      got = d_code(d, row, column);
      if (expected == got) continue;
      memset(&unit, 0, sizeof unit);
      i = suspect(&others);
      if (i >= 0) mistakes[i].dot(left, right, c_code(c, row, column)@PASSED@, &unit);
      report(row, column, expected, got, &model, &unit);
    }
  return wrong;
}
