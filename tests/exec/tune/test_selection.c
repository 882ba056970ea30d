/* test_selection.c - a plan's selection of kernels, given to another plan; time that depends on how
 * often a plan will run; a folder instead of a file. A kernel that is fast in a layout of its own
 * is taken if it is faster with the reorders at its borders. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"
#include "host_locale.h"
#include "tests/plan.h"
#include "tests/reference.h"
#include "tests/virtual_clock.h"

#include "planted.h"

/* Candidates are counted here: no other plans, whatever all tests are run with. */
TestSuite(selection, .init = plan_as_usual);

/* For plans of up to that many runs. */
static outcome plan_runs(adj_exec_opts o, int64_t runs_ahead)
{
    o.debug = &(adj_exec_debug){.internal = &(adj_exec_internal){.tune_runs = runs_ahead}};
    return plan(o, 64);
}

static outcome plan_selected(adj_exec_opts o, const char *selection, int64_t n)
{
    o.debug = &(adj_exec_debug){.internal = &(adj_exec_internal){.selection = selection}};
    return plan(o, n);
}

static outcome plan_with(const char *selection)
{
    return plan_selected((adj_exec_opts){.threads = 1}, selection, 64);
}

Test(selection, another_plan_takes_it_and_times_nothing)
{
    const outcome first = plan((adj_exec_opts){.tune = 1, .threads = 1}, 64);
    cr_assert_str_eq(first.impl, "fast:1");
    expect_text(first.selection, "planted\ttwo\t1\t");
    outcome o = plan_with(first.selection);
    cr_assert_str_eq(o.impl, "fast:1");
    cr_assert(o.timed == 0 && o.runs == 0 && o.note[0] == '\0', "%s", o.note);
    cr_assert_str_eq(o.selection, first.selection);

    o = plan_with("");
    cr_assert(strcmp(o.impl, "slow:1") == 0 && o.selection[0] == '\0');
    /* another size: no warning */
    o = plan_selected((adj_exec_opts){.threads = 1}, first.selection, 65);
    cr_assert(strcmp(o.impl, "slow:1") == 0 && o.note[0] == '\0' && o.timed == 0);
    cr_assert_str_empty(o.selection);
    /* with tune, what it does not name is timed */
    o = plan_selected((adj_exec_opts){.threads = 1, .tune = 1}, first.selection, 65);
    cr_assert(strcmp(o.impl, "fast:1") == 0 && o.timed == 2);
}

Test(selection, truncated_and_hostile)
{
    static char text[2048];
    static const char *const wrong[] = {"end 1\n",   "end -1\n",       "end 0\nend 0\n",
                                        "a\tb\tc\n", "\x01\nend 0\n",  "x",
                                        "\xff",      "end 99999999999"};
    const outcome first = plan((adj_exec_opts){.tune = 1, .threads = 1}, 64);
    const size_t n = strlen(first.selection);
    for (size_t length = 1; length < n; length++) {
        snprintf(text, sizeof text, "%.*s", (int)length, first.selection);
        outcome o = plan_with(text);
        cr_assert(strcmp(o.impl, "slow:1") == 0 && strstr(o.note, "selection") != NULL &&
                      strstr(o.note, "is ignored") != NULL,
                  "%zu of %zu: %s: %s", length, n, o.impl, o.note);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        outcome o = plan_with(wrong[i]);
        cr_expect(strcmp(o.impl, "slow:1") == 0 && strstr(o.note, "is ignored") != NULL, "%s: %s",
                  wrong[i], o.note);
    }
    /* a name that does not exist */
    snprintf(text, sizeof text, "%s", first.selection);
    *strstr(text, "planted") = 'q';
    outcome o = plan_with(text);
    cr_expect(strcmp(o.impl, "slow:1") == 0 && o.note[0] == '\0', "%s", o.note);
}

/* It came from elsewhere, and is not kept as found here. */
Test(selection, is_not_written_to_the_file)
{
    make_folder();
    const outcome first = plan((adj_exec_opts){.tune = 1, .threads = 1}, 64);
    cr_assert_eq(plan_selected(tuned(), first.selection, 64).timed, 0);
    cr_assert_eq(plan_selected(tuned(), first.selection, 65).timed, 2);
    cr_expect_eq(plan(tuned(), 65).cached, 1);
    cr_expect_eq(plan(tuned(), 64).timed, 2, "the selection was written");
    remove_folder();
}

/* A host program under a locale that writes 0,5: the microseconds of a winner, the fourth field,
 * have a point, and what was kept is found again. */
Test(selection, under_another_locale)
{
    make_folder();
    set_host_locale(folder, "de_DE", "ISO-8859-1");
    const outcome first = plan(tuned(), 64);
    cr_assert(first.timed == 2 && first.note[0] == '\0', "%s", first.note);
    size_t n;
    char *text = read_text(&n), *winner = strstr(text, "planted\ttwo\t1\t");
    cr_assert_not_null(winner, "%s", text);
    winner += strlen("planted\ttwo\t1\t");
    winner += strspn(winner, "0123456789");
    cr_expect(winner[0] == '.' && winner[2] == '\t', "%.20s", winner);
    free(text);
    const outcome second = plan(tuned(), 64);
    cr_expect(second.cached == 1 && second.timed == 0 && second.note[0] == '\0', "%s", second.note);
    cr_expect_str_eq(plan_with(first.selection).impl, "fast:1");
    remove_host_locale(folder);
}

/* Two hundredths of ten runs are no run: there is nothing to gain. Of a million there is. */
Test(selection, time_depends_on_the_runs)
{
    adj_exec_opts o = {.tune = 1, .threads = 1};
    outcome few = plan_runs(o, 10);
    cr_expect(few.timed == 0 && few.runs == 0 && strcmp(few.impl, "slow:1") == 0 &&
                  few.note[0] == '\0',
              "%s %s", few.impl, few.note);
    outcome many = plan_runs(o, 1000000);
    cr_expect(many.timed == 2 && strcmp(many.impl, "fast:1") == 0, "%s", many.impl);

    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    o.n_fetch = 1;
    o.fetch = &y;
    o.debug = &(adj_exec_debug){.internal = &(adj_exec_internal){.tune_runs = -1}};
    expect_no_plan(g, &o, ADJ_EARG,
                   "adj_exec_new: tune_runs is wrong (got -1, expected 0 or more)");
}

/* A step that took too long to tune for the expected runs is not tuned again, except for more runs.
 */
Test(selection, too_little_time_is_cached)
{
    make_folder();
    adj_exec_opts o = tuned();
    o.threads = 1;
    /* Four runs' time, for a race of four runs and what it takes besides. */
    const outcome first = plan_runs(o, 200), second = plan_runs(o, 200);
    cr_expect(first.timed == 0 && first.runs > 0 && strcmp(first.impl, "slow:1") == 0, "%d runs",
              first.runs);
    cr_expect(second.timed == 0 && second.runs == 0 && second.note[0] == '\0', "%d runs, %s",
              second.runs, second.note);
    cr_expect_eq(plan_runs(o, 1000000).timed, 2);
    const outcome last = plan_runs(o, 200);
    cr_expect(last.cached == 1 && strcmp(last.impl, "fast:1") == 0, "%s", last.impl);
    remove_folder();
}

/* The only file in a folder, which then is removed with it. */
static void take_only_file(const char *path, char name[64])
{
    char whole[512];
    DIR *d = opendir(path);
    int n = 0;
    cr_assert_not_null(d, "%s", path);
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] != '.') {
            snprintf(name, 64, "%.60s", entry->d_name);
            n++;
        }
    closedir(d);
    cr_assert_eq(n, 1);
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    cr_assert_eq(unlink(whole), 0);
    cr_assert_eq(rmdir(path), 0);
}

/* It is made when there is something to keep in it; its file is named after the machine. */
Test(selection, a_folder_instead_of_a_file)
{
    char inner[160], deep[192], name[64];
    struct stat s;
    make_folder();
    snprintf(inner, sizeof inner, "%s/cache", folder);
    snprintf(deep, sizeof deep, "%s/adjoint/", inner);
    adj_exec_opts o = tuned();
    o.tune_file = deep;
    cr_expect_eq(plan_runs(o, 1).timed, 0);
    cr_expect_neq(stat(inner, &s), 0, "made for nothing");
    outcome first = plan(o, 64);
    cr_assert(first.timed == 2 && first.note[0] == '\0', "%s", first.note);
    cr_expect(stat(deep, &s) == 0 && (s.st_mode & 0777) == 0700, "mode %o", s.st_mode & 0777);
    cr_expect_eq(plan_runs(o, 1).cached, 1, "no time, but it is known");
    take_only_file(deep, name);
    cr_expect(strncmp(name, "tune-", 5) == 0 && strlen(name) == strlen("tune-0123456789abcdef.txt"),
              "%s", name);
    cr_assert_eq(rmdir(inner), 0);
    remove_folder();

    o.tune_file = "/proc/none/";
    expect_text(plan(o, 64).note, "cannot be written");
}

/* ---- reorders at the borders ---- */

enum { N = 5 };
static const adj_layout reversed = {N * sizeof(float), "reversed"};
static double reorder_ms;

/* relu writes the layout, sigmoid reads it; candidate 0 does neither. */
static adj_status prepare_either(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    static int is_quick[] = {0, 1};
    (void)backend;
    const int is_relu = strcmp(g->node[0]->op->name, "relu") == 0;
    if (candidate > 1 || g->n_node > 1 ||
        (!is_relu && strcmp(g->node[0]->op->name, "sigmoid") != 0))
        return ADJ_ENOKERNEL;
    p->state = &is_quick[candidate];
    p->in[0] = candidate == 1 && !is_relu ? &reversed : NULL;
    p->out[0] = candidate == 1 && is_relu ? &reversed : NULL;
    strcpy(p->impl, candidate == 1 ? "fast" : "slow");
    return ADJ_OK;
}

static adj_status run_either(const adj_call *c)
{
    const int is_quick = *(const int *)c->state;
    const int is_relu = strcmp(c->group->node[0]->op->name, "relu") == 0;
    const float *x = c->in[0];
    float *y = c->out[0];
    pass_ms(is_quick ? 1 : is_relu ? 3 : 2);
    for (int i = 0; i < N; i++) {
        const float v = x[is_quick && !is_relu ? N - 1 - i : i];
        y[is_quick && is_relu ? N - 1 - i : i] = is_relu ? fmaxf(v, 0) : 1 / (1 + expf(-v));
    }
    return ADJ_OK;
}

static adj_status reorder_run(void *state, const void *in, void *out, void *scratch)
{
    (void)state;
    (void)scratch;
    pass_ms(reorder_ms);
    for (int i = 0; i < N; i++)
        ((float *)out)[i] = ((const float *)in)[N - 1 - i];
    return ADJ_OK;
}

static const adj_kernel either = {.name = "either", .prepare = prepare_either, .run = run_either};
static const adj_kernel *const either_kernels[] = {&either, NULL};
static const adj_backend reversing = {.name = "planted",
                                      .kernels = either_kernels,
                                      .layout_bytes = layout_bytes,
                                      .layout_name = layout_name,
                                      .reorder_prepare = prepare_no_state,
                                      .reorder_run = reorder_run,
                                      .reorder_drop = drop_nothing};

/* Plans sigmoid(relu(x)), with relu's result fetched on request. */
static void expect_plan(int fetches_relu, const char *impl, int reorders)
{
    const float x[N] = {-1, 0.5F, 2, -3, 0.25F};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *in = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    adj_node *relu = adj_relu(in), *fetch[] = {adj_sigmoid(relu), relu};
    adj_exec_opts o = {.n_fetch = 1 + fetches_relu,
                       .fetch = fetch,
                       .tune = 1,
                       .tune_seconds = 100,
                       .backends = beside_naive(reversing)};
    float y[N];
    unsetenv("ADJOINT_PLAN");
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_expect_eq(adj_exec_details(e).reorders, reorders, "%d reorders",
                 adj_exec_details(e).reorders);
    for (int i = 0; i < adj_exec_stats(e).steps; i++) {
        const adj_step_info s = adj_exec_step_at(e, i);
        cr_expect(s.impl[0] == '\0' || strcmp(s.impl, impl) == 0 || s.n_node == 0, "%s", s.impl);
    }
    cr_assert_eq(adj_set(e, in, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, fetch[0], y, sizeof y), ADJ_OK);
    for (int i = 0; i < N; i++)
        cr_expect_float_eq(y[i], 1 / (1 + expf(-fmaxf(x[i], 0))), 1e-6);
}

/* relu: 1 + 1.5 ms instead of 3; sigmoid, with its operand in its layout, 1 instead of 1.5 + 2. */
Test(borders, a_layout_that_is_there_costs_nothing)
{
    reorder_ms = 1.5;
    expect_plan(0, "fast", 0);
    expect_plan(1, "fast", 1);
}

/* relu: 1 + 2.5 ms instead of 3; sigmoid the same instead of 2. */
Test(borders, a_reorder_may_cost_too_much)
{
    reorder_ms = 2.5;
    expect_plan(0, "slow", 0);
    expect_plan(1, "slow", 0);
}
