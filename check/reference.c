/* reference.c - see reference.h. */
#include <string.h>

#include "check/reference.h"

static int is_built_in(const adj_backend *backend)
{
    for (const adj_backend *const *b = adj_backends; *b != NULL; b++)
        if (strcmp((*b)->name, backend->name) == 0)
            return 1;
    return 0;
}

adj_status reference_backends(const adj_backend *const *own, region *p,
                              const adj_backend *const **list)
{
    const adj_backend *const *naive = adj_backends;
    size_t n = 0, kept = 0;
    *list = NULL;
    while (own != NULL && own[n] != NULL)
        n++;
    while (naive[1] != NULL)
        naive++;
    const adj_backend **all = region_alloc(p, n + 2, sizeof *all);
    if (all == NULL)
        return ADJ_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!is_built_in(own[i]))
            all[kept++] = own[i];
    all[kept] = *naive;
    if (kept > 0)
        *list = all;
    return ADJ_OK;
}
