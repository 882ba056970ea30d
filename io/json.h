/* json.h - JSON read and written by jansson, in the C locale, with every failure of memory noticed.
 */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <jansson.h>

#include "io.h"

/* Any value of n bytes of text, with jansson's flags. NULL after an error, whose position is in the
 * text; a failure of memory may read as an error of syntax. */
json_t *io_json_read(const char *text, size_t n, size_t flags, json_error_t *error);
/* Malloc'ed; NULL: out of memory. */
char *io_json_text(const json_t *value, size_t flags);
/* True if jansson takes the text as a string or a key. */
int io_is_utf8(const char *text);

#endif
