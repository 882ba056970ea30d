/* test_graph.c - nodes are shared, the first error stays, names are unique, gradients accumulate; a
 * program and a library of different versions; and the table of adj_summary, counted by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adjoint.h"
#include "adjoint_check.h"
#include "adjoint_nn.h"
#include "graph/op.h"
#include "harness.h"
#include "ops/grad.h"
#include "tests/plan.h"

static const adj_shape vec3 = {1, {3}};

Test(graph, equal_nodes_are_one)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *y = adj_input(g, "y", ADJ_F32, vec3);
    cr_assert_neq(x, y);
    cr_assert_eq(adj_relu(x), adj_relu(x));
    cr_assert_neq(adj_relu(x), adj_relu(y));
    cr_assert_eq(adj_scale(x, 2), adj_scale(x, 2));
    cr_assert_neq(adj_scale(x, 2), adj_scale(x, 3));
    cr_assert_eq(adj_fill(g, ADJ_F32, vec3, 1), adj_fill(g, ADJ_F32, (adj_shape){1, {3, 99}}, 1));
    for (int i = 0; i < 1000; i++) /* across growth */
        cr_assert_not_null(adj_scale(x, i));
    int n = adj_graph_node_count(g);
    for (int i = 0; i < 1000; i++)
        cr_assert_not_null(adj_scale(x, i));
    cr_assert_eq(adj_graph_node_count(g), n);
}

static int errors;
static void count_error(void *user, adj_status status, const char *message)
{
    cr_assert_eq(user, &errors);
    cr_assert_eq(status, ADJ_ESHAPE);
    expect_text(message, "reshape");
    errors++;
}

Test(graph, first_error_stays)
{
    adj_graph_opts opts = {.on_error = count_error, .user = &errors};
    scoped(release_graph) adj_graph *g = adj_graph_new_with(ADJ_VERSION, &opts);
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3);
    cr_assert_null(adj_reshape(x, (adj_shape){1, {4}}));
    cr_assert_null(adj_relu(x), "a failed graph builds no more");
    cr_assert_null(adj_relu(NULL));
    cr_assert_null(adj_add(x, NULL));
    cr_assert_eq(adj_graph_status(g), ADJ_ESHAPE);
    cr_assert_eq(errors, 1);
    scoped(release_exec) adj_exec *e = NULL;
    adj_exec_opts o = {.n_fetch = 1, .fetch = &x, .backend = "naive"};
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_ESHAPE);
    cr_assert_str_eq(adj_exec_message(e), adj_graph_message(g));
    cr_assert_eq(adj_run(e), ADJ_ESHAPE);
}

/* Functions without an object write nothing to a NULL adj_error, and truncate long messages. */
Test(graph, error_of_a_function)
{
    char text[2 * ADJ_MESSAGE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    adj_error error = {0};
    cr_expect_eq(adj_error_set(NULL, ADJ_EIO, "%s", text), ADJ_EIO);
    cr_expect_eq(adj_error_set(&error, ADJ_EARG, "%s", text), ADJ_EARG);
    cr_expect_eq(error.status, ADJ_EARG);
    cr_expect_eq(strlen(error.message), ADJ_MESSAGE - 1);
    cr_expect_eq(adj_error_set(&error, ADJ_EIO, "n: %d (got %s)", 3, "four"), ADJ_EIO);
    cr_expect_eq(error.status, ADJ_EIO);
    cr_expect_str_eq(error.message, "n: 3 (got four)", "the newest stays");
}

static void *no_alloc(void *user, size_t bytes) { return (void)user, malloc(bytes); }
static void no_free(void *user, void *p) { (void)user, free(p); }

Test(graph, half_an_allocator)
{
    const adj_allocator half[] = {{.alloc = no_alloc}, {.free = no_free}, {0}};
    scoped(release_graph) adj_graph *good = adj_graph_new();
    adj_node *x = adj_input(good, "x", ADJ_F32, vec3);
    for (int i = 0; i < 3; i++) {
        adj_graph_opts opts = {.allocator = &half[i]};
        scoped(release_graph) adj_graph *g = adj_graph_new_with(ADJ_VERSION, &opts);
        cr_assert_eq(adj_graph_status(g), ADJ_EARG);
        expect_text(adj_graph_message(g), "allocator");
        cr_assert_null(adj_input(g, "x", ADJ_F32, vec3));
        const adj_exec_opts o = {.n_fetch = 1, .fetch = &x, .allocator = &half[i]};
        expect_no_plan(good, &o, ADJ_EARG, "allocator");
    }
}

Test(graph, names_and_null)
{
    adj_graph_free(NULL);
    adj_exec_free(NULL);
    cr_assert_eq(adj_graph_status(NULL), ADJ_ENOMEM);
    cr_assert_eq(adj_fail(NULL, ADJ_EARG, "lost"), ADJ_EARG);

    scoped(fixture_free) fixture f = fixture_new();
    adj_graph *g = f.g;
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3);
    cr_assert_eq(adj_find(g, "x"), x);
    cr_assert_eq(adj_find(g, "none"), NULL);
    adj_node *first = adj_neg(x), *r = adj_label(adj_relu(x), "r");
    cr_assert_eq(adj_find(g, "r"), r);
    cr_assert_eq(adj_label(first, "r"), adj_find(g, "r"), "the smallest id comes first");
    for (int i = 0; i < 200; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%d", i);
        adj_node *s = adj_label(adj_scale(x, 2 + i), name);
        cr_assert_eq(adj_find(g, name), s);
    }
    cr_assert_eq(adj_find(g, "x"), x);
    cr_assert_eq(adj_find(g, "r"), first);
    expect_refusal(&f, adj_input(g, "x", ADJ_F32, vec3), ADJ_EARG, "input|\"x\"|already in use");
    expect_refusal(&f, adj_param(f.g, "", ADJ_F32, vec3, (adj_init){0}), ADJ_EARG, "param|name");
}

Test(graph, impossible_leaves)
{
    static const struct {
        adj_dtype dtype;
        adj_shape shape;
        adj_status status;
        const char *word;
    } bad[] = {
        {ADJ_F32, {7, {1, 1, 1, 1, 1, 1}}, ADJ_ESHAPE, "rank"},
        {ADJ_F32, {-1, {1}}, ADJ_ESHAPE, "rank"},
        {ADJ_F32, {2, {3, -1}}, ADJ_ESHAPE, "negative"},
        {ADJ_F32, {4, {INT64_MAX, INT64_MAX, 2, 2}}, ADJ_ESHAPE, "too large"},
        {ADJ_F32, {2, {1879048192, 1879048192}}, ADJ_ESHAPE, "too large"},
        {(adj_dtype)17, {1, {3}}, ADJ_EDTYPE, "dtype"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        expect_refusal(&f, adj_input(f.g, "x", bad[i].dtype, bad[i].shape), bad[i].status,
                       "input|%s", bad[i].word);
        expect_refusal(&f, adj_const(f.g, bad[i].dtype, bad[i].shape, "x"), bad[i].status,
                       "const|%s", bad[i].word);
    }
}

Test(autodiff, accumulates_stops_and_zeros)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F64, vec3, (double[]){1, 2, 3});
    adj_node *z = given(&f, ADJ_F64, vec3, (double[]){5, 5, 5});
    /* y = sum(x*x + 3x + stop(x)*x): dy/dx = 2x + 3 + x */
    adj_node *y = adj_reduce_sum(
        adj_add(adj_add(adj_mul(x, x), adj_scale(x, 3)), adj_mul(adj_stop_gradient(x), x)),
        (adj_axes){.n = ADJ_ALL});
    adj_node *in[] = {x, z, x}, *dx[3];
    cr_assert_eq(adj_grad(y, NULL, 3, in, dx), ADJ_OK, "%s", adj_graph_message(f.g));
    expect_exact(&f, dx[0], (double[]){6, 9, 12});
    expect_exact(&f, dx[1], (double[]){0, 0, 0});
    cr_assert_eq(dx[0], dx[2]);
    expect_exact(&f, gradient_of(y, NULL, y), (double[]){1});
}

Test(autodiff, third_order)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F64, vec3, (double[]){1, 2, -3});
    adj_node *y = adj_mul(adj_square(x), adj_square(x));
    const double want[3][3] = {{4, 32, -108}, {12, 48, 108}, {24, 48, -72}};
    for (int i = 0; i < 3; i++) {
        y = gradient_of(adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL}), NULL, x);
        expect_values(&f, y, "naive", want[i], 1e-15, 0);
    }
}

/* The walk ends at an x: what is below it need not have a gradient. And dx may be x. */
Test(autodiff, ends_at_x)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given(&f, ADJ_F64, vec3, (double[]){1, 2, 3});
    adj_node *lr = given(&f, ADJ_F64, (adj_shape){0}, (double[]){1});
    adj_node *stopped = adj_stop_gradient(z), *next = adj_sgd_step(z, adj_scale(z, 3), lr, 0);
    adj_node *y =
        adj_reduce_sum(adj_add(adj_square(stopped), adj_square(next)), (adj_axes){.n = ADJ_ALL});
    adj_node *x[] = {stopped, next};
    cr_assert_eq(adj_grad(y, NULL, 2, x, x), ADJ_OK, "%s", adj_graph_message(f.g));
    expect_exact(&f, x[0], (double[]){2, 4, 6});
    expect_exact(&f, x[1], (double[]){-4, -8, -12});
}

Test(autodiff, refuses_lists)
{
    static const struct {
        int n, has_y, has_x, has_dx;
        const char *word;
    } bad[] = {
        {-1, 1, 1, 1, "n is negative (got -1)"},
        {1, 1, 0, 1, "x is NULL"},
        {1, 1, 1, 0, "dx is NULL"},
        {1, 0, 1, 1, "y is NULL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){0}), *dx = x;
        cr_assert_eq(adj_grad(bad[i].has_y ? x : NULL, NULL, bad[i].n, bad[i].has_x ? &x : NULL,
                              bad[i].has_dx ? &dx : NULL),
                     ADJ_EARG);
        cr_assert(dx == NULL || bad[i].n < 0 || !bad[i].has_dx);
        expect_error(g, ADJ_EARG, bad[i].word);
        expect_text(adj_graph_message(g), "adj_grad");
    }
    cr_assert_eq(adj_grad(NULL, NULL, 0, NULL, NULL), ADJ_EARG);
}

Test(autodiff, refuses)
{
    fixture f = fixture_new(), other = fixture_new();
    adj_node *x = given(&f, ADJ_F32, vec3, (double[]){1, 2, 3}), *dx = x;
    adj_node *stranger = given(&other, ADJ_F32, vec3, (double[]){1, 2, 3});
    cr_assert_eq(adj_grad(x, NULL, 1, &x, &dx), ADJ_ESHAPE);
    cr_assert_null(dx);
    expect_error(f.g, ADJ_ESHAPE, "adj_grad|scalar|[3]");
    fixture_free(&f);

    f = fixture_new();
    x = given(&f, ADJ_F32, vec3, (double[]){1, 2, 3});
    cr_assert_eq(adj_grad(x, x, 1, &stranger, &dx), ADJ_EARG);
    expect_error(f.g, ADJ_EARG, "x[0]|another graph");
    fixture_free(&f);

    f = fixture_new();
    x = given(&f, ADJ_F32, vec3, (double[]){1, 2, 3});
    adj_node *lr = given(&f, ADJ_F32, (adj_shape){0}, (double[]){1});
    adj_node *y = adj_reduce_sum(adj_sgd_step(x, x, lr, 0), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(y, NULL, 1, &x, &dx), ADJ_ENOGRAD);
    expect_error(f.g, ADJ_ENOGRAD, "sgd_step");
    fixture_free(&f);
    fixture_free(&other);
}

/* U+202E changes the direction of writing; a quote, a backslash and an end of a line would end the
 * text. */
Test(graph, printed_names_act_on_nothing)
{
    char text[1024] = "";
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "a\xe2\x80\xae\"\\\n\x1b", ADJ_F32, vec3);
    FILE *f = fmemopen(text, sizeof text, "w");
    adj_print(f, 1, &x);
    fclose(f);
    expect_text(text, "\"a\\xe2\\x80\\xae\\\"\\\\\\n\\x1b\"\n");
    f = fmemopen(text, sizeof text, "w");
    adj_print_dot(f, 1, &x);
    fclose(f);
    expect_text(text, "\\na\\\\xe2\\\\x80\\\\xae\\\"\\\\\\\\n\\\\x1b\\n");
}

/* ---- versions ---- */

enum { PAGE = 4096 };

/* A page without access, in place of the other version's structs. */
static void *unreadable(void)
{
    void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(page, MAP_FAILED);
    return page;
}

Test(version, text_and_number_agree)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ADJ_VERSION_MAJOR, ADJ_VERSION_MINOR,
             ADJ_VERSION_PATCH);
    cr_expect_str_eq(ADJ_VERSION_TEXT, text);
    cr_expect_str_eq(adj_version_text(), text);
    cr_expect_eq(adj_version(), ADJ_VERSION);
}

Test(version, of_another_layout_is_refused_unread)
{
    const int others[] = {100, ADJ_VERSION + 100, ADJ_VERSION + 10000}; /* 0.1.0 is older */
    for (int i = 0; i < 3; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new_with(others[i], unreadable());
        cr_assert_not_null(g);
        cr_assert_eq(adj_graph_status(g), ADJ_EVERSION);
        expect_text(adj_graph_message(g), ADJ_VERSION_TEXT);
        cr_assert_null(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
        scoped(release_exec) adj_exec *e = NULL;
        cr_expect_eq(adj_exec_new(g, unreadable(), &e), ADJ_EVERSION);
        scoped(release_comparison) const adj_comparison *c = NULL;
        cr_expect_eq(adj_compare(g, unreadable(), &c), ADJ_EVERSION);
        cr_expect_null(adj_model_logits(g, adj_model_find("lenet", NULL), unreadable()));
        scoped(release_gradcheck) const adj_gradcheck_report *r = NULL;
        cr_expect_eq(adj_gradcheck(NULL, unreadable(), &r), ADJ_EARG);
    }
}

/* Another patch, older or newer, is the same contract. */
Test(version, of_another_patch_is_taken)
{
    const adj_graph_opts opts = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new_with(ADJ_VERSION + 7, &opts);
    cr_expect_eq(adj_graph_status(g), ADJ_OK);
}

/* Ops and backends from elsewhere, in a library of its own perhaps: of these as well only what says
 * so is read. */
Test(version, of_an_op_of_another_layout_is_refused_unread)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}});
    cr_expect_not_null(adj_node_new_with(ADJ_VERSION + 7, g, &adj_op_relu, 1, &x, NULL));
    cr_expect_null(adj_node_new_with(100, g, unreadable(), 1, &x, NULL));
    cr_expect_eq(adj_graph_status(g), ADJ_EVERSION);
    expect_text(adj_graph_message(g), "got version 0.1.0");
}

Test(version, of_a_backend_of_another_layout_is_refused_unread)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(pages != MAP_FAILED && mprotect(pages, PAGE, PROT_READ | PROT_WRITE) == 0);
    void *other = pages + PAGE - offsetof(adj_backend, name); /* the rest cannot be read */
    *(int *)other = ADJ_VERSION + 100;
    const adj_backend *const backends[] = {adj_backends[0], other, NULL};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backends = backends};
    expect_no_plan(g, &o, ADJ_EVERSION, "backend 1");
    munmap(pages, 2 * PAGE);
}

/* ---- adj_summary ---- */

static const char want[] = "layer                    op                       result               "
                           "  parameters  multiply-adds\n"
                           "conv                     conv2d                   [2, 8, 8, 4]         "
                           "         148          18432\n"
                           "bn                       batch_norm               [2, 8, 8, 4]         "
                           "           8              0\n"
                           "max_pool                 max_pool                 [2, 4, 4, 4]         "
                           "           0              0\n"
                           "fc                       matmul                   [2, 3]               "
                           "         195            384\n"
                           "total                                                                  "
                           "         351          18816\n";

/* Returns what adj_summary prints of y, and of NULL: nothing. */
static char *summary_of(adj_node *y)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_summary(f, y);
    adj_summary(f, NULL);
    fclose(f);
    return text;
}

/* PyTorch's names have dots, and its weights are transposed: both belong to the layer. */
Test(summary, names_with_dots)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const int turned[] = {1, 0};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 5}});
    adj_node *w = adj_param(g, "features.fc\x1b.weight", ADJ_F32, (adj_shape){2, {3, 5}},
                            adj_init_constant(0));
    adj_node *b =
        adj_param(g, "features.fc\x1b.bias", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(0));
    adj_node *y = adj_bias_add(adj_matmul(x, adj_transpose(w, 2, turned), 0), b, ADJ_NHWC);
    scoped(release) char *text = summary_of(y);
    expect_text(text, "\nfeatures.fc\\x1b          matmul                   [2, 3]       "
                      "                  18             30\n");
    cr_expect_null(strstr(text, "bias"), "%s", text);
}

Test(summary, of_a_net)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 4}});
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    adj_node *h = adj_layer_conv2d(x, "conv", &conv);
    h = adj_relu(adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = 1}));
    adj_node *y = adj_layer_dense(adj_layer_max_pool(h, 2), "fc", 3, NULL);
    scoped(release) char *text = summary_of(y);
    cr_expect_str_eq(text, want, "%s", text);
}
