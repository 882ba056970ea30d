/* printable.h - what a terminal may be sent of text that comes from files and command lines: names,
 * metadata, paths, reasons. Control characters (C0, DEL, C1), those that turn the direction of
 * writing, separators of lines and paragraphs, and bytes that are no UTF-8 become \xNN, byte by
 * byte. */
#ifndef CLI_PRINTABLE_H
#define CLI_PRINTABLE_H

#include <stdio.h>

enum { PIECE = 17 };

/* The first character of the text as it may be printed; returns how many bytes of the text that
 * is. */
int printable(const char *text, char piece[PIECE]);

/* As printf prints, on a line of its own: an end of a line in the text is escaped. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As fprintf, for lines and tables: the format's ends of lines stay, those of the arguments are
 * escaped. */
void put_text(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text of any length; its ends of lines stay. */
void put_lines(FILE *f, const char *text);

#endif
