/* backend_option.c - see backend_option.h. */
#include <string.h>

#include "backend_option.h"
#include "graph/nearest.h"

enum { MAX_NAMES = 256, WORD = 128 };

static adj_status check_word(const char *kind, const char *word, int n, const char *const names[],
                             const char *prefix, char *message, size_t size)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return ADJ_OK;
    if (message != NULL)
        snprintf(message, size, "%sunknown %s \"%.64s\" (did you mean %s?)", prefix, kind, word,
                 nearest_of(word, names, n, sizeof *names));
    return ADJ_EARG;
}

adj_status check_backend_option(const char *option, const adj_backend *const *list,
                                const char *prefix, char *message, size_t size)
{
    const char *backends[MAX_NAMES] = {""}, *ops[MAX_NAMES] = {""};
    int n_backend = 0, n_op = 0;
    adj_status status = ADJ_OK;
    for (; list[n_backend] != NULL && n_backend < MAX_NAMES; n_backend++)
        backends[n_backend] = list[n_backend]->name;
    for (; adj_ops[n_op] != NULL && n_op < MAX_NAMES; n_op++)
        ops[n_op] = adj_ops[n_op]->name;
    for (const char *part = option; part != NULL && status == ADJ_OK;) {
        char word[WORD]; /* what is cut off is no name either */
        size_t length = strcspn(part, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : WORD - 1, part);
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            status = check_word("op", word, n_op, ops, prefix, message, size);
        }
        if (status == ADJ_OK)
            status = check_word("backend", equals != NULL ? equals + 1 : word, n_backend, backends,
                                prefix, message, size);
        part = part[length] == ',' ? part + length + 1 : NULL;
    }
    return status;
}
