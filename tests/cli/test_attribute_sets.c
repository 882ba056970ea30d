/* test_attribute_sets.c - every op with attributes has other sets of them, each can be built, is
 * not the op's own example, and is said by options that build it again. */
#include <criterion/criterion.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"
#include "cli/op/build.h"
#include "cli/op/variants.h"

/* What these ops say of attributes holds nothing that options set, or no example is without it. */
static int needs_none(const adj_op *op)
{
    static const char *const none[] = {"fill", "label_count", "all_reduce"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(op->name, none[i]) == 0)
            return 1;
    return op->schema == NULL || op->schema->attr[0].name == NULL;
}

static void expect_set(const op_args *own, const op_args *set)
{
    adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    adj_error error = {0};
    op_text text;
    const char *attr = set->attr != NULL ? set->attr : "";
    const adj_node *n = op_args_build(set, g, &error);
    cr_expect_not_null(n, "%s --attr %s: %s", own->op, attr, error.message);
    if (n != NULL) {
        cr_expect(op_text_of(n, &text), "%s --attr %s cannot be repeated", own->op, attr);
        cr_expect_not(adj_gradcheck_same(n, op_args_build(own, other, &error)),
                      "%s --attr %s is the op's own example", own->op, attr);
        cr_expect_str_eq(adj_dtype_name(n->type.dtype),
                         strcmp(own->op, "cast") == 0 ? attr + strlen("dtype=") : "f32", "%s",
                         own->op);
    }
    adj_graph_free(other);
    adj_graph_free(g);
}

Test(attribute_sets, every_op)
{
    for (int i = 0; op_name_at(i) != NULL; i++) {
        const op_args own = {.op = op_name_at(i)};
        op_args set;
        int n = 0;
        while (op_attribute_set(&own, n, &set)) {
            expect_set(&own, &set);
            n++;
        }
        cr_expect(n > 0 || needs_none(op_find(own.op)), "%s has none", own.op);
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
