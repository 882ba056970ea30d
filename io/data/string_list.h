/* string_list.h - a list of strings that grows. */
#ifndef IO_DATA_STRING_LIST_H
#define IO_DATA_STRING_LIST_H

#include <stdint.h>

typedef struct {
    char **at; /* [n] each allocated by itself */
    int64_t n;
} string_list;

/* Appends a copy of a string. Returns 0 when out of memory. */
int strings_add(string_list *s, const char *text);
static inline const char *strings_at(const string_list *s, int64_t i) { return s->at[i]; }
/* Sorts the strings by their bytes. */
void strings_sort(string_list *s);
/* Removes all strings but these, in ascending order. */
void strings_keep(string_list *s, const int64_t *keep, int64_t kept);
void strings_free(string_list *s);

#endif
