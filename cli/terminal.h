/* terminal.h - properties of the terminal at standard output, and lines that fit it. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

typedef struct {
    int lines;   /* a line can be taken back: a terminal, and TERM names one that is not dumb */
    int color;   /* the same, and the environment has no NO_COLOR */
    int unicode; /* a terminal whose locale is UTF-8's */
} terminal;

terminal terminal_open(void);
/* Returns the columns of standard output, 80 if unknown. */
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

/* Prints like say, broken between words at the end of the terminal's line. t may be NULL. */
void say_wrapped(const terminal *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
