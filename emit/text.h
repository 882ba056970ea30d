/* text.h - C text under construction: indented lines, literals, identifiers. */
#ifndef EMIT_TEXT_H
#define EMIT_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "adjoint_ext.h"

/* Text that grows in memory. */
typedef struct {
    FILE *f;
    char *text;
    size_t length;
} memory;
/* Returns 0 when out of memory. */
int memory_open(memory *m);
/* Completes the text, which the caller frees; returns 0 when out of memory. */
int memory_end(memory *m);

typedef struct {
    FILE *f;
    int depth; /* open braces */
} text;

/* Writes a line, indented by the open braces. A format that begins with } closes one, a format that
 * ends with { opens one. */
void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens a loop over 0 to n - 1. */
void put_loop(text *t, const char *variable, int64_t n);
/* Opens a loop over 0 to end - 1, an expression. */
void put_loop_to(text *t, const char *variable, const char *end);
/* Opens nothing for one element, so that the body may not name the variable; else a loop. Returns
 * the number of braces to close. */
int put_loop_unless_one(text *t, const char *variable, int64_t n);
void put_end(text *t, int braces);

/* An expression or a part of one, by value. */
typedef struct {
    char s[512];
} expression;
expression expr(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "a * b", or the factor that is not "1"; factor 0 is not allowed. */
expression times(const char *a, int64_t factor);
/* A float literal that reads back with the same bits: "0.1f", "-INFINITY". */
expression literal(double value);
/* "[28, 28, 6]" */
expression shape_of(adj_shape s);

enum { IDENTIFIER = 96 };
/* Names that are taken in the file. */
typedef struct {
    int n;
    char (*name)[IDENTIFIER];
} name_list;
/* Writes an identifier made of any text and a suffix: letters, digits and single underscores. A
 * number is added to one that is taken. Returns 0 when out of memory. */
int new_name(name_list *l, const char *from, const char *suffix, char to[IDENTIFIER]);
/* True if the text is an identifier of at most max characters without a leading underscore. */
int is_identifier(const char *s, int max);
/* Writes the elements of an array initializer, f32 or i32, with its braces. */
void put_elements(FILE *f, adj_dtype dtype, const void *data, int64_t n);
/* Writes that of integers of 8 bits. */
void put_bytes(FILE *f, const int8_t data[], int64_t n);

#endif
