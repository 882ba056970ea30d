/* yield.h - an executor with a second plan, for fewer threads, that is taken while it is faster
 * (pace.h).
 *
 * Kernels keep the number of threads that they were prepared for, so there are two whole plans,
 * each in an adj_exec of its own. The caller knows one of them by its address: to change plans, the
 * two exchange their contents. So no function needs to know of the second, and what backends and
 * steps point to stays where it is. */
#ifndef ADJ_YIELD_H
#define ADJ_YIELD_H

#include "exec.h"

/* Makes the second plan where the options' yield allows it. Where it cannot be had the executor
 * stays as it is. Requires: e planned by these options. */
void add_second_plan(adj_exec *e, const adj_graph *g, const adj_exec_opts *o);
/* The plan that is not taken; NULL: there is none. */
adj_exec *second_plan(const adj_exec *e);

/* Around a run. Before: changes plans if that was decided. Requires: every input is set. */
void yield_before(adj_exec *e);
/* After: decides on the next run by the seconds of this one, unless it failed. Requires: there is a
 * second plan. */
void yield_after(adj_exec *e, double seconds);

#endif
