/* test_yield.c - an executor that changes to a plan for fewer threads computes what one computes
 * that never does, to the bit, and takes the plan that is faster. */
#include "yield_net.h"

static adj_status step(const net *n, int i)
{
    set_inputs(n, i);
    return adj_run(n->e);
}

static void expect_same(const net *a, const net *b, const adj_node *x, const adj_node *y, int i)
{
    float v[64], w[64];
    const size_t bytes = adj_type_bytes(adj_node_type(x));
    cr_assert(bytes > 0 && bytes <= sizeof v);
    cr_assert_eq(adj_get(a->e, x, v, bytes), ADJ_OK, "%s", adj_exec_message(a->e));
    cr_assert_eq(adj_get(b->e, y, w, bytes), ADJ_OK, "%s", adj_exec_message(b->e));
    cr_assert_arr_eq((char *)v, (char *)w, bytes, "%s %s, run %d", adj_node_op(x), adj_node_name(x),
                     i);
}

static void expect_same_leaves(const net *a, const net *b, int i)
{
    const int n = adj_exec_param_count(a->e);
    cr_assert(n > 8, "momentum and dropout's step are missing");
    for (int k = 0; k < n; k++)
        expect_same(a, b, adj_exec_param_at(a->e, k), adj_exec_param_at(b->e, k), i);
}

static int threads_of(const net *n) { return adj_exec_stats(n->e).threads; }

static void reset(void)
{
    unsetenv("ADJOINT_PLAN");
    memset(&mock, 0, sizeof mock);
}
TestSuite(yield, .init = reset);

/* ---- tests ---- */

/* Slow with two threads, then with one, several times. Every run is compared. */
Test(yield, same_values)
{
    net n, never;
    int i = 0, changes = 0, before = THREADS;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const adj_allocator *own = allocator;
    open_net(&never, ADJ_YIELD_NEVER);
    for (int phase = 0; phase < 4; phase++) {
        const int wanted = phase % 2 == 0 ? 1 : THREADS, slow_at = THREADS + 1 - wanted;
        for (int stays = 0; stays < 20 && i < MAX_RUNS; i++) {
            mock.slow_at = slow_at;
            cr_assert_eq(step(&n, i), ADJ_OK, "%s", adj_exec_message(n.e));
            mock.slow_at = 0;
            cr_assert_eq(step(&never, i), ADJ_OK);
            changes += threads_of(&n) != before;
            before = threads_of(&n);
            stays = before == wanted ? stays + 1 : 0;
            expect_same(&n, &never, n.loss, never.loss, i);
            expect_same(&n, &never, n.negative, never.negative, i);
            if (i % 10 == 0)
                expect_same_leaves(&n, &never, i);
        }
        cr_expect_eq(before, wanted, "phase %d", phase);
    }
    cr_expect_geq(changes, 4);
    expect_same_leaves(&n, &never, i);
    cr_expect_eq(threads_of(&never), THREADS);
    adj_exec_free(never.e);
    adj_graph_free(never.g);
    allocator = own;
    close_net(&n);
}

static int runs_until(const net *n, int threads)
{
    int i = 0;
    mock.slow_at = THREADS + 1 - threads;
    for (int stays = 0; stays < 10 && i < MAX_RUNS; i++) {
        cr_assert_eq(step(n, i), ADJ_OK, "%s", adj_exec_message(n->e));
        stays = threads_of(n) == threads ? stays + 1 : 0;
    }
    return i;
}

/* Of one executor with a large leaf set before each run. A trial that is lost is paid for with
 * thousands of runs, so there is only the first. */
static int wins_its_first_trial(const float *data)
{
    enum { RUNS = 60 };
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    int stays = 0;
    for (int i = 0; stays < 10 && i < RUNS; i++) {
        cr_assert_eq(adj_set(n.e, n.large, data, LARGE * sizeof *data), ADJ_OK, "%s",
                     adj_exec_message(n.e));
        cr_assert_eq(step(&n, i), ADJ_OK, "%s", adj_exec_message(n.e));
        stays = threads_of(&n) == 1 ? stays + 1 : 0;
    }
    close_net(&n);
    return stays == 10;
}

/* Copying leaves takes many times what a run takes, and decides nothing: if it did, every trial
 * would be lost. Beside busy processes some are, as runs this short are easily delayed. */
Test(yield, cost_of_changing)
{
    mock.large = 1;
    mock.nap = 300000;
    mock.slow_at = THREADS;
    float *data = calloc(LARGE, sizeof *data);
    cr_assert_not_null(data);
    int won = 0;
    for (int attempt = 0; attempt < 30 && !won; attempt++)
        won = wins_its_first_trial(data);
    cr_expect(won);
    free(data);
}

/* Where every value has memory of its own, the words around it stand from run to run, in other
 * places of each plan. */
Test(yield, no_sharing)
{
    net n;
    mock.no_sharing = 1;
    mock.scratch = 64;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    for (int twice = 0; twice < 2; twice++) {
        cr_expect_lt(runs_until(&n, 1), MAX_RUNS);
        cr_expect_lt(runs_until(&n, THREADS), MAX_RUNS);
    }
    close_net(&n);
}

/* They change neither plans nor values. */
Test(yield, failed_runs)
{
    net n, never;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const adj_allocator *own = allocator;
    open_net(&never, ADJ_YIELD_NEVER);
    mock.slow_at = THREADS;
    int stays = 0;
    for (int i = 0; stays < 20 && i < MAX_RUNS; i++) { /* every fifth fails */
        stays = threads_of(&n) == 1 ? stays + 1 : 0;
        cr_assert_eq(step(&n, i), ADJ_OK);
        cr_assert_eq(step(&never, i), ADJ_OK);
        if (i % 5 != 0)
            continue;
        const int32_t wrong[ROWS] = {0, 1, CLASSES, 0};
        const net *both[] = {&n, &never};
        for (int k = 0; k < 2; k++) {
            cr_assert_eq(adj_set(both[k]->e, both[k]->labels, wrong, sizeof wrong), ADJ_OK);
            cr_assert_neq(adj_run(both[k]->e), ADJ_OK);
            cr_assert_not_null(strstr(adj_exec_message(both[k]->e), "label"), "%s",
                               adj_exec_message(both[k]->e));
            cr_assert_eq(adj_set(both[k]->e, both[k]->labels, (int32_t[]){0, 1, 2, 0}, 16), ADJ_OK);
        }
        expect_same_leaves(&n, &never, i);
    }
    cr_expect_eq(stays, 20);
    expect_same_leaves(&n, &never, MAX_RUNS);
    adj_exec_free(never.e);
    adj_graph_free(never.g);
    allocator = own;
    close_net(&n);
}

/* The message of a call that failed stays when plans change. */
Test(yield, message)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    cr_assert_eq(adj_set(n.e, n.x, NULL, 1), ADJ_EARG);
    char said[ADJ_MESSAGE];
    snprintf(said, sizeof said, "%s", adj_exec_message(n.e));
    cr_expect_lt(runs_until(&n, 1), MAX_RUNS);
    cr_expect_str_eq(adj_exec_message(n.e), said);
    const adj_exec_info info = adj_exec_stats(n.e);
    cr_expect(info.threads == 1 && info.second_threads == 1 && info.plan_seconds > 0 &&
              info.arena_bytes > 0);
    close_net(&n);
}

/* The second plan is made for SAME_BITS only where no bit can differ. */
Test(yield, same_bits_or_always)
{
    static const struct {
        adj_yield yield;
        int sums_by_threads, names_threads, swaps_at, plans, keeps;
    } cases[] = {
        {ADJ_YIELD_NEVER, 0, 0, 0, 1, 0},     {ADJ_YIELD_SAME_BITS, 0, 0, 0, 2, 1},
        {ADJ_YIELD_SAME_BITS, 1, 0, 0, 1, 0}, {ADJ_YIELD_SAME_BITS, 0, 1, 0, 2, 0},
        {ADJ_YIELD_SAME_BITS, 0, 0, 3, 2, 1}, {ADJ_YIELD_SAME_BITS, 0, 0, 1, 2, 0},
        {ADJ_YIELD_ALWAYS, 0, 0, 0, 2, 1},    {ADJ_YIELD_ALWAYS, 1, 1, 0, 2, 1},
        {ADJ_YIELD_ALWAYS, 0, 0, 1, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        net n;
        reset();
        mock.swaps_at = cases[i].swaps_at;
        mock.sums_by_threads = cases[i].sums_by_threads;
        mock.names_threads = cases[i].names_threads;
        open_net(&n, cases[i].yield);
        cr_expect_eq(mock.opened, cases[i].plans, "case %zu", i);
        cr_expect_eq(mock.open, 1 + cases[i].keeps, "case %zu", i);
        cr_expect_eq(adj_exec_stats(n.e).second_threads, cases[i].keeps, "case %zu", i);
        close_net(&n);
    }
}

Test(yield, always)
{
    net n;
    mock.sums_by_threads = mock.names_threads = 1;
    open_net(&n, ADJ_YIELD_ALWAYS);
    cr_expect_str_eq(adj_exec_message(n.e), "");
    cr_expect_lt(runs_until(&n, 1), MAX_RUNS);
    cr_expect_lt(runs_until(&n, THREADS), MAX_RUNS);
    close_net(&n);
}

/* The second plan has the kernels that the first was tuned for, and is not tuned itself. */
Test(yield, tuned)
{
    net n;
    mock.tunes = 1;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    cr_expect_eq(mock.open, 2);
    const adj_exec_info before = adj_exec_stats(n.e);
    const char *selection = adj_exec_selection(n.e);
    cr_expect_not_null(strstr(selection, "mock:0 fast"), "%s", selection);
    cr_expect_lt(runs_until(&n, 1), MAX_RUNS);
    cr_expect_eq(adj_exec_stats(n.e).timed, before.timed);
    cr_expect_eq(adj_exec_selection(n.e), selection);
    int fast = 0;
    for (int i = 0; i < adj_exec_step_count(n.e); i++)
        fast += strcmp(adj_exec_step_at(n.e, i).impl, "mock:0 fast") == 0;
    cr_expect_eq(fast, 1);
    close_net(&n);
}

/* A second plan that cannot be had is none. */
Test(yield, refused)
{
    net n;
    mock.refuses_at = 1;
    open_net(&n, ADJ_YIELD_ALWAYS);
    cr_expect_str_eq(adj_exec_message(n.e), "");
    cr_expect_str_eq(adj_exec_warning(n.e), "");
    cr_expect_eq(mock.open, 1);
    for (int i = 0; i < 40; i++)
        cr_assert_eq(step(&n, i), ADJ_OK);
    cr_expect_eq(threads_of(&n), THREADS);
    close_net(&n);
}

Test(yield, bad_option)
{
    net n = {0};
    build(&n);
    cr_expect_eq(plan(&n, (adj_yield)7), ADJ_EARG);
    cr_expect_not_null(strstr(adj_exec_message(n.e), "yield is wrong (got 7"));
    close_net(&n);
}

/* Neither runs nor changes allocate. */
Test(yield, allocates_before)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const long calls = n.memory.calls;
    cr_expect_lt(runs_until(&n, 1), MAX_RUNS);
    cr_expect_lt(runs_until(&n, THREADS), MAX_RUNS);
    cr_expect_eq(n.memory.calls, calls);
    close_net(&n);
}

/* Wherever memory runs out: the first plan needs it, the second is done without. */
Test(yield, out_of_memory)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const long total = n.memory.calls;
    close_net(&n);
    int failed = 0, alone = 0;
    for (long at = 1; at <= total; at++) {
        n = (net){.memory.fail_at = at};
        build(&n);
        if (adj_graph_status(n.g) != ADJ_OK || plan(&n, ADJ_YIELD_SAME_BITS) != ADJ_OK)
            failed++;
        else {
            alone += mock.open == 1;
            cr_assert_str_eq(adj_exec_message(n.e), "");
            for (int i = 0; i < 2; i++)
                cr_assert_eq(step(&n, i), ADJ_OK);
        }
        close_net(&n);
    }
    cr_expect_eq(failed + alone, total, "%d and %d of %ld", failed, alone, total);
    cr_expect_gt(alone, 10);
}
