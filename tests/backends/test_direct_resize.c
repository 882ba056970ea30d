/* test_direct_resize.c - direct resize and its gradient against the definition in adjoint_ops.h, as
 * a product with the matrix of all weights in double: every instruction set, type, way to sample,
 * and sizes around the parts that rows are cut into. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "tests/isa.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3, MODES = 2, COORDINATES = 3, PART = 2048 /* RESIZE_BLOCK */ };

typedef struct {
    int64_t n, ih, iw, c, oh, ow;
} sizes;

/* The weight of input i in output o: that of a hat of height 1 around o's position. */
static double weight_of(const adj_sampling *s, int64_t in, int64_t out, int64_t o, int64_t i)
{
    int64_t num = 2 * o * in, den = 2 * out; /* the position */
    if (s->coordinates == ADJ_HALF_PIXEL)
        num = (2 * o + 1) * in - out;
    if (s->coordinates == ADJ_ALIGN_CORNERS) {
        num = 2 * o * (in - 1);
        den = out > 1 ? 2 * (out - 1) : 2;
    }
    num = num < 0 && s->mode == ADJ_BILINEAR ? 0 : num > (in - 1) * den ? (in - 1) * den : num;
    if (s->mode == ADJ_BILINEAR)
        return fmax(0, 1 - fabs((double)(num - i * den) / (double)den));
    if (s->coordinates == ADJ_ASYMMETRIC) {
        const int64_t exact = 2 * o * in; /* not held to the last one */
        return i * den <= exact && exact < (i + 1) * den;
    }
    return 2 * num >= (2 * i - 1) * den && 2 * num < (2 * i + 1) * den;
}

/* ---- one case ---- */

typedef struct {
    sizes z;
    adj_sampling s;
    adj_dtype dtype;
    int is_grad;
    adj_shape from, to;
    double *x; /* the operand, as the kernel sees it */
    void *data;
} problem;

static problem build(const sizes *z, adj_sampling s, adj_dtype dtype, int is_grad)
{
    const adj_shape small = {4, {z->n, z->ih, z->iw, z->c}},
                    large = {4, {z->n, z->oh, z->ow, z->c}};
    problem p = {*z, s, dtype, is_grad, is_grad ? large : small, is_grad ? small : large, 0, 0};
    const int64_t n = adj_shape_elems(p.from);
    p.x = malloc((size_t)n * sizeof *p.x);
    p.data = malloc((size_t)n * adj_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++)
        p.x[i] = (double)(i * 7919 % 1009) / 512 - 1;
    adj_convert(ADJ_F64, p.x, dtype, p.data, n);
    adj_convert(dtype, p.data, ADJ_F64, p.x, n);
    return p;
}

static void drop(problem *p)
{
    free(p->x);
    free(p->data);
}

/* The result on the direct backend, malloc'ed; why: if not NULL, how the step must be done. */
static void *run(const problem *p, int threads, const char *impl)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", p->dtype, p->from);
    adj_node *y = p->is_grad ? adj_resize_grad(x, p->z.ih, p->z.iw, &p->s)
                             : adj_resize(x, p->z.oh, p->z.ow, &p->s);
    adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .backend = "direct", .threads = threads, .debug.canaries = 1};
    adj_exec *e = NULL;
    const size_t bytes = (size_t)adj_shape_elems(p->to) * adj_dtype_size(p->dtype);
    void *got = malloc(bytes);
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK, "%s%s", adj_graph_message(g),
                 adj_exec_message(e));
    cr_assert_not_null(strstr(adj_exec_step_at(e, 0).impl, impl), "it is a %s",
                       adj_exec_step_at(e, 0).impl);
    cr_assert_eq(
        adj_set(e, x, p->data, (size_t)adj_shape_elems(p->from) * adj_dtype_size(p->dtype)),
        ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, y, got, bytes), ADJ_OK);
    adj_exec_free(e);
    adj_graph_free(g);
    return got;
}

/* ---- the product with the weights ---- */

/* A matrix of an axis' weights, a row for each element of the result; malloc'ed. */
static double *weights(const problem *p, int64_t in, int64_t out)
{
    const int64_t from = p->is_grad ? out : in;
    double *w = malloc((size_t)(in * out) * sizeof *w);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            w[p->is_grad ? i * from + o : o * from + i] = weight_of(&p->s, in, out, o, i);
    return w;
}

/* y = the sum over the columns of what x's rows are summed to, and size the same of absolute
 * values, of one row of the result. */
static void row_of(const problem *p, int64_t image, const double *by_row, const double *by_column,
                   double *line, double *y, double *size)
{
    const int64_t *from = p->from.dim, *to = p->to.dim, c = p->z.c;
    const double *x = p->x + image * from[1] * from[2] * c;
    memset(y, 0, (size_t)(to[2] * c) * sizeof *y);
    memset(size, 0, (size_t)(to[2] * c) * sizeof *size);
    memset(line, 0, 2 * (size_t)(from[2] * c) * sizeof *line);
    for (int64_t r = 0; r < from[1]; r++)
        for (int64_t i = 0; by_row[r] != 0 && i < from[2] * c; i++) {
            line[2 * i] += by_row[r] * x[r * from[2] * c + i];
            line[2 * i + 1] += fabs(by_row[r] * x[r * from[2] * c + i]);
        }
    for (int64_t j = 0; j < to[2]; j++)
        for (int64_t k = 0; k < from[2]; k++)
            for (int64_t i = 0; by_column[j * from[2] + k] != 0 && i < c; i++) {
                y[j * c + i] += by_column[j * from[2] + k] * line[2 * (k * c + i)];
                size[j * c + i] += by_column[j * from[2] + k] * line[2 * (k * c + i) + 1];
            }
}

static void expect_product(const problem *p, const void *got)
{
    const int64_t *to = p->to.dim, row = to[2] * p->z.c;
    const double u = p->dtype == ADJ_F32 ? 0 : p->dtype == ADJ_BF16 ? 0x1p-8 : 0x1p-11;
    double *by_row = weights(p, p->z.ih, p->z.oh), *by_column = weights(p, p->z.iw, p->z.ow);
    double *line = malloc(2 * (size_t)(p->from.dim[2] * p->z.c) * sizeof *line);
    double *y = malloc((size_t)row * sizeof *y), *size = malloc((size_t)row * sizeof *size);
    for (int64_t r = 0; r < to[0] * to[1]; r++) {
        row_of(p, r / to[1], by_row + r % to[1] * p->from.dim[1], by_column, line, y, size);
        for (int64_t i = 0; i < row; i++) {
            const double v = adj_load(p->dtype, got, r * row + i);
            const double bound = u * fabs(y[i]) + 0x1p-20 * size[i] + (u > 0 ? 0x1p-25 : 0);
            cr_assert(fabs(v - y[i]) <= bound,
                      "%s, %s, %d, %dx%d to %dx%d, %d channels: row %d, element %d: %g, not %g",
                      adj_dtype_name(p->dtype), p->is_grad ? "gradient" : "forward",
                      (int)(p->s.mode * COORDINATES + p->s.coordinates), (int)p->z.ih, (int)p->z.iw,
                      (int)p->z.oh, (int)p->z.ow, (int)p->z.c, (int)r, (int)i, v, y[i]);
        }
    }
    free(by_row);
    free(by_column);
    free(line);
    free(y);
    free(size);
}

/* The number of threads changes no bit. */
static void expect_resized(const sizes *z, adj_sampling s, adj_dtype dtype, int is_grad)
{
    problem p = build(z, s, dtype, is_grad);
    void *got = run(&p, 1, "resize:"), *of_three = run(&p, 3, "resize:");
    expect_product(&p, got);
    cr_assert_arr_eq(got, of_three, (size_t)adj_shape_elems(p.to) * adj_dtype_size(dtype));
    free(of_three);
    free(got);
    drop(&p);
}

static void for_each_way(const sizes *z, adj_dtype dtype)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int coordinates = 0; coordinates < COORDINATES; coordinates++)
            for (int is_grad = 0; is_grad < 2; is_grad++)
                expect_resized(z,
                               (adj_sampling){.mode = (adj_resize_mode)mode,
                                              .coordinates = (adj_coordinates)coordinates},
                               dtype, is_grad);
}

/* ---- tests ---- */

/* Larger and smaller, by whole numbers and not, to one and from one; and rows beyond a part. */
static void every_size(const char *isa)
{
    static const sizes all[] = {
        {2, 4, 4, 16, 8, 8},  {1, 3, 5, 1, 7, 11},       {3, 9, 8, 3, 4, 3},
        {1, 1, 1, 5, 6, 4},   {1, 6, 4, 5, 1, 1},        {2, 5, 5, 33, 5, 6},
        {1, 2, 300, 7, 3, 1}, {1, 2, 1, 7, 1, 300},      {1, 2, 130, 17, 3, 260},
        {1, 3, 3, 700, 2, 4}, {1, 2, 3, PART + 9, 3, 6}, {1, 30, 2, 300, 2, 50},
        {1, 2, PART, 1, 2, 3}};
    (void)isa;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int t = 0; t < DTYPES; t++)
            for_each_way(&all[i], dtypes[t]);
}

Test(direct_resize, every_size_and_way) { for_each_isa(N_ISA, all_isas, every_size); }

/* An element of weight 0 is not read: an infinity beside what is read stays out. */
Test(direct_resize, infinity_beside)
{
    const sizes z = {1, 3, 3, 2, 5, 5};
    problem p = build(&z, (adj_sampling){ADJ_BILINEAR, ADJ_ALIGN_CORNERS, ADJ_NHWC}, ADJ_F32, 0);
    for (int c = 0; c < 2; c++)
        ((float *)p.data)[(1 * 3 + 1) * 2 + c] = c == 0 ? INFINITY : NAN;
    float *got = run(&p, 1, "resize:");
    for (int i = 0; i < 5 * 5; i++) {
        const int reads = i / 5 > 0 && i / 5 < 4 && i % 5 > 0 && i % 5 < 4;
        cr_expect_eq(isinf(got[2 * i]) != 0, reads, "%d: %g", i, (double)got[2 * i]);
        cr_expect_eq(isnan(got[2 * i + 1]) != 0, reads, "%d: %g", i, (double)got[2 * i + 1]);
    }
    free(got);
    drop(&p);
}

/* What it refuses naive takes. */
Test(direct_resize, what_is_left_to_naive)
{
    const adj_sampling s = {.mode = ADJ_NEAREST};
    const sizes small = {1, 2, 2, 3, 4, 4}, long_sum = {1, 1, 1, 1, 1, PART + 1},
                large = {1, 1, 2, 1, 1, (1 << 16) + 2};
    const struct {
        const sizes *z;
        adj_dtype dtype;
        int is_grad;
    } cases[] = {{&small, ADJ_F64, 0}, {&long_sum, ADJ_F32, 1}, {&large, ADJ_F32, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        problem p = build(cases[i].z, s, cases[i].dtype, cases[i].is_grad);
        free(run(&p, 1, "naive"));
        drop(&p);
    }
}
