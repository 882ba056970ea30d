/* emitted.c - see emitted.h. */
#include "emitted.h"

#include <string.h>

#include "command.h"
#include "emit/tool.h"

static const char name[] = "emitted";

void checked_backends_open(checked_backends *b, const char *text)
{
    *b = (checked_backends){0};
    if (text == NULL || strstr(text, name) == NULL)
        return;
    const int has_others = strstr(text, "onednn") != NULL || strstr(text, "direct") != NULL;
    int n = 0;
    b->all[n++] = b->emitted = or_exit(adj_emitted_new());
    for (int i = 0; n + 1 < CHECKED_BACKENDS && adj_backends[i] != NULL; i++)
        if (has_others || adj_backends[i + 1] == NULL)
            b->all[n++] = adj_backends[i];
}

void checked_backends_close(checked_backends *b) { adj_emitted_free(b->emitted); }

const adj_backend *const *checked_backends_list(const checked_backends *b)
{
    return b->emitted != NULL ? b->all : NULL;
}

const char *checked_backend_name_at(int i)
{
    int n = 0;
    while (backend_name_at(n) != NULL)
        n++;
    return i < n ? backend_name_at(i) : i == n ? name : NULL;
}
