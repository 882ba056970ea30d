/* test_mix.c - one graph on naive, on oneDNN and on forced mixes of both: the same numbers, to the
 * bit, for data of small integers. The plan's printout names each node's backend, and why it is not
 * the requested one. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tests/isa.h"

/* Convolutions of each kind, pools, shapes and a matrix, and what adj_grad makes of them. */
static adj_node *network(fixture *f, adj_dtype dtype, adj_format format)
{
    int nchw = format == ADJ_NCHW;
    adj_shape xs = nchw ? (adj_shape){4, {2, 3, 8, 8}} : (adj_shape){4, {2, 8, 8, 3}};
    adj_conv same = {.padding = ADJ_SAME, .format = format};
    adj_pool half = {.ksize = {1, 2, 2, 1}, .format = format};
    if (nchw)
        half.ksize[1] = 1, half.ksize[3] = 2;
    adj_node *x = given_integers(f, dtype, xs, -1, 1);
    adj_node *w = given_integers(f, dtype, (adj_shape){4, {3, 3, 3, 4}}, -1, 1);
    adj_node *b = given_integers(f, dtype, (adj_shape){1, {4}}, -2, 2);
    adj_node *d = given_integers(f, dtype, (adj_shape){4, {2, 2, 4, 2}}, -1, 1);
    adj_node *m = given_integers(f, dtype, (adj_shape){2, {128, 3}}, -1, 1);
    adj_node *h = adj_relu(adj_bias_add(adj_conv2d(x, w, &same), b, format));
    h = adj_depthwise_conv2d_native(adj_max_pool(h, &half), d, &same);
    return adj_matmul(adj_reshape(h, (adj_shape){2, {2, 128}}), m, 0);
}

/* The network's result and its gradient for each input, one after the other in v. */
static adj_exec_info run_on(const char *backend, adj_dtype dtype, adj_format format, double *v[6])
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = network(&f, dtype, format), *result[6] = {y};
    int n_in = f.n_in;
    adj_node *dy = given_integers(&f, dtype, (adj_shape){2, {2, 3}}, -1, 1);
    cr_assert_eq(adj_grad(y, dy, n_in, f.in, result + 1), ADJ_OK, "%s", adj_graph_message(f.g));
    for (int i = 0; i < 6; i++)
        v[i] = evaluate(&f, result[i], backend);
    adj_exec_opts o = {.n_fetch = 6, .fetch = result, .backend = backend};
    scoped(release_exec) adj_exec *e = plan_of(f.g, &o);
    return adj_exec_stats(e);
}

static const int64_t elems[6] = {6, 384, 108, 4, 32, 384};

static const char *const mixes[] = {"onednn",
                                    "onednn,conv2d=naive",
                                    "onednn,max_pool=naive,relu_grad=naive",
                                    "naive,conv2d=onednn",
                                    "naive,conv2d_backprop_filter=onednn,matmul=onednn",
                                    "onednn,depthwise_conv2d_native_backprop_input=naive"};

static void expect_same_everywhere(adj_dtype dtype, adj_format format)
{
    double *want[6], *got[6];
    adj_exec_info naive = run_on("naive", dtype, format, want);
    cr_assert_eq(naive.naive_steps, naive.steps);
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        run_on(mixes[i], dtype, format, got);
        for (int k = 0; k < 6; k++) {
            expect_close(got[k], want[k], elems[k], 0, 0, mixes[i]);
            free(got[k]);
        }
    }
    for (int k = 0; k < 6; k++)
        free(want[k]);
}

Test(mix, same_numbers_on_every_mix)
{
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++) {
        expect_same_everywhere(ADJ_F32, (adj_format)format);
        expect_same_everywhere(ADJ_F64, (adj_format)format);
    }
}

/* The plan of the network as text, malloc'ed. */
static char *network_text(const char *backend, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = network(&f, dtype, ADJ_NHWC);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = backend};
    scoped(release_exec) adj_exec *e = plan_of(f.g, &o);
    return plan_text(e);
}

/* True if the plan has a line for a step of op that contains the word. */
static int step_says(const char *plan, const char *op, const char *word)
{
    for (const char *line = plan; (line = strchr(line, '\n')) != NULL && line[1] != '\0';) {
        line++;
        const char *end = strchr(line, '\n'), *found = strstr(line, word);
        const char *name = line + strspn(line, " 0123456789");
        if (strncmp(name, op, strlen(op)) == 0 && name[strlen(op)] == ' ' && found != NULL &&
            (end == NULL || found < end))
            return 1;
    }
    return 0;
}

/* Reorders that the plan counts are steps that it shows. Whether oneDNN wants any (its filters
 * packed), is its own affair. */
static int shows_its_reorders(const char *plan)
{
    const size_t at = strcspn(plan, "(");
    int shown = 0;
    for (const char *line = plan; (line = strchr(line, '\n')) != NULL; line++)
        shown += strncmp(line + 1 + strspn(line + 1, " 0123456789"), "reorder ", 8) == 0;
    return plan[at] == '(' && strtol(plan + at + 1, NULL, 10) == shown;
}

Test(mix, the_plan_says_where_and_why)
{
    static const struct {
        const char *backend;
        adj_dtype dtype;
        const char *op, *word;
    } says[] = {
        {"onednn", ADJ_F32, "matmul", "[onednn "},
        {"onednn,conv2d=naive", ADJ_F32, "conv2d", "[naive "},
        {"onednn,conv2d=naive", ADJ_F32, "depthwise_conv2d_native", "[direct "},
        {"naive,matmul=onednn", ADJ_F32, "matmul", "[onednn "},
        {"naive,matmul=onednn", ADJ_F32, "depthwise_conv2d_native", "[naive "},
        {"onednn", ADJ_F64, "conv2d", "[direct "},
        {"onednn", ADJ_F64, "matmul", "because matmul: oneDNN has no f64"},
        {"onednn", ADJ_F64, "relu", "[naive "},
    };
    need_onednn_kernels();
    unsetenv("ADJOINT_PLAN"); /* the fastest kernel depends on the machine */
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        scoped(release) char *plan = network_text(says[i].backend, says[i].dtype);
        cr_assert(step_says(plan, says[i].op, says[i].word), "%s", plan);
        cr_assert(shows_its_reorders(plan), "%s", plan);
    }
}

/* Values of one shape in one layout, but of two types: each needs a reorder of its own. */
static double *sum_of_two_types(const char *backend)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_conv nchw = {.padding = ADJ_SAME, .format = ADJ_NCHW};
    adj_node *y[2];
    for (int i = 0; i < 2; i++) {
        adj_dtype dtype = i == 0 ? ADJ_BF16 : ADJ_F32;
        adj_node *x = given_integers(&f, dtype, (adj_shape){4, {1, 2, 3, 3}}, -3, 3);
        adj_node *w = given_integers(&f, dtype, (adj_shape){4, {3, 3, 2, 16}}, -3, 3);
        y[i] = adj_cast(adj_conv2d(x, w, &nchw), ADJ_F32);
    }
    return evaluate(&f, adj_add(y[0], y[1]), backend);
}

Test(mix, two_types_in_one_layout)
{
    scoped(release) double *want = sum_of_two_types("naive"), *got = sum_of_two_types("onednn");
    for (int i = 0; i < 16 * 9; i++)
        cr_assert_eq(got[i], want[i], "element %d: %g, not %g", i, got[i], want[i]);
}
