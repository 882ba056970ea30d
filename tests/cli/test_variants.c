/* test_variants.c - every op with attributes has further attribute sets; each can be built, differs
 * from the op's example, and is described by options that build it again. A kernel that is wrong
 * for more than eight images, or for channels that fill no block of eight, is right for an op's own
 * shape and found by the shapes around it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "check/inspect.h"
#include "cli/op/graph.h"
#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"

/* True for ops without attributes that options set, and for ops whose examples all have them. */
static int needs_none(const adj_op *op)
{
    static const char *const none[] = {"fill", "label_count", "all_reduce"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(op->name, none[i]) == 0)
            return 1;
    return op->schema == NULL || op->schema->attr[0].name == NULL;
}

static void expect_repeatable(const adj_node *n)
{
    op_line text;
    scoped(release) char *shown = NULL;
    size_t size;
    FILE *f = open_memstream(&shown, &size);
    adj_show_attrs(n, f);
    fclose(f);
    cr_expect(op_line_of(n, &text), "%s%s cannot be repeated", adj_node_op(n), shown);
}

static void expect_set(const op_args *own, const op_args *set)
{
    adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    adj_error error = {0};
    const char *attr = set->attr != NULL ? set->attr : "";
    const adj_node *n = op_args_build(set, g, &error);
    cr_expect_not_null(n, "%s --attr %s: %s", own->op, attr, error.message);
    if (n != NULL) {
        expect_repeatable(n);
        cr_expect_not(adj_gradcheck_same(n, op_args_build(own, other, &error)),
                      "%s --attr %s is the op's own example", own->op, attr);
        cr_expect_str_eq(adj_dtype_name(n->type.dtype),
                         strcmp(own->op, "argmax") == 0 ? "i32" : "f32", "%s", own->op);
    }
    adj_graph_free(other);
    adj_graph_free(g);
}

/* Returns how many other values the op's example has. */
static int expect_values(const op_args *own)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *n = op_args_build(own, g, NULL), *v;
    int count = 0, next = 0;
    while ((v = adj_node_variant(n, &next)) != NULL) {
        cr_expect_not(adj_gradcheck_same(n, v), "%s", own->op);
        expect_repeatable(v);
        count++;
    }
    cr_expect_eq(adj_graph_status(g), ADJ_OK, "%s: %s", own->op, adj_graph_message(g));
    return count;
}

Test(attribute_sets, every_op)
{
    for (int i = 0; op_name_at(i) != NULL; i++) {
        const op_args own = {.op = op_name_at(i)};
        op_args set;
        const int values = op_find(own.op)->flags & ADJ_OP_LEAF ? 0 : expect_values(&own);
        int n = 0;
        while (op_attribute_set(&own, n, &set)) {
            expect_set(&own, &set);
            n++;
        }
        cr_expect(n + values > 0 || needs_none(op_find(own.op)), "%s has none", own.op);
    }
}

/* The user's own words are all that is looked at. */
Test(attribute_sets, none_beside_what_was_given)
{
    op_args set;
    cr_expect(op_attribute_set(&(op_args){.op = "matmul", .dtype = "bf16"}, 0, &set));
    cr_expect_str_eq(set.dtype, "bf16");
    cr_expect_not(op_attribute_set(
        &(op_args){.op = "matmul", .attr = "transpose_a=0,transpose_b=0"}, 0, &set));
    cr_expect_not(op_attribute_set(&(op_args){.op = "conv2d", .attr = "strides=1,2,2,1"}, 0, &set));
    cr_expect_not(op_attribute_set(&(op_args){.op = "conv2d", .in = "1,5,5,3"}, 0, &set));
    cr_expect_not(op_attribute_set(&(op_args){.op = "relu"}, 0, &set));
}

/* ---- values ---- */

/* Expects v's attribute at the offset to be one of these, and all of these to be there. */
static void expect_numbers(adj_node *n, size_t offset, int count, const double want[])
{
    int found = 0, next = 0;
    const double usual = *(const double *)((const char *)n->attrs + offset);
    for (adj_node *v; (v = adj_node_variant(n, &next)) != NULL;) {
        const double got = *(const double *)((const char *)v->attrs + offset);
        int is_known = got == usual; /* another attribute is varied */
        for (int i = 0; i < count; i++)
            is_known |= got == want[i];
        found += got != usual;
        cr_expect(is_known, "%s: %g", adj_node_op(n), got);
    }
    cr_expect_eq(found, count, "%s: got %d, expected %d", adj_node_op(n), found, count);
}

Test(attribute_values, ranges_that_schemas_declare)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}});
    adj_node *step = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    expect_numbers(adj_scale(x, 0.3), 0, 6, (const double[]){0, 1, 0.25, -0.25, -3, 1000});
    expect_numbers(adj_clip(x, -0.5, 0.75), offsetof(adj_clip_attrs, max), 8,
                   (const double[]){0, 1, 0.25, -0.25, -3, 1000, -INFINITY, INFINITY});
    expect_numbers(adj_dropout(x, step, 0.5, 1), 0, 3,
                   (const double[]){0, 0.25, 0x1.fffffffffffffp-1});
}

/* Both words of a seed, every set of axes and every permutation. */
Test(attribute_values, seeds_axes_and_permutations)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){3, {2, 3, 4}}), *v;
    adj_node *step = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    adj_node *dropout = adj_dropout(x, step, 0.5, 1);
    adj_node *sum = adj_reduce_sum(x, (adj_axes){.n = 1, .axis = {1}});
    int next = 0, n = 0;
    uint64_t high = 0;
    while ((v = adj_node_variant(dropout, &next)) != NULL)
        high |= ((const adj_dropout_attrs *)v->attrs)->seed >> 32;
    cr_expect_eq(high, UINT32_MAX);
    for (next = 0; (v = adj_node_variant(sum, &next)) != NULL; n++)
        ;
    cr_expect_eq(n, 7); /* 6 other sets of 3 axes, and keep_dims */
    n = next = 0;
    while ((v = adj_node_variant(adj_transpose(x, 3, (const int[]){2, 1, 0}), &next)) != NULL)
        n++;
    cr_expect_eq(n, 5);
    cr_expect_null(adj_node_variant(NULL, &next));
}

static enum { MANY_IMAGES, ODD_CHANNELS } planted;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    return naive_backend()->kernels[0]->prepare(backend, g, candidate, p);
}

static adj_status run(const adj_call *c)
{
    const adj_shape s = c->group->node[0]->type.shape;
    adj_status status = naive_backend()->kernels[0]->run(c);
    float *y = c->out[0];
    if (planted == MANY_IMAGES ? s.dim[0] > 8 : s.dim[s.rank - 1] % 8 != 0)
        y[adj_shape_elems(s) - 1] += 1;
    return status;
}

static const adj_kernel kernel = {.name = "edges", .prepare = prepare, .run = run};

TestSuite(op_neighbors, .init = plan_as_usual);

static int is_right(adj_graph *g, adj_node *y)
{
    static const char *const configs[] = {"naive:f64", "edges"};
    const adj_backend *const *backends = before_naive("edges", &kernel);
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .n_config = 2,
                                .config = configs,
                                .runs = 1,
                                .exec.threads = 1,
                                .exec.backends = backends};
    scoped(release_comparison) const adj_comparison *c = NULL;
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", c->message);
    const int failed = c->n_failed;
    return failed == 0;
}

static void expect_found(const op_args *args)
{
    adj_error error;
    op_line text;
    int found = 0;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = op_args_build(args, g, &error);
    cr_assert_not_null(y, "%s", error.message);
    cr_expect(is_right(g, y), "%s", args->op);
    for (int i = 0; op_neighbor(y, i, &text) && !found; i++)
        if (op_is_possible(&text.args))
            found = !is_right(g, op_args_build(&text.args, g, NULL));
    cr_expect(found, "%s, fault %d", args->op, (int)planted);
}

Test(op_neighbors, find_what_is_wrong_beside_an_ops_own_shape)
{
    static const op_args ops[] = {{.op = "conv2d", .in = "2,6,6,8", .filter = "3,3,8,16"},
                                  {.op = "max_pool", .in = "2,6,6,8", .attr = "ksize=1,2,2,1"},
                                  {.op = "relu", .in = "2,6,6,8"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        planted = MANY_IMAGES;
        expect_found(&ops[i]);
        planted = ODD_CHANNELS;
        expect_found(&ops[i]);
    }
}
