/* json.h - what the commands' JSON shares.
 *
 * An object whose memory ran out may lack members, whichever call of jansson it was that failed. So
 * jansson's allocations are watched: once one has failed, nothing is written any more. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>
#include <stdio.h>

/* Any bytes as a string: one that belongs to no character of UTF-8 becomes the four letters \xNN.
 * NULL only when out of memory. text == NULL: null. */
json_t *json_text(const char *text);
/* What is no number in JSON (an infinite ratio, an error that was not measured) is null. */
json_t *json_number(double v);
/* The numbers of a shape's axes. */
json_t *json_sizes(int64_t n, const int64_t size[]);
/* Before jansson's first call. */
void json_watch_memory(void);
/* True if an allocation of jansson's has failed. */
int json_is_out_of_memory(void);
enum { JSON_PAGE = JSON_INDENT(1) | JSON_REAL_PRECISION(9) };
/* Writes the object at once, in ASCII, which no character can act on, and an end of a line; frees
 * it. 0 on success; a failure is that j is NULL, that failed is not 0, and a failure of memory,
 * which is printed. */
int json_write(FILE *f, json_t *j, size_t flags, int failed);

#endif
