/* contents.h - an ordered map from disjoint ranges of addresses to values. verify.c records in it
 * what each byte of memory holds as the steps of a plan write their results. */
#ifndef ADJ_CONTENTS_H
#define ADJ_CONTENTS_H

#include "plan.h"

typedef struct {
    const adj_node *value; /* NULL: scratch */
    const adj_layout *layout;
    int backend; /* whose layout it is */
    int step;    /* that wrote it; NONE: it is a leaf's value */
    int run;     /* in which it was written */
    int lasts;   /* it is the same in every run until a parameter is set */
} content;

typedef struct {
    uintptr_t start, end;
    content held;
    int left, right; /* a treap: ordered by start, a heap by priority */
    uint32_t priority;
} range;

typedef struct {
    range *range; /* room for one for each call of write_range */
    int n, root;  /* root: NONE where nothing is held */
} contents;

/* Makes the bytes from start to end hold it; whatever else a range of theirs held is lost. Returns
 * what exactly this range held before; all zero if it was another range. */
content write_range(contents *c, uintptr_t start, uintptr_t end, const content *held);
/* Returns what the range that begins there holds up to `end` at least, or NULL. */
const content *read_range(const contents *c, uintptr_t start, uintptr_t end);
/* Returns what some of the bytes from start to end hold, or NULL if it is nothing. */
const content *find_any(const contents *c, uintptr_t start, uintptr_t end);

#endif
