/* printable.h - escapes text from graphs, files and command lines (names, metadata, paths, reasons)
 * for a terminal or a file for other programs. The text of a format stays; its arguments change:
 *
 *   terminal    control characters (C0, DEL, C1), characters that change the direction of writing
 *               or cannot be seen, separators of lines and paragraphs, and bytes that are no UTF-8
 *               become \xNN, byte by byte
 *   CSV         as for a terminal, and a quote is doubled
 *   XML, HTML   as for a terminal, but C0 become spaces, & < > " entities, and U+FFFE and U+FFFF
 *               \xNN
 *
 * It depends on base/ alone; the library and the tool have a copy each. */
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

typedef enum { FOR_TERMINAL, FOR_XML } text_form;
/* As fprintf; what is longer than 8191 bytes is cut off. */
void put_escaped(FILE *f, text_form form, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void vput_escaped(FILE *f, text_form form, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* For a terminal. */
void put_text(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
