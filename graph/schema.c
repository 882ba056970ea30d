/* schema.c - handles attributes by their schema: checks, printing, formats, geometry. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "graph.h"

static const void *place(const adj_attr *a, const void *attrs)
{
    return (const char *)attrs + a->offset;
}

static int64_t integer(const adj_attr *a, const void *attrs)
{
    return *(const int64_t *)place(a, attrs);
}

static double real(const adj_attr *a, const void *attrs)
{
    return *(const double *)place(a, attrs);
}

/* ---- values ---- */

static adj_status check_real(const adj_node *n, const adj_attr *a, double v)
{
    if ((a->flags & ADJ_ATTR_ANY_NUMBER) ||
        (a->expected != NULL ? v >= a->min && v <= a->max : isfinite(v)))
        return ADJ_OK;
    return adj_fail(n->graph, ADJ_EARG, "%s: %s is out of range (got %g, expected %s)", n->op->name,
                    a->name, v, a->expected != NULL ? a->expected : "a finite number");
}

static adj_status check_word(const adj_node *node, const adj_attr *a, const char *const words[],
                             int64_t v)
{
    char known[200] = "";
    size_t used = 0;
    int n = 0;
    while (words[n] != NULL)
        n++;
    if (v >= 0 && v < n)
        return ADJ_OK;
    for (int i = 0; i < n && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%d, %s",
                                 i > 0 ? ", or " : "", i, words[i]);
    return adj_fail(node->graph, ADJ_EARG, "%s: %s is wrong (got %lld, expected %s)",
                    node->op->name, a->name, (long long)v, known);
}

static const char *const formats[] = {[ADJ_NHWC] = "NHWC", [ADJ_NCHW] = "NCHW", NULL};
static const char *const flags[] = {"no", "yes", NULL};

adj_status check_attrs(const adj_node *n, const void *attrs)
{
    adj_status status = ADJ_OK;
    if (n->op->schema == NULL)
        return ADJ_OK;
    for (const adj_attr *a = n->op->schema->attr; a->name != NULL && status == ADJ_OK; a++)
        switch (a->kind) {
        case ADJ_ATTR_REAL: status = check_real(n, a, real(a, attrs)); break;
        case ADJ_ATTR_INT: status = check_real(n, a, (double)integer(a, attrs)); break;
        case ADJ_ATTR_FLAG: status = check_word(n, a, flags, integer(a, attrs)); break;
        case ADJ_ATTR_CHOICE: status = check_word(n, a, a->words, integer(a, attrs)); break;
        case ADJ_ATTR_FORMAT: status = check_word(n, a, formats, integer(a, attrs)); break;
        default: break; /* attributes tied to shapes are checked by the op */
        }
    return status;
}

/* ---- printing ---- */

/* Prints a permutation without its rank, which is not an attribute: trailing zeros are absent
 * axes, or axis 0. */
static void show_perm(const int64_t *perm, FILE *f)
{
    int rank = ADJ_MAX_RANK;
    while (rank > 1 && perm[rank - 1] == 0 && perm[rank - 2] == 0)
        rank--;
    for (int i = 0; i < rank; i++)
        fprintf(f, "%s%lld", i > 0 ? "," : "", (long long)perm[i]);
}

static void show_axes(int64_t axes, FILE *f)
{
    for (int i = 0, n = 0; i < ADJ_MAX_RANK; i++)
        if (axes >> i & 1)
            fprintf(f, "%s%d", n++ > 0 ? "," : "", i);
}

static void show_value(const adj_attr *a, const void *attrs, FILE *f)
{
    if (a->shown == NULL || ((a->flags & ADJ_ATTR_HIDE_ZERO) && real(a, attrs) == 0))
        return;
    fputs(a->shown, f);
    switch (a->kind) {
    case ADJ_ATTR_REAL: c_fprintf(f, "%g", real(a, attrs)); break;
    case ADJ_ATTR_INT: fprintf(f, "%lld", (long long)integer(a, attrs)); break;
    case ADJ_ATTR_SEED: fprintf(f, "%llu", (unsigned long long)integer(a, attrs)); break;
    case ADJ_ATTR_DTYPE: fputs(adj_dtype_name((adj_dtype)integer(a, attrs)), f); break;
    case ADJ_ATTR_SHAPE:
    case ADJ_ATTR_PER_AXIS: fputs(adj_shape_text(*(const adj_shape *)place(a, attrs)).s, f); break;
    case ADJ_ATTR_PERM: show_perm(place(a, attrs), f); break;
    case ADJ_ATTR_AXES: show_axes(integer(a, attrs), f); break;
    default: break;
    }
}

static void show(const adj_attr *a, const void *attrs, FILE *f)
{
    const char *word = NULL;
    switch (a->kind) {
    case ADJ_ATTR_CHOICE: word = a->words[integer(a, attrs)]; break;
    case ADJ_ATTR_FLAG: word = integer(a, attrs) ? a->name : NULL; break;
    case ADJ_ATTR_FORMAT: word = integer(a, attrs) == ADJ_NCHW ? "NCHW" : NULL; break;
    default: show_value(a, attrs, f); break;
    }
    if (word != NULL)
        fprintf(f, " %s", word);
}

void adj_show_attrs(const adj_node *n, FILE *f)
{
    const adj_schema *s = n->op->schema;
    if (s == NULL)
        return;
    if (s->show != NULL)
        s->show(n->attrs, f);
    for (const adj_attr *a = s->attr; s->show == NULL && a->name != NULL; a++)
        show(a, n->attrs, f);
}

/* ---- formats and windows ---- */

static const adj_attr *format_row(const adj_op *op)
{
    if (op->schema == NULL)
        return NULL;
    for (const adj_attr *a = op->schema->attr; a->name != NULL; a++)
        if (a->kind == ADJ_ATTR_FORMAT)
            return a;
    return NULL;
}

const adj_conv_geom *adj_node_geom(const adj_node *n)
{
    const adj_schema *s = n->op->schema;
    return s != NULL && s->geom > 0 ? (const void *)((const char *)n->attrs + s->geom) : NULL;
}

adj_format adj_format_of(const adj_node *n)
{
    const adj_attr *a = format_row(n->op);
    const adj_conv_geom *k = adj_node_geom(n);
    return (adj_format)(a != NULL ? integer(a, n->attrs) : k != NULL ? k->format : ADJ_NHWC);
}

const char *adj_filter_axes(const adj_op *op, int k)
{
    const char *name = k < ADJ_NAMED_OPERANDS ? op->operand[k] : NULL;
    return name != NULL && strcmp(name, "filter") == 0 ? op->filter_axes : NULL;
}

int adj_set_format(const adj_node *n, void *attrs, adj_format format)
{
    const int64_t to = (int64_t)format;
    const adj_attr *a = format_row(n->op);
    for (int k = 0; k < n->n_in; k++)
        if (n->op->images >> k & 1 && n->in[k]->type.shape.rank != 4)
            return 0;
    if (n->op->images == 0 || adj_format_of(n) == format)
        return 0;
    if (a != NULL)
        memcpy((char *)attrs + a->offset, &to, sizeof to);
    else
        n->op->schema->set_format(attrs, format);
    return 1;
}
