/* test_compare_noise.c - the RMS error of a whole result: sequential f32 sums stay within the
 * bound; a systematic error that is small beside each element's bound does not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/grad.h"
#include "tests/check/spoil.h"

enum { CHANNELS = 64, SIDE = 72, PIXELS = SIDE * SIDE };

typedef enum { SOUND, LEFT_OUT, SCALED, ONE_TERM, N_FAULT } fault;
static fault planted;

/* Sums over pixels. LEFT_OUT: 64 of 5,184 pixels; SCALED: by 2^-11; ONE_TERM: a term is off by a
 * hundredth. */
static adj_status run(const adj_call *c)
{
    const adj_shape shape = c->group->in[0]->type.shape;
    const int64_t channels = shape.dim[3], pixels = adj_shape_elems(shape) / channels;
    const float *dy = c->in[0];
    float *db = c->out[0];
    memset(db, 0, (size_t)channels * sizeof *db);
    for (int64_t i = 0; i < pixels; i++) {
        if (planted == LEFT_OUT && i % 81 == 80)
            continue;
        for (int64_t k = 0; k < channels; k++)
            db[k] += planted == ONE_TERM && i == pixels / 2 ? 1.01F * dy[i * channels + k]
                                                            : dy[i * channels + k];
    }
    for (int64_t k = 0; k < channels && planted == SCALED; k++)
        db[k] *= 1 + 0x1p-11F;
    return ADJ_OK;
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    (void)uses, (void)max;
    group[0] = root;
    return root->op == &adj_op_bias_add_grad;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g;
    strcpy(p->impl, "sequential");
    return candidate > 0 ? ADJ_ENOKERNEL : ADJ_OK;
}

static const adj_kernel kernel = {
    .name = "bias_add_grad", .match = match, .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend backend = {.version = ADJ_VERSION,
                                    .name = "crooked",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};

/* Values of either sign, positive ones, and one value a channel. */
typedef enum { SIGNED, POSITIVE, REPEATED, N_KIND } kind;

static compare_row row_of(fault f, kind values, int64_t rows, int64_t channels)
{
    const adj_backend *const backends[] = {&backend, naive_backend(), NULL};
    const int64_t n = rows * SIDE * channels;
    float *v = malloc((size_t)n * sizeof *v);
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, rows, SIDE, channels}});
    const adj_leaf_value value = {x, v};
    cr_assert_not_null(v);
    adj_draw(ADJ_F32, v, n,
             (adj_init){.kind = ADJ_INIT_UNIFORM, .a = values == SIGNED ? -1 : 0, .b = 1}, 3, 0);
    for (int64_t i = channels; i < n && values == REPEATED; i++)
        v[i] = v[i - channels];
    planted = f;
    const adj_comparison *c =
        compared(adj_bias_add_grad(x, ADJ_NHWC), "crooked",
                 (adj_compare_opts){
                     .exec.seed = 3, .n_value = 1, .value = &value, .exec.backends = backends});
    compare_row row = *adj_comparison_row_at(c, 0);
    cr_expect_str_eq(row.implementation, "sequential");
    if (row.verdict == ADJ_VERDICT_FAIL && row.isolated.noise > row.isolated.noise_limit)
        cr_expect_not_null(strstr(row.reason, "the whole result: RMS error"), "%s", row.reason);
    adj_comparison_free(c);
    adj_graph_free(g);
    free(v);
    return row;
}

Test(compare_noise, sequential_sums_are_sound)
{
    for (kind k = SIGNED; k < N_KIND; k++) {
        const compare_row row = row_of(SOUND, k, SIDE, CHANNELS);
        cr_expect_eq(row.verdict, ADJ_VERDICT_PASS);
        cr_expect_eq(row.isolated.distinct, CHANNELS);
        cr_expect_leq(row.isolated.noise, 0.7 * row.isolated.noise_limit, "%d: %g", (int)k,
                      row.isolated.noise);
    }
}

/* Most are within every element's bound. */
Test(compare_noise, faults_of_the_whole_result)
{
    for (fault f = LEFT_OUT; f < N_FAULT; f++)
        for (kind k = SIGNED; k < N_KIND; k++) {
            const int64_t rows = f == ONE_TERM ? 1 : SIDE;
            const compare_row row = row_of(f, k, rows, CHANNELS);
            cr_expect_eq(row.verdict, ADJ_VERDICT_FAIL, "%d %d: %g", (int)f, (int)k,
                         row.isolated.noise);
            cr_expect_eq(row.blame, ADJ_BLAME_KERNEL);
            cr_expect_gt(row.isolated.noise, row.isolated.noise_limit);
            cr_expect_gt(row.isolated.rms, 0);
        }
    cr_expect_eq(row_of(SCALED, SIGNED, SIDE, CHANNELS).isolated.wrong, 0);
}

/* The mean of few errors is uncertain: their limit is wider. */
Test(compare_noise, of_few_values)
{
    const compare_row row = row_of(SOUND, SIGNED, SIDE, 8);
    cr_expect_eq(row.verdict, ADJ_VERDICT_PASS);
    cr_expect_lt(row.isolated.noise, 0.7 * row.isolated.noise_limit);
    cr_expect_eq(row_of(SCALED, SIGNED, SIDE, 8).verdict, ADJ_VERDICT_FAIL);
}

/* A step below half of the distance between two numbers of the type moves every value to one side,
 * and rounding takes all of it back: that is no bias. */
Test(compare_noise, of_steps_that_rounding_takes_back)
{
    static const char *const configs[] = {"naive:f64", "naive", "onednn"};
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_BF16, (adj_shape){2, {64, 64}});
    adj_node *y = adj_scale(x, 0.999);
    const adj_compare_opts o = {
        .exec.n_fetch = 1, .exec.fetch = &y, .n_config = 3, .config = configs};
    const adj_comparison *c;
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK);
    cr_expect_eq(c->n_failed, 0, "%s", adj_comparison_row_at(c, 0)->reason);
    adj_comparison_free(c);
    adj_graph_free(g);
}

/* Different values near one number of the type are all rounded to it, to one side. */
Test(compare_noise, of_values_that_are_stored_alike)
{
    enum { N = 512 };
    static const char *const configs[] = {"naive:f64", "naive"};
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = 1 + 0x1p-20F * (float)i;
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    adj_node *y = adj_cast(x, ADJ_BF16);
    const adj_leaf_value value = {x, v};
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .n_config = 2,
                                .config = configs,
                                .n_value = 1,
                                .value = &value};
    const adj_comparison *c;
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK);
    cr_expect_eq(c->n_failed, 0, "%s", adj_comparison_row_at(c, 0)->reason);
    adj_comparison_free(c);
    adj_graph_free(g);
}
