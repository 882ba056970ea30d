/* fuzz_trial.c - a trial of adj_compare as bytes: what another process would be sent, and what it
 * would response, changed here and there. Both are structs as this build has them, so the target
 * makes genuine ones itself, and an input says what becomes of them.
 *
 * Input: a mode, a number, then for an arbitrary request its bytes; else patches of four bytes
 * each: place (two bytes, modulo the length), kind and value. Modes: a patched request, an
 * arbitrary one, a patched response. The number chooses the request, or the call that is answered
 * wrongly.
 *
 * A request is refused, or its outcome is a response; a response makes a report that can be read.
 */
#include <string.h>

#include "check/inspect.h"
#include "adjoint_nn.h"
#include "fuzz/bytes.h"
#include "fuzz/must.h"
#include "graph/op.h"

enum { MAX_REQUESTS = 64, LONGEST = 1 << 16, MAX_BYTES = 1 << 16, MAX_FLOP = 1000 * 1000 };

typedef struct {
    uint8_t *bytes;
    size_t n;
} message;

/* Request and response, recorded on their way to the other process and back. */
typedef struct {
    message *keep; /* NULL: requests are not kept */
    int n, wrong;  /* calls so far; the one whose response is patched, from 1 */
    bytes patches;
} wire;

/* ---- patches ---- */

/* Changes the n bytes at p; how many are left of them. */
static size_t patch(bytes b, uint8_t *p, size_t n)
{
    while (b.at + 4 <= b.end && n > 8) {
        size_t place = take(&b) | take(&b) << 8;
        unsigned kind = take(&b) % 5;
        bytes value = b;
        place %= n - 7;
        if (kind == 0)
            p[place] = b.at[0];
        else if (kind == 1)
            n = place;
        else if (kind == 4) /* a text without an end */
            memset(p + place, b.at[0], n - place < 70 ? n - place : 70);
        else { /* a number */
            int64_t v = any_number(&value);
            memcpy(p + place, &v, kind == 2 ? sizeof v : sizeof(int32_t));
        }
        take(&b);
    }
    return n;
}

/* ---- what would take too long is left out ---- */

typedef struct {
    const uint8_t *at;
    size_t left;
} reader;

static const void *skip(reader *r, uint64_t n)
{
    const void *p = r->at;
    if (n > r->left)
        return NULL;
    r->at += n;
    r->left -= n;
    return p;
}

static uint64_t number(reader *r)
{
    uint64_t v = UINT64_MAX;
    const void *p = skip(r, sizeof v);
    if (p != NULL)
        memcpy(&v, p, sizeof v);
    return v;
}

static const char *text(reader *r)
{
    uint64_t n = number(r);
    const char *s = skip(r, n);
    return s != NULL && n > 0 && s[n - 1] == '\0' ? s : "";
}

/* The next node of the request, without a constant's values; NULL: it is none. */
static adj_node *next_node(reader *r, adj_graph *g)
{
    static const float zeros[MAX_BYTES / 4];
    adj_node *in[64];
    _Alignas(16) char attrs[1024] = {0};
    const char *name = text(r);
    const adj_op *const *op = adj_ops;
    while (*op != NULL && strcmp((*op)->name, name) != 0)
        op++;
    text(r);
    skip(r, 2 * sizeof(uint64_t)); /* role, clone */
    uint64_t n_in = number(r);
    for (uint64_t k = 0; k < n_in && k < 64; k++) {
        uint64_t id = number(r);
        in[k] = id < INT32_MAX ? adj_graph_node_at(g, (int)id) : NULL;
    }
    uint64_t size = number(r);
    const void *p = skip(r, size);
    if (*op == NULL || n_in > 64 || p == NULL || size != adj_attr_size(*op) || size > sizeof attrs)
        return NULL;
    if (size > 0)
        memcpy(attrs, p, size);
    if (*op != &adj_op_const)
        return adj_node_new(g, *op, (int)n_in, in, attrs);
    const adj_const_attrs *a = (const adj_const_attrs *)(void *)attrs;
    int64_t n = adj_shape_elems(a->shape);
    size_t each = adj_dtype_size((adj_dtype)a->dtype);
    if (n < 0 || each == 0 || (uint64_t)n > sizeof zeros / each || skip(r, n * each) == NULL)
        return NULL;
    return adj_const(g, (adj_dtype)a->dtype, a->shape, zeros);
}

static int is_short(const uint8_t *request, size_t n)
{
    reader r = {request, n};
    adj_compare_config config;
    number(&r);
    const void *p = skip(&r, sizeof config);
    if (p == NULL)
        return 1;
    memcpy(&config, p, sizeof config);
    uint64_t runs = number(&r), threads = number(&r);
    if (config.tune || config.threads > 2 || threads > 2 || runs > 3)
        return 0;
    skip(&r, 2 * sizeof(uint64_t)); /* aliases, bare */
    adj_graph *g = adj_graph_new();
    double bytes = 0, flop = 0;
    uint64_t nodes = number(&r);
    for (uint64_t i = 0; i < nodes && i < 64; i++) {
        const adj_node *y = next_node(&r, g);
        if (y == NULL)
            break; /* refused below */
        bytes += (double)adj_shape_elems(y->type.shape) * 8;
        flop += y->op->flop != NULL ? y->op->flop(y) : 0;
    }
    adj_graph_free(g);
    return nodes <= 64 && bytes <= MAX_BYTES && flop <= MAX_FLOP;
}

/* ---- genuine messages ---- */

static adj_node *network(adj_graph *g, adj_node **w)
{
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 4, 4, 2}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {1}});
    adj_node *b = adj_const(g, ADJ_F32, (adj_shape){1, {3}}, (const float[]){1, -1, 0.5F});
    *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 2, 3}},
                   (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1});
    adj_node *h = adj_relu(adj_bias_add(adj_conv2d(x, *w, &same), b, ADJ_NHWC));
    adj_node *step = adj_state(g, "step", ADJ_I32, (adj_shape){0}, (adj_init){0});
    h = adj_dropout(adj_max_pool(h, &half), step, 0.5, 7);
    h = adj_concat(2, (adj_node *[]){h, adj_scale(h, 0.5)}, 3);
    h = adj_pad(h, (adj_shape){4, {0, 1, 0, 0}}, (adj_shape){4, {0}});
    h = adj_reshape(adj_transpose(h, 4, (const int[]){0, 3, 1, 2}), (adj_shape){2, {1, 36}});
    return adj_loss_softmax(h, labels, NULL);
}

static adj_status elsewhere(void *user, const char *isa, const void *request, size_t n,
                            void **response, size_t *response_bytes, adj_error *error)
{
    wire *w = user;
    (void)isa;
    if (w->keep != NULL && w->n < MAX_REQUESTS) {
        must((w->keep[w->n].bytes = malloc(n)) != NULL);
        memcpy(w->keep[w->n].bytes, request, n);
        w->keep[w->n].n = n;
    }
    w->n++;
    adj_status status = adj_trial_run(request, n, NULL, NULL, response, response_bytes);
    if (status != ADJ_OK)
        adj_error_set(error, status, "%s", adj_status_name(status));
    else if (w->n == w->wrong)
        *response_bytes = patch(w->patches, *response, *response_bytes);
    return status;
}

static void read_text(const char *s) { must(strlen(s) < 4096); }

/* Compares the network with itself on the other side of the wire. */
static void compare(wire *w, const char *config)
{
    const char *const configs[] = {"naive", config};
    adj_graph *g = adj_graph_new();
    adj_node *param, *dw = NULL, *loss = network(g, &param);
    must(adj_grad(loss, NULL, 1, &param, &dw) == ADJ_OK);
    const adj_comparison *c = NULL;
    const adj_compare_opts o = {.exec.n_fetch = 2,
                                .exec.fetch = (adj_node *[]){loss, dw},
                                .n_config = 2,
                                .config = configs,
                                .runs = 1,
                                .exec.threads = 1};
    const adj_trial_opts trials = {.guard = 1, .elsewhere = elsewhere, .user = w};
    must(adj_compare_with(g, &o, &trials, &c) == ADJ_OK);
    read_text(adj_comparison_result_at(c, 1).reason);
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        const char *const texts[] = {row->reason,
                                     row->origin,
                                     row->backend,
                                     row->implementation,
                                     row->why,
                                     adj_compare_row_name(row),
                                     adj_verdict_name(row->verdict),
                                     adj_blame_name(row->blame)};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            read_text(texts[k]);
    }
    adj_comparison_free(c);
    adj_graph_free(g);
}

/* Requests of the configurations that differ most: what is computed, and by whom. */
static const message *genuine(int *n)
{
    static message all[MAX_REQUESTS];
    static wire w = {.keep = all};
    if (w.n == 0) {
        compare(&w, "naive:bf16:nchw");
        compare(&w, "onednn");
        for (int i = 0; i < w.n && i < MAX_REQUESTS; i++)
            must(is_short(all[i].bytes, all[i].n));
    }
    *n = w.n < MAX_REQUESTS ? w.n : MAX_REQUESTS;
    return all;
}

/* ---- the target ---- */

static void run_request(const uint8_t *request, size_t n)
{
    void *response = NULL;
    size_t response_bytes = 0;
    if (!is_short(request, n))
        return;
    adj_status status = adj_trial_run(request, n, NULL, NULL, &response, &response_bytes);
    must((status == ADJ_OK) == (response != NULL));
    free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t copy[LONGEST];
    bytes in = {data, data + size, 0};
    int n, mode = pick(&in, 3);
    unsigned choice = take(&in);
    const message *all = genuine(&n);
    if (mode == 0) {
        const message *m = &all[choice % (unsigned)n];
        must(m->n <= sizeof copy);
        memcpy(copy, m->bytes, m->n);
        size_t left = patch(in, copy, m->n);
        uint8_t *exact =
            malloc(left > 0 ? left : 1); /* exactly that length, so that reading on is noticed */
        must(exact != NULL);
        memcpy(exact, copy, left);
        run_request(exact, left);
        free(exact);
    } else if (mode == 1) {
        run_request(in.at, (size_t)(in.end - in.at));
    } else {
        wire w = {.wrong = 1 + (int)(choice % 16), .patches = in};
        compare(&w, choice & 16 ? "onednn" : "naive:bf16:nchw");
    }
    return 0;
}
