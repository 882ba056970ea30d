/* weights.c - saves and loads an executor's parameters and states by name. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "io/tensors/formats.h"
#include "map.h"
#include "ops/nn/names.h"
#include "weights.h"

/* Fails if the executor is NULL or has no plan, whose threads are 1 or more: it would look like one
 * without parameters. */
static adj_status check_exec(const adj_exec *e, adj_error *error)
{
    if (adj_exec_stats(e).threads > 0)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG, "weights: %s",
                         e != NULL ? adj_exec_message(e) : "the executor is NULL");
}

adj_status adj_weights_save(adj_exec *e, const char *path, int n_metadata,
                            const adj_metadata metadata[], adj_error *error)
{
    if (check_exec(e, error) != ADJ_OK)
        return ADJ_EARG;
    int n = adj_exec_param_count(e);
    adj_tensor *t = calloc((size_t)n + 1, sizeof *t);
    adj_status status = ADJ_OK;

    if (t == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "weights: out of memory");
    for (int i = 0; status == ADJ_OK && i < n; i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        t[i] = adj_tensor_of(adj_node_name(p), adj_node_type(p), adj_data(e, p));
        if (t[i].data == NULL)
            status = adj_error_set(error, ADJ_EARG, "weights: %s", adj_exec_message(e));
    }
    if (status == ADJ_OK)
        status = adj_tensors_write(path, n, t, n_metadata, metadata, error);
    free(t);
    return status;
}

/* ---- loading ---- */

/* A parameter or state and what it will be set to. */
typedef struct {
    const adj_node *node;
    adj_weight_fate fate;
    const char *tensor; /* its name in the file */
    void *value;        /* value in the node's type; LOADED and RESET */
    adj_error why;      /* reason of MISSING and UNFIT */
} target;

typedef struct {
    const adj_tensors *file;
    const adj_weights_opts *o;
    weight_map map;
    adj_tensors *ours; /* tensors that the map made of the file's; NULL: no map */
    int n;
    target *target;
    char *used; /* by the file's tensor */
} loading;

static void mark_used(loading *l, const char *name)
{
    int k = adj_tensors_find(l->file, name);
    if (k >= 0)
        l->used[k] = 1;
}

/* Finds the tensor for a parameter, by the map if it has an entry. */
static adj_status find(loading *l, target *t, adj_tensor *found)
{
    const char *name = adj_node_name(t->node);
    const map_entry *e = map_find(&l->map, name);
    const adj_tensors *in = e != NULL ? l->ours : l->file;

    t->tensor = e != NULL ? e->theirs[0] : name;
    if (e != NULL) {
        adj_status status = map_import(e, l->file, l->ours, &t->why);
        if (status != ADJ_OK)
            return status;
        for (int i = 0; i < e->n_theirs; i++)
            mark_used(l, e->theirs[i]);
    } else if (adj_tensors_find(in, name) < 0) {
        return adj_error_set(&t->why, ADJ_EIO, "the file has no tensor %.80s", name);
    }
    *found = in->tensor[adj_tensors_find(in, name)];
    mark_used(l, t->tensor);
    return ADJ_OK;
}

/* Fails with what the file holds under t's name, as its program lays it out, and what is expected.
 */
static adj_status wrong_type(const loading *l, target *t, const adj_tensor *from)
{
    const adj_type want = adj_node_type(t->node);
    const int k = adj_tensors_find(l->file, t->tensor);
    const adj_tensor theirs = k >= 0 ? l->file->tensor[k] : *from;
    char here[sizeof(adj_text) + 16] = "";

    if (!adj_shape_equal(theirs.shape, from->shape))
        snprintf(here, sizeof here, ", %s mapped", adj_shape_text(from->shape).s);
    return adj_error_set(&t->why, ADJ_ESHAPE,
                         "tensor %.80s has the wrong type or shape (got %s %s%s, expected %s %s)",
                         t->tensor, adj_elem_name(theirs.elem), adj_shape_text(theirs.shape).s,
                         here, adj_dtype_name(want.dtype), adj_shape_text(want.shape).s);
}

static int is_float(adj_elem elem) { return elem <= ADJ_ELEM_BF16; }

/* Converts the tensor's values to the node's type. */
static adj_status convert_values(const loading *l, target *t, const adj_tensor *from)
{
    adj_type want = adj_node_type(t->node);
    int same = from->elem == (adj_elem)want.dtype;
    int64_t n = adj_shape_elems(want.shape);

    if (!adj_shape_equal(from->shape, want.shape) ||
        (!same && (l->o->exact || !is_float(from->elem) || !is_float((adj_elem)want.dtype))))
        return wrong_type(l, t, from);
    t->value = malloc(adj_type_bytes(want) + 1);
    if (t->value == NULL)
        return adj_error_set(&t->why, ADJ_ENOMEM, "out of memory");
    adj_convert((adj_dtype)from->elem, from->data, want.dtype, t->value, n);
    return ADJ_OK;
}

static adj_status decide(loading *l, target *t)
{
    adj_tensor from = {0};

    t->tensor = adj_node_name(t->node);
    if (adj_name_matches(l->o->fresh, adj_node_name(t->node))) {
        t->fate = ADJ_WEIGHT_FRESH;
        return ADJ_OK;
    }
    adj_status status = find(l, t, &from);
    t->fate = status == ADJ_EIO ? ADJ_WEIGHT_MISSING : ADJ_WEIGHT_UNFIT;
    const char *why = adj_tensors_unreadable(l->file, adj_tensors_find(l->file, t->tensor));
    if (status == ADJ_OK && why != NULL)
        status =
            adj_error_set(&t->why, ADJ_ESHAPE, "tensor %.80s cannot be read (%s)", t->tensor, why);
    if (status == ADJ_OK)
        status = convert_values(l, t, &from);
    if (status == ADJ_OK)
        t->fate = ADJ_WEIGHT_LOADED;
    return status == ADJ_ENOMEM ? status : ADJ_OK;
}

/* Resets states of training if the file has none of them, or if partial loading is allowed. */
static adj_status reset_states(loading *l)
{
    int had = 0;
    for (int i = 0; i < l->n; i++)
        had |= l->target[i].fate == ADJ_WEIGHT_LOADED && adj_is_training_state(l->target[i].node);
    for (int i = 0; i < l->n; i++) {
        target *t = &l->target[i];
        if (t->fate != ADJ_WEIGHT_MISSING || !adj_is_training_state(t->node) || l->o->exact ||
            (had && !l->o->partial))
            continue;
        t->fate = ADJ_WEIGHT_RESET;
        const adj_type type = adj_node_type(t->node);
        t->value = malloc(adj_type_bytes(type) + 1);
        if (t->value == NULL)
            return adj_error_set(&t->why, ADJ_ENOMEM, "out of memory");
        /* the initial value, a constant */
        adj_draw_leaf(t->node->attrs, type.dtype, t->value, adj_shape_elems(type.shape), 0, 0);
    }
    return ADJ_OK;
}

/* Returns the built-in map that fits the endings of the file's names, or NULL. */
static const char *likely_map(const adj_tensors *file)
{
    static const char *const marks[][2] = {
        {".weight", "pytorch"}, {"/kernel", "keras"}, {"/kernel:0", "keras"}, {"/vars/0", "keras"}};
    for (int k = 0; k < file->n; k++) {
        const char *name = file->tensor[k].name;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            const size_t n = strlen(name), end = strlen(marks[i][0]);
            if (n > end && strcmp(name + n - end, marks[i][0]) == 0)
                return marks[i][1];
        }
    }
    return NULL;
}

/* Fails if a required tensor is missing or unfit. */
static adj_status judge(const loading *l, adj_error *error)
{
    int loaded = 0;
    const target *bad = NULL;

    for (int i = 0; i < l->n; i++) {
        const target *t = &l->target[i];
        loaded += t->fate == ADJ_WEIGHT_LOADED;
        if (bad == NULL && (t->fate == ADJ_WEIGHT_MISSING || t->fate == ADJ_WEIGHT_UNFIT))
            bad = t;
    }
    const int is_nothing = bad != NULL && loaded == 0 && l->o->map == NULL;
    const char *map = is_nothing ? likely_map(l->file) : NULL;
    if (map != NULL)
        return adj_error_set(error, ADJ_EIO,
                             "weights: %.200s (expected adjoint's names; for the file's, use --map "
                             "%s, in C map \"%s\")",
                             bad->why.message, map, map);
    if (bad != NULL && !l->o->partial)
        return adj_error_set(error, bad->why.status, "weights: %s", bad->why.message);
    if (bad != NULL && loaded == 0)
        return adj_error_set(error, ADJ_EIO, "weights: no tensor of the file fits (%s)",
                             bad->why.message);
    return ADJ_OK;
}

static adj_status set_all(adj_exec *e, const loading *l, adj_error *error)
{
    for (int i = 0; i < l->n; i++) {
        const target *t = &l->target[i];
        if (t->value == NULL || (t->fate != ADJ_WEIGHT_LOADED && t->fate != ADJ_WEIGHT_RESET))
            continue;
        adj_status status = adj_set(e, t->node, t->value, adj_type_bytes(adj_node_type(t->node)));
        if (status != ADJ_OK)
            return adj_error_set(error, status, "weights: %s", adj_exec_message(e));
    }
    return ADJ_OK;
}

static void report(const loading *l)
{
    for (int i = 0; i < l->n && l->o->report != NULL; i++) {
        const target *t = &l->target[i];
        const adj_weight_report r = {t->fate, adj_node_name(t->node), t->tensor, t->why.message};
        l->o->report(l->o->user, &r);
    }
    for (int k = 0; k < l->file->n && l->o->report != NULL; k++) {
        const adj_weight_report r = {ADJ_WEIGHT_UNUSED, NULL, l->file->tensor[k].name, ""};
        if (!l->used[k])
            l->o->report(l->o->user, &r);
    }
}

/* Loads the tensors; decides about all of them before it sets any. */
static adj_status load(adj_exec *e, loading *l, adj_error *error)
{
    adj_status status = ADJ_OK;

    if (l->o->map != NULL && l->n > 0)
        status = map_open(&l->map, l->o->map, adj_node_graph(l->target[0].node), l->file, error);
    for (int i = 0; i < l->n && status == ADJ_OK; i++)
        if ((status = decide(l, &l->target[i])) != ADJ_OK)
            adj_error_set(error, status, "weights: %s", l->target[i].why.message);
    if (status == ADJ_OK && (status = reset_states(l)) != ADJ_OK)
        adj_error_set(error, status, "weights: out of memory");
    if (status == ADJ_OK)
        status = judge(l, error);
    return status == ADJ_OK ? set_all(e, l, error) : status;
}

adj_status adj_weights_set(adj_exec *e, const adj_tensors *t, const adj_weights_opts *options,
                           adj_error *error)
{
    const adj_weights_opts none = {0};
    if (t == NULL)
        return adj_error_set(error, ADJ_EARG, "weights: expected tensors (got NULL)");
    if (check_exec(e, error) != ADJ_OK)
        return ADJ_EARG;
    loading l = {.file = t,
                 .o = options != NULL ? options : &none,
                 .ours = tensors_new(),
                 .n = adj_exec_param_count(e),
                 .used = calloc((size_t)t->n + 1, 1)};
    adj_status status;

    l.target = calloc((size_t)l.n + 1, sizeof *l.target);
    if (l.target == NULL || l.ours == NULL || l.used == NULL) {
        status = adj_error_set(error, ADJ_ENOMEM, "weights: out of memory");
    } else {
        for (int i = 0; i < l.n; i++)
            l.target[i].node = adj_exec_param_at(e, i);
        status = load(e, &l, error);
        if (status == ADJ_OK)
            report(&l);
        for (int i = 0; i < l.n; i++)
            free(l.target[i].value);
    }
    free(l.target);
    free(l.used);
    adj_tensors_free(l.ours);
    map_clear(&l.map);
    return status;
}

adj_status adj_weights_load(adj_exec *e, const char *path, const adj_weights_opts *options,
                            adj_error *error)
{
    adj_tensors *t = NULL;
    adj_error why = {0};
    adj_status status = adj_tensors_read(path, &t);

    if (status != ADJ_OK)
        adj_error_set(error, status, "%s", t->message);
    else if ((status = adj_weights_set(e, t, options, &why)) != ADJ_OK)
        adj_error_set(error, status, "%.200s: %.300s", path, why.message);
    adj_tensors_free(t);
    return status;
}

/* ---- shapes of weights ---- */

int64_t adj_weights_classes(const adj_tensors *ours)
{
    const int i = adj_tensors_find(ours, "logits/b");
    return i >= 0 && ours->tensor[i].shape.rank == 1 ? ours->tensor[i].shape.dim[0] : 0;
}

int64_t adj_weights_channels(const adj_tensors *ours, const adj_graph *g)
{
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        const adj_node *n = adj_graph_node_at(g, i);
        if (!adj_node_is_param(n) || adj_node_type(n).shape.rank != 4)
            continue;
        /* [kh, kw, in, out] */
        const int w = adj_tensors_find(ours, adj_node_name(n));
        return w >= 0 && ours->tensor[w].shape.rank == 4 ? ours->tensor[w].shape.dim[2] : 0;
    }
    return 0;
}
