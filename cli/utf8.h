/* utf8.h - any bytes as text for files that must be UTF-8: JSON, XML, HTML. A byte that belongs to
 * no character of UTF-8 becomes the four letters \xNN. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <jansson.h>
#include <stdio.h>

/* A string; NULL only when out of memory. text == NULL: null. */
json_t *json_text(const char *text);
/* Text for an attribute or an element of XML or HTML. */
void write_escaped(FILE *f, const char *text);

#endif
