/* blame.c - whom a row blames beside what its own numbers show: a pass that changes results, and
 * what another row shows: an op at which the reference is wrong, a kernel that computes a node in
 * the graph only. */
#include <math.h>
#include <string.h>

#include "compare.h"

const char *report_worst(comparison *c, const char *where, const adj_compare_error *e)
{
    return log_text(&c->log,
                    "%s%s%lld of %lld wrong, worst at element %lld: got %.9g, expected %.9g", where,
                    where[0] != '\0' ? ": " : "", (long long)e->wrong, (long long)e->n,
                    (long long)e->at, e->got, e->expected);
}

static int has_op(const char *group, const char *op)
{
    const size_t n = strlen(op);
    for (const char *at = group; at != NULL; at = strchr(at, '+')) {
        at += *at == '+';
        if (strncmp(at, op, n) == 0 && (at[n] == '+' || at[n] == '\0'))
            return 1;
    }
    return 0;
}

/* The reference is wrong at a node of that op, or of one of the group's. */
static int is_wrong_at(const comparison *c, const compare_row *row)
{
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].blame == ADJ_BLAME_REFERENCE && c->row[i].group[0] == '\0' &&
            has_op(adj_compare_row_name(row), c->row[i].node->op->name))
            return 1;
    return 0;
}

static int is_numbers_of_kernel(const compare_row *row)
{
    return row->blame == ADJ_BLAME_KERNEL && row->verdict == ADJ_VERDICT_FAIL && row->repeats &&
           !row->canary;
}

/* A row that failed under a configuration of which a pass is known to be wrong: that is the fault.
 */
static void blame_pass(const comparison *c, compare_row *row)
{
    const compare_result *whole = &c->result[row->config];
    if (row->verdict != ADJ_VERDICT_FAIL || row->canary || row->blame == ADJ_BLAME_REFERENCE ||
        strncmp(whole->reason, "pass ", 5) != 0)
        return;
    row->blame = ADJ_BLAME_PLAN;
    row->reason = whole->reason;
}

/* Returns the wrong group that computes the node in the graph, or NULL if there is none. */
static const compare_row *failed_group(const comparison *c, const compare_row *row)
{
    for (int i = 0; i < c->n_row; i++)
        if (c->row[i].group[0] != '\0' && c->row[i].node == row->node &&
            c->row[i].config == row->config && is_numbers_of_kernel(&c->row[i]))
            return &c->row[i];
    return NULL;
}

/* Right alone, and wrong in the graph, where it is computed otherwise. */
static void blame_group(comparison *c, compare_row *row)
{
    const compare_row *group = failed_group(c, row);
    if (row->blame != ADJ_BLAME_PLAN || row->group[0] != '\0' || !is_wrong(&row->in_plan) ||
        group == NULL || strncmp(row->reason, "pass ", 5) == 0)
        return;
    row->blame = ADJ_BLAME_KERNEL;
    row->reason = log_text(&c->log, "in the graph it is computed as %.120s, which is wrong alone",
                           group->group);
}

/* Passes are looked at on naive: where that is wrong, in one format or type, a pass from there to
 * another one seems to be. */
static void clear_passes(comparison *c)
{
    const compare_row *wrong = NULL;
    for (int i = 0; i < c->n_row && wrong == NULL; i++)
        wrong = c->row[i].blame == ADJ_BLAME_REFERENCE ? &c->row[i] : NULL;
    for (int k = 0; k < c->n_config && wrong != NULL; k++) {
        compare_result *whole = &c->result[k];
        if (strncmp(whole->reason, "pass ", 5) == 0)
            whole->reason = log_text(&c->log, "the reference is wrong at %s: %.200s",
                                     adj_compare_row_name(wrong), whole->reason);
    }
}

void blame_alike(comparison *c)
{
    clear_passes(c);
    for (int i = 0; i < c->n_row; i++)
        blame_pass(c, &c->row[i]);
    for (int i = 0; i < c->n_row; i++) {
        compare_row *row = &c->row[i];
        blame_group(c, row);
        if (!is_numbers_of_kernel(row) || !is_wrong_at(c, row))
            continue;
        row->blame = ADJ_BLAME_REFERENCE;
        row->reason =
            row->group[0] != '\0'
                ? "the reference is wrong at an op of the group, as that op's own row says"
                : "the reference is wrong at this op, as another row says";
    }
}
