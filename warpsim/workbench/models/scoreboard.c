
/* --- scoreboard --- */

#define SHOWN 20
#define LINE 512

static uint64_t current_seed;
static int current_case, cases, wrong_cases, lines_shown;
static long long elements, wrong_elements;
static struct {
  int shown;         /* some output differs from the rule's under it */
  int ruled_out;     /* some output of the unit is not the one under it */
  long long explained; /* wrong outputs that it gives */
} weighed[MISTAKES + 1];
static char lines[64][LINE];
static int lines_first, lines_last;

static char *next_line(void) {
  char *line = lines[lines_last++ % 64];
  if (lines_last - lines_first > 64) lines_first = lines_last - 64;
  return line;
}

const char *@NAME@_line(void) { return lines_first == lines_last ? "" : lines[lines_first++ % 64]; }

static void see_case(int bin) {
  if (bin <= BINS && bins[bin - 1].outputs++ == 0) bins[bin - 1].first = current_case;
}

static void count_hits(void) {
  int bin;
  for (bin = 1; bin <= BINS; bin++)
    if (hit[bin]) see_case(bin);
  memset(hit, 0, sizeof hit);
#if FLOATS
  beyond = overflowed = 0;
#endif
}

#if SPARSE
static void see_metadata(const uint32_t *e, int selector) {
  static int bin[CHUNKS][16];
  unsigned char seen[CHUNKS][16] = {{0}};
  char name[80];
  int row, chunk, field;
  for (row = 0; row < ROWS; row++)
    for (chunk = 0; chunk < CHUNKS; chunk++) seen[chunk][e_field(e, selector, row, chunk)] = 1;
  for (chunk = 0; chunk < CHUNKS; chunk++)
    for (field = 0; field < 16; field++) {
      snprintf(name, sizeof name, "metadata: chunk %d, field 0b%d%d%d%d", chunk, field >> 3, field >> 2 & 1, field >> 1 & 1,
               field & 1);
      if (!bin[chunk][field]) bin[chunk][field] = bin_of(name);
      if (seen[chunk][field]) see_case(bin[chunk][field]);
    }
}
#endif

/* A mistake is computed until it was seen to matter and the unit was seen not to have it. */
static int needed(int i) { return !weighed[i].shown || !weighed[i].ruled_out; }

static void weigh(int i, word_t expected, word_t got, word_t made) {
  weighed[i].shown |= made != expected;
  weighed[i].ruled_out |= made != got;
  weighed[i].explained += expected != got && made == got;
}

/* The first mistake that gives every output so far; -1 without one. How many others do. */
static int suspect(int *others) {
  int i, first = -1;
  *others = -1;
  for (i = 0; i < MISTAKES; i++)
    if (!weighed[i].ruled_out && ++*others == 0) first = i;
  return first;
}

/* The field of an intermediate, and its name, such as kept0[3]. */
static int intermediate_field(int *at) {
  int i;
  for (i = 0; *at >= trace_fields[i].count; i++) *at -= trace_fields[i].count;
  return i;
}

static const char *intermediate_name(int at) {
  static char name[80];
  int i = intermediate_field(&at);
  if (trace_fields[i].count > 1) {
    snprintf(name, sizeof name, "%s[%d]", trace_fields[i].name, at);
  } else {
    snprintf(name, sizeof name, "%s", trace_fields[i].name);
  }
  return name;
}

static void report(int row, int column, word_t expected, word_t got, const word_t *const *codes) {
  int64_t right[INTERMEDIATES], wrong[INTERMEDIATES];
  char *line = next_line();
  int used, i = INTERMEDIATES, others, mistake = suspect(&others);
  lines_shown++;
  used = snprintf(line, LINE, "case %d (%s), " LANE_WORD " %d, " REGISTER_WORD "%d, D[%d,%d]: expected %llx, got %llx; ",
                  current_case, seeds[tile_of(current_seed, current_case)].theme, lane_of(row, column),
                  word_of(row, column), row, column, (unsigned long long)expected, (unsigned long long)got);
  if (mistake < 0) {
    snprintf(line + used, LINE - (size_t)used, "no rewriting of one step gives all outputs");
    return;
  }
  if (mistakes[mistake].traced) {
    run_program(0, codes, right, 0);
    run_program(mistake + 1, codes, wrong, 0);
    for (i = 0; i < INTERMEDIATES && right[i] == wrong[i]; i++) continue;
  }
  if (i < INTERMEDIATES) {
    int at = i;
    used += snprintf(line + used, LINE - (size_t)used,
                     trace_fields[intermediate_field(&at)].is_code ? "%s is %llx, not %llx: " : "%s is %lld, not %lld: ",
                     intermediate_name(i), (long long)wrong[i], (long long)right[i]);
  }
  used += snprintf(line + used, LINE - (size_t)used, "%s", mistakes[mistake].name);
  if (others) snprintf(line + used, LINE - (size_t)used, ", or %d other%s", others, others > 1 ? "s" : "");
}

void @NAME@_end(void) {
  int i, named = 0, missed = 0;
  snprintf(next_line(), LINE, "%d cases, %lld of %lld elements of D wrong, in %d cases", cases, wrong_elements, elements,
           wrong_cases);
  for (i = 0; wrong_elements && i < MISTAKES; i++) {
    if (weighed[i].ruled_out || named >= 8) continue;
    named++;
    snprintf(next_line(), LINE, "every output is that of the rule with one step rewritten: %s", mistakes[i].name);
  }
  if (wrong_elements && !named) snprintf(next_line(), LINE, "no rewriting of one step gives every output");
  for (i = 0; i < BINS; i++) missed += bins[i].outputs == 0;
  snprintf(next_line(), LINE, "coverage: %d of %d bins hit", BINS - missed, BINS);
  for (i = 0; i < BINS && missed <= 40; i++)
    if (bins[i].outputs == 0) snprintf(next_line(), LINE, "missed: %s", bins[i].name);
  for (i = 0, missed = 0; i < MISTAKES; i++) missed += !weighed[i].shown;
  snprintf(next_line(), LINE, "mistakes that some case shows: %d of %d", MISTAKES - missed, MISTAKES);
  for (i = 0; i < MISTAKES && missed <= 10; i++)
    if (!weighed[i].shown) snprintf(next_line(), LINE, "never shown: %s", mistakes[i].name);
}

int @NAME@_mistakes(void) { return MISTAKES; }

const char *@NAME@_mistake(int mistake) {
  return mistake < 1 || mistake > MISTAKES ? "" : mistakes[mistake - 1].name;
}
