/* test_registry.c - every op that the extension header declares is in the registry and is whole: a
 * unique name, a public builder, a shape rule, a gradient rule, a naive kernel in every dtype, a
 * test. What an op lacks on purpose stands in a list below, with the reason. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "backends/naive/naive.h"

extern const naive_entry naive_table_f32[], naive_table_f64[], naive_table_f16[],
    naive_table_bf16[];

/* Their results are counts, comparisons or constants: gradients stop there by definition. */
static const char *const no_gradient[] = {
    "fill", "equal", "greater_equal", "stop_gradient", "label_count", "next_step", NULL};
/* An optimiser's step is not differentiated through: adj_grad says ADJ_ENOGRAD. */
static const char *const no_rule[] = {"momentum", "sgd_step", "ema", "adam_step", NULL};

static int is_in(const char *const list[], const char *name)
{
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], name) == 0)
            return 1;
    return 0;
}

static int has_kernel(const naive_entry *table, const adj_op *op)
{
    while (table->op != NULL && table->op != op)
        table++;
    return table->op == op;
}

/* The whole file, or what there is of it, as a string; NULL if it is not there. */
static char *text_of(const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return NULL;
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 1);
    text[fread(text, 1, MOST, f)] = '\0';
    fclose(f);
    return text;
}

/* Does the text call or name prefix + name, as a whole word? */
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
        char *text = strncmp(e->d_name, "test_", 5) == 0 ? text_of(path) : NULL;
        found = text != NULL && (mentions(text, "adj_", name) || mentions(text, "adj_op_", name));
        free(text);
    }
    if (d != NULL)
        closedir(d);
    return found;
}

Test(registry, every_op_is_whole)
{
    const naive_entry *const table[] = {naive_table_f32, naive_table_f64, naive_table_f16,
                                        naive_table_bf16};
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const adj_op *op = adj_ops[i];
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(op->name, adj_ops[k]->name);
        cr_expect(op->infer != NULL, "%s has no shape rule", op->name);
        cr_expect(op->min_in <= op->max_in, "%s", op->name);
        if (op->flags & ADJ_OP_LEAF)
            continue;
        cr_expect_eq((op->flags & ADJ_OP_NO_GRADIENT) != 0, is_in(no_gradient, op->name),
                     "%s: is it without gradient by definition?", op->name);
        cr_expect_eq(op->grad == NULL, is_in(no_gradient, op->name) || is_in(no_rule, op->name),
                     "%s: has it a gradient rule?", op->name);
        for (int t = 0; t < 4; t++)
            cr_expect(has_kernel(table[t], op), "%s has no naive kernel (table %d)", op->name, t);
    }
}

Test(registry, every_op_has_a_builder_and_a_test)
{
    char *header = text_of("include/adjoint.h");
    if (header == NULL)
        cr_skip_test("registry: no sources here; run it from the project's folder");
    for (int i = 0; adj_ops[i] != NULL; i++) {
        const char *name = adj_ops[i]->name;
        cr_expect(mentions(header, "adj_", name), "%s has no builder in adjoint.h", name);
        cr_expect((adj_ops[i]->flags & ADJ_OP_LEAF) || tested(name),
                  "%s is in no tests/ops/test_*.c", name);
    }
    free(header);
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
    char *header = text_of("include/adjoint_ext.h");
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
    free(header);
}
