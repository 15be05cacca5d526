/* Stimulus, coverage and a scoreboard for @NAME@. Static state: one bench at a time. */
#ifndef @GUARD@
#define @GUARD@
#include "@NAME@.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The inputs of a case: the same for the same seed and case. */
void @NAME@_stimulate(uint64_t seed, int at, @OUTPUTS@);

/* Compare D of a unit with the model's, count bins, and rule out mistakes. Returns the wrong elements. */
int @NAME@_score(int at, @INPUTS@, const @WORD@ *d);

/* The next line of the scoreboard; "" where there is none. */
const char *@NAME@_line(void);

/* End the scoreboard: lines of the totals, of the mistakes that give every output, of the bins that were missed. */
void @NAME@_end(void);

/* A dot product with a mistake: 1 to the number of mistakes; 0 is none. values, or 0, are its intermediates as
   integers, in the order of @NAME@_trace: those of the rule's steps, so that a mistake of other steps shows none. */
@PLANTED@;
int @NAME@_mistakes(void);
const char *@NAME@_mistake(int mistake);

/* Elements of D, row after row: the codes that one is made of, and where its code goes in D. */
void @NAME@_element(int element, @INPUTS@, @CODE_OUTPUTS@);
void @NAME@_put(int element, @WORD@ code, @WORD@ *d);

/* The name of an intermediate. */
const char *@NAME@_intermediate(int intermediate);

#ifdef __cplusplus
}
#endif
#endif
