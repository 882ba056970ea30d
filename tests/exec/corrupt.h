/* corrupt.h - for tests that change a finished plan: finds the step that computes a node. Linked
 * with library.o. */
#ifndef TESTS_EXEC_CORRUPT_H
#define TESTS_EXEC_CORRUPT_H

#include <string.h>

#include "exec/exec.h"
#include "exec/run.h"
#include "tests/plan.h"

static inline int is_step_of(const adj_exec *e, int i, const char *op)
{
    const step *s = &e->plan.step[i];
    if (s->kind != STEP_KERNEL)
        return strcmp(op, s->kind == STEP_COPY ? "copy" : "reorder") == 0;
    return strcmp(s->group.node[0]->op->name, op) == 0;
}

/* Returns the number of the first step of that op ("reorder" and "copy" are some, too). */
static inline int step_number(const adj_exec *e, const char *op)
{
    int i = 0;
    while (i < e->plan.n_step && !is_step_of(e, i, op))
        i++;
    cr_assert_lt(i, e->plan.n_step, "no step of %s", op);
    return i;
}

static inline step *step_called(adj_exec *e, const char *op)
{
    return &e->plan.step[step_number(e, op)];
}

/* Returns the slot of the step's first result. */
static inline slot *slot_called(adj_exec *e, const char *op)
{
    return slot_of(&e->plan, step_called(e, op)->out[0]);
}

/* Returns the leaf of that name. */
static inline leaf *leaf_called(adj_exec *e, const char *name)
{
    int i = 0;
    while (i < e->plan.n_leaf && strcmp(adj_node_name(e->plan.leaf[i].node), name) != 0)
        i++;
    cr_assert_lt(i, e->plan.n_leaf, "no leaf %s", name);
    return &e->plan.leaf[i];
}

static inline void remove_step(adj_exec *e, int i)
{
    plan *p = &e->plan;
    memmove(p->step + i, p->step + i + 1, (size_t)(p->n_step - i - 1) * sizeof *p->step);
    p->n_step--;
}

static inline void swap_steps(adj_exec *e, int i, int k)
{
    const step first = e->plan.step[i];
    e->plan.step[i] = e->plan.step[k];
    e->plan.step[k] = first;
}

#endif
