/* printable.h - what a terminal or a file for other programs may be sent of text that comes from
 * graphs, files and command lines: names, metadata, paths, reasons. What a format says itself stays
 * as it is; of its arguments
 *   for a terminal  control characters (C0, DEL, C1), those that turn the direction of writing or
 *                   cannot be seen, and separators of lines and paragraphs become \xNN, byte by
 * byte for CSV         the same, and a quote is doubled for XML, HTML   the same, but C0 become
 * spaces, and & < > " entities; U+FFFE and U+FFFF \xNN and bytes that are no UTF-8 become \xNN. It
 * needs nothing of the graph's and is compiled into the library and into the tool, each with its
 * own copy. */
#ifndef ADJ_PRINTABLE_H
#define ADJ_PRINTABLE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes of the character at text, 1 to 4, and its number; 0: there is none. Neither longer forms
 * than needed nor surrogates nor what is beyond U+10FFFF are characters. */
int utf8_character(const char *text, uint32_t *code);

enum { PIECE = 17 };
/* The first character of the text as a terminal may be sent it; returns how many bytes of the text
 * that is. */
int printable(const char *text, char piece[PIECE]);

typedef enum { FOR_TERMINAL, FOR_CSV, FOR_XML } text_form;
/* As fprintf; what is longer than 8191 bytes is cut off. */
void put_escaped(FILE *f, text_form form, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void vput_escaped(FILE *f, text_form form, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* For a terminal. */
void put_text(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
