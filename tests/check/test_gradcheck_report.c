/* test_gradcheck_report.c - the report of gradcheck: its hints about wrong elements, word by word,
 * and gradients that are not the same twice. */
#include <math.h>

#include "exec/report.h"
#include "spoil.h"

typedef int (*chosen)(const int64_t i[4], const int64_t dim[4]);

static struct {
    chosen at;
    double factor, more; /* v * factor + more */
} wrong;

static void spoil_chosen(const adj_node *n, void *y)
{
    const int64_t *d = n->type.shape.dim;
    const int64_t elems = adj_shape_elems(n->type.shape);
    for (int64_t k = 0; k < elems; k++) {
        const int64_t i[4] = {k / d[3] / d[2] / d[1], k / d[3] / d[2] % d[1], k / d[3] % d[2],
                              k % d[3]};
        const double v = adj_load(n->type.dtype, y, k);
        adj_store(n->type.dtype, y, k, wrong.at(i, d) ? v * wrong.factor + wrong.more : v);
    }
}

static int all(const int64_t i[4], const int64_t d[4]) { return (void)i, (void)d, 1; }
static int last0(const int64_t i[4], const int64_t d[4]) { return i[0] == d[0] - 1; }
static int first1(const int64_t i[4], const int64_t d[4]) { return (void)d, i[1] == 0; }
static int two_last2(const int64_t i[4], const int64_t d[4]) { return i[2] >= d[2] - 2; }
static int odd1(const int64_t i[4], const int64_t d[4]) { return (void)d, i[1] % 2 == 1; }
static int third2(const int64_t i[4], const int64_t d[4]) { return (void)d, i[2] % 3 == 0; }
static int two_odd1(const int64_t i[4], const int64_t d[4])
{
    return (void)d, i[1] == 1 || i[1] == 3;
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
    const char *pattern, *hint; /* NULL: anything */
} told;

#define X "conv2d_backprop_input"
#define W "conv2d_backprop_filter"
#define CONV                                                                                       \
    {                                                                                              \
        .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,4"                                       \
    }

static const told cases[] = {
    {CONV, W, last0, 0.5, 0, "48 of 144 wrong, all with h=2", "scaled by 0.5"},
    {CONV, W, first1, 0, 0, "48 of 144 wrong, all with w=0",
     "missing: 0 where there is a gradient"},
    {CONV, W, corner, 2, 0, "16 of 144 wrong, all with h=2, all with w=2", "scaled by 2"},
    {CONV, W, all, -1, 0, "144 of 144 wrong", "sign is flipped"},
    {CONV, W, all, -2, 0, "144 of 144 wrong", "scaled by -2"},
    {CONV, W, all, 1.01, 0, NULL, "scaled by 1.01"},
    {CONV, W, all, 1.0005, 0, NULL, "scaled by 1 + 0.0005"},
    {{.op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,4", .dtype = "f64"},
     W,
     all,
     0.9999,
     0,
     NULL,
     "scaled by 1 - 0.0001"},
    {CONV, W, all, NAN, 0, "144 of 144 wrong", "not finite"},
    {CONV, W, last0, 1, 1000, "48 of 144 wrong, all with h=2", ""},
    {CONV, X, two_last2, 0.5, 0, "128 of 512 wrong, all with w=6..7", "scaled by 0.5"},
    {CONV, X, odd1, 0.5, 0, "256 of 512 wrong", "scaled by 0.5"},
    {CONV, X, two_odd1, 0.5, 0, "128 of 512 wrong, all with h=1..3", "scaled by 0.5"},
    {CONV, X, third2, 0.5, 0, "192 of 512 wrong", "scaled by 0.5"},
    {CONV, X, scattered, 0.5, 0, NULL, "scaled by 0.5"},
    {{.op = "depthwise_conv2d_native", .in = "1,6,6,2", .filter = "3,3,2,4"},
     "depthwise_conv2d_native_backprop_filter",
     last0,
     0.5,
     0,
     "24 of 72 wrong, all with h=2",
     "scaled by 0.5"},
};

/* The words of the failing row. */
static void expect_words(size_t i, const told *t)
{
    const adj_gradcheck_opts o = {
        .exec.seed = 5, .exec.threads = 1, .draws = 1, .method = ADJ_GRADCHECK_DIRECTIONAL};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    int failed = 0;
    spoiled.op = t->kernel;
    spoiled.spoil = spoil_chosen;
    wrong.at = t->at;
    wrong.factor = t->factor;
    wrong.more = t->more;
    scoped(release_gradcheck) const adj_gradcheck_report *r = check_spoiled(g, &t->args, &o);
    for (int k = 0; k < r->n_row; k++) {
        const gradcheck_detail *w = adj_gradcheck_row_at(r, k);
        if (w->result != ADJ_GRADCHECK_FAIL)
            continue;
        failed++;
        if (t->pattern != NULL)
            cr_expect_str_eq(w->pattern, t->pattern, "case %zu: %s", i, w->pattern);
        if (t->hint != NULL)
            cr_expect_str_eq(w->hint, t->hint, "case %zu: %s", i, w->hint);
        if (t->at == scattered)
            cr_expect_null(strstr(w->pattern, "all"), "case %zu: %s", i, w->pattern);
    }
    cr_expect_eq(failed, 1, "case %zu", i);
}

Test(gradcheck_hints, words)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_words(i, &cases[i]);
}

/* The example of docs/guide/checking-gradients.md is what is printed. */
Test(gradcheck_hints, readme)
{
    static char readme[1 << 16];
    const op_args args = {.op = "depthwise_conv2d_native",
                          .in = "1,8,9,9",
                          .filter = "3,3,8,2",
                          .attr = "data_format=NCHW"};
    const adj_gradcheck_opts o = {.exec.seed = 42, .exec.threads = 1};
    FILE *f = fopen("docs/guide/checking-gradients.md", "r");
    cr_assert_not_null(f);
    readme[fread(readme, 1, sizeof readme - 1, f)] = '\0';
    fclose(f);
    spoiled.op = "depthwise_conv2d_native_backprop_filter";
    spoiled.spoil = spoil_chosen;
    wrong.at = last0;
    wrong.factor = wrong.more = 0;

    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_gradcheck) const adj_gradcheck_report *r = check_spoiled(g, &args, &o);
    scoped(release) char *printed = report_text(r);
    cr_expect_eq(r->n_result[ADJ_GRADCHECK_FAIL], 1, "%s", printed);
    int details = 0;
    for (char *line = strtok(printed, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strncmp(line, "   ", 3) == 0) {
            cr_expect_not_null(strstr(readme, line), "checking-gradients.md lacks: %s", line);
            details++;
        }
    cr_expect_eq(details, 4);
}

/* ---- gradients that are not the same twice ---- */

static int runs;

/* Adds to the bits of every element that is no whole number: rounding makes them so, and integers
 * have none of it. */
static void add_bits(const adj_node *n, void *y, uint64_t more)
{
    size_t size = adj_dtype_size(n->type.dtype);
    for (int64_t i = 0; i < adj_shape_elems(n->type.shape); i++) {
        uint64_t bits = 0;
        double v = adj_load(n->type.dtype, y, i);
        memcpy(&bits, (char *)y + (size_t)i * size, size);
        bits += v != floor(v) ? more : 0;
        memcpy((char *)y + (size_t)i * size, &bits, size);
    }
}

static void change_every_second_time(const adj_node *n, void *y)
{
    add_bits(n, y, (uint64_t)(runs++ & 1));
}

static void write_line(void *user, const gradcheck_detail *row, char *line, size_t size)
{
    snprintf(line, size, "%s %s", (const char *)user, row->op);
}

/* The line follows each failed row. */
static void expect_line(const adj_gradcheck_report *r)
{
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    adj_gradcheck_print_with(f, r, write_line, (void *)"again");
    fclose(f);
    const char *line = strstr(text, "   repro: again conv2d\n");
    cr_expect(line != NULL && strstr(line + 10, "repro:") == NULL, "%s", text);
}

Test(gradcheck_repeat, other_bits_the_second_time_fail)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    for (int i = 0; i < 4; i++)
        for (int seed = 1; seed <= 20; seed++) {
            const op_args args = {.op = "conv2d", .in = "1,5,5,2", .dtype = dtypes[i]};
            const adj_gradcheck_opts o = {
                .exec.seed = (uint64_t)seed, .exec.threads = 1, .draws = 1};
            scoped(release_graph) adj_graph *g = adj_graph_new();
            spoiled.op = "conv2d_backprop_filter";
            spoiled.spoil = change_every_second_time;
            scoped(release_gradcheck) const adj_gradcheck_report *r = check_spoiled(g, &args, &o);
            const gradcheck_detail *x = adj_gradcheck_row_at(r, 0), *w = adj_gradcheck_row_at(r, 1);
            cr_expect_eq(x->result, ADJ_GRADCHECK_PASS);
            cr_expect_eq(w->result, ADJ_GRADCHECK_FAIL, "%s, seed %d: missed", dtypes[i], seed);
            cr_expect_not(w->repeatable);
            cr_expect(x->repeatable, "the sound operand is repeatable");
            cr_expect_str_eq(w->blame,
                             "not repeatable: the same values gave other bits the second time -> "
                             "fault is in backend spoiled's kernel for conv2d_backprop_filter "
                             "(spoiled:1)");
            expect_line(r);
            cr_expect_not(adj_gradcheck_conditions(r).repeatable);
        }
}

Test(gradcheck_repeat, who_was_asked)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    char known[128];
    scoped(release_gradcheck) const adj_gradcheck_report *r = NULL;
    cr_assert_eq(adj_backend_describe("onednn", known, sizeof known), ADJ_OK);
    cr_assert_eq(
        adj_gradcheck(y, &(adj_gradcheck_opts){.exec.backend = "onednn,max_pool=naive"}, &r),
        ADJ_OK);
    const gradcheck_conditions c = adj_gradcheck_conditions(r);
    char both[256];
    snprintf(both, sizeof both, "%s %s", c.version, c.isa);
    cr_expect_str_eq(both, known);
    cr_expect_str_eq(c.backend, "onednn,max_pool=naive");
    cr_expect_str_eq(c.reference, "naive float64");
    cr_expect_geq(c.threads, 1);
}
