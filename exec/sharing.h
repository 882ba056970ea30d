/* sharing.h - checksums of what steps read and write, by which inspect.h's exec_find_damage finds
 * values that disturb each other. */
#ifndef ADJ_SHARING_H
#define ADJ_SHARING_H

#include "exec.h"

/* While a run with checksums is on: before a step, and after it. */
void sum_operands(const adj_exec *e, step *s);
void sum_results(const adj_exec *e, step *s);
/* After the last step, before the updates. */
void sum_end(const adj_exec *e);

#endif
