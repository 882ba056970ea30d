/* test_gradcheck_pattern.c - what a report says of wrong elements, word by word.
 *
 * Each case names the elements that a kernel gets wrong by a rule on their indices; the sentences
 * are literals. */
#include "spoil.h"

typedef int (*chosen)(const int64_t i[4], const int64_t dim[4]);
/* Has the kernel its fault for that geometry, by that many threads? */
typedef int (*condition)(const adj_conv_geom *g, int threads);

static struct {
    chosen at;
    double factor, more; /* v * factor + more */
    int swap;            /* instead: 1: axes 0 and 1; 2: [m, c] in place of [c, m] */
    int shift;           /* instead: the value at i + 1 of axis 1; at the end: 0 */
    condition when;      /* NULL: always */
} wrong;

static void spoil_chosen(const adj_node *n, int threads, void *y)
{
    const int64_t *d = n->type.shape.dim;
    if (wrong.when != NULL && !wrong.when(adj_node_geom(n), threads))
        return;
    int64_t elems = adj_shape_elems(n->type.shape);
    double sound[8192];
    cr_assert_leq(elems, 8192);
    adj_convert(n->type.dtype, y, ADJ_F64, sound, elems);
    for (int64_t k = 0; k < elems; k++) {
        const int64_t i[4] = {k / d[3] / d[2] / d[1], k / d[3] / d[2] % d[1], k / d[3] % d[2],
                              k % d[3]};
        double v = sound[k];
        if (wrong.shift)
            v = i[1] + 1 < d[1] ? sound[k + d[2] * d[3]] : 0;
        else if (wrong.swap == 2)
            v = sound[k / (d[2] * d[3]) * d[2] * d[3] + i[3] * d[2] + i[2]];
        else if (wrong.swap)
            v = sound[((i[1] * d[1] + i[0]) * d[2] + i[2]) * d[3] + i[3]];
        else if (wrong.at(i, d))
            v = v * wrong.factor + wrong.more;
        adj_store(n->type.dtype, y, k, v);
    }
}

static int top(const adj_conv_geom *g, int threads) { return (void)threads, g->pt > 0; }
static int bottom(const adj_conv_geom *g, int threads) { return (void)threads, g->pb > 0; }
static int left(const adj_conv_geom *g, int threads) { return (void)threads, g->pl > 0; }
static int right(const adj_conv_geom *g, int threads) { return (void)threads, g->pr > 0; }
static int padded(const adj_conv_geom *g, int threads) { return (void)threads, g->pt + g->pl > 0; }
static int dilated(const adj_conv_geom *g, int threads) { return (void)threads, g->dh > 1; }
static int threaded(const adj_conv_geom *g, int threads) { return (void)g, threads > 1; }

static int all(const int64_t i[4], const int64_t d[4]) { return (void)i, (void)d, 1; }
static int last0(const int64_t i[4], const int64_t d[4]) { return i[0] == d[0] - 1; }
static int first1(const int64_t i[4], const int64_t d[4]) { return (void)d, i[1] == 0; }
static int last1(const int64_t i[4], const int64_t d[4]) { return i[1] == d[1] - 1; }
static int last2(const int64_t i[4], const int64_t d[4]) { return i[2] == d[2] - 1; }
static int first2(const int64_t i[4], const int64_t d[4]) { return (void)d, i[2] == 0; }
static int two_last2(const int64_t i[4], const int64_t d[4]) { return i[2] >= d[2] - 2; }
static int odd1(const int64_t i[4], const int64_t d[4]) { return (void)d, i[1] % 2 == 1; }
static int third2(const int64_t i[4], const int64_t d[4]) { return (void)d, i[2] % 3 == 0; }
static int frame(const int64_t i[4], const int64_t d[4])
{
    return i[1] == 0 || i[2] == 0 || i[1] == d[1] - 1 || i[2] == d[2] - 1;
}
static int ends1(const int64_t i[4], const int64_t d[4]) { return i[1] == 0 || i[1] == d[1] - 1; }
static int channel2(const int64_t i[4], const int64_t d[4]) { return (void)d, i[3] == 2; }
static int from_2(const int64_t i[4], const int64_t d[4]) { return (void)d, i[3] >= 2; }
static int half3(const int64_t i[4], const int64_t d[4]) { return i[3] >= d[3] / 2; }
static int quarter0(const int64_t i[4], const int64_t d[4]) { return i[0] >= d[0] - d[0] / 4; }
static int middle3(const int64_t i[4], const int64_t d[4])
{
    return (void)d, i[3] == 2 || i[3] == 3;
}
static int corner(const int64_t i[4], const int64_t d[4])
{
    return i[0] == d[0] - 1 && i[1] == d[1] - 1;
}
static int scattered(const int64_t i[4], const int64_t d[4])
{
    return (i[1] * d[2] + i[2]) % 7 == 3 || (i[1] == 4 && i[2] == 4);
}

typedef struct {
    op_args args;
    const char *kernel;
    chosen at;
    double factor, more;
    int swap;
    const char *pattern, *hint;
    condition when;
    int threads; /* 0: 1 */
    int shift;
} told;

#define X "conv2d_backprop_input"
#define W "conv2d_backprop_filter"
#define CONV .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,4"

static const told cases[] = {
    {.args = {CONV},
     .kernel = W,
     .at = last0,
     .factor = 0.5,
     .pattern = "48 of 144 wrong, all with h=2 -> last kernel row",
     .hint = "sign ok, scaled by 0.5;  looks like: padding-bottom",
     .when = bottom},
    {.args = {CONV}, .kernel = W, .at = first2, .factor = 1, .more = 8},
    {.args = {CONV},
     .kernel = W,
     .at = first1,
     .pattern = "48 of 144 wrong, all with w=0 -> first kernel column",
     .hint = "missing: 0 where there is a gradient;  looks like: padding-left",
     .when = left},
    {.args = {CONV},
     .kernel = W,
     .at = last1,
     .factor = -1,
     .pattern = "48 of 144 wrong, all with w=2 -> last kernel column",
     .hint = "sign is flipped;  looks like: padding-right",
     .when = right},
    {.args = {CONV},
     .kernel = W,
     .at = corner,
     .factor = 2,
     .pattern =
         "16 of 144 wrong, all with h=2 -> last kernel row, all with w=2 -> last kernel column",
     .hint = "sign ok, scaled by 2;  looks like: padding-bottom",
     .when = bottom},
    {.args = {CONV, .padding = "VALID"},
     .kernel = W,
     .at = last0,
     .factor = 0.5,
     .pattern = "48 of 144 wrong, all with h=2 -> last kernel row",
     .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV},
     .kernel = W,
     .at = all,
     .factor = -1,
     .pattern = "144 of 144 wrong, every element",
     .hint = "sign is flipped"},
    {.args = {CONV},
     .kernel = W,
     .at = all,
     .factor = -2,
     .pattern = "144 of 144 wrong, every element",
     .hint = "sign is flipped, scaled by -2"},
    {.args = {CONV}, .kernel = W, .at = all, .factor = 1.01, .hint = "sign ok, scaled by 1.01"},
    {.args = {CONV}, .kernel = W, .swap = 1, .hint = ";  looks like: transposed, h and w swapped"},
    {.args = {CONV},
     .kernel = X,
     .at = last1,
     .factor = 0.5,
     .pattern = "64 of 512 wrong, all with h=7 -> last row",
     .hint = "sign ok, scaled by 0.5;  looks like: padding-bottom",
     .when = bottom},
    {.args = {CONV},
     .kernel = X,
     .at = first1,
     .factor = 0.5,
     .pattern = "64 of 512 wrong, all with h=0 -> first row",
     .hint = "sign ok, scaled by 0.5;  looks like: padding-top",
     .when = top},
    {.args = {CONV},
     .kernel = X,
     .at = last2,
     .factor = 0.5,
     .pattern = "64 of 512 wrong, all with w=7 -> last column",
     .hint = "sign ok, scaled by 0.5;  looks like: padding-right",
     .when = right},
    {.args = {CONV},
     .kernel = X,
     .at = two_last2,
     .factor = 0.5,
     .pattern = "128 of 512 wrong, all with w>=6 -> last 2 columns",
     .hint = "sign ok, scaled by 0.5;  looks like: padding-right",
     .when = right},
    {.args = {CONV},
     .kernel = X,
     .at = ends1,
     .factor = 0.5,
     .pattern = "128 of 512 wrong, all at both ends of h -> border rows",
     .hint = "sign ok, scaled by 0.5;  looks like: padding",
     .when = padded},
    {.args = {CONV},
     .kernel = X,
     .at = frame,
     .factor = 0.5,
     .pattern = "224 of 512 wrong, all on the border of h and w",
     .hint = "sign ok, scaled by 0.5;  looks like: padding",
     .when = padded},
    {.args = {CONV, .strides = "1,2,2,1"},
     .kernel = X,
     .at = odd1,
     .factor = 0.5,
     .pattern = "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     .hint = "sign ok, scaled by 0.5;  looks like: stride"},
    {.args = {CONV, .strides = "1,1,3,1"},
     .kernel = X,
     .at = third2,
     .factor = 0.5,
     .pattern = "192 of 512 wrong, all with w=0 mod 3 -> every 3rd column",
     .hint = "sign ok, scaled by 0.5;  looks like: stride"},
    {.args = {CONV, .dilations = "1,2,1,1"},
     .kernel = X,
     .at = odd1,
     .factor = 0.5,
     .pattern = "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     .hint = "sign ok, scaled by 0.5;  looks like: dilation",
     .when = dilated},
    {.args = {CONV},
     .kernel = X,
     .at = odd1,
     .factor = 0.5,
     .pattern = "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV},
     .kernel = X,
     .at = channel2,
     .factor = 0.5,
     .pattern = "128 of 512 wrong, all with c=2 -> one channel",
     .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV}, .kernel = X, .at = scattered, .factor = 0.5, .hint = "sign ok, scaled by 0.5"},
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,4,6"},
     .kernel = X,
     .at = half3,
     .factor = 0.5,
     .pattern = "100 of 200 wrong, all with c>=4 -> last 4 channels",
     .hint = "sign ok, scaled by 0.5;  looks like: group"},
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     .kernel = W,
     .at = half3,
     .factor = 0.5,
     .pattern = "72 of 144 wrong, all with o>=4 -> last 4 output channels",
     .hint = "sign ok, scaled by 0.5;  looks like: one thread's share",
     .when = threaded,
     .threads = 2},
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     .kernel = W,
     .at = channel2,
     .factor = 0.5,
     .pattern = "18 of 144 wrong, all with o=2 -> one output channel",
     .hint = "sign ok, scaled by 0.5;  looks like: right by one thread",
     .when = threaded,
     .threads = 2},
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     .kernel = W,
     .at = half3,
     .factor = 0.5,
     .hint = "sign ok, scaled by 0.5",
     .threads = 2},
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     .kernel = X,
     .at = middle3,
     .factor = 0.5,
     .pattern = "50 of 200 wrong, all with c=2..3 -> 2 channels",
     .hint = "sign ok, scaled by 0.5;  looks like: group"},
    {.args = {.op = "conv2d", .in = "8,4,4,2", .filter = "1,1,2,2"},
     .kernel = X,
     .at = quarter0,
     .pattern = "64 of 256 wrong, all with n>=6 -> last 2 images",
     .hint = "missing: 0 where there is a gradient;  looks like: one thread's share",
     .when = threaded,
     .threads = 4},
    /* all but the first group */
    {.args = {.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     .kernel = X,
     .at = from_2,
     .factor = 0.5,
     .pattern = "150 of 200 wrong, all with c>=2 -> last 6 channels",
     .hint = "sign ok, scaled by 0.5;  looks like: group"},
    {.args = {CONV}, .kernel = X, .at = from_2, .factor = 0.5, .hint = "sign ok, scaled by 0.5"},
    /* what only looks like it: wrong without padding and dilation as well */
    {.args = {CONV}, .kernel = X, .at = first1, .factor = 0.5, .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV}, .kernel = X, .at = frame, .factor = 0.5, .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV}, .kernel = W, .at = last0, .factor = 0.5, .hint = "sign ok, scaled by 0.5"},
    {.args = {CONV, .dilations = "1,2,1,1"},
     .kernel = X,
     .at = odd1,
     .factor = 0.5,
     .hint = "sign ok, scaled by 0.5"},
    /* wrong with padding alone, but where that cannot reach */
    {.args = {CONV},
     .kernel = X,
     .at = all,
     .factor = 0.5,
     .hint = "sign ok, scaled by 0.5",
     .when = top},
    {.args = {CONV}, .kernel = X, .hint = ";  looks like: off by one in h", .shift = 1},
    {.args = {CONV},
     .kernel = X,
     .at = all,
     .factor = 64,
     .hint = "sign ok, scaled by 64;  looks like: 1/n missing, n = 64 (height times width)"},
    {.args = {CONV},
     .kernel = W,
     .at = all,
     .factor = 0.0078125,
     .hint = "sign ok, scaled by 0.007813;  looks like: 1/n once too often, n = 128 (batch times "
             "height "
             "and width)"},
    {.args = {CONV}, .kernel = X, .at = all, .factor = 3, .hint = "sign ok, scaled by 3"},
    {.args = {.op = "depthwise_conv2d_native", .in = "1,6,6,2", .filter = "3,3,2,4"},
     .kernel = "depthwise_conv2d_native_backprop_filter",
     .swap = 2,
     .hint = ";  looks like: multiplier transposed"},
    {.args = {.op = "depthwise_conv2d_native", .in = "1,6,6,2", .filter = "3,3,2,4"},
     .kernel = "depthwise_conv2d_native_backprop_filter",
     .at = channel2,
     .factor = 0.5,
     .pattern = "18 of 72 wrong, all with m=2 -> one multiple",
     .hint = "sign ok, scaled by 0.5"},
};

/* The words of the failing row. */
static void expect_words(size_t i, const told *t)
{
    const adj_gradcheck_opts o = {.seed = 5,
                                  .threads = t->threads > 0 ? t->threads : 1,
                                  .draws = 1,
                                  .method = ADJ_GRADCHECK_DIRECTIONAL};
    adj_graph *g = adj_graph_new();
    int failed = 0;
    spoiled.op = t->kernel;
    spoiled.spoil = spoil_chosen;
    wrong.at = t->at;
    wrong.factor = t->factor;
    wrong.more = t->more;
    wrong.swap = t->swap;
    wrong.shift = t->shift;
    wrong.when = t->when;
    adj_gradcheck_report *r = check_spoiled(g, &t->args, &o);
    for (int k = 0; k < adj_gradcheck_row_count(r); k++) {
        const adj_gradcheck_row *w = adj_gradcheck_row_at(r, k);
        if (w->result != ADJ_GRADCHECK_FAIL)
            continue;
        failed++;
        if (t->pattern != NULL)
            cr_expect_str_eq(w->pattern, t->pattern, "case %zu: %s", i, w->pattern);
        if (t->hint != NULL && t->hint[0] == ';')
            cr_expect_not_null(strstr(w->hint, t->hint), "case %zu: %s", i, w->hint);
        else if (t->hint != NULL)
            cr_expect_str_eq(w->hint, t->hint, "case %zu: %s", i, w->hint);
        if (t->at == scattered)
            cr_expect_null(strstr(w->pattern, "all"), "case %zu: %s", i, w->pattern);
    }
    cr_expect_eq(failed, 1, "case %zu", i);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

Test(gradcheck_pattern, words)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(i, &cases[i]);
}

/* The example of docs/checking.md is what is printed. */
Test(gradcheck_pattern, readme)
{
    static char readme[1 << 16];
    const op_args args = {.op = "depthwise_conv2d_native",
                          .in = "1,8,9,9",
                          .filter = "3,3,8,2",
                          .data_format = "NCHW"};
    const adj_gradcheck_opts o = {.seed = 42, .threads = 1};
    FILE *f = fopen("docs/checking.md", "r");
    cr_assert_not_null(f);
    readme[fread(readme, 1, sizeof readme - 1, f)] = '\0';
    fclose(f);
    spoiled.op = "depthwise_conv2d_native_backprop_filter";
    spoiled.spoil = spoil_chosen;
    wrong.at = last0;
    wrong.factor = wrong.more = wrong.swap = wrong.shift = 0;
    wrong.when = bottom;

    adj_graph *g = adj_graph_new();
    adj_gradcheck_report *r = check_spoiled(g, &args, &o);
    char *printed = NULL;
    size_t size;
    f = open_memstream(&printed, &size);
    adj_gradcheck_print(f, r);
    fclose(f);
    cr_expect_eq(adj_gradcheck_result_count(r, ADJ_GRADCHECK_FAIL), 1, "%s", printed);
    int details = 0;
    for (char *line = strtok(printed, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strncmp(line, "   ", 3) == 0) {
            cr_expect_not_null(strstr(readme, line), "not in docs/checking.md: %s", line);
            details++;
        }
    cr_expect_eq(details, 4);
    free(printed);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}
