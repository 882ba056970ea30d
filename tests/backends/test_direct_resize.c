/* test_direct_resize.c - direct resize and its gradient against the reference: every instruction
 * set, type, way to sample, and sizes around the parts that rows are cut into. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "candidates.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/isa.h"
#include "tests/plan.h"
#include "tests/resize_reference.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3, MODES = 2, COORDINATES = 3, PART = 2048 /* RESIZE_BLOCK */, MAX_SUM = 256 };

/* ---- one case ---- */

typedef struct {
    resize_sizes z;
    adj_sampling s;
    adj_dtype dtype;
    int is_grad;
    adj_shape src, dst;
    fixture f; /* its input is the operand */
    double *x; /* the operand's values */
    adj_node *y;
} problem;

static problem build(const resize_sizes *z, adj_sampling s, adj_dtype dtype, int is_grad)
{
    const adj_shape small = {4, {z->n, z->ih, z->iw, z->c}},
                    large = {4, {z->n, z->oh, z->ow, z->c}};
    problem p = {.z = *z,
                 .s = s,
                 .dtype = dtype,
                 .is_grad = is_grad,
                 .src = is_grad ? large : small,
                 .dst = is_grad ? small : large,
                 .f = fixture_new()};
    adj_node *x = given_random(&p.f, dtype, p.src, -1, 1);
    p.x = p.f.value[0];
    p.y = is_grad ? adj_resize_grad(x, z->ih, z->iw, &s) : adj_resize(x, z->oh, z->ow, &s);
    return p;
}

static void drop(problem *p) { fixture_free(&p->f); }

static void expect_product(const problem *p, const double *got)
{
    const int64_t row = p->dst.dim[2] * p->z.c;
    const double u = p->dtype == ADJ_F32 ? 0 : p->dtype == ADJ_BF16 ? 0x1p-8 : 0x1p-11;
    scoped(resized_free) resized want = resize_reference(&p->z, &p->s, p->is_grad, p->x);
    for (int64_t i = 0; i < adj_shape_elems(p->dst); i++) {
        const double y = want.y[i];
        const double bound = u * fabs(y) + 0x1p-20 * want.size[i] + (u > 0 ? 0x1p-25 : 0);
        cr_assert(fabs(got[i] - y) <= bound,
                  "%s, %s, %d, %dx%d to %dx%d, %d channels: row %d, element %d: %g, not %g",
                  adj_dtype_name(p->dtype), p->is_grad ? "gradient" : "forward",
                  (int)(p->s.mode * COORDINATES + p->s.coordinates), (int)p->z.ih, (int)p->z.iw,
                  (int)p->z.oh, (int)p->z.ow, (int)p->z.c, (int)(i / row), (int)(i % row), got[i],
                  y);
    }
}

/* The number of threads changes no bit. */
static void expect_resized(const resize_sizes *z, adj_sampling s, adj_dtype dtype, int is_grad,
                           const char *impl)
{
    scoped(drop) problem p = build(z, s, dtype, is_grad);
    scoped(release) double *got = evaluate_by(&p.f, p.y, impl, 1),
                           *of_three = evaluate_by(&p.f, p.y, impl, 3);
    expect_product(&p, got);
    cr_assert_arr_eq(got, of_three, (size_t)adj_shape_elems(p.dst) * sizeof *got);
}

static void for_each_way(const resize_sizes *z, adj_dtype dtype, const char *impl)
{
    for (int mode = 0; mode < MODES; mode++)
        for (int coordinates = 0; coordinates < COORDINATES; coordinates++)
            for (int is_grad = 0; is_grad < 2; is_grad++)
                expect_resized(z,
                               (adj_sampling){.mode = (adj_resize_mode)mode,
                                              .coordinates = (adj_coordinates)coordinates},
                               dtype, is_grad, impl);
}

/* ---- tests ---- */

/* Larger and smaller, by whole numbers and not, to one and from one; rows beyond a part, and such
 * of which most is not read. */
static void every_size(const char *isa)
{
    static const resize_sizes all[] = {
        {2, 4, 4, 16, 8, 8},   {1, 3, 5, 1, 7, 11},       {3, 9, 8, 3, 4, 3},
        {1, 1, 1, 5, 6, 4},    {1, 6, 4, 5, 1, 1},        {2, 5, 5, 33, 5, 6},
        {1, 2, 200, 7, 3, 1},  {1, 2, 1, 7, 1, 200},      {1, 2, 130, 17, 3, 260},
        {1, 3, 3, 700, 2, 4},  {1, 2, 3, PART + 9, 3, 6}, {1, 30, 2, 300, 2, 50},
        {1, 2, PART, 1, 2, 9}, {1, 5, 600, 3, 2, 7},      {1, 5, 90, 40, 2, 9}};
    char impl[32];
    snprintf(impl, sizeof impl, "resize:%s", isa);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int t = 0; t < DTYPES; t++)
            for_each_way(&all[i], dtypes[t], impl);
}

Test(direct_resize, every_size_and_way) { for_each_isa(N_ISA, all_isas, every_size); }

/* An element of weight 0 is not read: an infinity beside what is read stays out. */
Test(direct_resize, infinity_beside)
{
    const resize_sizes z = {1, 3, 3, 2, 5, 5};
    const adj_sampling corners = {ADJ_BILINEAR, ADJ_ALIGN_CORNERS, ADJ_NHWC};
    scoped(drop) problem p = build(&z, corners, ADJ_F32, 0);
    for (int c = 0; c < 2; c++)
        p.x[(1 * 3 + 1) * 2 + c] = c == 0 ? INFINITY : NAN;
    scoped(release) double *got = evaluate_by(&p.f, p.y, "resize:", 1);
    for (int i = 0; i < 5 * 5; i++) {
        const int reads = i / 5 > 0 && i / 5 < 4 && i % 5 > 0 && i % 5 < 4;
        cr_expect_eq(isinf(got[2 * i]) != 0, reads, "%d: %g", i, got[2 * i]);
        cr_expect_eq(isnan(got[2 * i + 1]) != 0, reads, "%d: %g", i, got[2 * i + 1]);
    }
}

/* 256 tenths are summed along each axis, in float. */
Test(direct_resize, the_longest_sums)
{
    const resize_sizes z = {1, 1, 1, 16, MAX_SUM, MAX_SUM};
    scoped(drop) problem p = build(&z, (adj_sampling){.mode = ADJ_NEAREST}, ADJ_F32, 1);
    for (int64_t i = 0; i < adj_shape_elems(p.src); i++)
        p.x[i] = (double)0.1F;
    scoped(release) double *got = evaluate_by(&p.f, p.y, "resize:", 1);
    const double want = (double)0.1F * MAX_SUM * MAX_SUM;
    for (int c = 0; c < 16; c++)
        cr_expect_float_eq(got[c], want, 5e-6 * want, "%g, not %g", got[c], want);
}

static void expect_refused(const resize_sizes *z, adj_dtype dtype, adj_format format, int is_grad,
                           const char *why)
{
    scoped(fixture_free) fixture f = fixture_new();
    const int is_nhwc = format == ADJ_NHWC;
    const int64_t h = is_grad ? z->oh : z->ih, w = is_grad ? z->ow : z->iw;
    const adj_shape shape =
        is_nhwc ? (adj_shape){4, {z->n, h, w, z->c}} : (adj_shape){4, {z->n, z->c, h, w}};
    const adj_sampling s = {.mode = ADJ_NEAREST, .format = format};
    adj_node *x = given_random(&f, dtype, shape, -1, 1);
    const adj_node *y =
        is_grad ? adj_resize_grad(x, z->ih, z->iw, &s) : adj_resize(x, z->oh, z->ow, &s);
    scoped(backend_close) test_backend t = backend_open("direct");
    expect_no_kernel(&f, &t, "resize", 1, &y, why);
}

Test(direct_resize, refused)
{
    enum { TOO_LARGE = (1 << 16) + 2 };
    const resize_sizes small = {1, 2, 2, 3, 4, 4};
    expect_refused(&small, ADJ_F64, ADJ_NHWC, 0, "f64 or NCHW");
    expect_refused(&small, ADJ_F32, ADJ_NCHW, 0, "f64 or NCHW");
    expect_refused(&(resize_sizes){1, TOO_LARGE, 1, 1, 1, 1}, ADJ_F32, ADJ_NHWC, 0,
                   "at most 65536");
    expect_refused(&(resize_sizes){1, 1, 1, 1, 2, TOO_LARGE}, ADJ_F32, ADJ_NHWC, 0,
                   "at most 65536");
    expect_refused(&(resize_sizes){1, 1, 2, 1, MAX_SUM + 1, 2}, ADJ_F32, ADJ_NHWC, 1,
                   "sums at most 256");
    expect_refused(&(resize_sizes){1, 2, 1, 1, 2, MAX_SUM + 1}, ADJ_F32, ADJ_NHWC, 1,
                   "sums at most 256");
}
