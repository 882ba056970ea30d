/* program.c - see program.h. */
#include "program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "conv.h"
#include "names.h"

static adj_status out_of_memory(const program *p)
{
    return adj_error_set(p->error, ADJ_ENOMEM, "adj_emit: out of memory");
}

/* ---- names ---- */

/* True if an identifier may be a keyword, a type or a macro: a single word, capitals, or a name
 * that ends as such names do. */
static int is_risky(const char *name)
{
    static const char *const ends[] = {"_t", "_cast", "_local", "_assert"};
    int has_lower = 0;
    const size_t n = strlen(name);
    for (const char *c = name; *c != '\0'; c++)
        has_lower |= islower((unsigned char)*c) != 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (n >= strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return 1;
    return !has_lower || strchr(name, '_') == NULL;
}

/* Names an array after a text and a suffix. */
static adj_status name_array(program *p, const char *from, const char *suffix, char to[IDENTIFIER])
{
    name_list probe = {0};
    const int fits = new_name(&probe, from, suffix, to);
    free(probe.name);
    const expression safe =
        is_risky(to) ? expr("%s_%.120s", p->prefix, from) : expr("%.150s", from);
    return fits && new_name(&p->names, safe.s, suffix, to) ? ADJ_OK : out_of_memory(p);
}

static adj_status name_functions(program *p)
{
    static const char *const taken[] = {"arena", "predict", "test",     "normalize",
                                        "mean",  "classes", "deviation"};
    const plan *plan = &p->e->plan;
    char name[IDENTIFIER];
    int ok = new_name(&p->names, "arena", "", name);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        ok &= new_name(&p->names, p->prefix, expr("_%s", taken[i]).s, name);
    for (int i = 0; i < plan->n_step && ok; i++) {
        const step *s = &plan->step[i];
        if (is_called(p, s))
            ok = new_name(&p->names, layer_of(plan->graph, s->group.node[0]).s,
                          expr("_%s", suffix_of(s->group.node[0])).s, p->function[i]);
    }
    return ok ? ADJ_OK : out_of_memory(p);
}

/* ---- what slots are called ---- */

static adj_status add_array(program *p, int slot, const char *label, adj_type type,
                            const void *data, const char *from, const char *suffix)
{
    array *a = &p->array[p->n_array];
    *a = (array){.label = label, .type = type, .data = data};
    if (name_array(p, from, suffix, a->name) != ADJ_OK)
        return ADJ_ENOMEM;
    p->symbol[slot] = expr("%s", a->name);
    p->n_array++;
    return ADJ_OK;
}

/* True if a step of every run reads the slot. */
static int is_read(const program *p, int slot)
{
    const plan *plan = &p->e->plan;
    int read = 0;
    for (int i = plan->n_invariant; i < plan->n_step; i++)
        for (int k = 0; k < plan->step[i].n_in; k++)
            read |= plan->buffer[plan->step[i].in[k]].slot == slot;
    return read;
}

static adj_status name_leaves(program *p)
{
    const plan *plan = &p->e->plan;
    adj_status status = ADJ_OK;
    for (int i = 0; i < plan->n_leaf && status == ADJ_OK; i++) {
        const leaf *l = &plan->leaf[i];
        const int slot = plan->buffer[l->buffer].slot;
        const char *name = adj_node_name(l->node);
        if (l->node->op == &adj_op_input)
            p->symbol[slot] = expr("input");
        else if (is_read(p, slot))
            status = add_array(p, slot, name, l->node->type, leaf_data(plan, l),
                               name[0] != '\0' ? name : "constant", "");
    }
    return status;
}

/* Returns what a computed array is made of: "conv1/w, folded". It belongs to the plan's graph. */
static const char *label_of(const program *p, const adj_node *value)
{
    const adj_node *param = param_behind(value);
    const char *name = param != NULL ? adj_node_name(param) : "parameters";
    const size_t size = strlen(name) + sizeof ", folded";
    char *text = adj_graph_alloc(p->e->plan.graph, size);
    if (text != NULL)
        snprintf(text, size, "%s, folded", name);
    return text;
}

/* Names what invariant steps leave for the others, after the first reader. */
static adj_status name_invariants(program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = plan->n_invariant; i < plan->n_step; i++) {
        const step *s = &plan->step[i];
        for (int k = 0; k < s->n_in; k++) {
            const buffer *b = &plan->buffer[s->in[k]];
            if (!plan->slot[b->slot].kept || p->symbol[b->slot].s[0] != '\0')
                continue;
            const adj_node *root = s->group.node[0];
            const expression layer = layer_of(plan->graph, root);
            const int is_filter = adj_operand_position(root, b->value) >= 0;
            const adj_status status =
                add_array(p, b->slot, label_of(p, b->value), b->value->type,
                          plan->slot[b->slot].data, layer.s, is_filter ? "_w" : "_b");
            if (status != ADJ_OK)
                return status;
        }
    }
    return ADJ_OK;
}

static void name_arena(program *p)
{
    const plan *plan = &p->e->plan;
    p->symbol[plan->buffer[plan->fetch[0].buffer].slot] = expr("output");
    for (int i = 0; i < plan->n_slot; i++)
        if (p->symbol[i].s[0] == '\0')
            p->symbol[i] = plan->slot[i].offset == 0
                               ? expr("arena")
                               : expr("arena + %zu", plan->slot[i].offset / sizeof(float));
}

/* ---- what cannot be written ---- */

static adj_status refuse(const program *p, const adj_node *n, const char *why)
{
    return adj_error_set(p->error, ADJ_ENOKERNEL, "adj_emit: %s \"%.100s\" cannot be written: %s",
                         n->op->name, adj_node_name(n), why);
}

static adj_status check_steps(const program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = plan->n_invariant; i < plan->n_step; i++) {
        const step *s = &plan->step[i];
        const adj_node *n = s->n_out > 0 ? plan->buffer[s->out[0]].value : NULL;
        if (s->kind == STEP_KERNEL && s->backend != 0)
            return refuse(p, s->group.node[0], s->why != NULL ? s->why : "it is computed twice");
        if (s->kind != STEP_KERNEL)
            return refuse(p, n, "its value is copied");
    }
    return ADJ_OK;
}

/* Checks that there is one input, that the output is computed, and that indices fit into an int. */
static adj_status check_plan(const program *p, const adj_node *output)
{
    const plan *plan = &p->e->plan;
    const slot *y = slot_of(plan, plan->fetch[0].buffer);
    int inputs = 0;
    for (int i = 0; i < plan->n_leaf; i++)
        inputs += plan->leaf[i].node->op == &adj_op_input;
    if (inputs != 1)
        return adj_error_set(p->error, ADJ_EARG,
                             "adj_emit: number of inputs of \"%.100s\" (got %d, expected 1)",
                             adj_node_name(output), inputs);
    if (y->kept || y->first == NONE)
        return adj_error_set(p->error, ADJ_EARG,
                             "adj_emit: \"%.100s\" is not computed from the input",
                             adj_node_name(output));
    for (int i = 0; i < plan->n_slot; i++)
        if (plan->slot[i].bytes > INT32_MAX || p->e->info.arena_bytes > INT32_MAX)
            return adj_error_set(p->error, ADJ_ESHAPE,
                                 "adj_emit: a value has too many bytes (expected at most %d)",
                                 INT32_MAX);
    return check_steps(p);
}

/* ---- the plan ---- */

static adj_status plan_outputs(program *p, adj_exec *values, adj_node *output)
{
    const adj_backend *const *naive = adj_backends;
    while (naive[1] != NULL)
        naive++;
    const adj_backend *const backends[] = {&emit_backend, *naive, NULL};
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &output, .backends = backends, .threads = 1, .recompute = 1};
    adj_status status = adj_exec_new(adj_exec_graph(values), &o, &p->e);
    if (status == ADJ_OK)
        status = adj_copy_params(p->e, values);
    return status == ADJ_OK
               ? ADJ_OK
               : adj_error_set(p->error, status, "adj_emit: %s", adj_exec_message(p->e));
}

/* Computes what follows from parameters alone; the input is any. */
static adj_status run_invariants(program *p)
{
    const plan *plan = &p->e->plan;
    adj_status status = ADJ_OK;
    void *data;
    for (int i = 0; i < plan->n_leaf && status == ADJ_OK; i++)
        if (plan->leaf[i].node->op == &adj_op_input) {
            status = adj_set_in_place(p->e, plan->leaf[i].user, &data);
            if (status == ADJ_OK)
                memset(data, 0, adj_type_bytes(plan->leaf[i].node->type));
        }
    if (status == ADJ_OK)
        status = adj_run(p->e);
    return status == ADJ_OK
               ? ADJ_OK
               : adj_error_set(p->error, status, "adj_emit: %s", adj_exec_message(p->e));
}

adj_status program_open(program *p, adj_exec *values, adj_node *output, const char *prefix,
                        adj_error *error)
{
    *p = (program){.prefix = prefix, .error = error};
    adj_status status = plan_outputs(p, values, output);
    if (status == ADJ_OK)
        status = check_plan(p, output);
    if (status == ADJ_OK)
        status = run_invariants(p);
    if (status != ADJ_OK)
        return status;
    const plan *plan = &p->e->plan;
    p->symbol = calloc((size_t)plan->n_slot + 1, sizeof *p->symbol);
    p->array = calloc((size_t)plan->n_slot + 1, sizeof *p->array);
    p->function = calloc((size_t)plan->n_step + 1, sizeof *p->function);
    if (p->symbol == NULL || p->array == NULL || p->function == NULL)
        return out_of_memory(p);
    status = name_functions(p);
    if (status == ADJ_OK)
        status = name_leaves(p);
    if (status == ADJ_OK)
        status = name_invariants(p);
    name_arena(p);
    return status;
}

void program_close(program *p)
{
    free(p->symbol);
    free(p->array);
    free(p->function);
    free(p->names.name);
    adj_exec_free(p->e);
}

int is_called(const program *p, const step *s)
{
    return s - p->e->plan.step >= p->e->plan.n_invariant && s->group.node[0]->op != &adj_op_fill;
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
            fprintf(out, "%s%s %s", separator, f->name[i], shape_of(g->in[i]->type.shape).s);
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

/* Marks the array that a slot is, or the arena. */
static void use_slot(program *p, int slot)
{
    const char *s = p->symbol[slot].s;
    p->uses_arena |= strcmp(s, "arena") == 0 || strncmp(s, "arena +", 7) == 0;
    for (int k = 0; k < p->n_array; k++)
        p->array[k].is_used |= strcmp(p->array[k].name, s) == 0;
}

/* Writes the signature and the call. The result is `restrict` unless it is computed in place. */
static void put_signature(program *p, FILE *out, FILE *calls, const function *f, const step *s,
                          const char *name)
{
    const adj_group *g = f->group;
    const plan *plan = &p->e->plan;
    const char *y = p->symbol[plan->buffer[s->out[0]].slot].s;
    list parameters = list_begin(out, 0, expr("static void %s", name).s);
    list arguments = list_begin(calls, 4, name);
    int is_shared = 0;
    for (int i = 0; i < g->n_in; i++) {
        const int slot = plan->buffer[s->in[i]].slot;
        is_shared |= strcmp(p->symbol[slot].s, y) == 0;
        if (!f->is_used[i])
            continue;
        use_slot(p, slot);
        list_add(&parameters, expr("const %s *%s", c_type(g->in[i]->type.dtype), f->name[i]).s);
        list_add(&arguments, p->symbol[slot].s);
    }
    if (f->has_scratch) {
        list_add(&parameters, "float *restrict scratch");
        list_add(&arguments, p->symbol[s->scratch].s);
        use_slot(p, s->scratch);
    }
    use_slot(p, plan->buffer[s->out[0]].slot);
    list_add(
        &parameters,
        expr("%s *%s%s", c_type(g->out[0]->type.dtype), is_shared ? "" : "restrict ", f->result).s);
    list_add(&arguments, y);
    list_end(&parameters, "\n{");
    list_end(&arguments, ";");
}

adj_status put_function(program *p, FILE *out, FILE *calls, int i)
{
    const step *s = &p->e->plan.step[i];
    const writer *w = writer_of(s->group.node[0]->op);
    char *body = NULL;
    size_t length = 0;
    function f = {.group = &s->group, .root = s->group.node[0], .t = {.depth = 1}};
    f.result = w->result != NULL ? w->result : "y";
    f.t.f = open_memstream(&body, &length);
    if (f.t.f == NULL)
        return out_of_memory(p);
    name_operands(&f);
    if (w->write != NULL)
        w->write(&f);
    else
        write_elementwise(&f);
    if (fclose(f.t.f) != 0) {
        free(body);
        return out_of_memory(p);
    }
    put_head(out, &f);
    put_signature(p, out, calls, &f, s, p->function[i]);
    fprintf(out, "%s}\n\n", body);
    free(body);
    return ADJ_OK;
}
