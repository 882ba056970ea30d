/* conv_rules.h - which candidate for a convolution is taken by plans that time nothing: rows of
 * what was measured to be faster than what oneDNN's own list has first, each for machines like
 * those it was measured on. n is one of the six convolutions. */
#ifndef ONEDNN_CONV_RULES_H
#define ONEDNN_CONV_RULES_H

#include "onednn.h"

typedef enum {
    DIRECT_FIRST,         /* kernels of backends/direct before all of oneDNN's */
    DIRECT_COMPETES,      /* the same where direct's estimate says that they pay */
    FAST_DIRECT_COMPETES, /* the same, in fast math only */
    NAMED_FIRST,          /* oneDNN's implementations of a name before its others */
    BLOCKS_FIRST,         /* nChw16c before channels-last */
    WINOGRAD_FIRST        /* oneDNN's Winograd, where it is allowed, before its others */
} conv_preference;

typedef struct { /* CPUs of a family that have the instruction set */
    const char *vendor;
    int family, isa;
} cpu_kind;

typedef struct {
    const char *name;
    conv_preference prefers;
    const char *impl;        /* of NAMED_FIRST: how the implementations' names begin */
    int first, last;         /* versions of oneDNN, both included; 0: open */
    int isa, below;          /* dnnl_cpu_isa_t: CPUs that have the one and not the other; 0: open */
    const cpu_kind *not_on;  /* where it was measured wrong; NULL: nowhere */
    const cpu_kind *only_on; /* where alone it holds; NULL: anywhere */
    unsigned ops, dtypes;    /* bits: of the convolutions, by conv_rules_rows.h; 1 << adj_dtype */
    int (*applies)(const adj_conv_geom *g);
} conv_rule;

/* Return the number of rows, and row i. */
int conv_rule_count(void);
const conv_rule *conv_rule_at(int i);
/* True if m is like the machines that the row was measured on. */
int rule_holds(const conv_rule *r, machine m);
/* Returns the first row for n that prefers that and holds on m, or NULL: oneDNN's own order stands.
 */
const conv_rule *rule_for(const adj_node *n, conv_preference preference, machine m);

#endif
