/* weights.c - an executor's parameters and states to and from a file, by name. */
#include <stdlib.h>
#include <string.h>

#include "io.h"

adj_status adj_weights_save(adj_exec *e, const char *path, int n_metadata,
                            const adj_metadata metadata[], adj_error *error)
{
    int n = adj_exec_param_count(e);
    adj_tensor *t = calloc((size_t)n + 1, sizeof *t);
    void **data = calloc((size_t)n + 1, sizeof *data);
    adj_status status = t != NULL && data != NULL ? ADJ_OK : ADJ_ENOMEM;

    if (status != ADJ_OK)
        adj_error_set(error, status, "weights: out of memory");
    for (int i = 0; status == ADJ_OK && i < n; i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        t[i] = (adj_tensor){.name = adj_node_name(p), .type = adj_node_type(p)};
        size_t bytes = adj_type_bytes(t[i].type);
        t[i].data = data[i] = malloc(bytes > 0 ? bytes : 1);
        if (data[i] == NULL)
            status = adj_error_set(error, ADJ_ENOMEM, "weights: out of memory");
        else if ((status = adj_get(e, p, data[i], bytes)) != ADJ_OK)
            adj_error_set(error, status, "weights: %s", adj_exec_message(e));
    }
    if (status == ADJ_OK)
        status = adj_tensors_write(path, n, t, n_metadata, metadata, error);
    for (int i = 0; data != NULL && i < n; i++)
        free(data[i]);
    free(data);
    free(t);
    return status;
}

static int same_type(adj_type a, adj_type b)
{
    return a.dtype == b.dtype && a.shape.rank == b.shape.rank &&
           memcmp(a.shape.dim, b.shape.dim, (size_t)a.shape.rank * sizeof a.shape.dim[0]) == 0;
}

/* "f32 [5, 5, 1, 32]" */
static const char *type_text(adj_type t, char text[160])
{
    int n = snprintf(text, 160, "%s [", adj_dtype_name(t.dtype));
    for (int i = 0; i < t.shape.rank; i++)
        n += snprintf(text + n, 160 - (size_t)n, "%s%lld", i > 0 ? ", " : "",
                      (long long)t.shape.dim[i]);
    snprintf(text + n, 160 - (size_t)n, "]");
    return text;
}

adj_status adj_weights_set(adj_exec *e, const adj_tensors *t, adj_error *error)
{
    int n = adj_exec_param_count(e);

    for (int i = 0; i < n; i++) { /* all is checked before anything is set */
        const adj_node *p = adj_exec_param_at(e, i);
        int k = adj_tensors_find(t, adj_node_name(p));
        if (k < 0)
            return adj_error_set(error, ADJ_EIO, "weights: the file has no tensor %.80s",
                                 adj_node_name(p));
        char got[160], expected[160];
        adj_type have = adj_tensors_at(t, k).type, want = adj_node_type(p);
        if (!same_type(have, want))
            return adj_error_set(error, ADJ_ESHAPE,
                                 "weights: tensor %.80s has another type (got %s, expected %s)",
                                 adj_node_name(p), type_text(have, got), type_text(want, expected));
    }
    for (int i = 0; i < n; i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        adj_tensor from = adj_tensors_at(t, adj_tensors_find(t, adj_node_name(p)));
        adj_status status = adj_set(e, p, from.data, adj_type_bytes(from.type));
        if (status != ADJ_OK)
            return adj_error_set(error, status, "weights: %s", adj_exec_message(e));
    }
    return ADJ_OK;
}

adj_status adj_weights_load(adj_exec *e, const char *path, adj_error *error)
{
    adj_tensors *t = NULL;
    adj_status status = adj_tensors_read(path, &t);

    if (status != ADJ_OK)
        adj_error_set(error, status, "%s", adj_tensors_message(t));
    else
        status = adj_weights_set(e, t, error);
    adj_tensors_free(t);
    return status;
}
