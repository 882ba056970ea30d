/* tile_cases.h - convolutions for the kernels whose products are of tiles, 16 pixels by 16
 * channels: tails of blocks of channels, odd and even ones, segments of less than a step, of some,
 * and of some with a rest; rows that fill tiles and that do not; images in a chunk, bands of one;
 * strides with and without taps in each phase; pads beyond the kernel, kernels beyond the image. */
#ifndef TILE_CASES_H
#define TILE_CASES_H

#include <criterion/criterion.h>
#include <math.h>

#include "tests/backends/random_conv.h"

static const oracle_conv tile_cases[] = {
    {.n = 1, .h = 1, .w = 1, .c = 1, .kh = 1, .kw = 1, .last = 1},
    {.n = 3, .h = 32, .w = 32, .c = 16, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 3, .h = 16, .w = 16, .c = 32, .kh = 3, .kw = 3, .last = 32, .padding = ADJ_SAME},
    {.n = 19, .h = 8, .w = 8, .c = 64, .kh = 3, .kw = 3, .last = 64, .padding = ADJ_SAME},
    {.n = 2, .h = 32, .w = 32, .c = 3, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 2, .h = 12, .w = 15, .c = 17, .kh = 3, .kw = 3, .last = 33, .padding = ADJ_SAME},
    {.n = 2, .h = 7, .w = 7, .c = 130, .kh = 3, .kw = 3, .last = 70, .padding = ADJ_SAME},
    {.n = 1, .h = 60, .w = 62, .c = 32, .kh = 3, .kw = 3, .last = 48, .padding = ADJ_SAME},
    {.n = 2, .h = 13, .w = 40, .c = 5, .kh = 5, .kw = 5, .last = 40, .padding = ADJ_SAME},
    {.n = 5, .h = 14, .w = 14, .c = 96, .kh = 1, .kw = 1, .last = 130},
    {.n = 4, .h = 15, .w = 14, .c = 20, .kh = 1, .kw = 1, .last = 24, .sh = 2, .sw = 2},
    {.n = 4,
     .h = 32,
     .w = 32,
     .c = 16,
     .kh = 3,
     .kw = 3,
     .last = 32,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
    {.n = 3,
     .h = 16,
     .w = 16,
     .c = 32,
     .kh = 3,
     .kw = 3,
     .last = 64,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
    {.n = 2, .h = 17, .w = 11, .c = 18, .kh = 5, .kw = 4, .last = 16, .sh = 2, .sw = 1},
    {.n = 1, .h = 2, .w = 2, .c = 16, .kh = 5, .kw = 5, .last = 16, .padding = ADJ_SAME},
    {.n = 2,
     .h = 20,
     .w = 19,
     .c = 8,
     .kh = 3,
     .kw = 3,
     .last = 16,
     .dh = 3,
     .dw = 2,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
    {.n = 2,
     .h = 5,
     .w = 6,
     .c = 16,
     .kh = 2,
     .kw = 3,
     .last = 16,
     .padding = ADJ_EXPLICIT,
     .pad = {7, 0, 5, 9}},
    {.n = 1, .h = 3, .w = 3000, .c = 16, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 1, .h = 300, .w = 33, .c = 24, .kh = 11, .kw = 2, .last = 9, .padding = ADJ_SAME},
    {.n = 3, .h = 9, .w = 7, .c = 16, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 2, .h = 8, .w = 8, .c = 17, .kh = 3, .kw = 3, .last = 33, .padding = ADJ_SAME},
    {.n = 37, .h = 8, .w = 8, .c = 64, .kh = 3, .kw = 3, .last = 64, .padding = ADJ_SAME},
    {.n = 2, .h = 12, .w = 10, .c = 130, .kh = 3, .kw = 3, .last = 70, .padding = ADJ_SAME},
    {.n = 1, .h = 56, .w = 60, .c = 32, .kh = 3, .kw = 3, .last = 48, .padding = ADJ_SAME},
    {.n = 2, .h = 13, .w = 40, .c = 3, .kh = 5, .kw = 5, .last = 40, .padding = ADJ_SAME},
    {.n = 4,
     .h = 16,
     .w = 16,
     .c = 32,
     .kh = 3,
     .kw = 3,
     .last = 64,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
};
enum { TILE_CASES = sizeof tile_cases / sizeof *tile_cases };

static inline oracle_conv draw_tile_case(uint32_t *k)
{
    oracle_conv a = {.n = draw(k, 1, 6),
                     .h = draw(k, 1, 20),
                     .w = draw(k, 1, 34),
                     .c = draw(k, 1, 40),
                     .kh = draw(k, 1, 5),
                     .kw = draw(k, 1, 5),
                     .last = draw(k, 1, 40),
                     .sh = draw(k, 1, 2),
                     .sw = draw(k, 1, 2),
                     .dh = draw(k, 1, 2),
                     .dw = draw(k, 1, 2)};
    draw_padding(&a, k);
    return a;
}

/* 432 terms in y, 360 in dx, 910 in dw. */
static const oracle_conv long_sums = {
    .n = 5, .h = 13, .w = 14, .c = 48, .kh = 3, .kw = 3, .last = 40, .padding = ADJ_SAME};

/* value at element i of an operand (0: x, 1: w, 2: dy) */
typedef void check_special(oracle_conv row, const char *isa, int operand, int64_t i, double value);

/* Infinities and NaN at the first, the middle and the last element of each operand. */
static inline void check_tile_specials(check_special *check, const char *isa)
{
    static const oracle_conv some[] = {
        {.n = 3, .h = 6, .w = 7, .c = 17, .kh = 3, .kw = 3, .last = 19, .padding = ADJ_SAME},
        {.n = 2, .h = 6, .w = 32, .c = 16, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
        {.n = 2,
         .h = 7,
         .w = 6,
         .c = 16,
         .kh = 3,
         .kw = 3,
         .last = 32,
         .sh = 2,
         .sw = 2,
         .padding = ADJ_SAME},
        {.n = 1, .h = 50, .w = 48, .c = 3, .kh = 5, .kw = 5, .last = 16, .padding = ADJ_SAME},
        {.n = 2, .h = 5, .w = 5, .c = 32, .kh = 1, .kw = 1, .last = 16},
        {.n = 2, .h = 13, .w = 5, .c = 3, .kh = 2, .kw = 2, .last = 16, .sh = 2, .sw = 2},
    };
    static const double values[] = {INFINITY, -INFINITY, NAN};
    for (size_t r = 0; r < sizeof some / sizeof *some; r++) {
        oracle_conv row = some[r];
        row.in = row.c;
        const oracle_sizes s = oracle_sizes_of(row);
        const int64_t n[] = {adj_shape_elems(s.x), adj_shape_elems(s.w), adj_shape_elems(s.y)};
        for (int operand = 0; operand < 3; operand++)
            for (int place = 0; place < 3; place++)
                for (size_t k = 0; k < sizeof values / sizeof *values; k++)
                    check(row, isa, operand, (n[operand] - 1) * place / 2, values[k]);
    }
}

/* A bias behind y; element i of the filter is `value`, if i is not negative. */
typedef void check_bias(oracle_conv row, int64_t i, double value);

/* An Inf and a NaN in the filter, too: padding is not multiplied by them. */
static inline void check_tile_biases(check_bias *check)
{
    static const oracle_conv small = {
        .n = 2, .h = 6, .w = 16, .c = 3, .kh = 3, .kw = 3, .last = 17, .padding = ADJ_SAME};
    for (int i = 0; i < TILE_CASES; i++)
        check(tile_cases[i], -1, 0);
    check(small, 0, INFINITY);
    check(small, 200, NAN);
}

typedef struct {
    fixture f;
    oracle_sizes s;
    adj_node *n[3]; /* by enum oracle_result */
} random_sums;

/* lo to hi: numbers of one sign make sums as large as their terms allow. */
static inline random_sums random_sums_new(oracle_conv row, adj_dtype dtype, double lo, double hi)
{
    row.in = row.c;
    random_sums r = {.f = fixture_new(), .s = oracle_sizes_of(row)};
    adj_node *x = given_random(&r.f, dtype, r.s.x, lo, hi);
    adj_node *w = given_random(&r.f, dtype, r.s.w, lo, hi);
    adj_node *dy = given_random(&r.f, dtype, r.s.y, lo, hi);
    r.n[ORACLE_Y] = adj_conv2d(x, w, &r.s.attrs);
    r.n[ORACLE_DX] = adj_conv2d_backprop_input(r.s.x, w, dy, &r.s.attrs);
    r.n[ORACLE_DW] = adj_conv2d_backprop_filter(x, r.s.w, dy, &r.s.attrs);
    cr_assert_not_null(r.n[ORACLE_DW], "%s", adj_graph_message(r.f.g));
    return r;
}

#endif
