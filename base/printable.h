/* printable.h - escapes text from graphs, files and command lines (names, metadata, paths,
 * reasons) for a terminal or a file for other programs. The text of a format stays; its
 * arguments change:
 *
 *   terminal    control characters (C0, DEL, C1), characters that change the direction of writing
 *               or cannot be seen, separators of lines and paragraphs, and bytes that are not UTF-8
 *               become \xNN, byte by byte
 *   CSV         as for a terminal, and a quote is doubled
 *   XML, HTML   as for a terminal, but C0 become spaces, & < > " entities, and U+FFFE and U+FFFF
 *               \xNN
 *
 * It depends on base/ alone; the library and the tool each compile a copy. */
#ifndef ADJ_PRINTABLE_H
#define ADJ_PRINTABLE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* Returns the length in bytes of the UTF-8 character at text, 1 to 4, and its code; 0 if it is
 * invalid. Overlong forms, surrogates and codes above U+10FFFF are invalid. */
int utf8_character(const char *text, uint32_t *code);

enum { PIECE = 17 };
/* Writes the first character of the text in a form safe for a terminal. Returns how many bytes
 * of the text it takes. */
int printable(const char *text, char piece[PIECE]);

typedef enum { FOR_TERMINAL, FOR_XML } text_form;
/* Prints as fprintf does; output beyond 8191 bytes is cut off. */
void put_escaped(FILE *f, text_form form, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void vput_escaped(FILE *f, text_form form, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Prints with put_escaped for a terminal. */
void put_text(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes any text within a comment of C, and as a string literal. */
void put_in_comment(FILE *f, const char *s);
void put_string(FILE *f, const char *s);

#endif
