/* test_candidate.c - the enumerator of candidates over a planted backend: in which order candidates
 * are prepared, with which layouts, and where their values lie; and that an untuned plan takes the
 * kernel of any backend with the least estimated time, with the estimate by literal numbers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/machine/isa_level.h"
#include "exec/candidate.h"
#include "exec/report.h"
#include "tests/plan.h"
#include "tests/reference.h"

/* ---- a backend of three kernels with 2, 0 and 1 candidates ---- */

static const adj_layout packed = {100, "packed100"};

static int dropped;

static adj_status prepare(const char *name, int limit, int candidate, adj_prep *p)
{
    snprintf(p->impl, sizeof p->impl, "%s%d", name, candidate);
    if (candidate >= limit)
        return ADJ_ENOKERNEL;
    p->in[0] = candidate == 1 ? &packed : p->in[0];
    p->scratch = 64; /* must not be seen by the next candidate */
    return ADJ_OK;
}

static adj_status prepare_a(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)g;
    cr_assert_str_eq(backend, "opened");
    cr_assert_eq(p->scratch, 0);
    return prepare("a", 2, candidate, p);
}

static adj_status prepare_b(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g;
    memset(p->why, 'x', ADJ_WHY); /* without an end */
    return prepare("b", 0, candidate, p);
}

static adj_status prepare_c(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g;
    return prepare("c", 1, candidate, p);
}

static void drop(void *backend, void *state)
{
    (void)backend, (void)state;
    dropped++;
}

static const adj_kernel a = {.name = "a", .prepare = prepare_a, .drop = drop},
                        b = {.name = "b", .prepare = prepare_b},
                        c = {.name = "c", .prepare = prepare_c};
static const adj_kernel *const kernels[] = {&a, &b, &c, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .kernels = kernels,
                                    .layout_bytes = layout_bytes,
                                    .layout_name = layout_name};

/* ---- tests ---- */

/* add(relu(x), mul(relu(x), z)) as one group: x and z enter, in order of first use. */
Test(candidate, operands_of_a_group)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}});
    adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){1, {5}});
    adj_node *r = adj_relu(x), *m = adj_mul(r, z), *s = adj_add(r, m), *q = adj_mul(x, x);
    const adj_node *const all[] = {r, m, s}, *const two[] = {m, s}, *const one[] = {q};
    const adj_node *in[6];
    cr_assert_eq(list_operands(3, all, in), 2);
    cr_assert(in[0] == x && in[1] == z);
    cr_assert_eq(list_operands(2, two, in), 2);
    cr_assert(in[0] == r && in[1] == z);
    cr_assert_eq(list_operands(1, one, in), 1);
    cr_assert(in[0] == x);
}

/* relu(x), x of 5 numbers: what each candidate is prepared to. */
Test(candidate, every_kernels_every_candidate)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}});
    const adj_node *y = adj_relu((adj_node *)x);
    const adj_layout *in[1] = {&packed}, *out[1] = {&packed};
    const adj_group group = {1, &y, 1, &x, 1, &y};
    adj_prep prep = {.in = in, .out = out, .scratch = 1};
    candidate k = {.backend = &planted, .opened = "opened", .group = &group, .prep = &prep};
    char seen[256] = "", layouts[64];
    FILE *f = fmemopen(seen, sizeof seen, "w");
    while (next_kernel(&k)) {
        for (; prepare_candidate(&k) == ADJ_OK; k.number++) {
            name_layouts(&k, layouts, sizeof layouts);
            fprintf(f, "%s: %s; ", prep.impl, layouts);
            drop_candidate(&k);
        }
        cr_assert_lt(strlen(prep.why), ADJ_WHY);
    }
    fclose(f);
    cr_assert_str_eq(seen, "a0: plain -> plain; a1: packed100 -> plain; c0: plain -> plain; ");
    cr_assert_eq(dropped, 2);
    cr_assert_not(next_kernel(&k));

    k.kernel = &c; /* the layout that the operand has reaches the kernel */
    init_prep(&k);
    in[0] = &packed;
    cr_assert_eq(query_kernel(&k), ADJ_OK);
    cr_assert_eq(in[0], &packed);
}

/* sparse_softmax_cross_entropy of 3x10 logits in 100 bytes and 3 labels, with gaps of 128. */
Test(candidate, areas)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_input(g, "logits", ADJ_F32, (adj_shape){2, {3, 10}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {3}});
    const adj_node *y = adj_sparse_softmax_cross_entropy(logits, labels, 0);
    const adj_node *in[2];
    const adj_group group = {1, &y, list_operands(1, &y, in), in, 1, &y};
    const adj_layout *in_layout[2] = {&packed, NULL}, *out_layout[1] = {NULL};
    adj_prep prep = {.in = in_layout, .out = out_layout};
    const candidate k = {.backend = &planted, .group = &group, .prep = &prep};
    size_t bytes[N_AREA];
    const void *from[2];
    void *to[1];
    bind_areas(&k, 128, NULL, bytes, from, to);
    cr_assert_eq(bytes[FLOAT_AREA], 128 + 128 + 128);
    cr_assert_eq(bytes[INTEGER_AREA], 128 + 64 + 128);
    cr_assert_eq(bytes[RESULT_AREA], 128 + 64 + 128);

    static char memory[N_AREA][384];
    char *const area[N_AREA] = {memory[0], memory[1], memory[2]};
    bind_areas(&k, 128, area, bytes, from, to);
    cr_assert(from[0] == memory[FLOAT_AREA] + 128 && from[1] == memory[INTEGER_AREA] + 128);
    cr_assert(to[0] == memory[RESULT_AREA] + 128);

    in_layout[0] = NULL; /* plain: 120 bytes */
    bind_areas(&k, 0, NULL, bytes, from, to);
    cr_assert_eq(bytes[FLOAT_AREA], 128);
    cr_assert_eq(layout_bytes_of(&planted, NULL, adj_node_type(logits)), 120);
}

/* ---- estimates: two backends before naive, each with a kernel for relu ---- */

enum { N_PLANTED = 2, REFUSES = -1 };
static double times[N_PLANTED]; /* multiples of a good kernel's time; REFUSES */
static int prepared, opened[N_PLANTED], closed;
static adj_status open_status[N_PLANTED];

static adj_status plant(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    static const char *const names[N_PLANTED] = {"first:1", "second:1"};
    const long i = (int *)backend - opened;
    if (strcmp(g->node[0]->op->name, "relu") != 0 || candidate > 0)
        return ADJ_ENOKERNEL;
    cr_assert_gt(p->seconds, 0);
    const double good = p->seconds;
    adj_status status =
        times[i] == REFUSES ? ADJ_ENOKERNEL : naive_backend()->kernels[0]->prepare(NULL, g, 0, p);
    prepared += status == ADJ_OK;
    p->seconds = times[i] * good;
    strcpy(p->impl, names[i]);
    return status;
}

static adj_status run(const adj_call *c) { return naive_backend()->kernels[0]->run(c); }

/* A backend is its count of being opened. */
static adj_status open_planted(int i, const adj_backend_opts *opts, void **backend)
{
    *backend = &opened[i];
    opened[i]++;
    if (open_status[i] != ADJ_OK)
        snprintf(opts->message, ADJ_WHY, "no license");
    return open_status[i];
}

static adj_status open_first(const adj_backend_opts *opts, void **backend)
{
    return open_planted(0, opts, backend);
}

static adj_status open_second(const adj_backend_opts *opts, void **backend)
{
    return open_planted(1, opts, backend);
}

static void close_planted(void *backend)
{
    (void)backend;
    closed++;
}

static const adj_kernel relu = {.name = "k", .prepare = plant, .run = run, .drop = drop};
static const adj_kernel *const relu_kernels[] = {&relu, NULL};
static const adj_backend backends_planted[N_PLANTED] = {
    {.version = ADJ_VERSION,
     .name = "first",
     .open = open_first,
     .close = close_planted,
     .kernels = relu_kernels},
    {.version = ADJ_VERSION,
     .name = "second",
     .open = open_second,
     .close = close_planted,
     .kernels = relu_kernels},
};

TestSuite(estimate, .init = plan_as_usual);

static adj_exec *plan(adj_graph *g, int tune)
{
    static const adj_backend *backends[] = {&backends_planted[0], &backends_planted[1], NULL, NULL};
    adj_node *y[] = {adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {64}})),
                     adj_relu(adj_input(g, "z", ADJ_F32, (adj_shape){1, {65}}))};
    const adj_exec_opts o = {.n_fetch = 2,
                             .fetch = y,
                             .tune = tune,
                             .tune_file = "",
                             .backends = backends,
                             .debug = &(adj_exec_debug){.no_fusion = 1}};
    adj_exec *e;
    backends[N_PLANTED] = naive_backend();
    prepared = dropped = closed = opened[0] = opened[1] = 0;
    (void)adj_exec_new(g, &o, &e);
    return e;
}

static void expect(double of_first, double of_second, const char *impl)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    times[0] = of_first;
    times[1] = of_second;
    adj_exec *e = plan(g, 0);
    cr_assert_str_eq(adj_exec_message(e), "");
    cr_expect_str_eq(adj_exec_step_at(e, 1).impl, impl, "%g and %g", of_first, of_second);
    adj_exec_free(e);
    cr_expect_eq(dropped, prepared, "each is dropped once: %d, %d", dropped, prepared);
}

Test(estimate, the_least_is_taken_whichever_backend_it_is_of)
{
    expect(1, 2, "first:1");
    expect(2, 1, "second:1");
    expect(1, 0.99, "second:1");
    expect(1, 1, "first:1"); /* the preferred one of two equals */
    expect(REFUSES, 3, "second:1");
    expect(3, REFUSES, "first:1");
    expect(REFUSES, REFUSES, "naive:f32");
    expect(1000, 1000, "naive:f32"); /* even naive may win */
}

/* An estimate that is not a time is ignored. */
Test(estimate, times_that_are_none)
{
    expect(NAN, 2, "first:1");
    expect(NAN, 0.5, "second:1");
    expect(2, NAN, "second:1");
    expect(0.5, NAN, "first:1");
    expect(-2, 0.5, "second:1");
    expect(0.5, -2, "first:1");
    expect(INFINITY, 1, "second:1");
    expect(1, 0, "second:1");
}

/* A backend that cannot be opened is an error of the plan, whichever it is. */
Test(estimate, a_backend_that_cannot_be_opened)
{
    static const struct {
        adj_status first, second;
        const char *message;
        int opened, closed;
    } cases[] = {
        {ADJ_OK, ADJ_EBACKEND, "adj_exec_new: backend second cannot be opened (no license)", 1, 1},
        {ADJ_OK, ADJ_ENOMEM, "adj_exec_new: backend second cannot be opened (no license)", 1, 1},
        {ADJ_EBACKEND, ADJ_OK, "adj_exec_new: backend first cannot be opened (no license)", 0, 0},
    };
    times[0] = 1;
    times[1] = 0.5;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const int tune = i % 2;
        scoped(release_graph) adj_graph *g = adj_graph_new();
        open_status[0] = cases[i / 2].first;
        open_status[1] = cases[i / 2].second;
        adj_exec *e = plan(g, tune);
        cr_expect_str_eq(adj_exec_message(e), cases[i / 2].message);
        cr_expect_eq(adj_exec_stats(e).steps, 0);
        cr_expect_eq(opened[1], cases[i / 2].opened, "case %zu: %d times", i, opened[1]);
        adj_exec_free(e);
        cr_expect_eq(closed, cases[i / 2].closed, "case %zu", i);
    }
}

/* ---- the estimate ---- */

/* [2, 3] times [3, 4]: 2*3*4 multiply-adds, 6 + 12 + 8 elements; behind relu its 8 elements pass
 * memory in place of the product's. Of two cores: 48e9 operations a second and number of a vector
 * in f32, 16e9 bytes. */
Test(estimate, arithmetic_or_memory)
{
    static const struct {
        adj_dtype type;
        double rate, bytes;
    } cases[] = {{ADJ_F32, 24e9, 4}, {ADJ_F64, 12e9, 8}, {ADJ_F16, 24e9, 2}, {ADJ_BF16, 24e9, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *a = adj_input(g, "a", cases[i].type, (adj_shape){2, {2, 3}});
        adj_node *b = adj_input(g, "b", cases[i].type, (adj_shape){2, {3, 4}});
        adj_node *y = adj_matmul(a, b, 0), *r = adj_relu(y);
        const adj_node *const node[] = {y, r}, *const in[] = {a, b}, *const out[] = {r};
        const nominal_time t = nominal_of_group(&(adj_group){2, node, 2, in, 1, out});
        const double arithmetic = (48 + 8) / (cases[i].rate * machine_vector_floats()),
                     memory = 26 * cases[i].bytes / 16e9;
        cr_expect_float_eq(t.arithmetic, arithmetic, 1e-6 * arithmetic, "%g", t.arithmetic);
        cr_expect_float_eq(t.memory, memory, 1e-6 * memory, "%g", t.memory);
        cr_expect_float_eq(t.byte, 1 / 16e9, 1e-16);
        cr_expect_float_eq(t.seconds, 2 * memory, 2e-6 * memory);
        const double copy = 2 * 2 * 8 * cases[i].bytes / 16e9;
        cr_expect_float_eq(nominal_copy(y->type), copy, 1e-6 * copy);
    }
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *a = adj_input(g, "a", ADJ_F32, (adj_shape){2, {512, 512}});
    const adj_node *y = adj_matmul((adj_node *)a, (adj_node *)a, 0);
    const nominal_time t = nominal_of_group(&(adj_group){1, &y, 1, &a, 1, &y});
    cr_expect_eq(t.seconds, 2 * t.arithmetic);
}
