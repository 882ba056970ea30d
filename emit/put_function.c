/* put_function.c - writes the function of a step: comment, parameters and body; and its call. */
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "names.h"
#include "program.h"

/* Copies word i of a list; "" past the last. */
static void word_of(const char *list, int i, char to[EMIT_NAME])
{
    while (i-- > 0 && *list != '\0')
        list += strcspn(list, " ") + (list[strcspn(list, " ")] == ' ');
    snprintf(to, EMIT_NAME, "%.*s", (int)strcspn(list, " "), list);
}

static int is_taken(const function *f, int n, const char *name)
{
    int taken = strcmp(name, f->result) == 0;
    for (int i = 0; i < n; i++)
        taken |= strcmp(name, f->name[i]) == 0;
    return taken;
}

/* Names operands as the rows of the nodes that read them do. */
static void name_operands(function *f)
{
    const adj_group *g = f->group;
    for (int i = 0; i < g->n_in; i++) {
        char word[EMIT_NAME] = "";
        for (int m = 0; m < g->n_node && word[0] == '\0'; m++) {
            const int k = adj_operand_position(g->node[m], g->in[i]);
            if (k >= 0)
                word_of(writer_of(g->node[m]->op)->operands, k, word);
        }
        if (word[0] == '\0')
            snprintf(word, sizeof word, "x");
        snprintf(f->name[i], EMIT_NAME, "%s", word);
        for (int number = 2; is_taken(f, i, f->name[i]); number++)
            snprintf(f->name[i], EMIT_NAME, "%.12s%d", word, number);
    }
}

/* Writes the formula of a row, with the rows and columns of the root's windows. */
static void put_formula(FILE *out, const adj_node *root)
{
    const adj_conv_geom *k = adj_node_geom(root);
    for (const char *c = writer_of(root->op)->formula; *c != '\0'; c++)
        if (*c == '%' && *++c == 'h')
            fputs(window_at("oh", k->oh, k->sh, "kh", k->kh, k->dh, k->pt).s, out);
        else if (*c == 'w' && c[-1] == '%')
            fputs(window_at("ow", k->ow, k->sw, "kw", k->kw, k->dw, k->pl).s, out);
        else
            fputc(*c, out);
}

/* Returns what the chain makes of a value: "tanh(sum + b)". */
static expression chain_of(const function *f, const char *value)
{
    expression e = expr("%s", value);
    for (int i = 1; i < f->group->n_node; i++) {
        const adj_node *n = f->group->node[i];
        const int is_sum = n->op == &adj_op_add || n->op == &adj_op_bias_add;
        const int before = adj_operand_position(n, f->group->node[i - 1]);
        expression others = {""};
        for (int k = 0; k < n->n_in; k++)
            if (k != before)
                others = expr("%s%s%s", others.s, is_sum ? " + " : ", ",
                              f->name[adj_group_in(f->group, n->in[k])]);
        e = is_sum ? expr("%s%s", e.s, others.s) : expr("%s(%s%s)", n->op->name, e.s, others.s);
    }
    return e;
}

/* True if operand i of the group is an int8 filter. */
static int is_rounded(const function *f, int i)
{
    return f->is_rounded && i == adj_group_in(f->group, f->root->in[1]);
}

/* Writes the comment above a function: the op, its operands, and the formula. */
static void put_head(FILE *out, const function *f)
{
    const adj_group *g = f->group;
    const adj_node *root = f->root;
    const adj_conv_geom *k = adj_node_geom(root);
    const char *separator = "";
    fprintf(out, "/* %s", root->op->name);
    if (k != NULL)
        fprintf(out, " %lldx%lld", (long long)k->kh, (long long)k->kw);
    if (k != NULL && (k->sh > 1 || k->sw > 1))
        fprintf(out, ", stride %lldx%lld", (long long)k->sh, (long long)k->sw);
    fputs(": ", out);
    for (int i = 0; i < g->n_in; i++)
        if (f->is_used[i]) {
            fprintf(out, "%s%s %s%s", separator, f->name[i], shape_of(g->in[i]->type.shape).s,
                    is_rounded(f, i) ? " * scale" : "");
            separator = ", ";
        }
    fprintf(out, " -> %s %s", f->result, shape_of(g->out[0]->type.shape).s);
    if (writer_of(root->op)->formula != NULL) {
        fprintf(out, "\n * ");
        if (g->n_node > 1)
            fprintf(out, "%s = %s, r = ", f->result, chain_of(f, "r").s);
        else if (strstr(writer_of(root->op)->formula, "+=") == NULL)
            fprintf(out, "%s = ", f->result);
        put_formula(out, root);
    } else if (g->n_node > 1)
        fprintf(out, "\n * %s = %s", f->result, chain_of(f, root->op->name).s);
    fputs(" */\n", out);
}

/* A list in parentheses, broken into lines of at most 100 characters. */
typedef struct {
    FILE *f;
    int indent, column, n;
} list;

static list list_begin(FILE *f, int indent, const char *before)
{
    fprintf(f, "%*s%s(", indent, "", before);
    return (list){f, indent + 4, indent + (int)strlen(before) + 1, 0};
}

static void list_add(list *l, const char *item)
{
    enum { WIDTH = 97 };
    const int n = (int)strlen(item);
    const int breaks = l->n > 0 && l->column + n > WIDTH;
    if (breaks)
        l->column = l->indent;
    fputs(l->n++ > 0 ? "," : "", l->f);
    fprintf(l->f, breaks ? "\n%*s%s" : "%.*s%s", breaks ? l->indent : l->n > 1, breaks ? "" : " ",
            item);
    l->column += n + 2;
}

static void list_end(const list *l, const char *after) { fprintf(l->f, ")%s\n", after); }

static const char *c_type(adj_dtype dtype) { return dtype == ADJ_I32 ? "int32_t" : "float"; }

const char *use_slot(program *p, int slot)
{
    unit *u = p->unit;
    const char *s = p->symbol[slot].s;
    p->uses_arena |= strcmp(s, "arena") == 0 || strncmp(s, "arena +", 7) == 0;
    for (int k = 0; k < u->n_array; k++)
        u->array[k].is_used |= strcmp(u->array[k].name, s) == 0;
    return s;
}

/* Writes parameters, which begin at a column, and body. The result is `restrict` unless it is
 * computed in place. */
static void put_text(FILE *f, const function *g, const char *body, int is_shared, int column)
{
    list l = list_begin(f, 0, "");
    l.column = column;
    for (int i = 0; i < g->group->n_in; i++)
        if (is_rounded(g, i)) {
            list_add(&l, expr("const int8_t *%s", g->name[i]).s);
            list_add(&l, "const float *scale");
        } else if (g->is_used[i])
            list_add(&l, expr("const %s *%s", c_type(g->group->in[i]->type.dtype), g->name[i]).s);
    if (g->has_scratch)
        list_add(&l, "float *restrict scratch");
    list_add(&l, expr("%s *%s%s", c_type(g->group->out[0]->type.dtype),
                      is_shared ? "" : "restrict ", g->result)
                     .s);
    list_end(&l, "\n{");
    fprintf(f, "%s}\n\n", body);
}

/* Writes the call of a function. filter: that with integers, or NULL. */
static void put_call(program *p, const function *f, const step *s, const char *name,
                     const array *filter)
{
    const plan *plan = &p->e->plan;
    list l = list_begin(p->calls, 4, name);
    for (int i = 0; i < f->group->n_in; i++)
        if (is_rounded(f, i)) {
            list_add(&l, filter->rounded_name);
            list_add(&l, filter->scale_name);
        } else if (f->is_used[i])
            list_add(&l, use_slot(p, plan->buffer[s->in[i]].slot));
    if (f->has_scratch)
        list_add(&l, use_slot(p, s->scratch));
    list_add(&l, use_slot(p, plan->buffer[s->out[0]].slot));
    list_end(&l, ";");
}

static int is_in_place(const program *p, const step *s)
{
    const plan *plan = &p->e->plan;
    for (int i = 0; i < s->n_in; i++)
        if (plan->buffer[s->in[i]].slot == plan->buffer[s->out[0]].slot)
            return 1;
    return 0;
}

/* Returns the name of the function of that text, and writes it unless it is there; takes the text.
 * NULL: out of memory. */
static const char *name_function(unit *u, const char *layer, const function *f, char *text)
{
    const expression suffix = expr("_%s", suffix_of(f->root));
    const expression base = expr("%.60s%s", layer, suffix.s);
    for (int i = 0; i < u->n_function; i++)
        if (strncmp(u->function[i].base, base.s, IDENTIFIER - 1) == 0 &&
            strcmp(u->function[i].text, text) == 0) {
            free(text);
            return u->function[i].name;
        }
    if (u->n_function == u->function_capacity) {
        const int capacity = u->function_capacity > 0 ? 2 * u->function_capacity : 32;
        emitted *more = realloc(u->function, (size_t)capacity * sizeof *more);
        if (more == NULL) {
            free(text);
            return NULL;
        }
        u->function = more;
        u->function_capacity = capacity;
    }
    emitted *e = &u->function[u->n_function++];
    e->text = text;
    snprintf(e->base, sizeof e->base, "%.95s", base.s);
    if (!new_name(&u->names, layer, suffix.s, e->name))
        return NULL;
    put_head(u->functions, f);
    fprintf(u->functions, "static void %s%s", e->name, text);
    return e->name;
}

char *function_text(function *f, const adj_group *g, int is_shared, int is_rounded, int has_double,
                    const char *base)
{
    const writer *w = writer_of(g->node[0]->op);
    memory body = {0}, all = {0};
    *f = (function){.group = g,
                    .root = g->node[0],
                    .t = {.depth = 1},
                    .is_rounded = is_rounded,
                    .has_double = has_double};
    f->result = w->result != NULL ? w->result : "y";
    name_operands(f);
    int ok = memory_open(&body) & memory_open(&all);
    f->t.f = body.f;
    if (ok)
        (w->write != NULL ? w->write : write_elementwise)(f);
    ok &= memory_end(&body);
    if (ok)
        put_text(all.f, f, body.text, is_shared, (int)(strlen("static void (") + strlen(base)));
    ok &= memory_end(&all);
    free(body.text);
    if (!ok)
        free(all.text);
    return ok ? all.text : NULL;
}

adj_status put_function(program *p, int i)
{
    const step *s = &p->e->plan.step[i];
    const adj_node *root = s->group.node[0];
    function f;
    array *filter = NULL;
    if (rounded_filter(p, s, &filter) != ADJ_OK)
        return ADJ_ENOMEM;
    const expression layer = layer_of(p->e->plan.graph, root);
    char *text = function_text(&f, &s->group, is_in_place(p, s), filter != NULL,
                               p->unit->double_sums, expr("%s_%s", layer.s, suffix_of(root)).s);
    p->unit->uses_philox |= root->op == &adj_op_dropout;
    for (int k = 0; k < s->group.n_node; k++)
        p->unit->uses_tanh |= s->group.node[k]->op == &adj_op_tanh;
    const char *name = text != NULL ? name_function(p->unit, layer.s, &f, text) : NULL;
    if (name == NULL)
        return adj_error_set(p->unit->error, ADJ_ENOMEM, "adj_emit: out of memory");
    put_call(p, &f, s, name, filter);
    return ADJ_OK;
}
