/* test_gradcheck_repeat.c - gradients that are not the same twice fail; those that depend on the
 * number of threads are measured. */
#include <math.h>

#include "spoil.h"

static int runs;

/* Adds to the bits of every element that is no whole number: rounding makes them so, and integers
 * have none of it. */
static void add_bits(const adj_node *n, void *y, uint64_t more)
{
    size_t size = adj_dtype_size(n->type.dtype);
    for (int64_t i = 0; i < adj_shape_elems(n->type.shape); i++) {
        uint64_t bits = 0;
        double v = adj_load(n->type.dtype, y, i);
        memcpy(&bits, (char *)y + (size_t)i * size, size);
        bits += v != floor(v) ? more : 0;
        memcpy((char *)y + (size_t)i * size, &bits, size);
    }
}

static void change_every_second_time(const adj_node *n, int threads, void *y)
{
    (void)threads;
    add_bits(n, y, (uint64_t)(runs++ & 1));
}

static void add_three_ulp(const adj_node *n, int threads, void *y)
{
    add_bits(n, y, threads > 1 ? 3 : 0);
}

static void write_line(void *user, const adj_node *n, char *line, size_t size)
{
    snprintf(line, size, "%s %s", (const char *)user, adj_node_op(n));
}

Test(gradcheck_repeat, other_bits_the_second_time_fail)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    for (int i = 0; i < 4; i++)
        for (int seed = 1; seed <= 20; seed++) {
            const op_args args = {.op = "conv2d", .in = "1,5,5,2", .dtype = dtypes[i]};
            const adj_gradcheck_opts o = {.seed = (uint64_t)seed,
                                          .threads = 1,
                                          .draws = 1,
                                          .repro = write_line,
                                          .user = "again"};
            adj_graph *g = adj_graph_new();
            spoiled.op = "conv2d_backprop_filter";
            spoiled.spoil = change_every_second_time;
            adj_gradcheck_report *r = check_spoiled(g, &args, &o);
            const adj_gradcheck_row *x = adj_gradcheck_row_at(r, 0),
                                    *w = adj_gradcheck_row_at(r, 1);
            cr_expect_eq(x->result, ADJ_GRADCHECK_PASS);
            cr_expect_eq(w->result, ADJ_GRADCHECK_FAIL, "%s, seed %d: missed", dtypes[i], seed);
            cr_expect_not(w->repeatable);
            cr_expect(x->repeatable, "the sound operand is repeatable");
            cr_expect_str_eq(w->blame,
                             "not repeatable: the same values gave other bits the second time -> "
                             "fault is in backend spoiled's kernel for conv2d_backprop_filter "
                             "(spoiled:1)");
            cr_expect_str_eq(w->repro, "again conv2d");
            cr_expect_not(adj_gradcheck_about(r).repeatable);
            adj_gradcheck_free(r);
            adj_graph_free(g);
        }
}

Test(gradcheck_repeat, threads_are_measured)
{
    static const struct {
        int threads;
        double ulp;
        const char *line;
    } cases[] = {
        {1, 0, " repeatability: backward run twice, bit-identical: yes\n"},
        {2, 3, "bit-identical: yes     threads 1 vs 2: max 3 ulp\n"},
        {4, 3, "bit-identical: yes     threads 1 vs 4: max 3 ulp\n"},
    };
    for (int i = 0; i < 3; i++) {
        const op_args args = {.op = "conv2d", .in = "1,5,5,2"};
        const adj_gradcheck_opts o = {.seed = 3, .threads = cases[i].threads};
        char text[8192] = "";
        adj_graph *g = adj_graph_new();
        spoiled.op = "conv2d_backprop_input";
        spoiled.spoil = add_three_ulp;
        adj_gradcheck_report *r = check_spoiled(g, &args, &o);
        adj_gradcheck_info about = adj_gradcheck_about(r);
        cr_expect_eq(adj_gradcheck_verdict(r), ADJ_GRADCHECK_PASS);
        cr_expect_eq(about.thread_ulp, cases[i].ulp, "%g", about.thread_ulp);
        cr_expect_eq(about.threads, cases[i].threads);
        cr_expect_str_eq(about.backend, "spoiled");
        cr_expect_str_eq(about.version, "");
        FILE *f = fmemopen(text, sizeof text - 1, "w");
        adj_gradcheck_print(f, r);
        fclose(f);
        cr_expect_not_null(strstr(text, cases[i].line), "%s", text);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}

/* naive promises the same bits for any number of threads. */
Test(gradcheck_repeat, naive_does_not_depend_on_threads)
{
    for (int i = 0; op_name_at(i) != NULL; i++) {
        const op_args args = {.op = op_name_at(i)};
        const adj_gradcheck_opts o = {.backend = "naive", .threads = 4, .draws = 1};
        adj_error error;
        adj_gradcheck_report *r;
        adj_graph *g = adj_graph_new();
        cr_assert_eq(adj_gradcheck_node(op_args_build(&args, g, &error), &o, &r), ADJ_OK);
        cr_expect_eq(adj_gradcheck_about(r).thread_ulp, 0, "%s", args.op);
        cr_expect(adj_gradcheck_about(r).repeatable, "%s", args.op);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}

Test(gradcheck_repeat, who_was_asked)
{
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    char known[128];
    adj_gradcheck_report *r;
    cr_assert_eq(adj_backend_describe("onednn", known, sizeof known), ADJ_OK);
    cr_assert_eq(adj_gradcheck(y, &(adj_gradcheck_opts){.backend = "onednn,max_pool=naive"}, &r),
                 ADJ_OK);
    adj_gradcheck_info about = adj_gradcheck_about(r);
    char both[256];
    snprintf(both, sizeof both, "%s %s", about.version, about.isa);
    cr_expect_str_eq(both, known);
    cr_expect_str_eq(about.backend, "onednn,max_pool=naive");
    cr_expect_str_eq(about.reference, "naive float64");
    cr_expect_geq(about.threads, 1);
    adj_gradcheck_free(r);
    cr_expect_str_eq(adj_gradcheck_about(NULL).backend, "");
    adj_graph_free(g);
}
