/* candidates.c - see candidates.h. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/candidates.h"

enum { MAX_VALUES = 16 };
static const size_t guard = 256;

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

test_backend backend_open_math(const char *name, int threads, adj_math math)
{
    static const adj_allocator allocator = {allocate, release, NULL};
    test_backend t = {NULL, NULL};
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

test_backend backend_open_for(const char *name, int threads)
{
    return backend_open_math(name, threads, ADJ_MATH_EXACT);
}

test_backend backend_open(const char *name) { return backend_open_for(name, 2); }

void backend_close(test_backend *t) { t->b->close(t->opened); }

/* Bytes between two guards. */
typedef struct {
    char *memory;
    size_t bytes;
} buffer;

static buffer buffer_new(size_t bytes)
{
    buffer b = {aligned_alloc(64, guard * 2 + (bytes + 63) / 64 * 64), bytes};
    memset(b.memory, 0xff, guard * 2 + (bytes + 63) / 64 * 64);
    return b;
}

static void *data_of(const buffer *b) { return b->memory + guard; }

static void buffer_free(buffer *b, const char *what)
{
    for (size_t i = 0; i < guard; i++)
        cr_assert(b->memory[i] == (char)0xff && b->memory[guard + b->bytes + i] == (char)0xff,
                  "%s: written outside a buffer", what);
    free(b->memory);
    b->memory = NULL;
}

static size_t plain_bytes(adj_type t)
{
    return (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
}

static size_t bytes_in(const adj_backend *b, const adj_layout *l, adj_type t)
{
    return l != NULL ? b->layout_bytes(l) : plain_bytes(t);
}

static void reorder(const adj_backend *b, adj_reorder r, const buffer *from, const buffer *to)
{
    void *state;
    size_t scratch;
    cr_assert_eq(b->reorder_prepare(&r, &state, &scratch), ADJ_OK);
    buffer work = buffer_new(scratch);
    cr_assert_eq(b->reorder_run(state, data_of(from), data_of(to), data_of(&work)), ADJ_OK);
    b->reorder_drop(r.backend, state);
    buffer_free(&work, "reorder's scratch");
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

static buffer stored(fixture *f, const adj_node *v)
{
    double *value = value_of(f, v);
    buffer b = buffer_new(plain_bytes(v->type));
    adj_convert(ADJ_F64, value, v->type.dtype, data_of(&b), adj_shape_elems(v->type.shape));
    free(value);
    return b;
}

static double *loaded(const buffer *b, adj_type t)
{
    int64_t n = adj_shape_elems(t.shape);
    double *y = malloc((size_t)n * sizeof *y + 1);
    adj_convert(t.dtype, data_of(b), ADJ_F64, y, n);
    return y;
}

/* The values that enter a group, each once, in order of first use. */
static int entering(int n, const adj_node *const node[], const adj_node *in[])
{
    int n_in = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < node[k]->n_in; i++) {
            int known = 0;
            for (int j = 0; j < n_in; j++)
                known |= in[j] == node[k]->in[i];
            for (int j = 0; j < k; j++)
                known |= node[j] == node[k]->in[i];
            if (!known)
                in[n_in++] = node[k]->in[i];
        }
    return n_in;
}

static outcome run_prepared(fixture *f, const adj_backend *b, const adj_kernel *kernel,
                            void *backend, const adj_group *g, adj_prep *p)
{
    buffer in[MAX_VALUES], out, scratch = buffer_new(p->scratch);
    const void *in_data[MAX_VALUES];
    const adj_type type = g->out[0]->type;
    outcome o = {.status = ADJ_OK};

    for (int i = 0; i < g->n_in; i++) {
        in[i] = stored(f, g->in[i]);
        if (p->in[i] != NULL) {
            buffer moved = buffer_new(bytes_in(b, p->in[i], g->in[i]->type));
            reorder(b, (adj_reorder){backend, NULL, p->in[i], g->in[i]->type}, &in[i], &moved);
            buffer_free(&in[i], "operand");
            in[i] = moved;
        }
        in_data[i] = data_of(&in[i]);
    }
    out = buffer_new(bytes_in(b, p->out[0], type));
    adj_call call = {.group = g,
                     .state = p->state,
                     .in = in_data,
                     .out = (void *const[]){data_of(&out)},
                     .scratch = data_of(&scratch),
                     .threads = 2,
                     .message = o.why};
    o.status = kernel->run(&call);
    if (o.status == ADJ_OK && p->out[0] != NULL) {
        buffer plain = buffer_new(plain_bytes(type));
        reorder(b, (adj_reorder){backend, p->out[0], NULL, type}, &out, &plain);
        buffer_free(&out, "result");
        out = plain;
    }
    if (o.status == ADJ_OK)
        o.y = loaded(&out, type);
    for (int i = 0; i < g->n_in; i++)
        buffer_free(&in[i], "operand");
    buffer_free(&out, "result");
    buffer_free(&scratch, "scratch");
    return o;
}

static void note_layouts(const adj_backend *b, const adj_group *g, const adj_prep *p, char *text,
                         size_t size)
{
    size_t at = 0;
    for (int i = 0; i <= g->n_in && at < size; i++) {
        const adj_layout *l = i < g->n_in ? p->in[i] : p->out[0];
        at += (size_t)snprintf(text + at, size - at, "%s%s", i == g->n_in ? " -> " : " ",
                               l != NULL ? b->layout_name(l) : "plain");
    }
}

outcome run_candidate(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      int candidate)
{
    const adj_node *in[MAX_VALUES];
    const adj_layout *in_layout[MAX_VALUES] = {NULL}, *out_layout[1] = {NULL};
    adj_group g = {.n_node = n,
                   .node = node,
                   .n_in = entering(n, node, in),
                   .in = in,
                   .n_out = 1,
                   .out = &node[n - 1]};
    outcome o = {.status = ADJ_ENOKERNEL};
    const adj_backend *b = t->b;

    for (int k = 0; b->kernels[k] != NULL; k++) {
        adj_prep p = {.in = in_layout, .out = out_layout};
        adj_status status = b->kernels[k]->prepare(t->opened, &g, candidate, &p);
        if (status != ADJ_OK) {
            if (p.why[0] != '\0')
                memcpy(o.why, p.why, sizeof o.why);
            continue;
        }
        o = run_prepared(f, b, b->kernels[k], t->opened, &g, &p);
        memcpy(o.impl, p.impl, sizeof o.impl);
        note_layouts(b, &g, &p, o.layouts, sizeof o.layouts);
        if (b->kernels[k]->drop != NULL)
            b->kernels[k]->drop(t->opened, p.state);
        break;
    }
    return o;
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
                      double rtol, double atol, const char *what)
{
    int64_t elements = adj_shape_elems(node[n - 1]->type.shape);
    double *want = by_naive(f, node[n - 1]);
    int candidate = 0;
    for (;; candidate++) {
        char text[512];
        outcome o = run_candidate(f, t, n, node, candidate);
        if (o.status == ADJ_ENOKERNEL)
            break;
        cr_assert_eq(o.status, ADJ_OK, "%s: %s", what, o.why);
        snprintf(text, sizeof text, "%s, candidate %d, %s,%s", what, candidate, o.impl, o.layouts);
        expect_close(o.y, want, elements, rtol, atol, text);
        free(o.y);
    }
    free(want);
    return candidate;
}
