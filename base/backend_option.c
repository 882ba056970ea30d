/* backend_option.c - see backend_option.h. */
#include <string.h>

#include "backend_option.h"
#include "nearest.h"

enum { MAX_OPS = 256 };

int is_own_op(const adj_op *op)
{
    for (const adj_op *const *o = adj_ops; *o != NULL; o++)
        if (*o == op)
            return 0;
    return 1;
}

static int is_word(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

static adj_status find_backend(const adj_backend *const *list, const char *word, size_t length,
                               const char *prefix, int *backend, adj_error *error)
{
    char known[128] = "";
    size_t used = 0;
    for (*backend = 0; list[*backend] != NULL; ++*backend) {
        if (is_word(list[*backend]->name, word, length))
            return ADJ_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     used > 0 ? ", " : "", list[*backend]->name);
    }
    return adj_error_set(error, ADJ_EARG, "%sunknown backend (got \"%.*s\", expected one of %s)",
                         prefix, (int)(length < 64 ? length : 64), word, known);
}

static adj_status find_op(const char *word, size_t length, const char *prefix, const adj_op **op,
                          adj_error *error)
{
    const char *names[MAX_OPS] = {""};
    char text[65];
    int n = 0;
    for (; n < MAX_OPS && adj_ops[n] != NULL; n++) {
        names[n] = adj_ops[n]->name;
        *op = adj_ops[n];
        if (is_word(names[n], word, length))
            return ADJ_OK;
    }
    snprintf(text, sizeof text, "%.*s", (int)(length < 64 ? length : 64), word);
    return adj_error_set(error, ADJ_EARG, "%sunknown op \"%s\"%s", prefix, text,
                         did_you_mean(text, names, n, sizeof *names, NULL).s);
}

adj_status next_backend_part(const char **option, const adj_backend *const *list,
                             const char *prefix, const adj_op **op, int *backend, adj_error *error)
{
    const char *name = *option, *end = name + strcspn(name, ",");
    const char *equals = memchr(name, '=', (size_t)(end - name));
    adj_status status = ADJ_OK;
    *option = *end == ',' ? end + 1 : NULL;
    *op = NULL;
    if (equals != NULL) {
        status = find_op(name, (size_t)(equals - name), prefix, op, error);
        name = equals + 1;
    }
    if (status == ADJ_OK)
        status = find_backend(list, name, (size_t)(end - name), prefix, backend, error);
    return status;
}

adj_status check_backend_option(const char *option, const adj_backend *const *list,
                                const char *prefix, adj_error *error)
{
    adj_status status = ADJ_OK;
    const adj_op *op;
    int backend;
    while (option != NULL && status == ADJ_OK)
        status = next_backend_part(&option, list, prefix, &op, &backend, error);
    return status;
}
