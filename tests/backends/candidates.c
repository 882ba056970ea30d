/* candidates.c - see candidates.h. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/candidate.h"
#include "tests/backends/candidates.h"

enum { MAX_VALUES = 16, GUARD = 256 };

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void take_back(void *user, void *p)
{
    (void)user;
    free(p);
}

test_backend backend_open_math(const char *name, int threads, adj_math math)
{
    static const adj_allocator allocator = {allocate, take_back, NULL};
    test_backend t = {.b = NULL, .threads = threads};
    for (int i = 0; adj_backends[i] != NULL; i++)
        if (strcmp(adj_backends[i]->name, name) == 0)
            t.b = adj_backends[i];
    cr_assert_not_null(t.b, "no backend %s", name);
    char message[ADJ_WHY] = "";
    const adj_backend_opts opts = {
        .allocator = &allocator, .threads = threads, .math = math, .message = message};
    cr_assert_eq(t.b->open(&opts, &t.opened), ADJ_OK, "%s", message);
    return t;
}

test_backend backend_open(const char *name) { return backend_open_math(name, 2, ADJ_MATH_EXACT); }

test_backend direct_open(const char *isa, int threads, adj_math math)
{
    setenv("ADJOINT_MAX_ISA", isa, 1);
    return backend_open_math("direct", threads, math);
}

void backend_close(test_backend *t) { t->b->close(t->opened); }

/* Areas of a candidate's values; what no value covers is its guard. */
typedef struct {
    size_t bytes[N_AREA];
    char *area[N_AREA];
    const void *in[MAX_VALUES];
    void *out[1];
} memory;

static char *guarded(size_t bytes)
{
    size_t padded = (bytes + 63) / 64 * 64;
    return memset(aligned_alloc(64, padded), 0xff, padded);
}

static void memory_new(memory *m, const candidate *c)
{
    bind_areas(c, GUARD, NULL, m->bytes, m->in, m->out);
    for (int k = 0; k < N_AREA; k++)
        m->area[k] = guarded(m->bytes[k]);
    bind_areas(c, GUARD, m->area, m->bytes, m->in, m->out);
}

static char *operand(const memory *m, int i)
{
    int k = 0;
    while ((const char *)m->in[i] < m->area[k] ||
           (const char *)m->in[i] >= m->area[k] + m->bytes[k])
        k++;
    return m->area[k] + ((const char *)m->in[i] - m->area[k]);
}

/* The guards around so many bytes of a value are untouched. */
static void expect_guards(const char *value, size_t bytes, const char *label)
{
    for (size_t i = 0; i < GUARD; i++)
        cr_assert(value[-1 - (ptrdiff_t)i] == (char)0xff && value[bytes + i] == (char)0xff,
                  "%s: written outside a buffer", label);
}

static void expect_memory_guards(const memory *m, const candidate *c)
{
    const adj_group *g = c->group;
    for (int i = 0; i < g->n_in; i++)
        expect_guards(m->in[i], layout_bytes_of(c->backend, c->prep->in[i], g->in[i]->type),
                      "operand");
    expect_guards(m->out[0], layout_bytes_of(c->backend, c->prep->out[0], g->out[0]->type),
                  "result");
}

static void memory_free(memory *m)
{
    for (int k = 0; k < N_AREA; k++)
        free(m->area[k]);
}

static void reorder(const candidate *c, const adj_layout *src_layout, const adj_layout *dst_layout,
                    adj_type type, const void *src, void *dst)
{
    void *state;
    size_t scratch;
    if (src_layout == dst_layout) {
        memcpy(dst, src, layout_bytes_of(c->backend, src_layout, type));
        return;
    }
    cr_assert_eq(
        c->backend->reorder_prepare(c->opened, src_layout, dst_layout, type, &state, &scratch),
        ADJ_OK);
    scoped(release) char *work = guarded(scratch + 2 * GUARD);
    cr_assert_eq(c->backend->reorder_run(state, src, dst, work + GUARD), ADJ_OK);
    c->backend->reorder_drop(c->opened, state);
    expect_guards(work + GUARD, scratch, "reorder's scratch");
}

/* v's plain value: a fixture input's, or computed by naive kernels. */
static double *value_of(fixture *f, const adj_node *v)
{
    for (int i = 0; i < f->n_in; i++)
        if (f->in[i] == v) {
            size_t bytes = (size_t)adj_shape_elems(v->type.shape) * sizeof(double);
            double *copy = malloc(bytes + 1);
            memcpy(copy, f->value[i], bytes);
            return copy;
        }
    return by_naive(f, v);
}

/* Operand i to where the candidate expects it. */
static void store(fixture *f, const candidate *c, const memory *m, int i)
{
    const adj_node *v = c->group->in[i];
    scoped(release) double *value = value_of(f, v);
    scoped(release) char *plain = guarded(layout_bytes_of(c->backend, NULL, v->type) + 2 * GUARD);
    adj_convert(ADJ_F64, value, v->type.dtype, plain + GUARD, adj_shape_elems(v->type.shape));
    reorder(c, NULL, c->prep->in[i], v->type, plain + GUARD, operand(m, i));
}

/* The result. */
static double *load(const candidate *c, const memory *m)
{
    const adj_type type = c->group->out[0]->type;
    size_t bytes = layout_bytes_of(c->backend, NULL, type);
    int64_t n = adj_shape_elems(type.shape);
    double *y = malloc((size_t)n * sizeof *y + 1);
    scoped(release) char *plain = guarded(bytes + 2 * GUARD);
    reorder(c, c->prep->out[0], NULL, type, m->out[0], plain + GUARD);
    expect_guards(plain + GUARD, bytes, "plain result");
    adj_convert(type.dtype, plain + GUARD, ADJ_F64, y, n);
    return y;
}

/* Scratch of its own each time, which stays until the caller frees it: no two runs have the same.
 */
static adj_status run_in(const candidate *c, int threads, memory *m, char **scratch, char *why)
{
    *scratch = guarded(c->prep->scratch + 2 * GUARD);
    const adj_call call = {.group = c->group,
                           .state = c->prep->state,
                           .in = m->in,
                           .out = m->out,
                           .scratch = *scratch + GUARD,
                           .threads = threads,
                           .message = why};
    const adj_status status = c->kernel->run(&call);
    expect_memory_guards(m, c);
    expect_guards(*scratch + GUARD, c->prep->scratch, "scratch");
    return status;
}

/* Returns the candidate's declared properties. */
static outcome described(const candidate *c)
{
    outcome o = {
        .status = ADJ_OK, .kernel = c->kernel->name, .sums_by_threads = c->prep->sums_by_threads};
    memcpy(o.impl, c->prep->impl, sizeof o.impl);
    name_layouts(c, o.layouts, sizeof o.layouts);
    return o;
}

/* Twice, the second time in other memory, while what the first run had is no number any more: a
 * kernel may keep no buffer. The second run's result. */
static outcome run_prepared(fixture *f, const candidate *c, int threads)
{
    memory first, second;
    outcome o = described(c);
    char *scratch[2] = {NULL};
    memory_new(&first, c);
    memory_new(&second, c);
    for (int i = 0; i < c->group->n_in; i++)
        store(f, c, &first, i);
    for (int k = 0; k < N_AREA; k++)
        memcpy(second.area[k], first.area[k], first.bytes[k]);
    o.status = run_in(c, threads, &first, &scratch[0], o.why);
    for (int k = 0; k < N_AREA; k++)
        memset(first.area[k], 0xff, first.bytes[k]);
    if (o.status == ADJ_OK)
        o.status = run_in(c, threads, &second, &scratch[1], o.why);
    if (o.status == ADJ_OK)
        o.y = load(c, &second);
    memory_free(&first);
    memory_free(&second);
    free(scratch[0]);
    free(scratch[1]);
    return o;
}

/* A group of nodes, and the candidate that is prepared for it. */
typedef struct {
    const adj_node *in[MAX_VALUES];
    const adj_layout *in_layout[MAX_VALUES], *out_layout[1];
    adj_group group;
    adj_prep prep;
    candidate c;
} tried;

static void try_group(tried *a, const test_backend *t, int n, const adj_node *const node[])
{
    a->group = (adj_group){n, node, list_operands(n, node, a->in), a->in, 1, &node[n - 1]};
    a->prep = (adj_prep){.in = a->in_layout, .out = a->out_layout};
    a->c = (candidate){.backend = t->b,
                       .opened = t->opened,
                       .group = &a->group,
                       .invariant = t->invariant,
                       .prep = &a->prep};
}

/* kernel: NULL: any. */
static outcome run_first(fixture *f, const test_backend *t, const char *kernel, int n,
                         const adj_node *const node[], int number)
{
    tried a;
    outcome o = {.status = ADJ_ENOKERNEL};
    try_group(&a, t, n, node);
    while (next_kernel(&a.c)) {
        if (kernel != NULL && strcmp(kernel, a.c.kernel->name) != 0)
            continue;
        a.c.number = number;
        if (prepare_candidate(&a.c) != ADJ_OK) {
            if (a.prep.why[0] != '\0')
                memcpy(o.why, a.prep.why, sizeof o.why);
            continue;
        }
        o = run_prepared(f, &a.c, t->threads);
        drop_candidate(&a.c);
        break;
    }
    return o;
}

outcome run_candidate(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      int number)
{
    return run_first(f, t, NULL, n, node, number);
}

outcome run_kernel(fixture *f, const test_backend *t, const char *kernel, int n,
                   const adj_node *const node[])
{
    return run_first(f, t, kernel, n, node, 0);
}

double *run_direct(fixture *f, const char *impl, const char *isa, int threads, int n,
                   const adj_node *const node[])
{
    scoped(backend_close) test_backend t = direct_open(isa, threads, ADJ_MATH_EXACT);
    outcome o = run_candidate(f, &t, n, node, 0);
    cr_assert_eq(o.status, ADJ_OK, "%s: %s", node[n - 1]->op->name, o.why);
    const char *colon = strrchr(o.impl, ':');
    cr_assert(strncmp(o.impl, impl, strlen(impl)) == 0 && colon != NULL &&
                  strcmp(colon + 1, isa) == 0,
              "it is a %s, not a %s by %s", o.impl, impl, isa);
    return o.y;
}

void expect_no_kernel(fixture *f, const test_backend *t, const char *kernel, int n,
                      const adj_node *const node[], const char *why)
{
    cr_assert_not_null(node[n - 1], "%s", adj_graph_message(f->g));
    const outcome o = run_first(f, t, kernel, n, node, 0);
    cr_expect_eq(o.status, ADJ_ENOKERNEL, "%s is taken by %s", node[n - 1]->op->name, o.impl);
    expect_text(o.why, why);
    free(o.y);
}

void visit_candidates(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      void (*visit)(void *user, const outcome *o), void *user)
{
    tried a;
    try_group(&a, t, n, node);
    while (next_kernel(&a.c))
        for (; prepare_candidate(&a.c) == ADJ_OK; a.c.number++) {
            const int is_run = !(t->same_bits && a.prep.sums_by_threads);
            outcome o = is_run ? run_prepared(f, &a.c, t->threads) : described(&a.c);
            visit(user, &o);
            free(o.y);
            drop_candidate(&a.c);
        }
}

double *by_naive(fixture *f, const adj_node *y)
{
    test_backend naive = backend_open("naive");
    outcome o = run_candidate(f, &naive, 1, &y, 0);
    backend_close(&naive);
    cr_assert_eq(o.status, ADJ_OK, "naive %s: %s", y->op->name, o.why);
    return o.y;
}

int expect_candidates(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      double rtol, double atol, const char *label)
{
    int64_t elements = adj_shape_elems(node[n - 1]->type.shape);
    scoped(release) double *want = by_naive(f, node[n - 1]);
    int candidate = 0;
    for (;; candidate++) {
        char text[512];
        outcome o = run_candidate(f, t, n, node, candidate);
        if (o.status == ADJ_ENOKERNEL)
            break;
        cr_assert_eq(o.status, ADJ_OK, "%s: %s", label, o.why);
        snprintf(text, sizeof text, "%s, candidate %d, %s, %s", label, candidate, o.impl,
                 o.layouts);
        expect_close(o.y, want, elements, rtol, atol, text);
        free(o.y);
    }
    return candidate;
}
