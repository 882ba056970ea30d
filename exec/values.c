/* values.c - copies values into and out of an executor: leaves, fetched nodes, and parameters by
 * name. */
#include <omp.h>
#include <string.h>

#include "exec.h"

enum { PARALLEL_COPY = 1 << 19 };

/* Returns what a leaf of the user's graph is here, or NULL if this executor does not hold it. */
static leaf *find_leaf(const plan *p, const adj_node *n)
{
    const int is_leaf =
        n->graph == p->user && n->id < (uint32_t)p->n_user && n->op->flags & ADJ_OP_LEAF;
    const adj_node *image = is_leaf ? p->image[n->id] : NULL;
    const int k = image != NULL ? p->leaf_of[image->id] : NONE;
    return k != NONE ? &p->leaf[k] : NULL;
}

static adj_status check_value(adj_exec *e, const char *call, const adj_node *n, const void *data,
                              size_t bytes)
{
    if (e->status != ADJ_OK)
        return e->status;
    if (n == NULL)
        return adj_exec_fail(e, ADJ_EARG, "%s: the node is NULL", call);
    size_t wanted = adj_type_bytes(n->type);
    if (bytes != wanted)
        return adj_exec_fail(e, ADJ_EARG,
                             "%s: wrong size for %s \"%s\" (got %zu bytes, expected %zu)", call,
                             n->op->name, adj_node_name(n), bytes, wanted);
    if (data == NULL && bytes > 0)
        return adj_exec_fail(e, ADJ_EARG, "%s: data is NULL", call);
    return ADJ_OK;
}

/* Copies a value, on all threads if it is large, such as a batch of images. */
static void copy_bytes(const adj_exec *e, char *to, const char *from, size_t bytes)
{
    const int threads = e->opts.threads;
    if (bytes == 0)
        return;
    const size_t parts = bytes >= PARALLEL_COPY && !omp_in_parallel() ? (size_t)threads : 1;
#pragma omp parallel for num_threads(threads) if (parts > 1)
    for (size_t i = 0; i < parts; i++) {
        size_t first = bytes / parts * i, last = i + 1 < parts ? first + bytes / parts : bytes;
        memcpy(to + first, from + first, last - first);
    }
}

/* Finds the leaf to set. *l: NULL if no fetch and no update needs it. */
static adj_status find_settable(adj_exec *e, const char *call, const adj_node *n, leaf **l)
{
    if (n->op == &adj_op_const || n->graph != e->plan.user || !(n->op->flags & ADJ_OP_LEAF))
        return adj_exec_fail(e, ADJ_EARG,
                             "%s: %s \"%s\" cannot be set (expected an input, param or state of "
                             "this executor's graph)",
                             call, n->op->name, adj_node_name(n));
    *l = find_leaf(&e->plan, n);
    return ADJ_OK;
}

adj_status adj_set(adj_exec *e, const adj_node *leaf_node, const void *data, size_t bytes)
{
    if (e == NULL)
        return ADJ_EARG;
    leaf *l = NULL;
    adj_status status = check_value(e, "adj_set", leaf_node, data, bytes);
    if (status == ADJ_OK)
        status = find_settable(e, "adj_set", leaf_node, &l);
    if (status != ADJ_OK || l == NULL)
        return status;
    copy_bytes(e, leaf_data(&e->plan, l), data, bytes);
    ++*leaf_version(e, l);
    return ADJ_OK;
}

adj_status adj_get_scalar(adj_exec *e, const adj_node *node, double *value)
{
    double element = 0;
    if (e == NULL)
        return ADJ_EARG;
    if (value == NULL)
        return adj_exec_fail(e, ADJ_EARG, "adj_get_scalar: the place for the value is NULL");
    const size_t bytes = node != NULL ? adj_dtype_size(node->type.dtype) : 0;
    const adj_status status = adj_get(e, node, &element, bytes);
    if (status == ADJ_OK)
        *value = adj_load(node->type.dtype, &element, 0);
    return status;
}

adj_status adj_set_in_place(adj_exec *e, const adj_node *leaf_node, void **data)
{
    leaf *l = NULL;
    if (data != NULL)
        *data = NULL;
    if (e == NULL)
        return ADJ_EARG;
    if (e->status != ADJ_OK)
        return e->status;
    if (leaf_node == NULL || data == NULL)
        return adj_exec_fail(e, ADJ_EARG, "adj_set_in_place: the %s is NULL",
                             leaf_node == NULL ? "node" : "place for the pointer");
    const adj_status status = find_settable(e, "adj_set_in_place", leaf_node, &l);
    if (status != ADJ_OK)
        return status;
    if (l == NULL)
        return adj_exec_fail(
            e, ADJ_EARG,
            "adj_set_in_place: %s \"%s\" has no value here: no fetch and no update needs it",
            leaf_node->op->name, adj_node_name(leaf_node));
    ++*leaf_version(e, l);
    *data = leaf_data(&e->plan, l);
    return ADJ_OK;
}

/* Returns the node's value for adj_get and adj_data, or NULL with the executor's message. */
static const void *value_of(adj_exec *e, const char *call, const adj_node *node)
{
    const plan *p = &e->plan;
    const leaf *l = find_leaf(p, node);
    const char *missing = NULL;
    int b = l != NULL ? l->buffer : NONE;
    for (int i = 0; i < p->n_fetch && (l == NULL || e->run.last == RUN_COMPLETED); i++)
        if (p->fetch[i].node == node)
            b = p->fetch[i].buffer;
    if (node->graph != p->user)
        missing = "is not of this executor's graph";
    else if (b == NONE && node->op->flags & ADJ_OP_LEAF)
        missing = "has no value here: no fetch and no update needs it";
    else if (b == NONE)
        missing = "was not fetched";
    else if (l != NULL && !is_set(e, l))
        missing = "has not been set";
    else if (l == NULL && e->run.last != RUN_COMPLETED)
        missing = e->run.last == RUN_FAILED ? "has no value: the last adj_run failed"
                                            : "has no value: adj_run has not completed yet";
    if (missing == NULL)
        return slot_of(p, b)->data;
    adj_exec_fail(e, ADJ_EARG, "%s: %s \"%s\" %s", call, node->op->name, adj_node_name(node),
                  missing);
    return NULL;
}

adj_status adj_get(adj_exec *e, const adj_node *node, void *out, size_t bytes)
{
    if (e == NULL)
        return ADJ_EARG;
    adj_status status = check_value(e, "adj_get", node, out, bytes);
    const void *value = status == ADJ_OK ? value_of(e, "adj_get", node) : NULL;
    if (value != NULL)
        copy_bytes(e, out, value, bytes);
    return status == ADJ_OK && value == NULL ? ADJ_EARG : status;
}

const void *adj_data(adj_exec *e, const adj_node *node)
{
    if (e == NULL || e->status != ADJ_OK)
        return NULL;
    if (node != NULL)
        return value_of(e, "adj_data", node);
    adj_exec_fail(e, ADJ_EARG, "adj_data: the node is NULL");
    return NULL;
}

static int is_kept(const leaf *l) { return (l->node->op->flags & ADJ_OP_KEPT) != 0; }

int adj_exec_param_count(const adj_exec *e)
{
    int n = 0;
    for (int i = 0; e != NULL && e->status == ADJ_OK && i < e->plan.n_leaf; i++)
        n += is_kept(&e->plan.leaf[i]);
    return n;
}

adj_node *adj_exec_param_at(const adj_exec *e, int i)
{
    for (int k = 0; e != NULL && e->status == ADJ_OK && k < e->plan.n_leaf; k++)
        if (is_kept(&e->plan.leaf[k]) && i-- == 0)
            return e->plan.leaf[k].user;
    return NULL;
}

/* ---- parameters by name ---- */

/* Returns the leaf of `from` with the name of l, or NULL if there is none. */
static const leaf *same_leaf(const leaf *l, const adj_exec *from)
{
    const plan *p = &from->plan;
    const adj_node *same = is_kept(l) ? adj_find(p->graph, l->node->name) : NULL;
    const int k = same != NULL ? p->leaf_of[same->id] : NONE;
    return k != NONE && is_kept(&p->leaf[k]) ? &p->leaf[k] : NULL;
}

/* True if the value of l must be copied: l is a parameter, or a state that the executor does not
 * update itself. */
static int is_given(const leaf *l)
{
    return l->node->op == &adj_op_param || (l->update == NONE && is_kept(l));
}

enum { LISTED = 3, NAMES = 200 };

/* Writes the names of the leaves to copy that `other` lacks, such as "a", "b", "c" and 2 more.
 * Returns their number. */
static int list_missing(const adj_exec *e, const adj_exec *other, char text[NAMES])
{
    size_t used = 0;
    int n = 0;
    text[0] = '\0';
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        if (!is_given(l) || same_leaf(l, other) != NULL)
            continue;
        if (n++ < LISTED)
            used += (size_t)snprintf(text + used, NAMES - used, "%s\"%.40s\"", n > 1 ? ", " : "",
                                     l->node->name);
    }
    if (n > LISTED)
        snprintf(text + used, NAMES - used, " and %d more", n - LISTED);
    return n;
}

/* Fails if `to` needs a value that `from` lacks or holds with another type; a parameter left at its
 * initial value would look trained. */
static adj_status check_copy(adj_exec *to, const adj_exec *from)
{
    char missing[NAMES], others[NAMES];
    if (list_missing(to, from, missing) > 0) {
        const int n = list_missing(from, to, others);
        return adj_exec_fail(to, ADJ_EARG, "adj_copy_params: the source executor lacks %s%s%s%s",
                             missing, n > 0 ? " (only the source has " : "", others,
                             n > 0 ? ")" : "");
    }
    for (int i = 0; i < to->plan.n_leaf; i++) {
        const leaf *l = &to->plan.leaf[i], *source = same_leaf(l, from);
        const adj_type expected = l->node->type,
                       got = source != NULL ? source->node->type : expected;
        if (!is_same_type(got, expected))
            return adj_exec_fail(
                to, ADJ_ESHAPE,
                "adj_copy_params: \"%s\" differs in type (got %s %s, expected %s %s)",
                l->node->name, adj_dtype_name(got.dtype), adj_shape_text(got.shape).s,
                adj_dtype_name(expected.dtype), adj_shape_text(expected.shape).s);
    }
    return ADJ_OK;
}

adj_status adj_copy_params(adj_exec *to, const adj_exec *from)
{
    if (to == NULL)
        return ADJ_EARG;
    if (to->status != ADJ_OK)
        return to->status;
    if (from == NULL)
        return adj_exec_fail(to, ADJ_EARG, "adj_copy_params: the source executor is NULL");
    if (from->status != ADJ_OK)
        return adj_exec_fail(to, ADJ_EARG, "adj_copy_params: the source executor has failed");
    const adj_status status = check_copy(to, from);
    for (int i = 0; i < to->plan.n_leaf && status == ADJ_OK; i++) {
        const leaf *l = &to->plan.leaf[i], *source = same_leaf(l, from);
        if (source == NULL)
            continue;
        memcpy(leaf_data(&to->plan, l), leaf_data(&from->plan, source),
               slot_of(&to->plan, l->buffer)->bytes);
        ++*leaf_version(to, l);
    }
    return status;
}
