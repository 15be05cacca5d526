void @NAME@_element(int element_number, @INPUTS@, @CODE_OUTPUTS@) {
  int row = element_number / COLUMNS, column = element_number % COLUMNS;
  element(@ELEMENT@, row, column, a_codes, b_codes@PASSED_CODES@);
  c_codes[0] = c_code(c, row, column);
}

void @NAME@_put(int element_number, @WORD@ code, @WORD@ *d) {
  put_d(d, element_number / COLUMNS, element_number % COLUMNS, code);
}

const char *@NAME@_intermediate(int intermediate) {
  return intermediate < 0 || intermediate >= INTERMEDIATES ? "" : intermediate_name(intermediate);
}
void @NAME@_stimulate(uint64_t seed, int at, @OUTPUTS@) {
  current_seed = seed;
  draw_tile(seed, at);
  put_tile(@ARGUMENTS@);
}

@PLANTED@ {
  const word_t *const codes[INPUTS] = {@POINTERS@};
  word_t code = run_program(0, codes, values, 0);
  if (mistake < 1 || mistake > MISTAKES) return code;
  return run_program(mistake, codes, mistakes[mistake - 1].traced ? values : 0, 0);
}

static void see_settings(@INPUTS@) {
@UNUSED@
@SETTINGS@
}

int @NAME@_score(int at, @INPUTS@, const @WORD@ *d) {
  word_t left[STORED], right[STORED], added, expected, got;@SCALES@
  const word_t *const codes[INPUTS] = {left, right, &added@PASSED@};
  int row, column, wrong = 0, i;
  current_case = at;
  cases++;
  see_settings(@ARGUMENTS@);
  for (row = 0; row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      element(@ELEMENT@, row, column, left, right@PASSED@);
      added = c_code(c, row, column);
@UNSELECTED@      expected = run_program(0, codes, 0, 1);
      count_hits();
      got = d_code(d, row, column);
      elements++;
      wrong += expected != got;
      for (i = 0; i < MISTAKES; i++)
        if (needed(i)) weigh(i, expected, got, run_program(i + 1, codes, 0, 0));
    }
  wrong_elements += wrong;
  wrong_cases += wrong > 0;
  for (row = 0; wrong && row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      if (lines_shown >= SHOWN) return wrong;
      element(@ELEMENT@, row, column, left, right@PASSED@);
      added = c_code(c, row, column);
      expected = @NAME@_dot(left, right, added@PASSED@, 0);
      got = d_code(d, row, column);
      if (expected != got) report(row, column, expected, got, codes);
    }
  return wrong;
}
