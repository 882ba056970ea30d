/* test_direct_epilogue.c - direct's products with epilogues: bias, addend, relu, cast, in every
 * combination; on integers bit for bit against arithmetic in the test, NaN and infinities against
 * naive. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/oracle.h"

/* Slices are plans of their own, and unfused ones have no groups. */
TestSuite(direct_epilogue, .init = plan_as_usual);

enum { BIAS = 1, ADDEND = 2, RELU = 4, KINDS = 8, MAX_NODES = 5 };

static const adj_dtype halves[] = {ADJ_BF16, ADJ_F16};

typedef struct {
    fixture *f;
    adj_node *y; /* the product */
    const double *product;
    adj_node *bias, *addend; /* the last of the fixture's inputs */
} problem;

/* A product of the fixture's inputs, and the bias and the addend that may follow it. */
static problem problem_of(fixture *f, adj_node *y, const double *product)
{
    const adj_type t = y->type;
    problem p = {.f = f, .y = y, .product = product};
    p.bias = given_integers(f, t.dtype, (adj_shape){1, {t.shape.dim[t.shape.rank - 1]}}, -9, 9);
    p.addend = given_integers(f, t.dtype, t.shape, -20, 20);
    return p;
}

/* The group, and by want its value on integers; returns how many nodes. */
static int follow(const problem *p, int kind, const adj_node *node[MAX_NODES], double *want)
{
    const int64_t count = adj_shape_elems(p->y->type.shape), channels = p->bias->type.shape.dim[0];
    double *const *value = p->f->value + p->f->n_in - 2;
    adj_node *y = p->y;
    int n = 0;
    node[n++] = y;
    if (kind & BIAS)
        node[n++] = y = adj_bias_add(y, p->bias, ADJ_NHWC);
    if (kind & ADDEND) /* on either side */
        node[n++] = y = kind & BIAS ? adj_add(y, p->addend) : adj_add(p->addend, y);
    if (kind & RELU)
        node[n++] = y = adj_relu(y);
    cr_assert_not_null(y, "%s", adj_graph_message(p->f->g));
    for (int64_t i = 0; i < count; i++) {
        want[i] = p->product[i];
        want[i] += kind & BIAS ? value[0][i % channels] : 0;
        want[i] += kind & ADDEND ? value[1][i] : 0;
        want[i] = kind & RELU && want[i] < 0 ? 0 : want[i];
    }
    return n;
}

static void expect_kernel(fixture *f, test_backend *t, const char *kernel, int n,
                          const adj_node *const node[], const double *want, double tolerance,
                          const char *text)
{
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        t->invariant = is_kept ? UINT32_MAX : 0;
        outcome o = run_kernel(f, t, kernel, n, node);
        cr_assert_eq(o.status, ADJ_OK, "%s: %s", text, o.why);
        expect_close(o.y, want, adj_shape_elems(node[n - 1]->type.shape), 0, tolerance, text);
        free(o.y);
    }
}

/* Stored in each half type. */
static void expect_cast(const problem *p, test_backend *t, int n, const adj_node *node[MAX_NODES],
                        const double *want, const char *text)
{
    const int64_t count = adj_shape_elems(p->y->type.shape);
    scoped(release) double *rounded = malloc((size_t)count * sizeof *rounded);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < count; i++)
            rounded[i] = round_to_type(halves[k], want[i]);
        node[n] = adj_cast((adj_node *)node[n - 1], halves[k]);
        expect_kernel(p->f, t, "gemm", n + 1, node, rounded, 0, text);
    }
}

/* ---- on integers ---- */

static double rms_of(const problem *p)
{
    const int64_t count = adj_shape_elems(p->y->type.shape);
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += p->product[i] * p->product[i];
    return sqrt(squares / (double)count);
}

/* Winograd's algorithm errs in proportion to the products (test_direct_winograd.c), which the rest
 * may cancel. */
static double tolerance_of(const problem *p, adj_math math)
{
    return math == ADJ_MATH_FAST ? 6 * 1e-5 * rms_of(p) : 0;
}

static void expect_kinds(const problem *p, const char *isa, const char *kernel, adj_math math,
                         const char *text)
{
    scoped(release) double *want = malloc((size_t)adj_shape_elems(p->y->type.shape) * sizeof *want);
    for (int kind = 0; kind < KINDS; kind++)
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            const adj_node *node[MAX_NODES];
            char label[240];
            snprintf(label, sizeof label, "%s, %s, %d", text, isa, kind);
            scoped(backend_close) test_backend t = direct_open(isa, threads, math);
            const int n = follow(p, kind, node, want);
            expect_kernel(p->f, &t, kernel, n, node, want, tolerance_of(p, math), label);
            if (p->y->type.dtype == ADJ_F32 && strcmp(kernel, "gemm") == 0)
                expect_cast(p, &t, n, node, want, label);
        }
}

static void expect_conv(oracle_conv row, adj_dtype dtype, const char *isa, const char *kernel,
                        adj_math math)
{
    scoped(conv_problem_free) conv_problem c = conv_problem_new(row, dtype, INTEGERS);
    conv_problem_solve(&c);
    const problem p = problem_of(&c.f, c.result[ORACLE_Y], c.want[ORACLE_Y]);
    expect_kinds(&p, isa, kernel, math, c.text);
}

/* Rows as they lie, gathered, flat, and such as lie in the padding; whole vectors of outputs and
 * not. */
static const oracle_conv rows[] = {
    {2, 9, 11, 3, 3, 3, 19, .padding = ADJ_SAME},
    {1, 16, 16, 8, 3, 3, 64, .padding = ADJ_SAME},
    {3, 4, 4, 16, 3, 3, 17, .padding = ADJ_SAME},
    {1, 17, 15, 5, 3, 3, 32, .sh = 2, .sw = 2},
    {2, 7, 9, 6, 1, 1, 24, .padding = ADJ_VALID},
    {2, 4, 9, 3, 2, 3, 19, .dh = 2, .dw = 2, .padding = ADJ_EXPLICIT, .pad = {4, 5, 2, 0}},
};

static void products(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_conv(rows[i], ADJ_F32, isa, "gemm", ADJ_MATH_EXACT);
        expect_conv(rows[i], ADJ_F64, isa, "gemm", ADJ_MATH_EXACT);
    }
}

Test(direct_epilogue, of_products) { for_each_isa(N_ISA, all_isas, products); }

static void by_winograd(const char *isa)
{
    static const oracle_conv tiles[] = {
        {2, 18, 15, 16, 3, 3, 48, .padding = ADJ_SAME},
        {2, 17, 21, 32, 5, 5, 16, .padding = ADJ_SAME},
    };
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        expect_conv(tiles[i], ADJ_F32, isa, "winograd", ADJ_MATH_FAST);
}

Test(direct_epilogue, of_winograd) { for_each_isa(2, all_isas + 1, by_winograd); }

/* In bf16 a sum is rounded before the addend comes; within what rounding may differ by. */
Test(direct_epilogue, of_winograd_in_bf16)
{
    oracle_conv row = {4, 16, 16, 32, 3, 3, 32, .padding = ADJ_SAME};
    need_isa("avx2");
    scoped(conv_problem_free) conv_problem c = conv_problem_new(row, ADJ_BF16, INTEGERS);
    conv_problem_solve(&c);
    const problem p = problem_of(&c.f, c.result[ORACLE_Y], c.want[ORACLE_Y]);
    scoped(release) double *want = malloc((size_t)c.n[ORACLE_Y] * sizeof *want);
    for (int kind = 0; kind < KINDS; kind++) {
        const adj_node *node[MAX_NODES];
        scoped(backend_close) test_backend t = direct_open("avx2", 2, ADJ_MATH_FAST);
        const int n = follow(&p, kind, node, want);
        scoped(release) double *rounded = by_naive(&c.f, node[n - 1]);
        expect_kernel(&c.f, &t, "winograd", n, node, rounded, rms_of(&p) / 128, c.text);
    }
}

/* The addend is what naive's sum is rounded to, so nothing is left; of a sum that is not rounded
 * before would be its rest. Where Winograd's error decides how to round it is one unit more. */
Test(direct_epilogue, a_sum_in_bf16_is_rounded_first)
{
    const adj_shape image = {4, {4, 16, 16, 32}};
    need_isa("avx2");
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_BF16, image, -1, 1);
    adj_node *w = given_random(&f, ADJ_BF16, (adj_shape){4, {3, 3, 32, 32}}, -1, 1);
    adj_node *addend = given_random(&f, ADJ_BF16, image, -1, 1);
    adj_node *y = adj_conv2d(x, w, &(adj_conv){.padding = ADJ_SAME});
    const adj_node *node[] = {y, adj_add(y, addend)};
    const int64_t count = adj_shape_elems(image);
    scoped(release) double *rounded = by_naive(&f, y);
    for (int64_t i = 0; i < count; i++)
        f.value[2][i] = -rounded[i];
    scoped(backend_close) test_backend t = direct_open("avx2", 2, ADJ_MATH_FAST);
    outcome o = run_kernel(&f, &t, "winograd", 2, node);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    int64_t left = 0;
    for (int64_t i = 0; i < count; i++)
        left += o.y[i] != 0;
    cr_expect_lt(left, count / 20, "%ld of %ld", (long)left, (long)count);
    free(o.y);
}

Test(direct_epilogue, of_matmul)
{
    enum { N = 5, K = 7, M = 19 };
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {N, K}}, -3, 3);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){2, {K, M}}, -3, 3);
    scoped(release) double *product = oracle_matmul(N, K, M, f.value[0], 0, f.value[1], 0);
    const problem p = problem_of(&f, adj_matmul(a, b, 0), product);
    expect_kinds(&p, best_isa(), "gemm", ADJ_MATH_EXACT, "matmul");
}

/* ---- what is not finite ---- */

/* A NaN stays one behind relu; positions whose windows reach padding are computed anew where the
 * filter has an Inf. */
static void expect_special_values(bias_case b)
{
    scoped(conv_problem_free) conv_problem c = conv_problem_new(b.row, ADJ_F32, INTEGERS);
    const problem p = problem_of(&c.f, c.result[ORACLE_Y], NULL);
    adj_node *biased = adj_bias_add(p.y, p.bias, ADJ_NHWC), *sum = adj_add(biased, p.addend);
    adj_node *y = adj_relu(sum);
    const adj_node *const node[] = {p.y, biased, sum, y, adj_cast(y, ADJ_BF16)};
    static const double special[] = {NAN, -INFINITY, INFINITY};
    for (int64_t k = 0; k < 3 && k < c.n[ORACLE_Y]; k++)
        c.f.value[4][k] = special[k];
    if (b.element >= 0)
        c.f.value[1][b.element] = b.value;
    scoped(backend_close) test_backend t = direct_open(best_isa(), 2, ADJ_MATH_EXACT);
    for (int n = 4; n <= 5; n++) {
        scoped(release) double *want = by_naive(&c.f, node[n - 1]);
        expect_kernel(&c.f, &t, "gemm", n, node, want, 0, c.text);
    }
}

Test(direct_epilogue, specials)
{
    for (int i = 0; i < n_bias_case; i++)
        expect_special_values(bias_case_at(i));
}

/* ---- in plans ---- */

/* relu(conv2d(x, w) + bias + x), and one more that reads a value before relu. */
Test(direct_epilogue, up_to_a_value_that_is_read_elsewhere)
{
    const adj_shape image = {4, {2, 6, 5, 4}};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F64, image, -4, 4);
    adj_node *w = given_integers(&f, ADJ_F64, (adj_shape){4, {3, 3, 4, 4}}, -1, 1);
    adj_node *b = given_integers(&f, ADJ_F64, (adj_shape){1, {4}}, -3, -3);
    adj_node *biased =
        adj_bias_add(adj_conv2d(x, w, &(adj_conv){.padding = ADJ_SAME}), b, ADJ_NHWC);
    adj_node *sum = adj_add(biased, x), *const y[] = {adj_relu(sum), sum};
    scoped(release) double *want = evaluate(&f, y[0], "naive");
    for (int is_read = 0; is_read < 2; is_read++) {
        const adj_exec_opts o = {.n_fetch = 1 + is_read, .fetch = y, .backend = "direct"};
        scoped(release_exec) adj_exec *e = fixture_run(&f, &o);
        scoped(release) double *got = fixture_get(e, y[0]);
        int nodes = 0;
        for (int i = 0; i < adj_exec_step_count(e); i++)
            if (strcmp(adj_exec_step_at(e, i).op, "conv2d") == 0)
                nodes = adj_exec_step_at(e, i).n_node;
        cr_expect_eq(nodes, is_read ? 3 : 4, "%d nodes", nodes);
        expect_close(got, want, adj_shape_elems(image), 0, 0, "relu");
    }
}
