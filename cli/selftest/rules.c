/* rules.c - adjoint selftest --rules: are the rules right here by which plans that time nothing
 * choose among candidates?
 *
 * A rule brings a few convolutions. For each it is asked what would be taken if the rule held, and
 * if it did not: where both are one, there is nothing to choose on this machine. Else all
 * candidates are timed. A rule is worth keeping if what it takes is faster than what is taken
 * without it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench/kernel.h"
#include "cli/command.h"
#include "cli/output.h"
#include "exec/clock.h"
#include "exec/machine/machine.h"
#include "selftest.h"

enum { MAX_RULES = 64, MAX_CASES = ADJ_RULE_CASES * MAX_RULES };
/* Less is noise: of what is taken against the fastest, of a rule against none. */
static const double clearly = 1.1, clearly_better = 1.05;
static const int usual_candidates = 8; /* of a convolution, for the share of the time */

typedef struct {
    const adj_backend *backend;
    adj_rule rule;
    double log_gain; /* sum over the cases measured: of the time without it over that with it */
    int n;           /* cases measured */
    int differs;     /* cases in which it makes a difference here */
} tried_rule;

typedef struct {
    int rule; /* in the list */
    const adj_rule_case *c;
    planned_choice with, without;
} tried_case;

typedef struct {
    double end;
    int n_rule, n_case, n_left; /* n_left: cases that no time was left for */
    tried_rule rule[MAX_RULES];
    tried_case list[MAX_CASES];
} rules_run;

/* ---- a case ---- */

static adj_node *node_of(adj_graph *g, const adj_rule_case *c)
{
    const char *name = c->op->name;
    const int is_depthwise = strncmp(name, "depthwise", 9) == 0;
    const sweep_case s = {.direction = strstr(name, "_backprop_input") != NULL    ? BACKWARD_DATA
                                       : strstr(name, "_backprop_filter") != NULL ? BACKWARD_WEIGHTS
                                                                                  : FORWARD,
                          .dtype = c->dtype,
                          .depthwise = is_depthwise,
                          .n = c->n,
                          .h = c->side,
                          .w = c->side,
                          .k = c->kernel,
                          .ic = c->in,
                          .oc = c->out,
                          .groups = is_depthwise ? c->in : 1,
                          .conv = {.stride = {1, c->stride, c->stride, 1},
                                   .dilation = {1, c->dilation, c->dilation, 1},
                                   .padding = ADJ_SAME}};
    return sweep_node(g, &s);
}

static void print_case(const adj_rule_case *c)
{
    char text[128];
    int used =
        snprintf(text, sizeof text, "%s %s %lldx%lldx%lldx%lld, %lldx%lld to %lld", c->op->name,
                 adj_dtype_name(c->dtype), (long long)c->n, (long long)c->side, (long long)c->side,
                 (long long)c->in, (long long)c->kernel, (long long)c->kernel, (long long)c->out);
    if (c->stride > 1)
        used += snprintf(text + used, sizeof text - (size_t)used, ", stride %lld",
                         (long long)c->stride);
    if (c->dilation > 1)
        snprintf(text + used, sizeof text - (size_t)used, ", dilation %lld",
                 (long long)c->dilation);
    printf("  %-72s", text);
}

/* The backends, with the rule in force, or not. NULL after complaining. */
static bench_kernels *open_kernels(const tried_rule *r, int is_on, bench_opts *o, char choice[96])
{
    snprintf(choice, 96, "%s:%s", is_on ? "with" : "without", r->rule.name);
    *o = (bench_opts){.command = "selftest",
                      .all = 1,
                      .cold = 1,
                      .threads = adj_default_threads(),
                      .math_mode = r->rule.math,
                      .without = "naive",
                      .rules = choice};
    return bench_kernels_open(o);
}

static int choose(const tried_rule *r, int is_on, const adj_node *n, planned_choice *p)
{
    bench_opts o;
    char choice[96];
    bench_kernels *k = open_kernels(r, is_on, &o, choice);
    *p = (planned_choice){0};
    if (k == NULL)
        return EXIT_FAILED;
    (void)bench_usual(k, n, p); /* none: nothing is taken, with the rule and without */
    bench_kernels_close(k);
    return CONTINUE;
}

static int is_same(const planned_choice *a, const planned_choice *b)
{
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->impl, b->impl) == 0 &&
           strcmp(a->layouts, b->layouts) == 0;
}

/* Adds the case if the rule makes a difference. */
static int add_case(rules_run *run, int rule, const adj_rule_case *c)
{
    tried_case *t = &run->list[run->n_case];
    tried_rule *r = &run->rule[rule];
    adj_graph *g = adj_graph_new();
    const adj_node *n = node_of(g, c);
    *t = (tried_case){.rule = rule, .c = c};
    int status = n != NULL ? choose(r, 1, n, &t->with)
                           : complain("selftest", EXIT_FAILED, "%s", adj_graph_message(g));
    if (status == CONTINUE)
        status = choose(r, 0, n, &t->without);
    if (status == CONTINUE && !is_same(&t->with, &t->without)) {
        run->n_case++;
        r->differs++;
    }
    adj_graph_free(g);
    return status;
}

static int list_cases(rules_run *run)
{
    int status = CONTINUE;
    for (const adj_backend *const *b = adj_backends; *b != NULL; b++)
        for (int i = 0; (*b)->rule_at != NULL && run->n_rule < MAX_RULES; i++) {
            tried_rule *r = &run->rule[run->n_rule];
            *r = (tried_rule){.backend = *b};
            if (!(*b)->rule_at(i, &r->rule))
                break;
            run->n_rule++;
            for (int k = 0; k < ADJ_RULE_CASES && r->rule.cases[k].op != NULL; k++)
                if (status == CONTINUE)
                    status = add_case(run, run->n_rule - 1, &r->rule.cases[k]);
        }
    return status;
}

/* ---- its times ---- */

/* 0: it could not be run. */
static double seconds_of(const bench_rows *rows, const planned_choice *p)
{
    for (int i = 0; i < rows->n; i++) {
        planned_choice of = {0};
        snprintf(of.backend, sizeof of.backend, "%s", rows->row[i].backend);
        snprintf(of.impl, sizeof of.impl, "%s", rows->row[i].impl);
        snprintf(of.layouts, sizeof of.layouts, "%s", rows->row[i].layouts);
        if (is_same(&of, p))
            return rows->row[i].time.min;
    }
    return 0;
}

/* The minimum counts: of what else runs here it depends least. */
static const bench_row *fastest_of(const bench_rows *rows)
{
    const bench_row *best = NULL;
    for (int i = 0; i < rows->n; i++)
        if (rows->row[i].time.n > 0 && (best == NULL || rows->row[i].time.min < best->time.min))
            best = &rows->row[i];
    return best;
}

static void judge(tried_rule *r, const tried_case *t, const bench_rows *rows)
{
    const bench_row *best = fastest_of(rows);
    const double with = seconds_of(rows, &t->with), without = seconds_of(rows, &t->without);
    print_case(t->c);
    if (best == NULL || with <= 0 || without <= 0) {
        printf(" cannot be run\n");
        return;
    }
    const double ratio = with / best->time.min;
    printf(" %8.3f %8.3f %8.3f %6.2f  ", 1e3 * with, 1e3 * without, 1e3 * best->time.min, ratio);
    if (ratio <= clearly)
        printf("right: %s %s\n", t->with.backend, t->with.impl);
    else
        printf("wrong here: %s %s is %.1f times as fast\n", best->backend, best->impl, ratio);
    r->log_gain += log(without / with);
    r->n++;
}

static int time_case(rules_run *run, int i)
{
    const tried_case *t = &run->list[i];
    tried_rule *r = &run->rule[t->rule];
    bench_opts o;
    char choice[96];
    bench_rows rows = {0};
    adj_graph *g = adj_graph_new();
    const adj_node *n = node_of(g, t->c);
    bench_kernels *k = n != NULL ? open_kernels(r, 1, &o, choice) : NULL;
    int status = k != NULL ? CONTINUE : EXIT_FAILED;
    if (k != NULL) {
        o.seconds = (run->end - seconds_now()) / (run->n_case - i) / usual_candidates;
        if (!bench_node(k, &o, n, &t->with, 1, &rows))
            status = complain("selftest", EXIT_FAILED, "out of memory");
    }
    if (status == CONTINUE)
        judge(r, t, &rows);
    bench_kernels_close(k);
    adj_graph_free(g);
    free(rows.row);
    return status;
}

/* Rules with nothing to choose have no case in the list. */
static int time_cases(rules_run *run)
{
    int status = CONTINUE;
    printf("  %-72s %8s %8s %8s %6s\n", "ms", "with it", "without", "fastest", "ratio");
    for (int i = 0; i < run->n_case && status == CONTINUE; i++) {
        if (i > 0 && seconds_now() >= run->end) { /* however short: it says something */
            run->n_left = run->n_case - i;
            break;
        }
        const tried_rule *r = &run->rule[run->list[i].rule];
        if (i == 0 || run->list[i - 1].rule != run->list[i].rule)
            printf("%s (%s; %s)\n", r->rule.name, r->rule.measured,
                   r->rule.holds ? "holds here" : "does not hold here");
        status = time_case(run, i);
        (void)fflush(stdout);
    }
    return status;
}

/* ---- what came out ---- */

/* In doubt as it is. */
static int is_worth_it(const tried_rule *r)
{
    const double gain = exp(r->log_gain / r->n);
    return gain > clearly_better || (gain > 1 / clearly_better && r->rule.holds);
}

static int write_file(FILE *f, const void *source)
{
    const rules_run *run = source;
    char head[128], date[32];
    const machine_facts cpu = machine_look("");
    const time_t now = time(NULL);
    struct tm t;
    int n = 0;
    for (int i = 0; i < run->n_rule; i++) {
        const tried_rule *r = &run->rule[i];
        if (i == 0) {
            r->backend->describe_rules(head, sizeof head);
            (void)strftime(date, sizeof date, "%Y-%m-%d", localtime_r(&now, &t));
            fprintf(f, "%s\n# %s, %s, adjoint selftest --rules\n", head, cpu.name, date);
        }
        if (r->n == 0)
            continue;
        fprintf(f, "%s %s # without it %.2f times the time\n", is_worth_it(r) ? "on" : "off",
                r->rule.name, exp(r->log_gain / r->n));
        n++;
    }
    fprintf(f, "end %d\n", n);
    return ferror(f);
}

static void print_sum(const rules_run *run)
{
    int idle = 0, right = 0, others = 0;
    for (int i = 0; i < run->n_rule; i++) {
        const tried_rule *r = &run->rule[i];
        const int changes = r->n > 0 && is_worth_it(r) != r->rule.holds;
        if (changes)
            printf("%s %s here: without it %.2f times the time\n", r->rule.name,
                   r->rule.holds ? "should not hold" : "should hold", exp(r->log_gain / r->n));
        idle += r->differs == 0;
        right += r->n > 0 && !changes;
        others += changes;
    }
    printf("%d rules: %d right, %d should be changed here, %d choose nothing here", run->n_rule,
           right, others, idle);
    if (run->n_left > 0)
        printf("; no time for %d of %d cases (--seconds)", run->n_left, run->n_case);
    putchar('\n');
}

int selftest_rules(const char *out, double seconds)
{
    const output_file file = {"--out", out, OUTPUT_REPLACED};
    int status = check_outputs("selftest", 1, &file);
    rules_run *run = status == CONTINUE ? calloc(1, sizeof *run) : NULL;
    if (status != CONTINUE)
        return status;
    if (run == NULL)
        return complain("selftest", EXIT_FAILED, "out of memory");
    run->end = seconds_now() + seconds;
    status = list_cases(run);
    if (status == CONTINUE)
        status = time_cases(run);
    if (status == CONTINUE) {
        print_sum(run);
        status = write_output("selftest", &file, write_file, run);
    }
    free(run);
    return status;
}
