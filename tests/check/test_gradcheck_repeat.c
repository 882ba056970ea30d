/* test_gradcheck_repeat.c - gradients that are not the same twice fail. */
#include <math.h>

#include "spoil.h"
#include "exec/report.h"

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

static void write_line(void *user, const gradcheck_detail *row, char *line, size_t size)
{
    snprintf(line, size, "%s %s", (const char *)user, row->op);
}

/* The line follows each failed row. */
static void expect_line(const adj_gradcheck_report *r)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    adj_gradcheck_print_with(f, r, write_line, (void *)"again");
    fclose(f);
    const char *line = strstr(text, "   repro: again conv2d\n");
    cr_expect(line != NULL && strstr(line + 10, "repro:") == NULL, "%s", text);
}

Test(gradcheck_repeat, other_bits_the_second_time_fail)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    for (int i = 0; i < 4; i++)
        for (int seed = 1; seed <= 20; seed++) {
            const op_args args = {.op = "conv2d", .in = "1,5,5,2", .dtype = dtypes[i]};
            const adj_gradcheck_opts o = {
                .exec.seed = (uint64_t)seed, .exec.threads = 1, .draws = 1};
            adj_graph *g = adj_graph_new();
            spoiled.op = "conv2d_backprop_filter";
            spoiled.spoil = change_every_second_time;
            const adj_gradcheck_report *r = check_spoiled(g, &args, &o);
            const gradcheck_detail *x = adj_gradcheck_row_at(r, 0), *w = adj_gradcheck_row_at(r, 1);
            cr_expect_eq(x->result, ADJ_GRADCHECK_PASS);
            cr_expect_eq(w->result, ADJ_GRADCHECK_FAIL, "%s, seed %d: missed", dtypes[i], seed);
            cr_expect_not(w->repeatable);
            cr_expect(x->repeatable, "the sound operand is repeatable");
            cr_expect_str_eq(w->blame,
                             "not repeatable: the same values gave other bits the second time -> "
                             "fault is in backend spoiled's kernel for conv2d_backprop_filter "
                             "(spoiled:1)");
            expect_line(r);
            cr_expect_not(adj_gradcheck_conditions(r).repeatable);
            adj_gradcheck_free(r);
            adj_graph_free(g);
        }
}

Test(gradcheck_repeat, who_was_asked)
{
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    char known[128];
    const adj_gradcheck_report *r;
    cr_assert_eq(adj_backend_describe("onednn", known, sizeof known), ADJ_OK);
    cr_assert_eq(
        adj_gradcheck(y, &(adj_gradcheck_opts){.exec.backend = "onednn,max_pool=naive"}, &r),
        ADJ_OK);
    const gradcheck_conditions c = adj_gradcheck_conditions(r);
    char both[256];
    snprintf(both, sizeof both, "%s %s", c.version, c.isa);
    cr_expect_str_eq(both, known);
    cr_expect_str_eq(c.backend, "onednn,max_pool=naive");
    cr_expect_str_eq(c.reference, "naive float64");
    cr_expect_geq(c.threads, 1);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}
