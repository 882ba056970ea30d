/* terminal.h - properties of the terminal at standard output, and lines that fit it. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdio.h>

typedef struct {
    int lines;   /* 1: lines can be overwritten (a terminal that is not dumb) */
    int color;   /* 1: the same, without NO_COLOR in the environment */
    int unicode; /* 1: a terminal with a UTF-8 locale */
} terminal;

terminal terminal_open(void);
/* Returns the columns of standard output, 80 if unknown. */
int terminal_columns(void);

/* A piece of a line. In a line that is too long, pieces of the highest rank are dropped first,
 * those of rank 0 never. */
enum { PIECE_TEXT = 96 };
typedef struct {
    int rank;
    const char *color;     /* COLOR_...; NULL: no color */
    char text[PIECE_TEXT]; /* UTF-8 */
} line_piece;
#define COLOR_GOOD "\033[32m"
#define COLOR_BAR "\033[36m"
#define COLOR_QUIET "\033[2m"
#define COLOR_NONE "\033[0m"

/* Prints the pieces, separated by two spaces, in at most this many columns, without the end of the
 * line. A line that is still too long is cut. */
void put_pieces(FILE *f, const terminal *t, int columns, int n, const line_piece piece[]);

/* Prints words; lines after the first begin at column first, and none is longer than the columns
 * unless a word is. */
void put_wrapped(FILE *f, const char *text, int first, int columns);
/* Prints like say, broken between words at the end of the terminal's line. */
void say_wrapped(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
