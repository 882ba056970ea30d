/* again.c - see again.h.
 *
 * What can be said with --op is made smaller. What cannot, or does not fail by itself, is the model
 * up to the node, or else everything, with the one configuration. */
#include <stdlib.h>

#include "again.h"
#include "shrink.h"

enum { MAX_TRIALS = 400 };

/* The first row whose operands were right. */
static const adj_compare_row *first_divergence(const adj_comparison *c, int k)
{
    for (int i = 0; i < adj_comparison_row_count(c); i++) {
        const adj_compare_row *row = adj_comparison_row_at(c, i);
        if (row->config == k && row->verdict != ADJ_VERDICT_PASS &&
            (row->blame == ADJ_BLAME_KERNEL || row->blame == ADJ_BLAME_PLAN))
            return row;
    }
    return NULL;
}

/* The model up to the node: does it still fail? */
static int node_fails(const compared_opts *what, const adj_compare_opts *opts,
                      const adj_compare_row *row)
{
    compared g;
    adj_comparison *c = NULL;
    int fails = 0;
    if (compared_open(&g, what) == ADJ_OK) {
        const adj_leaf_value labels = {g.labels, g.label};
        adj_compare_opts two = *opts;
        two.n_root = g.n_root;
        two.root = g.root;
        two.updates = g.updates;
        two.n_value = g.labels != NULL;
        two.value = &labels;
        fails = adj_compare(g.graph, &two, &c) == ADJ_OK &&
                fails_so(c, adj_compare_row_name(row), row->verdict, row->blame);
    }
    adj_comparison_free(c);
    compared_close(&g);
    return fails;
}

static void find(const compare_opts *o, const adj_compare_opts *two, const char *pair,
                 reproducer *r)
{
    op_line l;
    op_text text;
    compared_opts what = o->graph;
    if (r->row != NULL && r->row->group[0] == '\0' && o->shrink > 0 &&
        op_line_of(r->row->node, &l)) {
        shrinking s = {.opts = two,
                       .verdict = r->row->verdict,
                       .blame = r->row->blame,
                       .seconds = o->shrink,
                       .max = MAX_TRIALS};
        int found = shrink(&s, &l);
        r->tried = s.tried;
        if (found) {
            what = (compared_opts){.op = op_line_args(&l, &text), .node = -1};
            compare_line(o, &what, pair, r->line);
            return;
        }
    }
    if (r->row != NULL && o->graph.model != NULL) {
        what.node = adj_node_id(r->row->node);
        if (o->shrink <= 0 || !node_fails(&what, two, r->row))
            what.node = o->graph.node;
    }
    compare_line(o, &what, pair, r->line);
}

reproducer *reproducers(const compare_opts *o, const adj_compare_opts *opts,
                        const adj_comparison *c)
{
    int n = adj_comparison_config_count(c);
    reproducer *r = calloc((size_t)n + 1, sizeof *r);
    for (int k = 1; k < n && r != NULL; k++) {
        const char *names[] = {adj_comparison_config_at(c, 0)->name,
                               adj_comparison_config_at(c, k)->name};
        char pair[160];
        adj_compare_opts two = *opts;
        two.n_config = 2;
        two.config = names;
        r[k].row = first_divergence(c, k);
        compare_pair(names[0], names[1], pair, sizeof pair);
        if (r[k].row != NULL || adj_comparison_result_at(c, k).verdict != ADJ_VERDICT_PASS)
            find(o, &two, pair, &r[k]);
    }
    return r;
}
