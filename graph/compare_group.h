/* compare_group.h - a plan seen from outside, for running its fused groups alone. */
#ifndef ADJ_COMPARE_GROUP_H
#define ADJ_COMPARE_GROUP_H

#include "compare_report.h"

typedef struct {
    comparing *r;
    int k; /* the configuration */
    const adj_graph *g;
    const int *step_of;     /* by id, as the others */
    const adj_node **user;  /* the compared graph's node of the same value; NULL */
    const adj_node **named; /* the same, or that of a node it feeds: for the report */
    char *is_root;
    bench in_f64; /* the reference of groups */
} plan_view;

/* compare_group_read.c: the values that a group reads, by group->in: the reference's, rounded to
 * the group's types; floats in f64. */
adj_status read_operands(const plan_view *l, const adj_group *g, pool *p, void *operand[]);
/* A trial without nodes yet; is_whole: was there memory for it, and for room? */
trial group_trial(const plan_view *l, const adj_config *config, int n_leaf, int n_fetch, pool *p);
int is_whole(const trial *t, const void *room);
adj_node *add_leaf(trial *t, adj_type type, const void *data);

#endif
