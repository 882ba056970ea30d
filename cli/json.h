/* json.h - what the commands' JSON shares. */
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
enum { JSON_PAGE = JSON_INDENT(1) | JSON_REAL_PRECISION(9) };
/* Writes the object at once, as json_dumpf does, and an end of a line; frees it. 0 on success; that
 * j is NULL, or what is said to have failed before, is a failure. */
int json_write(FILE *f, json_t *j, size_t flags, int failed);

#endif
