/* columns.c - the loops of a chain that know channels: some columns of all rows of a block at
 * a time, so that what belongs to a column stays in registers; compiled once per instruction set.
 */
#include "loops.h"

enum { LANES = VECTOR_BYTES / sizeof(float), WIDE = 4, WIDTH = WIDE * LANES };

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

typedef struct { /* neighbouring columns */
    vector v[WIDE];
} columns;

static inline columns load(const float *p)
{
    columns c;
    for (int k = 0; k < WIDE; k++)
        c.v[k] = ((const vector *)p)[k];
    return c;
}

static inline void store(float *p, columns c)
{
    for (int k = 0; k < WIDE; k++)
        ((vector *)p)[k] = c.v[k];
}

/* x, mean, scale, beta */
static void norm(chain_block b, float *y, const float *const x[])
{
    const float *a = x[0], *mean = x[1], *factor = x[2], *beta = x[3];
    ptrdiff_t i = 0, end = b.rows * b.row;
    for (; i + WIDTH <= b.width; i += WIDTH) {
        columns m = load(mean + i), f = load(factor + i), c = load(beta + i);
        for (ptrdiff_t at = i; at < end; at += b.row) {
            columns r = load(a + at);
            for (int k = 0; k < WIDE; k++)
                r.v[k] = (r.v[k] - m.v[k]) * f.v[k] + c.v[k];
            store(y + at, r);
        }
    }
    for (; i < b.width; i++)
        for (ptrdiff_t at = i; at < end; at += b.row)
            y[at] = (a[at] - mean[i]) * factor[i] + beta[i];
}

/* x, dy, mean, scale, q0, q1 */
static void norm_grad(chain_block b, float *dx, const float *const x[])
{
    const float *a = x[0], *dy = x[1], *mean = x[2], *factor = x[3], *q0 = x[4], *q1 = x[5];
    ptrdiff_t i = 0, end = b.rows * b.row;
    for (; i + WIDTH <= b.width; i += WIDTH) {
        columns m = load(mean + i), f = load(factor + i), p = load(q0 + i), q = load(q1 + i);
        for (ptrdiff_t at = i; at < end; at += b.row) {
            columns r = load(a + at), d = load(dy + at);
            for (int k = 0; k < WIDE; k++)
                d.v[k] = f.v[k] * (d.v[k] - q.v[k] - (r.v[k] - m.v[k]) * p.v[k]);
            store(dx + at, d);
        }
    }
    for (; i < b.width; i++)
        for (ptrdiff_t at = i; at < end; at += b.row)
            dx[at] = factor[i] * (dy[at] - q1[i] - (a[at] - mean[i]) * q0[i]);
}

chain_column_loop *DIRECT(chain_column_loop)(chain_code code)
{
    return code == CHAIN_NORM ? norm : code == CHAIN_NORM_GRAD ? norm_grad : NULL;
}

/* ---- sums of columns ---- */

static void add(chain_block b, float *sum, const float *x)
{
    ptrdiff_t i = 0, end = b.rows * b.row;
    for (; i + WIDTH <= b.width; i += WIDTH) {
        columns s = load(sum + i);
        for (ptrdiff_t at = i; at < end; at += b.row) {
            columns r = load(x + at);
            for (int k = 0; k < WIDE; k++)
                s.v[k] += r.v[k];
        }
        store(sum + i, s);
    }
    for (; i < b.width; i++)
        for (ptrdiff_t at = i; at < end; at += b.row)
            sum[i] += x[at];
}

/* x, dy, mean */
static void add_norm(chain_block b, float *product, float *sum, const float *const x[])
{
    const float *a = x[0], *dy = x[1], *mean = x[2];
    ptrdiff_t i = 0, end = b.rows * b.row;
    for (; i + WIDTH <= b.width; i += WIDTH) {
        columns p = load(product + i), s = load(sum + i), m = load(mean + i);
        for (ptrdiff_t at = i; at < end; at += b.row) {
            columns r = load(a + at), d = load(dy + at);
            for (int k = 0; k < WIDE; k++) {
                p.v[k] += d.v[k] * (r.v[k] - m.v[k]);
                s.v[k] += d.v[k];
            }
        }
        store(product + i, p);
        store(sum + i, s);
    }
    for (; i < b.width; i++)
        for (ptrdiff_t at = i; at < end; at += b.row) {
            product[i] += dy[at] * (a[at] - mean[i]);
            sum[i] += dy[at];
        }
}

static void add_moments(chain_block b, float *first, float *second, const float *x,
                        const float *shift)
{
    ptrdiff_t i = 0, end = b.rows * b.row;
    for (; i + WIDTH <= b.width; i += WIDTH) {
        columns p = load(first + i), q = load(second + i), m = load(shift + i);
        for (ptrdiff_t at = i; at < end; at += b.row) {
            columns r = load(x + at);
            for (int k = 0; k < WIDE; k++) {
                vector e = r.v[k] - m.v[k];
                p.v[k] += e;
                q.v[k] += e * e;
            }
        }
        store(first + i, p);
        store(second + i, q);
    }
    for (; i < b.width; i++)
        for (ptrdiff_t at = i; at < end; at += b.row) {
            float e = x[at] - shift[i];
            first[i] += e;
            second[i] += e * e;
        }
}

void DIRECT(chain_add)(chain_block b, chain_code code, float *const sum[3], const float *const x[])
{
    if (code == CHAIN_SUM)
        add(b, sum[0], x[0]);
    else if (code == CHAIN_NORM_SUMS)
        add_norm(b, sum[0], sum[1], x);
    else
        add_moments(b, sum[0], sum[1], x[0], sum[2]);
}
