/* backends.c - selects the backends of an executor from text such as "onednn", "naive" or
 * "onednn,max_pool=naive".
 *
 * For each op, the backend named in the options is tried first, then those after it in the list.
 * The last one, naive, computes every built-in op. Ops of the caller and collective ops may be
 * computed by any backend of the list, so all of them are tried. */
#include <string.h>

#include "backends.h"
#include "base/backend_option.h"
#include "exec.h"
#include "report.h"

adj_status select_backends(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    const adj_backend *const *list = o->backends != NULL ? o->backends : adj_backends;
    const char *option = o->backend;
    for (int i = 0; i < MAX_BACKENDS && list[i] != NULL; i++) {
        if (!is_known_version(list[i]->version))
            return set_error(
                e, ADJ_EVERSION,
                "adj_exec_new: header of backend %d in the list and library differ (got %s)", i,
                version_difference(list[i]->version).s);
        e->backends.list[e->backends.n++] = list[i];
    }
    if (e->backends.n == 0)
        return set_error(e, ADJ_EARG, "adj_exec_new: the list of backends is empty");
    e->backends.fallback = e->backends.n - 1;
    e->backends.preferred = 0;
    size_t parts = 1;
    for (const char *c = option; c != NULL && *c != '\0'; c++)
        parts += *c == ',';
    if ((e->backends.op = exec_alloc(e, parts, sizeof *e->backends.op)) == NULL)
        return e->status;
    while (option != NULL) {
        adj_error error;
        op_backend part;
        if (next_backend_part(&option, e->backends.list, "adj_exec_new: ", &part.op, &part.backend,
                              &error) != ADJ_OK)
            return set_error(e, error.status, "%s", error.message);
        if (part.op == NULL)
            e->backends.preferred = part.backend;
        else
            e->backends.op[e->backends.n_op++] = part;
    }
    return ADJ_OK;
}

void describe_backend(const adj_backend *b, char *text, size_t size)
{
    if (b->describe != NULL)
        b->describe(text, size);
    else
        snprintf(text, size, "* *");
}

adj_status adj_backend_describe(const char *backend, char *text, size_t size)
{
    const adj_backend *const *b = adj_backends;
    while (backend != NULL && *b != NULL && strcmp((*b)->name, backend) != 0)
        b++;
    if (backend == NULL || *b == NULL)
        return ADJ_EARG;
    if (text != NULL)
        describe_backend(*b, text, size);
    return ADJ_OK;
}

int first_backend(const adj_exec *e, const adj_op *op)
{
    int first = e->backends.preferred;
    if (first > 0 && (op->flags & ADJ_OP_COLLECTIVE || is_own_op(op)))
        first = 0;
    for (int i = 0; i < e->backends.n_op; i++)
        if (e->backends.op[i].op == op)
            first = e->backends.op[i].backend;
    return first;
}

int may_compute(const adj_exec *e, int backend, const adj_op *op)
{
    return first_backend(e, op) <= backend;
}

int open_backend(adj_exec *e, int i, int is_spare)
{
    exec_backends *b = &e->backends;
    char message[ADJ_WHY] = ""; /* a warning or, where it fails, the reason */
    if (b->state[i] == BACKEND_OPEN || (b->state[i] == BACKEND_FAILED && is_spare))
        return b->state[i] == BACKEND_OPEN;
    const adj_backend_opts opts = {.allocator = &e->region.allocator,
                                   .threads = e->opts.threads,
                                   .math = e->opts.math,
                                   .self = b->list[i],
                                   .message = message};
    const adj_status status = b->list[i]->open(&opts, &b->opened[i]);
    const int is_open = status == ADJ_OK;
    message[ADJ_WHY - 1] = '\0';
    b->state[i] = is_open ? BACKEND_OPEN : BACKEND_FAILED;
    if (!is_open && message[0] == '\0')
        snprintf(message, sizeof message, "%s", adj_status_name(status));
    if (!is_open && !is_spare)
        set_error(e, status, "adj_exec_new: backend %s cannot be opened (%s)", b->list[i]->name,
                  message);
    else if (status == ADJ_ENOMEM)
        no_memory(e);
    else if (e->warning[0] == '\0' && !is_open)
        snprintf(e->warning, sizeof e->warning, "backend %s is skipped: it cannot be opened (%s)",
                 b->list[i]->name, message);
    else if (e->warning[0] == '\0')
        snprintf(e->warning, sizeof e->warning, "%s", message);
    return is_open;
}

adj_status open_progressing(adj_exec *e)
{
    for (int i = 0; i < e->backends.fallback && e->status == ADJ_OK; i++)
        if (e->backends.list[i]->progress != NULL)
            (void)open_backend(e, i, 1);
    return e->status;
}

int has_backend(void *of, const adj_op *op)
{
    const adj_exec *e = of;
    return first_backend(e, op) != e->backends.fallback;
}

int is_fallback(const adj_exec *e, int backend)
{
    return backend == e->backends.fallback && e->backends.n > 1;
}
