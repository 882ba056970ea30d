/* utf8.h - the characters of UTF-8, and any bytes as text for files that must be UTF-8: JSON, XML,
 * HTML. There a byte that belongs to no character becomes the four letters \xNN. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the character at text, 1 to 4, and its number; 0: there is none. Neither longer forms
 * than needed nor surrogates nor what is beyond U+10FFFF are characters. */
int utf8_character(const char *text, uint32_t *code);
/* A string; NULL only when out of memory. text == NULL: null. */
json_t *json_text(const char *text);
/* Text for an attribute or an element of XML or HTML. DEL, C1, U+FFFE and U+FFFF are bytes of no
 * character there. */
void write_escaped(FILE *f, const char *text);

#endif
