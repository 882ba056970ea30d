/* terminal.h - what the standard output can show, and lines that fit it. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

typedef struct {
    int lines;   /* a line can be taken back: a terminal, and TERM names one that is not dumb */
    int color;   /* the same, and the environment has no NO_COLOR */
    int unicode; /* a terminal whose locale is UTF-8's */
} terminal;

terminal terminal_open(void);
/* Columns of the standard output, 80 if it does not tell. */
int terminal_columns(void);

/* A part of a line. Where the line is too long, those of the highest rank are left out first; of
 * rank 0 none is. */
enum { PIECE_TEXT = 96 };
typedef struct {
    int rank;
    const char *color;     /* COLOR_...; NULL: as it is */
    char text[PIECE_TEXT]; /* UTF-8 */
} line_piece;
#define COLOR_GOOD "\033[32m"
#define COLOR_BAR "\033[36m"
#define COLOR_QUIET "\033[2m"
#define COLOR_NONE "\033[0m"

/* The pieces, two spaces between them, in at most so many columns, one for each character; what
 * is still too long is cut. Without the end of the line. */
void put_pieces(FILE *f, const terminal *t, int columns, int n, const line_piece piece[]);

/* As say: broken between words where a terminal's line ends. t: NULL, or what is known of it. */
void say_wrapped(const terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
