/* assign.h - the cheapest way for each part of a plan, where layouts couple neighbours.
 *
 * Parts run in order. Each reads and writes values; a way to compute it says how long it takes and
 * in which layout it wants and makes each. Layouts of a value are numbers, 0 is plain. What no part
 * makes is there in plain. A layout that is wanted and not there is made from plain if that is
 * there, else from another that is, and then is there for all later parts. A value that somebody
 * wants in plain whatever is chosen is made plain at once. */
#ifndef ADJ_ASSIGN_H
#define ADJ_ASSIGN_H

#include "adjoint_ext.h"

enum { ASSIGN_LAYOUTS = 32, ASSIGN_WAYS = 127 }; /* of one value, of one choice, at most */

typedef struct { /* the same way for all parts that have the choice */
    int n;       /* ways, 1 to ASSIGN_WAYS */
    const double *seconds;
} assign_choice;

typedef struct {
    int n_in, n_out;
    const int *value;  /* what it reads, then what it makes */
    int choice;        /* negative: none, it takes no time and its layouts are plain */
    const int *layout; /* n_in + n_out for each way of the choice */
} assign_part;

typedef struct {
    int n_value, n_part, n_choice, n_end;
    const assign_part *part;
    const assign_choice *choice;
    const int *end; /* values that are wanted in plain at last */
    /* Seconds of a reorder. */
    double (*reorder)(void *user, int value, int from, int to);
    void *user;
} assign_problem;

/* chosen[i]: the way of choice i. *seconds: of the whole plan; HUGE_VAL: a reorder is needed that
 * there is none for. Of beginnings of the plan that have the same future the cheapest is followed;
 * of those that differ the 64 cheapest. So it is the optimum where no more than 64 differ at any
 * place; in every case no choice could be made better alone. ADJ_ENOMEM. */
adj_status assign_cheapest(const assign_problem *p, const adj_allocator *a, int chosen[],
                           double *seconds);

#endif
