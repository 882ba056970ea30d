/* contents.h - an ordered map from disjoint ranges of addresses to values. verify.c records in it
 * what each byte of memory holds as the steps of a plan write their results. */
#ifndef ADJ_CONTENTS_H
#define ADJ_CONTENTS_H

#include "plan.h"

typedef struct {
    const adj_node *value; /* NULL: scratch */
    const adj_layout *layout;
    int backend; /* backend that defines the layout */
    int step;    /* step that wrote it; NONE: the value of a leaf */
    int run;     /* run in which it was written */
    int lasts;   /* 1: stays the same in every run until a parameter is set */
} content;

typedef struct {
    uintptr_t start, end;
    content held;
    int left, right; /* a treap: ordered by start, a heap by priority */
    uint32_t priority;
} range;

typedef struct {
    range *range; /* room for one range per call of write_range */
    int n, root;  /* number of ranges; root: NONE if the map is empty */
} contents;

/* Enters the content of the bytes from start to end, replacing every range that overlaps them.
 * Returns the old content if one range had exactly these bounds, else all zero. */
content write_range(contents *c, uintptr_t start, uintptr_t end, const content *held);
/* Returns the content of the range that begins at start and reaches at least to end, or NULL. */
const content *read_range(const contents *c, uintptr_t start, uintptr_t end);
/* Returns the content of a range that overlaps the bytes from start to end, or NULL. */
const content *find_any(const contents *c, uintptr_t start, uintptr_t end);

#endif
