/* json.h - reads and writes JSON by jansson, in the C locale, and detects every lack of memory. */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <jansson.h>

#include "io.h"

/* Reads any value from n bytes of text, with jansson's flags. Returns NULL after an error, whose
 * position is in the text; a lack of memory may read as an error of syntax. */
json_t *io_json_read(const char *text, size_t n, size_t flags, json_error_t *error);
/* Returns the value as text, to be freed, or NULL if memory is short. */
char *io_json_text(const json_t *value, size_t flags);
/* True if the text is UTF-8, which jansson requires of strings and keys. */
int io_is_utf8(const char *text);

#endif
