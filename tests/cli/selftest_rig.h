/* selftest_rig.h - what the tests of adjoint selftest share: its command line, the text of a
 * file, and whether an executor that is given a quarantine file computes filter gradients right. */
#ifndef TESTS_CLI_SELFTEST_RIG_H
#define TESTS_CLI_SELFTEST_RIG_H

#include "adjoint_ext.h"
#include "cli/child.h"
#include "io/folder.h"

/* "selftest --out OUT", then "--resume", or the NULL-ended choice of cases. */
static inline void selftest_words(const char *words[ARGUMENTS], const char *out,
                                  const char *const choice[])
{
    memset(words, 0, ARGUMENTS * sizeof *words);
    words[0] = "selftest";
    words[1] = "--out";
    words[2] = out;
    if (choice == NULL)
        words[3] = "--resume";
    for (int i = 0; choice != NULL && choice[i] != NULL; i++)
        words[3 + i] = choice[i];
}

static inline char *text_of(const char *path, char text[PRINTED])
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    text[fread(text, 1, PRINTED - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* ---- what an executor does with the file ---- */

typedef struct {
    adj_dtype dtype;
    int64_t n, h, w, ic, oc, k, stride, dilation;
} layer;

/* x and dy are small integers: every sum is exact, and the result in bf16 one rounding away. */
static inline double value_at(int64_t i, int64_t seed)
{
    return (double)((i * 7 + seed) * 13 % 5 - 2);
}

/* dw[kh,kw,c,o], NHWC, VALID. */
static inline double expected_at(const layer *l, int64_t i)
{
    int64_t o = i % l->oc, c = i / l->oc % l->ic, kw = i / l->oc / l->ic % l->k;
    int64_t kh = i / l->oc / l->ic / l->k;
    int64_t oh = (l->h - (l->k - 1) * l->dilation - 1) / l->stride + 1;
    int64_t ow = (l->w - (l->k - 1) * l->dilation - 1) / l->stride + 1;
    double sum = 0;
    for (int64_t n = 0; n < l->n; n++)
        for (int64_t a = 0; a < oh; a++)
            for (int64_t b = 0; b < ow; b++) {
                int64_t h = n * l->h + a * l->stride + kh * l->dilation;
                int64_t w = b * l->stride + kw * l->dilation, y = (n * oh + a) * ow + b;
                sum += value_at((h * l->w + w) * l->ic + c, 1) * value_at(y * l->oc + o, 2);
            }
    return sum;
}

static inline float rounded(adj_dtype dtype, double v)
{
    float single = (float)v;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (dtype == ADJ_BF16)
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U;
    memcpy(&single, &bits, sizeof bits);
    return single;
}

/* As stored: f32, or the upper half of one. */
static inline void *values(const layer *l, int64_t n, int64_t seed)
{
    float *all = malloc((size_t)n * sizeof *all);
    uint16_t *half = (uint16_t *)all;
    for (int64_t i = 0; i < n; i++) {
        float v = (float)value_at(i, seed);
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (l->dtype == ADJ_F32)
            all[i] = v;
        else
            half[i] = (uint16_t)(bits >> 16);
    }
    return all;
}

/* Runs the layer's filter gradient on these backends (NULL: the library's); the implementation that
 * computed it goes to impl. How many numbers are wrong. */
static inline int64_t wrong_numbers(const layer *l, const adj_backend *const *backends,
                                    const char *quarantine, char impl[64])
{
    adj_graph *g = adj_graph_new();
    int64_t oh = (l->h - (l->k - 1) * l->dilation - 1) / l->stride + 1;
    int64_t ow = (l->w - (l->k - 1) * l->dilation - 1) / l->stride + 1, wrong = 0;
    adj_shape xs = {4, {l->n, l->h, l->w, l->ic}}, ws = {4, {l->k, l->k, l->ic, l->oc}};
    adj_shape ys = {4, {l->n, oh, ow, l->oc}};
    const adj_conv a = {.stride = {1, l->stride, l->stride, 1},
                        .dilation = {1, l->dilation, l->dilation, 1}};
    adj_node *x = adj_input(g, "x", l->dtype, xs), *dy = adj_input(g, "dy", l->dtype, ys);
    adj_node *dw = adj_conv2d_backprop_filter(x, ws, dy, &a);
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &dw,
                       .backend = "onednn",
                       .debug.backends = backends,
                       .debug.quarantine = quarantine,
                       .threads = 2,
                       .debug.canaries = 1};
    adj_exec *e = NULL;
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    void *xv = values(l, adj_shape_elems(xs), 1), *dyv = values(l, adj_shape_elems(ys), 2);
    size_t each = adj_dtype_size(l->dtype);
    cr_assert_eq(adj_set(e, x, xv, (size_t)adj_shape_elems(xs) * each), ADJ_OK);
    cr_assert_eq(adj_set(e, dy, dyv, (size_t)adj_shape_elems(ys) * each), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    int64_t n = adj_shape_elems(ws);
    void *got = malloc((size_t)n * sizeof(float));
    cr_assert_eq(adj_get(e, dw, got, (size_t)n * each), ADJ_OK);
    for (int64_t i = 0; i < n; i++) {
        float v = rounded(l->dtype, expected_at(l, i)), is;
        uint32_t bits = l->dtype == ADJ_BF16 ? (uint32_t)((uint16_t *)got)[i] << 16 : 0;
        memcpy(&is, l->dtype == ADJ_BF16 ? (void *)&bits : (void *)&((float *)got)[i], sizeof is);
        wrong += !(is == v);
    }
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (adj_exec_step_at(e, i).node == dw && adj_exec_step_at(e, i).n_node > 0)
            snprintf(impl, 64, "%s", adj_exec_step_at(e, i).impl);
    free(xv);
    free(dyv);
    free(got);
    adj_exec_free(e);
    adj_graph_free(g);
    return wrong;
}

#endif
