/* json.h - functions that all commands use to write JSON.
 *
 * A failed allocation inside jansson may leave an object without some of its members. So jansson's
 * allocations are watched: after a failed one, no JSON is written. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>
#include <stdio.h>

/* Returns any bytes as a string: a byte that is not part of a UTF-8 character becomes the four
 * characters \xNN. NULL only when out of memory. text == NULL: null. */
json_t *json_text(const char *text);
/* Returns a number, or null for values that JSON does not have (infinity, NaN). */
json_t *json_number(double v);
/* Returns the sizes of a shape as a list. */
json_t *json_sizes(int64_t n, const int64_t size[]);
/* Returns the words of "a, b" or "a b" as a list. */
json_t *json_words(const char *words);
/* Sets jansson's allocator to one that notes failures. Call it before any other call of jansson. */
void json_watch_memory(void);
/* True if an allocation inside jansson has failed. */
int json_is_out_of_memory(void);
enum { JSON_PAGE = JSON_INDENT(1) | JSON_REAL_PRECISION(9) };
/* Writes the object and an end of a line, and frees the object. The text is ASCII, so that no
 * character acts on a terminal. Returns 0 on success. Fails if j is NULL, if failed is not 0, or if
 * memory is short, which is printed. */
int json_write(FILE *f, json_t *j, size_t flags, int failed);
/* Writes the object to the file of --json, which is checked first, and frees it; path NULL: only
 * frees it. Returns an exit status. */
int json_report(const char *path, json_t *j);
/* Prints j as text to standard output: a line for each member, those of an inner object indented,
 * null as "not known". Returns and fails as json_write does. */
int json_print(json_t *j);

#endif
