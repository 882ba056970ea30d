/* program.c - see program.h. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

static adj_status out_of_memory(const unit *u)
{
    return adj_error_set(u->error, ADJ_ENOMEM, "adj_emit: out of memory");
}

/* ---- the unit ---- */

adj_status unit_open(unit *u, const char *prefix, adj_error *error)
{
    static const char *const taken[] = {"predict",     "accumulate", "update",     "train_step",
                                        "init",        "save",       "load",       "test",
                                        "normalize",   "classes",    "INPUT_SIZE", "OUTPUT_SIZE",
                                        "STATE_BYTES", "ARENA_BYTES"};
    static const char *const own[] = {"learning_rate", "tanh_of",     "draw_pair", "draw_uniform",
                                      "draw_normal",   "saved_array", "write_head"};
    char name[IDENTIFIER];
    int ok = 1;
    *u = (unit){.prefix = prefix, .error = error};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        ok &= new_name(&u->names, own[i], "", name);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        ok &= new_name(&u->names, prefix, expr("_%s", taken[i]).s, name);
    return ok ? ADJ_OK : out_of_memory(u);
}

void unit_close(unit *u)
{
    for (int i = 0; i < u->n_array; i++)
        free(u->array[i].data), free(u->array[i].rounded), free(u->array[i].scale);
    for (int i = 0; i < u->n_function; i++)
        free(u->function[i].text);
    free(u->array);
    free(u->function);
    free(u->names.name);
}

/* Adds a copy of the data as an array; label and suffix as in its comment and its name. The name
 * begins with the prefix, so that it is no keyword, type or macro of C's. */
static array *add_array(unit *u, const char *label, adj_type type, const void *data,
                        const char *from, const char *suffix)
{
    array *more = realloc(u->array, ((size_t)u->n_array + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    u->array = more;
    array *a = &u->array[u->n_array];
    *a = (array){.label = label, .type = type, .data = malloc(adj_type_bytes(type))};
    if (a->data == NULL)
        return NULL;
    u->n_array++;
    memcpy(a->data, data, adj_type_bytes(type));
    const expression name = expr("%s_%.120s", u->prefix, from);
    return new_name(&u->names, name.s, suffix, a->name) ? a : NULL;
}

static array *find_leaf(const unit *u, const adj_node *leaf)
{
    for (int i = 0; i < u->n_array; i++)
        if (u->array[i].leaf == leaf)
            return &u->array[i];
    return NULL;
}

/* ---- what slots are called ---- */

/* True if a step of every run reads the slot, or an update assigns it. */
static int is_needed_slot(const plan *p, int slot)
{
    int needed = 0;
    for (int i = p->n_invariant; i < p->n_step; i++)
        for (int k = 0; k < p->step[i].n_in; k++)
            needed |= p->buffer[p->step[i].in[k]].slot == slot;
    for (int i = 0; i < p->n_update; i++)
        needed |= p->buffer[p->leaf[p->update[i].leaf].buffer].slot == slot;
    return needed;
}

static const char *name_of_input(const adj_node *n)
{
    if (n->type.dtype == ADJ_I32)
        return "labels";
    return n->type.shape.rank == 0 ? "&learning_rate" : "input";
}

static adj_status name_leaves(program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = 0; i < plan->n_leaf; i++) {
        const leaf *l = &plan->leaf[i];
        const int slot = plan->buffer[l->buffer].slot;
        const char *name = adj_node_name(l->user);
        if (l->node->op == &adj_op_input) {
            p->symbol[slot] = expr("%s", name_of_input(l->node));
            continue;
        }
        if (!is_needed_slot(plan, slot))
            continue;
        array *a = find_leaf(p->unit, l->user);
        if (a == NULL)
            a = add_array(p->unit, name, l->node->type, leaf_data(plan, l),
                          name[0] != '\0' ? name : "constant", "");
        if (a == NULL)
            return out_of_memory(p->unit);
        a->leaf = l->user;
        a->is_written |= l->update != NONE;
        a->is_used |= l->update != NONE;
        p->symbol[slot] = expr("%s", a->name);
    }
    return ADJ_OK;
}

/* Returns the name of the leaf that a computed array is made of. */
static const char *label_of(const program *p, const adj_node *value)
{
    const adj_node *param = param_behind(value);
    const int k = param != NULL ? p->e->plan.leaf_of[param->id] : NONE;
    return k != NONE && p->e->plan.leaf[k].user != NULL ? adj_node_name(p->e->plan.leaf[k].user)
                                                        : "parameters";
}

/* Adds a value that invariant steps leave as an array, unless it is there. */
static adj_status name_invariant(program *p, int value, const char *from, const char *suffix)
{
    const plan *plan = &p->e->plan;
    const buffer *b = &plan->buffer[value];
    if (!plan->slot[b->slot].kept || p->symbol[b->slot].s[0] != '\0')
        return ADJ_OK;
    const array *a = add_array(p->unit, label_of(p, b->value), b->value->type,
                               plan->slot[b->slot].data, from, suffix);
    if (a == NULL)
        return out_of_memory(p->unit);
    p->symbol[b->slot] = expr("%s", a->name);
    return ADJ_OK;
}

/* Names what invariant steps leave for the others and for copies, after the first reader. */
static adj_status name_invariants(program *p)
{
    const plan *plan = &p->e->plan;
    adj_status status = ADJ_OK;
    for (int i = plan->n_invariant; i < plan->n_step; i++) {
        const step *s = &plan->step[i];
        const adj_node *root = s->group.node[0];
        const expression layer = layer_of(plan->graph, root);
        for (int k = 0; k < s->n_in && status == ADJ_OK; k++) {
            const adj_node *value = plan->buffer[s->in[k]].value;
            const int is_filter = adj_operand_position(root, value) >= 0;
            status = name_invariant(p, s->in[k], layer.s, is_filter ? "_w" : "_b");
        }
    }
    for (int i = 0; i < plan->n_update && status == ADJ_OK; i++)
        status = name_invariant(p, plan->update[i].next,
                                adj_node_name(plan->leaf[plan->update[i].leaf].user), "_next");
    return status;
}

static void name_arena(program *p)
{
    const plan *plan = &p->e->plan;
    if (plan->n_fetch > 0)
        p->symbol[plan->buffer[plan->fetch[0].buffer].slot] = expr("%s", p->result);
    for (int i = 0; i < plan->n_slot; i++)
        if (p->symbol[i].s[0] == '\0')
            p->symbol[i] = plan->slot[i].offset == 0
                               ? expr("arena")
                               : expr("arena + %zu", plan->slot[i].offset / sizeof(float));
}

/* ---- what cannot be written ---- */

static adj_status refuse(const program *p, const adj_node *n, const char *why)
{
    return adj_error_set(p->unit->error, ADJ_ENOKERNEL,
                         "adj_emit: %s \"%.100s\" cannot be written: %s", n->op->name,
                         adj_node_name(n), why);
}

static adj_status check_steps(const program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = plan->n_invariant; i < plan->n_step; i++) {
        const step *s = &plan->step[i];
        const adj_node *n = plan->buffer[s->out[0]].value;
        if (s->kind == STEP_KERNEL && s->backend != 0)
            return refuse(p, s->group.node[0], s->why != NULL ? s->why : "it is computed twice");
        if (s->kind != STEP_KERNEL)
            return refuse(p, n, "its value is copied, and no C is written for a copy");
        if (n->type.dtype == ADJ_I32 && !slot_of(plan, s->out[0])->kept)
            return refuse(p, n, "the arena can hold floats only");
    }
    return ADJ_OK;
}

adj_node *program_input(const program *p, adj_dtype dtype, int is_scalar)
{
    const plan *plan = &p->e->plan;
    adj_node *found = NULL;
    for (int i = 0; i < plan->n_leaf; i++) {
        const leaf *l = &plan->leaf[i];
        if (l->node->op != &adj_op_input || l->node->type.dtype != dtype ||
            (l->node->type.shape.rank == 0) != is_scalar)
            continue;
        if (found != NULL)
            return NULL;
        found = l->user;
    }
    return found;
}

/* Checks that the inputs are those of the function. */
static adj_status check_inputs(const program *p, const source *s)
{
    const plan *plan = &p->e->plan;
    int inputs = 0;
    for (int i = 0; i < plan->n_leaf; i++)
        inputs += plan->leaf[i].node->op == &adj_op_input;
    if (inputs == s->has_images + s->has_labels + s->has_rate &&
        (program_input(p, ADJ_F32, 0) != NULL) == s->has_images &&
        (program_input(p, ADJ_I32, 0) != NULL) == s->has_labels &&
        (program_input(p, ADJ_F32, 1) != NULL) == s->has_rate)
        return ADJ_OK;
    if (s->updates == NULL)
        return adj_error_set(p->unit->error, ADJ_EARG,
                             "adj_emit: number of inputs of \"%.100s\" (got %d, expected 1)",
                             adj_node_name(s->fetch), inputs);
    return adj_error_set(p->unit->error, ADJ_EARG,
                         "adj_emit: inputs of the training step (got %d, expected%s%s%s)", inputs,
                         s->has_images ? " images" : "", s->has_labels ? ", i32 labels" : "",
                         !s->has_rate    ? ""
                         : s->has_images ? " and a scalar learning rate"
                                         : " a scalar learning rate");
}

/* Checks that the value is computed and that indices fit into an int. */
static adj_status check_plan(const program *p, const source *s)
{
    const plan *plan = &p->e->plan;
    const slot *y = s->fetch != NULL ? slot_of(plan, plan->fetch[0].buffer) : NULL;
    if (check_inputs(p, s) != ADJ_OK)
        return ADJ_EARG;
    if (y != NULL && (y->kept || y->first == NONE))
        return adj_error_set(p->unit->error, ADJ_EARG,
                             "adj_emit: \"%.100s\" is not computed from the input",
                             adj_node_name(s->fetch));
    for (int i = 0; i < plan->n_slot; i++)
        if (plan->slot[i].bytes > INT32_MAX || p->e->info.arena_bytes > INT32_MAX)
            return adj_error_set(p->unit->error, ADJ_ESHAPE,
                                 "adj_emit: a value has too many bytes (expected at most %d)",
                                 INT32_MAX);
    return check_steps(p);
}

/* ---- the plan ---- */

/* Reports a failure of the executor; returns the status. */
static adj_status checked(const program *p, adj_status status)
{
    if (status != ADJ_OK)
        adj_error_set(p->unit->error, status, "adj_emit: %s", adj_exec_message(p->e));
    return status;
}

static adj_status plan_source(program *p, const source *s)
{
    const adj_backend *const *naive = adj_backends;
    while (naive[1] != NULL)
        naive++;
    const adj_backend *const backends[] = {&emit_backend, *naive, NULL};
    const adj_exec_internal internal = {.varying = s->varying};
    const adj_exec_debug debug = {.internal = &internal};
    const adj_exec_opts o = {.n_fetch = s->fetch != NULL,
                             .fetch = &s->fetch,
                             .updates = s->updates,
                             .backends = backends,
                             .threads = 1,
                             .recompute = 1,
                             .debug = &debug};
    adj_status status = adj_exec_new(adj_exec_graph(s->values), &o, &p->e);
    if (status == ADJ_OK)
        status = adj_copy_params(p->e, s->values);
    return checked(p, status);
}

/* Computes what follows from parameters alone; inputs are any. */
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
    return checked(p, status);
}

/* Writes the copies of next values that are not computed in their leaves. */
static void put_copies(program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = 0; i < plan->n_update; i++) {
        const update *u = &plan->update[i];
        const int from = plan->buffer[u->next].slot;
        const int to = plan->buffer[plan->leaf[u->leaf].buffer].slot;
        if (from == to)
            continue;
        const adj_node *next = plan->buffer[u->next].value;
        double number;
        const expression value =
            adj_is_fill(next, &number)
                ? (next->type.dtype == ADJ_I32 ? expr("%d", (int)number) : literal(number))
                : expr("(%s)[i]", use_slot(p, from));
        fprintf(p->calls, "    for (int i = 0; i < %lld; i++)\n        %s[i] = %s;\n",
                (long long)adj_shape_elems(next->type.shape), use_slot(p, to), value.s);
    }
}

adj_status program_open(program *p, unit *u, const source *s, const char *result, FILE *calls)
{
    *p = (program){.unit = u, .calls = calls, .result = result};
    adj_status status = plan_source(p, s);
    if (status == ADJ_OK)
        status = check_plan(p, s);
    const plan *plan = status == ADJ_OK ? &p->e->plan : NULL;
    p->symbol = calloc(plan != NULL ? (size_t)plan->n_slot + 1 : 1, sizeof *p->symbol);
    if (status == ADJ_OK && p->symbol == NULL)
        status = out_of_memory(u);
    if (status == ADJ_OK)
        status = name_leaves(p); /* before the run changes what updates assign */
    if (status == ADJ_OK)
        status = run_invariants(p);
    if (status == ADJ_OK)
        status = name_invariants(p);
    if (status != ADJ_OK)
        return status;
    name_arena(p);
    for (int i = 0; i < plan->n_step && status == ADJ_OK; i++)
        status = put_function(p, i);
    put_copies(p);
    if (p->uses_arena && p->e->info.arena_bytes > u->arena_bytes)
        u->arena_bytes = p->e->info.arena_bytes;
    return status;
}

void program_close(program *p)
{
    free(p->symbol);
    adj_exec_free(p->e);
}
