/* test_registry.c - every op that the extension header declares is in the registry and is whole: a
 * unique name, a public builder, a shape rule, a gradient rule, a naive kernel in every dtype, a
 * test. What an op lacks on purpose stands in a list below, with the reason. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"

/* Their results are counts, comparisons or constants: gradients stop there by definition. */
static const char *const no_gradient[] = {
    "fill",        "equal",     "greater_equal",   "all_finite", "stop_gradient",
    "label_count", "next_step", "max_pool_argmax", "argmax",     NULL};
/* An optimizer's step, and what passes make, is not differentiated: adj_grad says ADJ_ENOGRAD. */
static const char *const no_rule[] = {
    "momentum",         "sgd_step",        "ema", "adam_step", "max_pool_grad_argmax",
    "all_reduce_start", "all_reduce_wait", NULL};

static int is_in(const char *const list[], const char *name)
{
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], name) == 0)
            return 1;
    return 0;
}

/* True if the last backend, which computes everything, prepares a node of this op and dtype. */
static int has_kernel(const adj_op *op, adj_dtype dtype)
{
    adj_node x = {.type = {dtype, {1, {4}}}}, n = {.op = op, .type = x.type, .n_in = 1};
    const adj_node *enters = &x, *node = &n;
    adj_node *in = &x;
    const adj_layout *in_layout = NULL, *out_layout = NULL;
    const adj_group g = {1, &node, 1, &enters, 1, &node};
    adj_prep p = {.in = &in_layout, .out = &out_layout};
    char attrs[1024] = {0};
    n.in = &in;
    n.attrs = attrs;
    return naive_backend()->kernels[0]->prepare(NULL, &g, 0, &p) == ADJ_OK;
}

/* The whole file, or what there is of it, as a string; NULL if it is not there. */
static char *text_of(const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return NULL;
    enum { MAX = 1 << 20 };
    char *text = malloc(MAX + 1);
    text[fread(text, 1, MAX, f)] = '\0';
    fclose(f);
    return text;
}

/* True if the text contains prefix + name as a whole word. */
static int mentions(const char *text, const char *prefix, const char *name)
{
    char word[128];
    int n = snprintf(word, sizeof word, "%s%s", prefix, name);
    for (const char *p = text; (p = strstr(p, word)) != NULL; p += n)
        if ((p == text || (!isalnum((unsigned char)p[-1]) && p[-1] != '_')) &&
            !isalnum((unsigned char)p[n]) && p[n] != '_')
            return 1;
    return 0;
}

static int tested(const char *name)
{
    int found = 0;
    DIR *d = opendir("tests/ops");
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "tests/ops/%s", e->d_name);
        scoped(release) char *text = strncmp(e->d_name, "test_", 5) == 0 ? text_of(path) : NULL;
        found = text != NULL && (mentions(text, "adj_", name) || mentions(text, "adj_op_", name));
    }
    if (d != NULL)
        closedir(d);
    return found;
}

Test(registry, every_op_is_whole)
{
    static const adj_dtype floats[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const adj_op *op = adj_ops[i];
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(op->name, adj_ops[k]->name);
        cr_expect(op->infer != NULL || op->n_in > 0, "%s has no shape rule", op->name);
        if (op->flags & ADJ_OP_LEAF)
            continue;
        cr_expect_eq((op->flags & ADJ_OP_NO_GRADIENT) != 0, is_in(no_gradient, op->name),
                     "%s: is it without gradient by definition?", op->name);
        cr_expect_eq(op->grad == NULL, is_in(no_gradient, op->name) || is_in(no_rule, op->name),
                     "%s: has it a gradient rule?", op->name);
        for (int t = 0; t < 4 && !(op->flags & ADJ_OP_VIEW); t++) /* a view needs none */
            cr_expect(has_kernel(op, floats[t]), "%s has no naive kernel for %s", op->name,
                      adj_dtype_name(floats[t]));
    }
}

static int has_format(const adj_op *op)
{
    if (op->schema == NULL)
        return 0;
    for (const adj_attr *a = op->schema->attr; a->name != NULL; a++)
        if (a->kind == ADJ_ATTR_FORMAT)
            return 1;
    return op->schema->geom > 0 && op->schema->set_format != NULL;
}

/* Every op has what the command line needs: rows within the attributes, a letter for each operand,
 * makers whose operands are also this op's. */
Test(registry, every_op_can_be_built_from_a_line)
{
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const adj_op *op = adj_ops[i];
        int rows = 0;
        for (; op->schema != NULL && rows < ADJ_ATTRS && op->schema->attr[rows].name; rows++) {
            const adj_attr *a = &op->schema->attr[rows];
            cr_expect_leq(a->offset + sizeof(int64_t), op->schema->size, "%s: %s", op->name,
                          a->name);
            cr_expect((a->kind == ADJ_ATTR_CHOICE) == (a->words != NULL), "%s: %s", op->name,
                      a->name);
            cr_expect(a->expected == NULL || a->min < a->max, "%s: %s", op->name, a->name);
        }
        cr_expect_lt(rows, ADJ_ATTRS, "%s: no end of its attributes", op->name);
        int examples = 0;
        while (examples < ADJ_NAMED_OPERANDS && op->example[examples] != ADJ_EXAMPLE_NONE)
            examples++;
        if (examples > 0 && op->n_in != ADJ_MANY)
            cr_expect_eq(examples, op->n_in, "%s: example", op->name);
        else
            cr_expect(op->flags & (ADJ_OP_LEAF | ADJ_OP_INTERNAL) || op->n_in <= 2,
                      "%s: no example", op->name);
        cr_expect(op->forward == NULL || op->forward->schema == op->schema, "%s: forward",
                  op->name);
        for (int k = 0; k < ADJ_NAMED_OPERANDS; k++)
            for (int m = 0; op->maker[k] != NULL && m < op->maker[k]->n_in; m++) {
                int known = 0;
                for (int j = 0; j < k; j++)
                    known |= strcmp(op->operand[j], op->maker[k]->operand[m]) == 0;
                cr_expect(known, "%s: %s reads what comes later", op->name, op->maker[k]->name);
            }
    }
}

/* Every op has the facts that gradcheck, compare and reports need. */
Test(registry, every_op_says_what_checks_need)
{
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const adj_op *op = adj_ops[i];
        int has_window = adj_attr_size(op) == sizeof(adj_conv_attrs) && op->infer != NULL &&
                         strstr(op->name, "conv2d") != NULL;
        cr_expect(op->images == 0 || has_format(op), "%s: images, but no format", op->name);
        cr_expect(!has_window || (op->images != 0 && op->schema->geom > 0),
                  "%s: no images, or no geom", op->name);
        int n_filter = 0;
        for (int k = 0; k < ADJ_NAMED_OPERANDS; k++)
            n_filter += adj_filter_axes(op, k) != NULL;
        cr_expect_eq(n_filter, op->filter_axes != NULL, "%s: filter and filter_axes", op->name);
        cr_expect(op->filter_axes == NULL || strlen(op->filter_axes) == 4, "%s", op->name);
        for (int k = op->n_in; k < ADJ_NAMED_OPERANDS && op->n_in != ADJ_MANY; k++)
            cr_expect(op->operand[k] == NULL, "%s names operand %d, which it has not", op->name, k);
        for (int k = 0; op->grad != NULL && op->n_in > 1 && k < op->n_in && op->schema != NULL &&
                        !(op->flags & ADJ_OP_INTERNAL) && k < ADJ_NAMED_OPERANDS;
             k++)
            cr_expect(op->operand[k] != NULL, "%s does not name operand %d", op->name, k);
    }
}

Test(registry, every_op_has_a_builder_and_a_test)
{
    scoped(release) char *header = text_of("include/adjoint_ops.h");
    scoped(release) char *gradients = text_of("ops/grad.h");
    if (header == NULL || gradients == NULL)
        cr_skip_test("registry: no sources here; run it from the project's folder");
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const char *name = adj_ops[i]->name;
        int is_internal = (adj_ops[i]->flags & ADJ_OP_INTERNAL) != 0;
        const int is_public = mentions(header, "adj_", name) || mentions(gradients, "adj_", name);
        cr_expect_neq(is_public, is_internal, "%s: a builder in adjoint_ops.h?", name);
        cr_expect((adj_ops[i]->flags & ADJ_OP_LEAF) || tested(name),
                  "%s is in no tests/ops/test_*.c", name);
    }
}

static int registered(const char *name)
{
    for (int i = 0; adj_ops[i] != NULL; i++)
        if (strcmp(adj_ops[i]->name, name) == 0)
            return 1;
    return 0;
}

Test(registry, every_declared_op_is_registered)
{
    scoped(release) char *header = text_of("graph/op.h");
    if (header == NULL)
        cr_skip_test("registry: no sources here; run it from the project's folder");
    static const char prefix[] = "adj_op_";
    int n = 0;
    for (const char *p = strstr(header, "extern const adj_op "); p != NULL && *p != '\0'; p++) {
        char name[128];
        if (strncmp(p, prefix, sizeof prefix - 1) != 0 ||
            sscanf(p + sizeof prefix - 1, "%127[a-z0-9_]", name) != 1)
            continue;
        cr_expect(registered(name), "%s is declared but not in ops/registry.c", name);
        p += sizeof prefix - 1;
        n++;
    }
    cr_assert_gt(n, 40);
}
