/* trainable.c - selects the parameters that are trained and those that are frozen. */
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "nn.h"

/* ---- names ---- */

/* Matches greedily: where the text after a * does not match, the * takes one character more. */
static int glob(const char *pattern, const char *end, const char *name)
{
    const char *star = NULL, *after = NULL; /* after the last *, and the end of its match */

    while (*name != '\0') {
        if (pattern < end && *pattern == '*') {
            star = pattern++;
            after = name;
        } else if (pattern < end && (*pattern == '?' || *pattern == *name)) {
            pattern++;
            name++;
        } else if (star != NULL) {
            pattern = star + 1;
            name = ++after;
        } else {
            return 0;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

int adj_name_matches(const char *patterns, const char *name)
{
    if (patterns == NULL || name == NULL)
        return 0;
    for (const char *end; *patterns != '\0'; patterns = *end != '\0' ? end + 1 : end) {
        end = patterns + strcspn(patterns, ",");
        if (end > patterns && glob(patterns, end, name))
            return 1;
    }
    return 0;
}

/* ---- parameters ---- */

int adj_trainable(const adj_node *y, const char *frozen, int max, adj_node *params[])
{
    if (y == NULL)
        return 0;
    const adj_graph *g = adj_node_graph(y);
    int n = adj_node_id(y) + 1, count = 0;
    char *reached = calloc((size_t)n, 1);
    if (reached == NULL)
        return -1;
    reached[n - 1] = 1;
    for (int id = n - 1; id >= 0; id--) { /* operands have smaller ids than their users */
        const adj_node *u = adj_graph_node_at(g, id);
        const int passes = reached[id] && strcmp(adj_node_op(u), "stop_gradient") != 0;
        for (int i = 0; passes && i < adj_node_operand_count(u); i++)
            reached[adj_node_id(adj_node_operand_at(u, i))] = 1;
    }
    for (int id = 0; id < n; id++) {
        adj_node *p = adj_graph_node_at(g, id);
        if (!reached[id] || !adj_node_is_param(p) || adj_name_matches(frozen, adj_node_name(p)))
            continue;
        if (count < max && params != NULL)
            params[count] = p;
        count++;
    }
    free(reached);
    return count;
}

adj_node **nn_trainable(const adj_node *y, int *n)
{
    adj_node **params = NULL;

    *n = adj_trainable(y, NULL, 0, NULL);
    if (*n >= 0)
        params = calloc((size_t)(*n + 1), sizeof(adj_node *));
    if (params == NULL || adj_trainable(y, NULL, *n, params) < 0) {
        *n = -1;
        free(params);
        return NULL;
    }
    return params;
}

int64_t adj_trainable_elems(const adj_node *y)
{
    int n;
    int64_t elems = 0;
    adj_node **params = nn_trainable(y, &n);

    for (int i = 0; i < n; i++)
        elems += adj_shape_elems(adj_node_type(params[i]).shape);
    free(params);
    return n < 0 ? -1 : elems;
}

/* ---- states ---- */

int adj_is_training_state(const adj_node *n)
{
    static const char *const parts[] = {"/momentum", "/adam_m", "/adam_v", "/rmsprop_v"};
    static const char *const wholes[] = {"adam/step", "dropout/step", "loss_scale",
                                         "loss_scale/good_steps", "loss_scale/skipped"};
    static const char sums[] = "accumulated/"; /* prefix of adj_emit_accumulation */
    const char *name = n != NULL ? adj_node_name(n) : "";
    size_t length = strlen(name);

    if (n == NULL || !adj_node_is_state(n))
        return 0;
    if (strncmp(name, sums, sizeof sums - 1) == 0)
        return 1;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        if (strcmp(name, wholes[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t part = strlen(parts[i]);
        if (length > part && strcmp(name + length - part, parts[i]) == 0)
            return 1;
    }
    return 0;
}

/* True if the state belongs to a layer ("bn1" of "bn1/running") that has parameters but no
 * trained ones. */
static int is_frozen(const adj_node *state, int n, adj_node *const params[],
                     const adj_optimizer_opts *o)
{
    const char *name = adj_node_name(state), *slash = strrchr(name, '/');
    size_t layer = slash != NULL ? (size_t)(slash - name) + 1 : 0;
    int found = 0;

    for (int i = 0; i < n && layer > 0; i++) {
        const char *other = adj_node_name(params[i]), *end = strrchr(other, '/');
        if (end == NULL || (size_t)(end - other) + 1 != layer || strncmp(name, other, layer) != 0)
            continue;
        if (adj_position(o->n_trained, (const adj_node *const *)o->trained, params[i]) >= 0)
            return 0;
        found = 1;
    }
    return found;
}

adj_updates *nn_layer_updates(const adj_node *loss, const adj_optimizer_opts *o)
{
    adj_graph *g = adj_node_graph(loss);
    adj_updates *all = adj_layer_updates(g), *some;
    int n;

    if (o == NULL || o->trained == NULL)
        return all;
    adj_node **params = nn_trainable(loss, &n);
    if (n < 0)
        adj_fail(g, ADJ_ENOMEM, "adj_training_updates: out of memory");
    some = n >= 0 ? adj_updates_new(g) : NULL;
    for (int i = 0; some != NULL && i < adj_updates_count(all); i++)
        if (!is_frozen(adj_updates_leaf_at(all, i), n, params, o))
            adj_updates_add(some, adj_updates_leaf_at(all, i), adj_updates_next_at(all, i));
    free(params);
    return some;
}
