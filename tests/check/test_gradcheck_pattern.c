/* test_gradcheck_pattern.c - what a report says of wrong elements, word by word.
 *
 * Each case names the elements that a kernel gets wrong by a rule on their indices; the sentences
 * are literals. */
#include "spoil.h"

typedef int (*chosen)(const int64_t i[4], const int64_t dim[4]);

static struct {
    chosen at;
    double factor, more; /* v * factor + more */
    int swap;            /* instead: axes 0 and 1 */
} wrong;

static void spoil_chosen(const adj_node *n, int threads, void *y)
{
    (void)threads;
    const int64_t *d = n->type.shape.dim;
    int64_t elems = adj_shape_elems(n->type.shape);
    double sound[8192];
    cr_assert_leq(elems, 8192);
    adj_convert(n->type.dtype, y, ADJ_F64, sound, elems);
    for (int64_t k = 0; k < elems; k++) {
        const int64_t i[4] = {k / d[3] / d[2] / d[1], k / d[3] / d[2] % d[1], k / d[3] % d[2],
                              k % d[3]};
        double v = sound[k];
        if (wrong.swap)
            v = sound[((i[1] * d[1] + i[0]) * d[2] + i[2]) * d[3] + i[3]];
        else if (wrong.at(i, d))
            v = v * wrong.factor + wrong.more;
        adj_store(n->type.dtype, y, k, v);
    }
}

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
} told;

#define X "conv2d_backprop_input"
#define W "conv2d_backprop_filter"
#define CONV .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,4"

static const told cases[] = {
    {{CONV},
     W,
     last0,
     0.5,
     0,
     0,
     "48 of 144 wrong, all with h=2 -> last kernel row",
     "sign ok, scaled by 0.5;  looks like: padding-bottom"},
    {{CONV}, W, first2, 1, 8, 0, NULL, NULL},
    {{CONV},
     W,
     first1,
     0,
     0,
     0,
     "48 of 144 wrong, all with w=0 -> first kernel column",
     "missing: 0 where there is a gradient;  looks like: padding-left"},
    {{CONV},
     W,
     last1,
     -1,
     0,
     0,
     "48 of 144 wrong, all with w=2 -> last kernel column",
     "sign is flipped;  looks like: padding-right"},
    {{CONV},
     W,
     corner,
     2,
     0,
     0,
     "16 of 144 wrong, all with h=2 -> last kernel row, all with w=2 -> last kernel column",
     "sign ok, scaled by 2;  looks like: padding-bottom"},
    {{CONV, .padding = "VALID"},
     W,
     last0,
     0.5,
     0,
     0,
     "48 of 144 wrong, all with h=2 -> last kernel row",
     "sign ok, scaled by 0.5"},
    {{CONV}, W, all, -1, 0, 0, "144 of 144 wrong, every element", "sign is flipped"},
    {{CONV}, W, all, -2, 0, 0, "144 of 144 wrong, every element", "sign is flipped, scaled by -2"},
    {{CONV}, W, all, 1.01, 0, 0, NULL, "sign ok, scaled by 1.01"},
    {{CONV}, W, NULL, 0, 0, 1, NULL, ";  looks like: transposed, h and w swapped"},
    {{CONV},
     X,
     last1,
     0.5,
     0,
     0,
     "64 of 512 wrong, all with h=7 -> last row",
     "sign ok, scaled by 0.5;  looks like: padding-bottom"},
    {{CONV},
     X,
     first1,
     0.5,
     0,
     0,
     "64 of 512 wrong, all with h=0 -> first row",
     "sign ok, scaled by 0.5;  looks like: padding-top"},
    {{CONV},
     X,
     last2,
     0.5,
     0,
     0,
     "64 of 512 wrong, all with w=7 -> last column",
     "sign ok, scaled by 0.5;  looks like: padding-right"},
    {{CONV},
     X,
     two_last2,
     0.5,
     0,
     0,
     "128 of 512 wrong, all with w>=6 -> last 2 columns",
     "sign ok, scaled by 0.5;  looks like: padding-right"},
    {{CONV},
     X,
     ends1,
     0.5,
     0,
     0,
     "128 of 512 wrong, all at both ends of h -> border rows",
     "sign ok, scaled by 0.5;  looks like: padding"},
    {{CONV},
     X,
     frame,
     0.5,
     0,
     0,
     "224 of 512 wrong, all on the border of h and w",
     "sign ok, scaled by 0.5;  looks like: padding"},
    {{CONV, .strides = "1,2,2,1"},
     X,
     odd1,
     0.5,
     0,
     0,
     "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     "sign ok, scaled by 0.5;  looks like: stride"},
    {{CONV, .strides = "1,1,3,1"},
     X,
     third2,
     0.5,
     0,
     0,
     "192 of 512 wrong, all with w=0 mod 3 -> every 3rd column",
     "sign ok, scaled by 0.5;  looks like: stride"},
    {{CONV, .dilations = "1,2,1,1"},
     X,
     odd1,
     0.5,
     0,
     0,
     "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     "sign ok, scaled by 0.5;  looks like: dilation"},
    {{CONV},
     X,
     odd1,
     0.5,
     0,
     0,
     "256 of 512 wrong, all with h=1 mod 2 -> every 2nd row",
     "sign ok, scaled by 0.5"},
    {{CONV},
     X,
     channel2,
     0.5,
     0,
     0,
     "128 of 512 wrong, all with c=2 -> one channel",
     "sign ok, scaled by 0.5"},
    {{CONV}, X, scattered, 0.5, 0, 0, NULL, "sign ok, scaled by 0.5"},
    {{.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,4,6"},
     X,
     half3,
     0.5,
     0,
     0,
     "100 of 200 wrong, all with c>=4 -> last 4 channels",
     "sign ok, scaled by 0.5;  looks like: one group"},
    {{.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     W,
     half3,
     0.5,
     0,
     0,
     "72 of 144 wrong, all with o>=4 -> last 4 output channels",
     "sign ok, scaled by 0.5;  looks like: one thread's share"},
    {{.op = "conv2d", .in = "1,5,5,8", .filter = "3,3,2,8"},
     X,
     middle3,
     0.5,
     0,
     0,
     "50 of 200 wrong, all with c=2..3 -> 2 channels",
     "sign ok, scaled by 0.5;  looks like: one group"},
    {{.op = "conv2d", .in = "8,4,4,2", .filter = "1,1,2,2"},
     X,
     quarter0,
     0,
     0,
     0,
     "64 of 256 wrong, all with n>=6 -> last 2 images",
     "missing: 0 where there is a gradient;  looks like: one thread's share"},
    {{.op = "depthwise_conv2d_native", .in = "1,6,6,2", .filter = "3,3,2,4"},
     "depthwise_conv2d_native_backprop_filter",
     channel2,
     0.5,
     0,
     0,
     "18 of 72 wrong, all with m=2 -> one multiple",
     "sign ok, scaled by 0.5"},
};

/* The words of the failing row. */
static void expect_words(size_t i, const told *t)
{
    const adj_gradcheck_opts o = {
        .seed = 5, .threads = 1, .draws = 1, .method = ADJ_GRADCHECK_DIRECTIONAL};
    adj_graph *g = adj_graph_new();
    int failed = 0;
    spoiled.op = t->kernel;
    spoiled.spoil = spoil_chosen;
    wrong.at = t->at;
    wrong.factor = t->factor;
    wrong.more = t->more;
    wrong.swap = t->swap;
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
    wrong.factor = wrong.more = wrong.swap = 0;

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
