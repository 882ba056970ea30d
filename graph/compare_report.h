/* compare_report.h - a comparison's inside, and what is known while it is being made. */
#ifndef ADJ_COMPARE_REPORT_H
#define ADJ_COMPARE_REPORT_H

#include "compare.h"

enum { MOST_IN = 64, MOST_CONFIGS = 32 };

struct adj_comparison {
    pool pool;
    adj_status status;
    char message[MESSAGE];
    int n_config, n_row, n_failed;
    adj_config *config;
    adj_config_result *result; /* by configuration */
    adj_compare_row *row;
};

typedef struct {
    adj_comparison *c;
    const adj_graph *g;
    const adj_compare_opts *opts;
    int n_root, n_node; /* n_node: that are compared */
    const adj_node **root;
    char *needed;                /* by id */
    int *index;                  /* by id: place among the nodes compared, or negative */
    void **leaf_value;           /* by id: leaves and fills, in their types; NULL for others */
    outcome *whole;              /* by configuration: every node compared is fetched */
    char *tainted;               /* by id and configuration: wrong, or fed by what is */
    adj_compare_row **group_row; /* by configuration: its fused groups' */
    int *n_group_row;
    int done, of;
} comparing;

adj_status compare_fail(adj_comparison *c, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
adj_status compare_no_memory(adj_comparison *c);
/* compare_whole.c: runs configuration k's whole graph; the reference's comes first. */
adj_status compare_whole(comparing *r, int k);
/* compare_group.c: after configuration k's plain run t, whose outcome is o; image: by id. Fills
 * group_row. */
adj_status compare_groups(comparing *r, int k, const trial *t, adj_node *const image[],
                          const outcome *o);
/* compare.c: everything, once the inputs are drawn. */
adj_status compare_all(comparing *r);
/* compare_report.c: a copy that lives as long as the comparison; "" and the error recorded when out
 * of memory. */
const char *report_text(adj_comparison *c, const char *text);
void report_failure(adj_comparison *c, const outcome *o, adj_verdict *verdict, const char **reason);

#endif
