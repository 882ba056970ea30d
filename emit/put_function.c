/* put_function.c - writes the function of a step: comment, parameters and body; and its call. */
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "program.h"

/* ---- names, after the layer of each node ---- */

const adj_node *param_behind(const adj_node *n)
{
    while (n->n_in > 0 && n->name == NULL && n->role == ADJ_ROLE_FORWARD)
        n = n->in[0];
    return n->op->flags & ADJ_OP_KEPT ? n : NULL;
}

/* Returns the forward node that n is a part of the gradient of, or NULL. */
static const adj_node *forward_node(const adj_graph *g, const adj_node *n)
{
    const adj_op *op = n->op == &adj_op_matmul ? n->op : n->op->forward;
    for (int id = 0; id < (int)n->id && op != NULL && n->role == ADJ_ROLE_GRADIENT; id++) {
        const adj_node *f = g->node[id];
        if (f->op == op && f->role == ADJ_ROLE_FORWARD && f->in[0] == n->in[0] &&
            (op == &adj_op_matmul || memcmp(f->attrs, n->attrs, adj_attr_size(op)) == 0))
            return f;
    }
    return NULL;
}

/* Returns the parameter that an update changes by n, its gradient, or NULL. */
static const adj_node *updated_param(const adj_graph *g, const adj_node *n)
{
    for (int id = (int)n->id + 1; id < g->n_node && n->role == ADJ_ROLE_GRADIENT; id++) {
        const adj_node *u = g->node[id];
        if (u->role != ADJ_ROLE_UPDATE || adj_operand_position(u, n) < 0)
            continue;
        for (int k = 0; k < u->n_in; k++)
            if (u->in[k]->op == &adj_op_param && u->in[k]->name != NULL)
                return u->in[k];
    }
    return NULL;
}

/* Returns the name of a leaf without its last part: "conv1" of "conv1/w", and of "conv1.weight". */
static expression layer_of_leaf(const char *name)
{
    const char *end = strrchr(name, '/');
    end = end != NULL ? end : strrchr(name, '.');
    return expr("%.*s", end != NULL ? (int)(end - name) : (int)strlen(name), name);
}

expression layer_of(const adj_graph *g, const adj_node *n)
{
    const adj_node *f = forward_node(g, n);
    if (f != NULL)
        return layer_of(g, f);
    const adj_node *updated = updated_param(g, n);
    if (updated != NULL)
        return layer_of_leaf(updated->name);
    for (int k = 0; k < n->n_in; k++) {
        const adj_node *p = param_behind(n->in[k]);
        if (p != NULL && p->name != NULL && n->role == ADJ_ROLE_UPDATE && p->op == &adj_op_param)
            return expr("%.90s", p->name);
        if (p != NULL && p->name != NULL && n->role != ADJ_ROLE_UPDATE)
            return layer_of_leaf(p->name);
    }
    if (n->name != NULL)
        return expr("%.90s", n->name);
    for (int k = 0; k < n->n_in && n->role == ADJ_ROLE_GRADIENT; k++)
        if (n->in[k]->role == ADJ_ROLE_FORWARD && n->in[k]->n_in > 0)
            return layer_of(g, n->in[k]);
    return n->n_in > 0 ? layer_of(g, n->in[0]) : expr("net");
}

/* Returns the last part of a function's name, such as "forward". Requires: a row for the op. */
static const char *suffix_of(const adj_node *n)
{
    if (n->op != &adj_op_matmul)
        return writer_of(n->op)->suffix != NULL ? writer_of(n->op)->suffix : n->op->name;
    const adj_matmul_attrs *m = n->attrs;
    return n->role == ADJ_ROLE_FORWARD ? "forward"
           : m->transpose_b            ? "backprop_input"
                                       : "backprop_weights";
}

/* ---- functions ---- */

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
            fputs(window_at("oh", "kh", window_h(k)).s, out);
        else if (*c == 'w' && c[-1] == '%')
            fputs(window_at("ow", "kw", window_w(k)).s, out);
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
    emitted *more = realloc(u->function, ((size_t)u->n_function + 1) * sizeof *more);
    if (more == NULL) {
        free(text);
        return NULL;
    }
    u->function = more;
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

/* True if a step reads the memory of a fill, or it is a parameter's; elementwise functions and
 * copies have its number. */
static int is_read(const plan *p, int fill)
{
    const int slot = p->buffer[p->step[fill].out[0]].slot;
    double value;
    for (int i = fill + 1; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].n_in; k++) {
            const adj_node *root = p->step[i].group.node[0], *n = p->step[i].group.in[k];
            const int is_operand =
                writer_of(root->op)->expression == NULL && adj_operand_position(root, n) >= 0;
            if (p->step[i].in[k] == p->step[fill].out[0] && (is_operand || !adj_is_fill(n, &value)))
                return 1;
        }
    for (int i = 0; i < p->n_update; i++)
        if (p->buffer[p->leaf[p->update[i].leaf].buffer].slot == slot)
            return 1;
    return 0;
}

adj_status put_function(program *p, int i)
{
    const plan *plan = &p->e->plan;
    const step *s = &plan->step[i];
    const adj_node *root = s->group.node[0];
    function f;
    array *filter = NULL;
    if (i < plan->n_invariant || (root->op == &adj_op_fill && !is_read(plan, i)))
        return ADJ_OK;
    if (rounded_filter(p, s, &filter) != ADJ_OK)
        return ADJ_ENOMEM;
    const expression layer = layer_of(plan->graph, root);
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
