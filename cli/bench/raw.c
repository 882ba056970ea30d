/* raw.c - adjoint bench --raw: times every convolution of a model's plan alone: the planned kernel
 * and the fastest candidate. The sum of the fastest is a lower bound of the step; planned time over
 * fastest time is the plan's regret. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check/inspect.h"
#include "cli/command.h"
#include "exec/report.h"
#include "ops/attr_lists.h"
#include "kernel.h"
#include "step.h"

typedef struct {
    const adj_node *node; /* of the executor's graph */
    int step;             /* of its plan */
} planned_conv;

typedef struct {
    int n;
    planned_conv *conv;     /* in the order of the plan */
    planned_choice *choice; /* room for n */
} planned_convs;

/* ---- what the plan has ---- */

/* Lists the convolutions of the plan; returns 0 when out of memory. */
static int list_convolutions(const adj_exec *e, planned_convs *all)
{
    int room = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        room += adj_exec_step_at(e, i).n_node;
    all->conv = calloc((size_t)room + 1, sizeof *all->conv);
    all->choice = calloc((size_t)room + 1, sizeof *all->choice);
    if (all->conv == NULL || all->choice == NULL)
        return 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_group *g = adj_exec_step_group(e, i);
        for (int k = 0; g != NULL && k < g->n_node; k++) {
            adj_conv conv;
            if (adj_node_conv(g->node[k], &conv) && g->node[k]->n_in <= MAX_OPERANDS)
                all->conv[all->n++] = (planned_conv){g->node[k], i};
        }
    }
    return 1;
}

/* Returns the kernel of the convolution, without the nodes fused to it. */
static planned_choice choice_of(const adj_exec *e, const planned_conv *c)
{
    const adj_node *in[MAX_OPERANDS], *n = c->node;
    const adj_group *g = adj_exec_step_group(e, c->step);
    const adj_step_info s = adj_exec_step_at(e, c->step);
    planned_choice p = {.count = 1};
    int n_in = list_operands(1, &n, in);
    snprintf(p.backend, sizeof p.backend, "%s", s.backend);
    snprintf(p.impl, sizeof p.impl, "%s", s.impl);
    for (int i = 0; i < n_in; i++)
        p.layout[i] = adj_exec_step_layout(e, c->step, in[i]);
    p.layout[n_in] =
        adj_exec_step_layout(e, c->step, adj_group_out(g, n) >= 0 ? n : g->out[g->n_out - 1]);
    return p;
}

static int is_same_choice(const planned_choice *a, const planned_choice *b)
{
    int same = strcmp(a->backend, b->backend) == 0 && strcmp(a->impl, b->impl) == 0;
    for (int i = 0; same && i <= MAX_OPERANDS; i++)
        same = (a->layout[i] == NULL) == (b->layout[i] == NULL) &&
               (a->layout[i] == NULL || strcmp(a->layout[i], b->layout[i]) == 0);
    return same;
}

/* Lists in all->choice the kernels of the i-th convolution and its equals, and returns their
 * number; 0 if an earlier one is its equal. */
static int list_choices(const adj_exec *e, const planned_convs *all, int i)
{
    int n = 0;
    for (int k = 0; k < all->n; k++) {
        if (!adj_gradcheck_same(all->conv[i].node, all->conv[k].node))
            continue;
        if (k < i)
            return 0;
        const planned_choice p = choice_of(e, &all->conv[k]);
        int same = 0;
        while (same < n && !is_same_choice(&all->choice[same], &p))
            same++;
        if (same == n)
            all->choice[n++] = p;
        else
            all->choice[same].count++;
    }
    return n;
}

/* Times the distinct convolutions, each for an equal fraction of the remaining time. */
static int time_convolutions(const bench_opts *o, const adj_exec *e, bench_kernels *k,
                             bench_rows *rows)
{
    planned_convs all = {0};
    const double end = seconds_now() + o->seconds;
    const adj_exec_info info = adj_exec_stats(e);
    const size_t cold = bench_cold_bytes(o, info.arena_bytes + info.storage_bytes);
    int ok = list_convolutions(e, &all), left = 0;
    for (int i = 0; ok && i < all.n; i++)
        left += list_choices(e, &all, i) > 0;
    rows->convolutions = all.n;
    rows->different = left;
    for (int i = 0; ok && i < all.n; i++) {
        const int first = rows->n, n = list_choices(e, &all, i);
        if (n == 0)
            continue;
        const double now = seconds_now();
        const bench_race race = {.node = all.conv[i].node,
                                 .n_planned = n,
                                 .planned = all.choice,
                                 .seconds = (end - now) / left--,
                                 .cold = cold};
        ok = bench_race_run(k, o, &race, rows);
        bench_rows_sum(rows, first, o->all);
    }
    free(all.conv);
    free(all.choice);
    return ok ? CONTINUE : complain("bench", EXIT_FAILED, "out of memory");
}

int bench_raw(const bench_opts *o)
{
    bench_net net;
    bench_rows rows = {0};
    bench_opts of_plan = *o;
    bench_kernels *k = bench_kernels_open(o);
    if (k == NULL)
        return EXIT_USAGE;
    of_plan.backend = NULL; /* --backend selects candidates, not the plan's backends */
    int status = CONTINUE;
    if (bench_net_build(&net, o) != ADJ_OK || bench_net_plan(&net, &of_plan) != ADJ_OK)
        status = complain("bench", net.usage ? EXIT_USAGE : EXIT_FAILED, "%s", net.m.error.message);
    if (adj_exec_warning(net.exec)[0] != '\0')
        complain("bench", EXIT_OK, "%s", adj_exec_warning(net.exec));
    if (status == CONTINUE)
        status = time_convolutions(o, net.exec, k, &rows);
    if (status == CONTINUE)
        status = bench_rows_write(o, &rows);
    free(rows.row);
    bench_net_close(&net);
    bench_kernels_close(k);
    return status;
}
