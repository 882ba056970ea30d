/* string_list.c - see string_list.h. */
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "string_list.h"

int strings_add(string_list *s, const char *text)
{
    char **at = with_room(s->at, s->n, sizeof *at);
    if (at == NULL)
        return 0;
    s->at = at;
    s->at[s->n] = strdup(text);
    return s->at[s->n] != NULL && ++s->n > 0;
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

void strings_sort(string_list *s)
{
    if (s->n > 0)
        qsort(s->at, (size_t)s->n, sizeof *s->at, by_text);
}

void strings_keep(string_list *s, const int64_t *keep, int64_t kept)
{
    for (int64_t j = 0; j < kept; j++) {
        char *text = s->at[keep[j]];
        s->at[keep[j]] = s->at[j];
        s->at[j] = text;
    }
    while (s->n > kept)
        free(s->at[--s->n]);
}

void strings_free(string_list *s)
{
    strings_keep(s, NULL, 0);
    free(s->at);
    *s = (string_list){0};
}
