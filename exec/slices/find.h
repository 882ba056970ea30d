/* find.h - the search for groups of nodes that run in slices. */
#ifndef ADJ_SLICES_FIND_H
#define ADJ_SLICES_FIND_H

#include "slices.h"

typedef struct {
    adj_exec *e;
    int n; /* nodes */
    char *kind;
    int *level;
    int *group;   /* by id: its first node's id; while groups are joined, one on the way there */
    int *size;    /* by a group's first node */
    int *checked; /* by id of a value: the last group for which can_be_cut checked it, or NONE */
} slice_search;

/* Is it one of them? Requires: all groups. */
int is_member(const slice_search *s, const sliced_nodes *nodes, const adj_node *n);

/* ---- pays.c ---- */

/* Sets how many images a slice has, and whether it pays. 0: there is nothing to be gained; with
 * large: little. Requires: no value is taken as images and whole. */
int cut_slices(const slice_search *s, int large, sliced_nodes *nodes);

#endif
