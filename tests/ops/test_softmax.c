/* test_softmax.c - softmax and log_softmax, and softmax cross-entropy with dense and integer
 * labels, against PyTorch's numbers, the reference, and finite differences to second
 * order. PyTorch's losses: tests/nn/test_loss.c; TensorFlow's, and gradients through the loss and
 * its gradient: tests/conformance. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/softmax_reference.h"

static const double rounding[] = {
    [ADJ_F32] = 1e-6, [ADJ_F64] = 1e-11, [ADJ_F16] = 4e-3, [ADJ_BF16] = 3e-2};

static const double z34[] = {1, 2, 3, 4, -1, 0.5, 0, -2, 10, -10, 5, 9.5};

/* PyTorch 1.13 in float64. */
Test(softmax, numbers)
{
    const adj_shape shape = {2, {3, 4}};
    const double d_value[] = {1, -1, 2, 0.5, 0.25, 1, -0.5, 2, -1, 3, 1, -2};
    const double soft[] = {0.0320586032801, 0.087144318742,    0.23688281809,    0.643914259888,
                           0.116715390713,  0.523082090899,    0.317265325677,   0.0429371927116,
                           0.619859578598,  1.27762581583e-09, 0.00417658098747, 0.375963839136};
    const double logs[] = {-3.44018969856,  -2.44018969856,  -1.44018969856, -0.440189698561,
                           -2.14801686567,  -0.648016865669, -1.14801686567, -3.14801686567,
                           -0.478262312726, -20.4782623127,  -5.47826231273, -0.978262312726};
    const double dsoft[] = {0.00831481389838, -0.151686629957,   0.298321444437,   -0.154949628379,
                            -0.0267864927672, 0.272262836307,    -0.310762230795,  0.0652858872552,
                            0.227866996266,   5.58017214811e-09, 0.00988851771862, -0.237755519565};
    const double dlogs[] = {0.9198534918,     -1.21786079686,  1.40779295478,  -1.10978564972,
                            -0.0709673244608, -0.438475749971, -1.37247964561, 1.88192272004,
                            -1.6198595786,    2.99999999872,   0.995823419013, -2.37596383914};
    for (int i = 0; i < N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        double r = rounding[dtypes[i]];
        adj_node *x = given(&f, dtypes[i], shape, z34), *d = given(&f, dtypes[i], shape, d_value);
        adj_node *y = adj_softmax(x), *ly = adj_log_softmax(x);
        expect_values(&f, y, "naive", soft, r, r / 100);
        expect_values(&f, ly, "naive", logs, r, r / 100);
        expect_values(&f, gradient_of(y, d, x), "naive", dsoft, r, r);
        expect_values(&f, gradient_of(ly, d, x), "naive", dlogs, r, r);
    }
}

/* ---- the reference ---- */

/* Every op, of logits of this shape. */
static void expect_reference(adj_dtype t, adj_shape s, softmax_op op, double smoothing)
{
    const int64_t k = s.dim[s.rank - 1], n = adj_shape_elems(s) / k;
    const softmax_problem p = {op, t, n, k, smoothing};
    const double r = rounding[t], atol = op == SOFTMAX ? 1e-7 : op == LOG_SOFTMAX ? r / 10 : r;
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given_random(&f, t, s, -6, 6);
    adj_node *y = softmax_build(&p, z, softmax_labels(&f, &p));
    const int64_t columns = elems_of(y) / n;
    scoped(release) double *want = malloc((size_t)elems_of(y) * sizeof *want);
    for (int64_t i = 0; i < elems_of(y); i++) {
        const softmax_sums sums = softmax_sums_of(f.value[0] + i / columns * k, k);
        want[i] =
            (double)softmax_want(&p, f.value[0], f.value[1], sums, i / columns, i % columns).v;
    }
    expect_values(&f, y, "naive", want, r, atol);
}

Test(softmax, reference)
{
    const adj_shape shapes[] = {{1, {7}}, {2, {5, 1}}, {3, {3, 4, 11}}, {2, {200, 37}}};
    for (int t = 0; t < N_PRECISIONS; t++) {
        for (int i = 0; i < 4; i++) {
            expect_reference(dtypes[t], shapes[i], SOFTMAX, 0);
            expect_reference(dtypes[t], shapes[i], LOG_SOFTMAX, 0);
        }
        for (softmax_op op = DENSE; op < N_OP; op++) {
            expect_reference(dtypes[t], (adj_shape){2, {60, 23}}, op, 0);
            expect_reference(dtypes[t], (adj_shape){2, {60, 23}}, op, 0.25);
        }
    }
}

/* ---- limits ---- */

/* Nothing overflows; a NaN spreads over its row only; -inf is probability 0. */
Test(softmax, extremes)
{
    const double z[] = {60000, -60000, 60000, 1, NAN, 1, 0, -INFINITY, 0};
    const double soft[] = {0.5, 0, 0.5, NAN, NAN, NAN, 0.5, 0, 0.5};
    for (int i = 0; i < N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[i], (adj_shape){2, {3, 3}}, z);
        expect_exact(&f, adj_softmax(x), soft);
        scoped(release) double *logs = evaluate(&f, adj_log_softmax(x), "naive");
        cr_assert(isnan(logs[3]) && logs[7] == -INFINITY && fabs(logs[8] + log(2)) < 4e-3);
    }
}

/* One logit too large for exp, at each place of rows of each length: it has all of the probability;
 * the label is the next one. */
Test(softmax, large_at_each_place)
{
    enum { LONGEST = 19, ALL = LONGEST * LONGEST };
    for (int t = 0; t < N_PRECISIONS; t++)
        for (int k = 2; k <= LONGEST; k++) {
            const adj_shape s = {2, {k, k}};
            double z[ALL], soft[ALL], logs[ALL], dense[ALL], dz[ALL], label[LONGEST], loss[LONGEST];
            for (int i = 0; i < k * k; i++) {
                soft[i] = i % k == i / k;
                z[i] = 2000 * soft[i];
                logs[i] = z[i] - 2000;
                label[i / k] = (i / k + 1) % k;
                dense[i] = i % k == label[i / k];
                dz[i] = soft[i] - dense[i];
                loss[i / k] = 2000;
            }
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given(&f, dtypes[t], s, z), *row = given(&f, dtypes[t], s, dense);
            adj_node *number = given(&f, ADJ_I32, (adj_shape){1, {k}}, label);
            expect_exact(&f, adj_softmax(x), soft);
            expect_exact(&f, adj_log_softmax(x), logs);
            expect_exact(&f, adj_softmax_cross_entropy(x, row, 0), loss);
            expect_exact(&f, adj_softmax_cross_entropy_grad(x, row, 0), dz);
            expect_exact(&f, adj_sparse_softmax_cross_entropy(x, number, 0), loss);
            expect_exact(&f, adj_sparse_softmax_cross_entropy_grad(x, number, 0), dz);
        }
}

Test(softmax, gradients)
{
    for (int logs = 0; logs < 2; logs++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, (adj_shape){3, {2, 2, 5}}, -2, 2);
        adj_node *y = logs ? adj_log_softmax(x) : adj_softmax(x);
        expect_gradient(&f, y, 1e-5, 1e-6, 1e-8);
        expect_gradient(&f, gradient_of(y, f.in[1], x), 1e-5, 1e-6, 1e-8); /* in[1]: dy */
    }
}

Test(softmax, limits)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *empty = given(&f, ADJ_F32, (adj_shape){2, {3, 0}}, NULL);
    free(evaluate(&f, adj_softmax(empty), "naive"));
    cr_assert_null(adj_softmax(NULL));
    expect_refused(adj_softmax(of_type("f32[]")), ADJ_ESHAPE, "softmax|rank 0");
    expect_refused(adj_log_softmax(of_type("i32[3]")), ADJ_EDTYPE, "log_softmax");
}

/* ---- cross-entropy ---- */

/* TensorFlow's convention: the gradient is softmax - labels where they do not sum to 1, too; labels
 * broadcast over the rows. */
Test(cross_entropy, labels_need_not_sum_to_one)
{
    const double dz[] = {-1.75, 0.25, 0.25, 1.25, -1.75, 0.25, 0.25, 1.25};
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *z =
            given(&f, dtypes[d], (adj_shape){2, {2, 4}}, (double[]){1, 1, 1, 1, 7, 7, 7, 7});
        adj_node *labels = given(&f, dtypes[d], (adj_shape){2, {1, 4}}, (double[]){2, 0, 0, -1});
        adj_node *ones = given(&f, dtypes[d], (adj_shape){1, {2}}, (double[]){1, 1});
        adj_node *y = adj_softmax_cross_entropy(z, labels, 0);
        double r = rounding[dtypes[d]], loss[] = {log(4), log(4)};
        expect_values(&f, y, "naive", loss, r, 0);
        expect_values(&f, gradient_of(y, ones, z), "naive", dz, r, 0);
    }
}

/* A class of probability 0 adds nothing where its label is 0. */
Test(cross_entropy, probability_zero)
{
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *z = given(&f, dtypes[d], (adj_shape){2, {1, 3}}, (double[]){60, -60, -INFINITY});
        adj_node *labels = given(&f, dtypes[d], (adj_shape){2, {1, 3}}, (double[]){1, 0, 0});
        adj_node *zero = given(&f, ADJ_I32, (adj_shape){1, {1}}, (double[]){0});
        expect_values(&f, adj_softmax_cross_entropy(z, labels, 0), "naive", (double[]){0}, 0,
                      1e-30);
        expect_values(&f, adj_sparse_softmax_cross_entropy(z, zero, 0), "naive", (double[]){0}, 0,
                      1e-30);
        expect_values(&f, adj_softmax_cross_entropy_grad(z, labels, 0), "naive",
                      (double[]){0, 0, 0}, 0, 1e-30);
    }
}

Test(cross_entropy, gradients)
{
    const adj_shape s = {2, {4, 5}};
    const double labels[] = {4, -1, 0, 2};
    for (int i = 0; i < 12; i++) {
        double smoothing = i % 2 ? 0.2 : 0;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *z = given_random(&f, ADJ_F64, s, -2, 2);
        adj_node *label = given(&f, ADJ_I32, (adj_shape){1, {4}}, labels);
        adj_node *dense = given_random(&f, ADJ_F64, s, 0, 1);
        adj_node *d = given_random(&f, ADJ_F64, (adj_shape){1, {4}}, -1, 1);
        adj_node *sparse_loss = adj_sparse_softmax_cross_entropy(z, label, smoothing);
        adj_node *const y[] = {
            sparse_loss, adj_sparse_softmax_cross_entropy_grad(z, label, smoothing),
            adj_softmax_cross_entropy(z, adj_softmax(dense), smoothing), /* labels sum to 1 */
            adj_softmax_cross_entropy_grad(z, dense, smoothing),
            /* second order: of dz, which is dloss * (p - t) */
            gradient_of(adj_softmax_cross_entropy(z, dense, smoothing), d, z),
            gradient_of(sparse_loss, d, z)};
        expect_gradient(&f, y[i / 2], 1e-5, 1e-6, 1e-8);
    }
}

/* The gradient for dense labels alone, which need not be normalized for that: -(1-s) log p. */
Test(cross_entropy, gradient_of_labels)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given(&f, ADJ_F64, (adj_shape){2, {1, 2}}, (double[]){0, log(3)});
    adj_node *labels = given(&f, ADJ_F64, (adj_shape){2, {1, 2}}, (double[]){0.5, 5});
    adj_node *d = given(&f, ADJ_F64, (adj_shape){1, {1}}, (double[]){2});
    adj_node *dlabels = gradient_of(adj_softmax_cross_entropy(z, labels, 0.5), d, labels);
    expect_values(&f, dlabels, "naive", (double[]){log(4), log(4) - log(3)}, 1e-12, 0);
}

/* p - t is linear in the labels but for p, which is 1/4 here. */
Test(cross_entropy, adjoint)
{
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        const adj_shape s = {2, {6, 4}};
        adj_node *labels = given_integers(&f, dtypes[d], s, -4, 4);
        adj_node *z = given_integers(&f, dtypes[d], s, 0, 0);
        adj_node *g = adj_softmax_cross_entropy_grad(z, labels, 0);
        expect_adjoint(&f, adj_sub(g, adj_fill(f.g, dtypes[d], s, 0.25)), 1);
    }
}

/* ---- integer labels ---- */

Test(cross_entropy, label_count)
{
    const double labels[] = {3, -1, 0, 0, -1};
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *some = given(&f, ADJ_I32, (adj_shape){1, {5}}, labels);
        adj_node *none = given(&f, ADJ_I32, (adj_shape){1, {2}}, (double[]){-1, -1});
        adj_node *empty = given(&f, ADJ_I32, (adj_shape){1, {0}}, NULL);
        expect_exact(&f, adj_label_count(some, dtypes[d]), (double[]){3});
        expect_exact(&f, adj_label_count(none, dtypes[d]), (double[]){1});
        expect_exact(&f, adj_label_count(empty, dtypes[d]), (double[]){1});
    }
}

/* A label outside of the classes fails the run and names row and label. */
Test(cross_entropy, labels_out_of_range)
{
    const int32_t labels[][3] = {{0, 4, 1}, {-2, 0, 0}, {0, 0, INT32_MAX}};
    const char *const words[][2] = {
        {"row 1", "got 4"}, {"row 0", "got -2"}, {"row 2", "got 2147483647"}};
    for (int i = 0; i < 6; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *z = adj_fill(g, ADJ_F32, (adj_shape){2, {3, 4}}, 0);
        adj_node *label = adj_const(g, ADJ_I32, (adj_shape){1, {3}}, labels[i / 2]);
        adj_node *y = i % 2 ? adj_sparse_softmax_cross_entropy_grad(z, label, 0)
                            : adj_sparse_softmax_cross_entropy(z, label, 0);
        adj_exec_opts opts = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
        scoped(release_exec) adj_exec *e = plan_of(g, &opts);
        cr_assert_eq(adj_run(e), ADJ_EARG);
        for (int k = 0; k < 2; k++)
            expect_text(adj_exec_message(e), words[i / 2][k]);
    }
}

Test(cross_entropy, empty_batch)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given(&f, ADJ_F32, (adj_shape){2, {0, 4}}, NULL);
    adj_node *label = given(&f, ADJ_I32, (adj_shape){1, {0}}, NULL);
    free(evaluate(&f, adj_sparse_softmax_cross_entropy(z, label, 0), "naive"));
    free(evaluate(&f, adj_softmax_cross_entropy(z, z, 0), "naive"));
}

static adj_node *dense(const char *logits, const char *labels, double smoothing)
{
    return adj_softmax_cross_entropy(of_type(logits), of_type(labels), smoothing);
}

static adj_node *sparse(const char *labels)
{
    return adj_sparse_softmax_cross_entropy(of_type("f32[2, 2]"), of_type(labels), 0);
}

Test(cross_entropy, refused)
{
    expect_refused(dense("f32[2, 2]", "f32[2, 3]", 0), ADJ_ESHAPE,
                   "softmax_cross_entropy|labels|[2, 3]");
    expect_refused(dense("f32[2]", "f32[2]", 0), ADJ_ESHAPE, "logits|rank");
    expect_refused(adj_softmax_cross_entropy_grad(of_type("f32[2, 0]"), of_type("f32[2, 0]"), 0),
                   ADJ_ESHAPE, "logits|classes");
    expect_refused(sparse("f32[2]"), ADJ_EDTYPE, "labels|i32");
    expect_refused(sparse("i32[3]"), ADJ_ESHAPE, "labels|one entry");
    expect_refused(dense("f32[2, 2]", "f32[2, 2]", 1.5), ADJ_EARG, "smoothing|1.5");
    expect_refused(dense("f32[2, 2]", "f16[2, 2]", 0), ADJ_EDTYPE, "softmax_cross_entropy");
    expect_refused(adj_label_count(of_type("f32[2]"), ADJ_F32), ADJ_EDTYPE, "label_count|i32");
    expect_refused(
        adj_sparse_softmax_cross_entropy_grad(of_type("f32[2, 2]"), of_type("i32[2, 1]"), 0),
        ADJ_ESHAPE, "labels|rank");
    cr_assert_null(adj_softmax_cross_entropy(NULL, NULL, 0));
    cr_assert_null(adj_label_count(NULL, ADJ_F32));
}
