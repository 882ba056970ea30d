/* options.c - checks an executor's options and adds those of the environment. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static adj_status check_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    if (g == NULL || o == NULL)
        return set_error(e, ADJ_EARG, "adj_exec_new: %s is NULL", g == NULL ? "graph" : "options");
    if (g->status != ADJ_OK)
        return set_error(e, g->status, "%s", g->message);
    if (o->n_fetch < 0 || (o->n_fetch > 0 && o->fetch == NULL))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: n_fetch is negative, or fetch is NULL (got n_fetch %d)",
                         o->n_fetch);
    for (int i = 0; i < o->n_fetch; i++)
        if (o->fetch[i] == NULL || o->fetch[i]->graph != g)
            return set_error(e, ADJ_EARG, "adj_exec_new: fetch[%d] is %s", i,
                             o->fetch[i] == NULL ? "NULL" : "of another graph");
    if (o->updates != NULL && o->updates->graph != g)
        return set_error(e, ADJ_EARG, "adj_exec_new: updates are of another graph");
    if (o->n_fetch + adj_updates_count(o->updates) == 0)
        return set_error(e, ADJ_EARG, "adj_exec_new: nothing to compute (no fetch, no updates)");
    if (o->threads < 0 || o->threads > 4096)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: threads is out of range (got %d, expected 0 to 4096)",
                         o->threads);
    if (o->precision != ADJ_PRECISION_AS_BUILT && o->precision != ADJ_PRECISION_BF16 &&
        o->precision != ADJ_PRECISION_F16)
        return set_error(
            e, ADJ_EARG,
            "adj_exec_new: precision is wrong (got %d, expected as built, bf16 or f16)",
            (int)o->precision);
    if (o->loss_scale != 0 && !(o->loss_scale > 0 && isnormal((float)o->loss_scale)))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: loss_scale is wrong (got %g, expected a positive number, "
                         "or 0 for the default)",
                         o->loss_scale);
    if (o->math != ADJ_MATH_EXACT && o->math != ADJ_MATH_FAST)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: math is wrong (got %d, expected exact or fast)",
                         (int)o->math);
    return ADJ_OK;
}

/* Seconds of tuning that ADJOINT_PLAN asks for: there may be thousands of small plans. */
static const double plan_tune_seconds = 0.05;

static adj_status read_environment(adj_exec *e)
{
    adj_exec_opts *o = &e->opts;
    const char *word = getenv("ADJOINT_PLAN");
    for (size_t n; word != NULL && word[0] != '\0'; word += n + (word[n] == ',')) {
        n = strcspn(word, ",");
        const int is_tune = n == 4 && memcmp(word, "tune", n) == 0;
        if (n == 7 && memcmp(word, "unfused", n) == 0)
            e->debug.no_fusion = 1;
        else if (!is_tune)
            return set_error(e, ADJ_EARG,
                             "adj_exec_new: ADJOINT_PLAN: unknown word (got \"%.*s\", expected "
                             "unfused or tune)",
                             (int)(n < 64 ? n : 64), word);
        if (is_tune && !o->tune)
            o->tune_seconds = plan_tune_seconds;
        o->tune |= is_tune;
    }
    return ADJ_OK;
}

adj_status read_exec_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *opts)
{
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    e->opts = *opts;
    if (opts->debug != NULL)
        e->debug = *opts->debug;
    if (e->debug.internal != NULL)
        e->internal = *e->debug.internal;
    e->opts.debug = &e->debug;
    return read_environment(e);
}
