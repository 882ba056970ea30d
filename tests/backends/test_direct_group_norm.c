/* test_direct_group_norm.c - direct group norm and its gradients against naive, whose sums are in
 * double: every instruction set, both types, rows and images, on one thread and on three; the same
 * bits for any number of threads; means far from zero; results in place of operands. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/candidates.h"
#include "tests/isa.h"
#include "tests/norm_reference.h"

TestSuite(direct_group_norm, .init = plan_as_usual);

static const double eps = 1e-5;

typedef struct {
    adj_shape x;
    int64_t groups;
} row;

/* Rows, of one and of several groups; images of many and of few, groups of one channel and of all,
 * odd numbers of channels, more pixels than are summed in float. */
static const row rows[] = {
    {{2, {300, 96}}, 1},        {{2, {3, 2500}}, 1},        {{2, {1, 7}}, 1},
    {{2, {70, 24}}, 8},         {{4, {5, 1, 1, 33}}, 3},    {{4, {9, 7, 5, 32}}, 4},
    {{4, {2, 17, 19, 64}}, 32}, {{4, {1, 20, 21, 96}}, 1},  {{4, {1, 4, 4, 6}}, 6},
    {{3, {3, 131, 35}}, 5},     {{5, {2, 2, 3, 2, 16}}, 2}, {{4, {2, 3, 3, 200}}, 4},
    {{2, {2000, 48}}, 1},       {{4, {16, 9, 9, 32}}, 4},   {{4, {2, 23, 24, 96}}, 8},
};
enum { ROWS = sizeof rows / sizeof *rows };

typedef struct {
    fixture f;
    adj_node *x, *gamma, *beta, *dy, *y, *sums, *dx;
} nodes;

static nodes nodes_of(const row *r, adj_dtype t, double low, double high)
{
    nodes n = {.f = fixture_new()};
    const adj_shape c = {1, {r->x.dim[r->x.rank - 1]}};
    n.x = given_random(&n.f, t, r->x, low, high);
    n.gamma = given_random(&n.f, ADJ_F32, c, -2, 2);
    n.beta = given_random(&n.f, ADJ_F32, c, -2, 2);
    n.dy = given_random(&n.f, t, r->x, -1, 1);
    n.y = adj_group_norm(n.x, n.gamma, n.beta, r->groups, eps, ADJ_NHWC);
    n.sums = adj_group_norm_grad_sums(n.x, n.dy, r->groups, eps, ADJ_NHWC);
    n.dx = adj_group_norm_grad(n.x, n.gamma, n.dy, r->groups, eps, ADJ_NHWC);
    return n;
}

static void nodes_free(nodes *n) { fixture_free(&n->f); }

/* The last node of the group by direct, with the same bits on one thread and on three. */
static void expect_group(nodes *v, int n, const adj_node *const node[], const char *isa,
                         const double *want, double rtol, double atol)
{
    const adj_node *y = node[n - 1];
    char label[320];
    snprintf(label, sizeof label, "%s of %d nodes by %s, x %s", y->op->name, n, isa,
             adj_shape_text(v->x->type.shape).s);
    const int64_t elems = adj_shape_elems(y->type.shape);
    scoped(release) double *of_one = run_direct(&v->f, "group_norm_", isa, 1, n, node),
                           *of_three = run_direct(&v->f, "group_norm_", isa, 3, n, node);
    expect_close(of_one, want, elems, rtol, atol, label);
    expect_same_bits(of_three, of_one, elems, label);
}

static void expect_naive(nodes *v, int n, const adj_node *const node[], const char *isa,
                         double tolerance)
{
    scoped(release) double *want = by_naive(&v->f, node[n - 1]);
    expect_group(v, n, node, isa, want, tolerance, tolerance);
}

static void like_naive(const char *isa, adj_dtype t)
{
    const double tolerance = t == ADJ_BF16 ? 0x1p-7 : 1e-5;
    for (int i = 0; i < ROWS; i++) {
        scoped(nodes_free) nodes v = nodes_of(&rows[i], t, -1, 3);
        const double m = (double)adj_shape_elems(rows[i].x) / (double)v.gamma->type.shape.dim[0];
        expect_naive(&v, 1, (const adj_node *[]){v.y}, isa, tolerance);
        expect_naive(&v, 1, (const adj_node *[]){v.dx}, isa, tolerance);
        expect_naive(&v, 1, (const adj_node *[]){v.sums}, isa, 1e-6 * (1 + sqrt(m)));
        expect_naive(&v, 2, (const adj_node *[]){v.sums, v.dx}, isa, tolerance);
    }
}

Test(direct_group_norm, like_naive)
{
    for (int i = 0; i < N_ISA; i++)
        if (can_test(all_isas[i])) {
            like_naive(all_isas[i], ADJ_F32);
            like_naive(all_isas[i], ADJ_BF16);
        }
}

/* The mean is a thousand deviations from zero. */
Test(direct_group_norm, large_mean)
{
    for (int i = 0; i < N_ISA * ROWS; i++) {
        const char *isa = all_isas[i % N_ISA];
        if (!cpu_has(isa))
            continue;
        scoped(nodes_free) nodes v = nodes_of(&rows[i / N_ISA], ADJ_F32, 1000, 1004);
        expect_naive(&v, 1, (const adj_node *[]){v.y}, isa, 1e-5);
        expect_naive(&v, 2, (const adj_node *[]){v.sums, v.dx}, isa, 1e-5);
    }
}

/* ---- values whose squares float does not hold ---- */

enum { N_X = 12, N_C = 6 };
static const double plain_x[N_X] = {1, -2.5, .75, 3, .5, -1.25, 2, .25, -1.5, -.5, 4, 1.75};
static const double wide_gamma[N_C] = {1, -.5, 2, .75, 1.5, -1};
static const double wide_beta[N_C] = {.25, -1, .5, 2, -.75, 1};
static const double wide_dy[N_X] = {.5, -1, .25, 2, -.75, 1.5, -.25, .5, 1.25, -1, .75, .125};
static const adj_shape wide[] = {{2, {2, 6}}, {4, {1, 2, 1, 6}}};

/* Two groups with epsilon 0. Scales x by 2^power; only: in the first group alone. */
static void expect_scaled(int i, int power, int only, const char *isa)
{
    double x[N_X];
    scoped(nodes_free) nodes v = {.f = fixture_new()};
    for (int k = 0; k < N_X; k++)
        x[k] = ldexp(plain_x[k], only && k % N_C >= N_C / 2 ? 0 : power);
    scoped(norm_answers_free) norm_answers want =
        norm_reference(&(norm_problem){wide[i], 2, 0, ADJ_NHWC}, x, wide_gamma, wide_beta, wide_dy);
    v.x = given(&v.f, ADJ_F32, wide[i], x);
    v.gamma = given(&v.f, ADJ_F32, (adj_shape){1, {N_C}}, wide_gamma);
    v.beta = given(&v.f, ADJ_F32, (adj_shape){1, {N_C}}, wide_beta);
    v.dy = given(&v.f, ADJ_F32, wide[i], wide_dy);
    v.y = adj_group_norm(v.x, v.gamma, v.beta, 2, 0, ADJ_NHWC);
    v.sums = adj_group_norm_grad_sums(v.x, v.dy, 2, 0, ADJ_NHWC);
    v.dx = adj_group_norm_grad(v.x, v.gamma, v.dy, 2, 0, ADJ_NHWC);
    const double atol = ldexp(2e-6, only && power > 0 ? 0 : -power); /* the larger dx's */
    expect_group(&v, 1, (const adj_node *[]){v.y}, isa, want.y, 1e-6, 1e-6);
    expect_group(&v, 1, (const adj_node *[]){v.sums}, isa, want.sums, 1e-6, 1e-6);
    expect_group(&v, 2, (const adj_node *[]){v.sums, v.dx}, isa, want.dx, 2e-6, atol);
}

/* x from 2^-100 to 2^125, which is 4.25e37 times what is above. */
Test(direct_group_norm, large_and_small_values)
{
    static const int powers[] = {-100, -70, 0, 28, 62, 64, 66, 100, 125};
    for (int i = 0; i < N_ISA; i++)
        for (size_t k = 0; k < sizeof powers / sizeof *powers && cpu_has(all_isas[i]); k++)
            for (int n = 0; n < 4; n++)
                expect_scaled(n / 2, powers[k], n % 2, all_isas[i]);
}

/* ---- in a plan ---- */

/* y by one step, both gradients by another. */
Test(direct_group_norm, two_steps)
{
    scoped(nodes_free) nodes v = nodes_of(&rows[0], ADJ_F32, -1, 3);
    const adj_exec_opts o = {.n_fetch = 3, .fetch = (adj_node *const[]){v.y, v.sums, v.dx}};
    scoped(release_exec) adj_exec *e = plan_of(v.f.g, &o);
    int ours = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        ours += strncmp(adj_exec_step_at(e, i).impl, "group_norm_", 11) == 0;
    cr_assert_eq(ours, 2, "%d steps", ours);
}

/* x and dy are dead after their only reader: the results take over their memory. */
Test(direct_group_norm, in_place)
{
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        scoped(nodes_free) nodes v = nodes_of(r, ADJ_F32, -1, 3);
        adj_node *x = adj_exp(v.x), *dy = adj_exp(v.dy);
        adj_node *y[] = {adj_group_norm(x, v.gamma, v.beta, r->groups, eps, ADJ_NHWC),
                         adj_group_norm_grad(v.x, v.gamma, dy, r->groups, eps, ADJ_NHWC),
                         adj_group_norm_grad(x, v.gamma, v.dy, r->groups, eps, ADJ_NHWC)};
        for (int k = 0; k < 3; k++) {
            scoped(release) double *want = evaluate(&v.f, y[k], "naive");
            expect_values(&v.f, y[k], "onednn", want, 1e-5, 2e-5);
        }
    }
}

Test(direct_group_norm, refused)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){3, {2, 4, 6}}, -1, 1);
    adj_node *single = given_random(&f, ADJ_F32, (adj_shape){3, {2, 4, 6}}, -1, 1);
    const adj_node *refused[] = {adj_group_norm_grad_sums(x, x, 2, eps, ADJ_NHWC),
                                 adj_group_norm_grad_sums(single, single, 2, eps, ADJ_NCHW)};
    scoped(backend_close) test_backend t = backend_open("direct");
    for (int i = 0; i < 2; i++)
        expect_no_kernel(&f, &t, NULL, 1, &refused[i], "group_norm_grad_sums: direct takes");
}
