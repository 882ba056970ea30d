/* conv_cases.c - see conv_cases.h. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "conv_cases.h"

typedef struct {
    fixture f;
    adj_node *x, *w, *dy;        /* inputs */
    adj_node *result[3];         /* y, dx, dw */
    const double *vx, *vw, *vdy; /* their values */
} setup;

static setup setup_of(const conv_triple *triple, const oracle_sizes *s, adj_dtype dtype)
{
    setup u = {.f = fixture_new()};
    u.x = given_integers(&u.f, dtype, s->x, -3, 3);
    u.w = given_integers(&u.f, dtype, s->w, -2, 2);
    u.dy = given_integers(&u.f, dtype, s->y, -3, 3);
    u.vx = u.f.value[0];
    u.vw = u.f.value[1];
    u.vdy = u.f.value[2];
    u.result[ORACLE_Y] = triple->y(u.x, u.w, &s->attrs);
    u.result[ORACLE_DX] = triple->dx(s->x, u.w, u.dy, &s->attrs);
    u.result[ORACLE_DW] = triple->dw(u.x, s->w, u.dy, &s->attrs);
    return u;
}

/* Sums of small integers are exact but for the last rounding of the half types. */
static double tolerance(adj_dtype dtype)
{
    return dtype == ADJ_F16 ? 0x1p-11 : dtype == ADJ_BF16 ? 0x1p-8 : 0;
}

void expect_reference(const conv_triple *triple, oracle_conv row)
{
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++)
        for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype++) {
            row.format = (adj_format)format;
            oracle_sizes s = oracle_sizes_of(row);
            setup u = setup_of(triple, &s, (adj_dtype)dtype);
            for (int k = 0; k < 3; k++) {
                double *want = oracle_convolve(&s, (enum oracle_result)k, u.vx, u.vw, u.vdy);
                for (int b = 0; adj_backends[b] != NULL; b++)
                    expect_values(&u.f, u.result[k], adj_backends[b]->name, want,
                                  tolerance((adj_dtype)dtype), 0);
                free(want);
            }
            fixture_free(&u.f);
        }
}

static int draw(uint32_t *counter, int lo, int hi)
{
    uint32_t word[4];
    adj_philox((uint32_t[]){(*counter)++, 0, 0, 0}, (uint32_t[]){1, 2}, word);
    return lo + (int)(word[0] % (uint32_t)(hi - lo + 1));
}

/* SAME, or EXPLICIT with room for the kernel. */
static oracle_conv random_row(uint32_t *k, int depthwise)
{
    oracle_conv a = {.n = draw(k, 1, 2),
                     .h = draw(k, 1, 9),
                     .w = draw(k, 1, 9),
                     .kh = draw(k, 1, 4),
                     .kw = draw(k, 1, 4),
                     .in = draw(k, 1, 5),
                     .sh = draw(k, 1, 3),
                     .sw = draw(k, 1, 3),
                     .dh = draw(k, 1, 3),
                     .dw = draw(k, 1, 3),
                     .depthwise = depthwise};
    int groups = depthwise ? 1 : draw(k, 1, 3);
    a.c = a.in * groups;
    a.last = groups * draw(k, 1, 4);
    a.padding = draw(k, 0, 1) ? ADJ_SAME : ADJ_EXPLICIT;
    for (int i = 0; i < 4 && a.padding == ADJ_EXPLICIT; i++) {
        int missing = i < 2 ? (a.kh - 1) * a.dh + 1 - a.h : (a.kw - 1) * a.dw + 1 - a.w;
        a.pad[i] = draw(k, 0, 3) + (i % 2 == 1 && missing > 0 ? missing : 0);
    }
    return a;
}

void expect_reference_random(const conv_triple *triple, int depthwise, int rows)
{
    uint32_t counter = 0;
    for (int i = 0; i < rows; i++)
        expect_reference(triple, random_row(&counter, depthwise));
}

static double dot(const double *a, const double *b, adj_shape shape)
{
    double sum = 0;
    for (int64_t i = 0; i < adj_shape_elems(shape); i++)
        sum += a[i] * b[i];
    return sum;
}

void expect_adjoint(const conv_triple *triple, oracle_conv row)
{
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++) {
        row.format = (adj_format)format;
        oracle_sizes s = oracle_sizes_of(row);
        setup u = setup_of(triple, &s, ADJ_F32);
        for (int b = 0; adj_backends[b] != NULL; b++) {
            const char *backend = adj_backends[b]->name;
            double *y = evaluate(&u.f, u.result[ORACLE_Y], backend);
            double *dx = evaluate(&u.f, u.result[ORACLE_DX], backend);
            double *dw = evaluate(&u.f, u.result[ORACLE_DW], backend);
            double want = dot(u.vdy, y, s.y);
            cr_assert_eq(dot(dx, u.vx, s.x), want, "backprop_input on %s", backend);
            cr_assert_eq(dot(dw, u.vw, s.w), want, "backprop_filter on %s", backend);
            free(y);
            free(dx);
            free(dw);
        }
        fixture_free(&u.f);
    }
}

void expect_derivatives(const conv_triple *triple, oracle_conv row)
{
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++)
        for (int k = 0; k < 3; k++) {
            row.format = (adj_format)format;
            oracle_sizes s = oracle_sizes_of(row);
            fixture f = fixture_new();
            adj_node *first = given_random(&f, ADJ_F64, k == ORACLE_DX ? s.w : s.x, -1, 1);
            adj_node *second = given_random(&f, ADJ_F64, k == ORACLE_Y ? s.w : s.y, -1, 1);
            adj_node *result = k == ORACLE_Y    ? triple->y(first, second, &s.attrs)
                               : k == ORACLE_DX ? triple->dx(s.x, first, second, &s.attrs)
                                                : triple->dw(first, s.w, second, &s.attrs);
            expect_gradient(&f, result, "naive", 0.5, 1e-11, 1e-11);
            fixture_free(&f);
        }
}

/* The raw bytes of a node computed by so many threads of the naive backend. */
static void *bytes_of(const setup *u, adj_node *y, int threads, size_t *bytes)
{
    adj_exec *e;
    adj_type t = adj_node_type(y);
    adj_exec_opts opts = {.n_fetch = 1, .fetch = &y, .backend = "naive", .threads = threads};
    cr_assert_eq(adj_exec_new(u->f.g, &opts, &e), ADJ_OK, "%s", adj_exec_message(e));
    for (int i = 0; i < u->f.n_in; i++) {
        adj_type leaf = adj_node_type(u->f.in[i]);
        int64_t n = adj_shape_elems(leaf.shape);
        size_t size = (size_t)n * adj_dtype_size(leaf.dtype);
        char *data = malloc(size + 1);
        for (int64_t k = 0; k < n; k++) /* a third makes sums inexact: their order shows */
            adj_store(leaf.dtype, data, k, u->f.value[i][k] / 3);
        adj_set(e, u->f.in[i], data, size);
        free(data);
    }
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    *bytes = (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
    void *out = malloc(*bytes + 1);
    cr_assert_eq(adj_get(e, y, out, *bytes), ADJ_OK, "%s", adj_exec_message(e));
    adj_exec_free(e);
    return out;
}

void expect_thread_independence(const conv_triple *triple, oracle_conv row, adj_dtype dtype)
{
    oracle_sizes s = oracle_sizes_of(row);
    setup u = setup_of(triple, &s, dtype);
    for (int k = 0; k < 3; k++) {
        size_t bytes;
        void *want = bytes_of(&u, u.result[k], 1, &bytes);
        for (int threads = 2; threads <= 3; threads++) {
            void *got = bytes_of(&u, u.result[k], threads, &bytes);
            cr_assert_eq(memcmp(got, want, bytes), 0, "%s with %d threads",
                         adj_node_op(u.result[k]), threads);
            free(got);
        }
        free(want);
    }
    fixture_free(&u.f);
}
