/* profile.c - time of each step of the plan, and sums by op. A row's time is the median over many
 * runs, so the rows add up to an undisturbed step. */
#include "profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "exec/report.h"

int bench_counts_flop(const adj_step_info *s) { return s->flop > 4 * (double)s->bytes; }

double bench_rate(const adj_step_info *s)
{
    double amount = bench_counts_flop(s) ? s->flop : (double)s->bytes;
    return s->seconds > 0 ? 1e-9 * amount / s->seconds : 0;
}

/* ---- running ---- */

adj_status bench_profile_run(bench_profile *p, bench_net *n, const bench_opts *o)
{
    bench_opts timed = *o;
    bench_step_time whole;
    *p = (bench_profile){0};
    timed.timed_steps = 1;
    adj_status status = bench_net_plan(n, &timed);
    if (status == ADJ_OK)
        status = bench_net_draw(n);
    if (status != ADJ_OK)
        return status;
    p->n = adj_exec_step_count(n->exec);
    p->row = calloc((size_t)p->n + 1, sizeof *p->row);
    samples *steps = calloc((size_t)p->n + 1, sizeof *steps);
    if (p->row == NULL || steps == NULL)
        status = adj_error_set(&n->m.error, ADJ_ENOMEM, "out of memory");
    if (status == ADJ_OK)
        status = bench_net_time(n, o, &whole, steps);
    for (int i = 0; i < p->n && status == ADJ_OK; i++) {
        p->row[i] = adj_exec_step_at(n->exec, i);
        p->row[i].seconds = samples_spread(&steps[i]).median;
        p->plan_seconds += p->row[i].seconds;
        p->runs = whole.time.n;
        p->step_seconds = whole.time.median;
    }
    for (int i = 0; i < p->n && steps != NULL; i++)
        samples_free(&steps[i]);
    free(steps);
    return status;
}

void bench_profile_free(bench_profile *p)
{
    free(p->row);
    *p = (bench_profile){0};
}

/* ---- the table ---- */

static void print_line(FILE *f, const bench_profile *p, const adj_step_info *s, const char *name)
{
    put_text(f, "%-36s %10.1f %9.3f %9.4g %-7s %5.1f %%  %s%s%s\n", name, 1e6 * s->seconds,
             1e-6 * (double)s->bytes, bench_rate(s), bench_counts_flop(s) ? "GFLOP/s" : "GB/s",
             p->plan_seconds > 0 ? 100 * s->seconds / p->plan_seconds : 0, s->backend,
             s->impl[0] != '\0' ? " " : "", s->impl);
}

static void print_steps(FILE *f, const bench_profile *p)
{
    for (int i = 0; i < p->n; i++) {
        const adj_step_info *s = &p->row[i];
        char name[160];
        int used = s->node != NULL
                       ? snprintf(name, sizeof name, "%%%d %s", adj_node_id(s->node), s->op)
                       : snprintf(name, sizeof name, "- %s", s->op);
        if (s->n_node > 1)
            used += snprintf(name + used, sizeof name - (size_t)used, " +%d", s->n_node - 1);
        if (s->name[0] != '\0')
            snprintf(name + used, sizeof name - (size_t)used, " \"%.90s\"", s->name);
        print_line(f, p, s, name);
    }
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const adj_step_info *)a)->seconds, y = ((const adj_step_info *)b)->seconds;
    return (x < y) - (x > y);
}

/* The rows of equal op and implementation added up, the slowest first. */
static void print_ops(FILE *f, const bench_profile *p)
{
    adj_step_info *sum = calloc((size_t)p->n + 1, sizeof *sum);
    int n = 0;
    for (int i = 0; i < p->n && sum != NULL; i++) {
        const adj_step_info *s = &p->row[i];
        int k = 0;
        while (k < n && (strcmp(sum[k].op, s->op) != 0 || strcmp(sum[k].impl, s->impl) != 0))
            k++;
        if (k == n) {
            sum[n++] = *s;
            sum[k].n_node = 1;
            continue;
        }
        sum[k].seconds += s->seconds;
        sum[k].flop += s->flop;
        sum[k].bytes += s->bytes;
        sum[k].n_node++;
    }
    if (n > 0)
        qsort(sum, (size_t)n, sizeof *sum, by_seconds);
    for (int k = 0; k < n; k++) {
        char name[96];
        snprintf(name, sizeof name, "%3d %s", sum[k].n_node, sum[k].op);
        print_line(f, p, &sum[k], name);
    }
    free(sum);
}

static void print_head(FILE *f, const char *title)
{
    fprintf(f, "%-36s %10s %9s %17s %7s  implementation\n", title, "us", "MB", "rate", "share");
}

void bench_profile_print(FILE *f, const bench_profile *p)
{
    fprintf(f, "\nmedians of %d steps\n", p->runs);
    print_head(f, "step");
    print_steps(f, p);
    fputc('\n', f);
    print_head(f, "steps by op");
    print_ops(f, p);
    fprintf(f,
            "%.1f us in the plan's steps; %.1f us a training step with input, output and timing\n",
            1e6 * p->plan_seconds, 1e6 * p->step_seconds);
}
