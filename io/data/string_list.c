/* string_list.c - see string_list.h. */
#include <stdlib.h>
#include <string.h>

#include "string_list.h"

static int make_room(string_list *s, size_t bytes)
{
    if (bytes > s->room - s->used) {
        size_t room = 2 * s->room + bytes + 1024;
        char *text = realloc(s->text, room);
        if (text == NULL)
            return 0;
        s->text = text;
        s->room = room;
    }
    if (s->n == s->n_room) {
        int64_t room = 2 * s->n_room + 64;
        size_t *at = realloc(s->at, (size_t)room * sizeof *at);
        if (at == NULL)
            return 0;
        s->at = at;
        s->n_room = room;
    }
    return 1;
}

int strings_add(string_list *s, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    if (!make_room(s, bytes) || s->text == NULL)
        return 0;
    memcpy(s->text + s->used, text, bytes);
    s->at[s->n++] = s->used;
    s->used += bytes;
    return 1;
}

static int compare(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Sorts the list and copies the strings in their new order. */
int strings_sort(string_list *s)
{
    const char **order = malloc((size_t)s->n * sizeof *order + 1);
    string_list sorted = {0};
    int is_done = order != NULL;

    for (int64_t i = 0; is_done && i < s->n; i++)
        order[i] = strings_at(s, i);
    if (is_done && s->n > 0)
        qsort(order, (size_t)s->n, sizeof *order, compare);
    for (int64_t i = 0; is_done && i < s->n; i++)
        is_done = strings_add(&sorted, order[i]);
    free(order);
    if (!is_done) {
        strings_free(&sorted);
        return 0;
    }
    strings_free(s);
    *s = sorted;
    return 1;
}

int64_t strings_find(const string_list *s, const char *text)
{
    int64_t low = 0, high = s->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        int order = strcmp(strings_at(s, middle), text);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

void strings_free(string_list *s)
{
    free(s->text);
    free(s->at);
    *s = (string_list){0};
}
