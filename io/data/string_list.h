/* string_list.h - a list of strings that grows, in one block of memory. */
#ifndef IO_DATA_STRING_LIST_H
#define IO_DATA_STRING_LIST_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *text; /* the strings one behind another, each with its final 0; in their order */
    size_t used, room;
    size_t *at; /* [n] where in text */
    int64_t n, n_room;
} string_list;

/* Appends a string. Returns 0 when out of memory. */
int strings_add(string_list *s, const char *text);
static inline const char *strings_at(const string_list *s, int64_t i) { return s->text + s->at[i]; }
/* Sorts the strings by their bytes. Returns 0 when out of memory. */
int strings_sort(string_list *s);
/* Returns the index of a string in a sorted list; -1 if it is not there. */
int64_t strings_find(const string_list *s, const char *text);
void strings_free(string_list *s);

#endif
