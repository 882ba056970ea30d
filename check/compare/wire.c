/* wire.c - a trial as bytes, so that another process can run it, and its outcome back.
 *
 * Both ends are the same program: structs are sent as they are. Still everything is checked against
 * the length, as a process that is about to crash may say anything. */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

static const uint64_t magic = UINT64_C(0x61646a7472693031);

/* ---- writing: once to count, once to write ---- */

typedef struct {
    char *to; /* NULL: count only */
    size_t n;
} writer;

static void put(writer *w, const void *data, size_t bytes)
{
    if (w->to != NULL && bytes > 0)
        memcpy(w->to + w->n, data, bytes);
    w->n += bytes;
}

static void put_number(writer *w, uint64_t v) { put(w, &v, sizeof v); }

static void put_text(writer *w, const char *s)
{
    size_t n = s != NULL ? strlen(s) + 1 : 0;
    put_number(w, n);
    put(w, s, n);
}

static size_t bytes_of(const adj_node *n)
{
    return (size_t)adj_shape_elems(n->type.shape) * adj_dtype_size(n->type.dtype);
}

static void put_node(writer *w, const adj_node *n)
{
    put_text(w, n->op->name);
    put_text(w, n->name);
    put_number(w, n->role);
    put_number(w, (uint64_t)n->n_in);
    for (int k = 0; k < n->n_in; k++)
        put_number(w, n->in[k]->id);
    put_number(w, n->op->attr_size);
    put(w, n->attrs, n->op->attr_size);
    if (n->op == &adj_op_const)
        put(w, ((const adj_const_attrs *)n->attrs)->data, bytes_of(n));
}

static void put_graph(writer *w, const adj_graph *g)
{
    put_number(w, (uint64_t)g->n_node);
    for (int id = 0; id < g->n_node; id++)
        put_node(w, g->node[id]);
}

static void put_trial(writer *w, const trial *t)
{
    put_number(w, magic);
    put(w, t->config, sizeof *t->config);
    put_text(w, t->quarantine);
    put_number(w, (uint64_t)t->runs);
    put_number(w, (uint64_t)t->threads);
    put_number(w, (uint64_t)t->bare);
    put_graph(w, t->g);
    put_number(w, (uint64_t)t->n_fetch);
    for (int i = 0; i < t->n_fetch; i++)
        put_number(w, t->fetch[i]->id);
    put_number(w, (uint64_t)t->n_leaf);
    for (int i = 0; i < t->n_leaf; i++) {
        put_number(w, t->leaf[i]->id);
        put(w, t->data[i], bytes_of(t->leaf[i]));
    }
}

static void put_outcome(writer *w, const trial *t, const outcome *o)
{
    put_number(w, magic);
    put(w, o, sizeof *o);
    put_number(w, o->status == ADJ_OK);
    if (o->status != ADJ_OK)
        return;
    put(w, o->info, (size_t)o->n * sizeof *o->info);
    for (int i = 0; i < o->n; i++)
        put(w, o->value[i], bytes_of(t->fetch[i]));
    put_number(w, (uint64_t)o->n_plan);
    put(w, o->step_of, (size_t)o->n_plan * sizeof *o->step_of);
    if (!t->bare)
        return;
    put_graph(w, o->plan);
    for (int id = 0; id < t->g->n_node; id++)
        put_number(w, o->image[id] != NULL ? o->image[id]->id + UINT64_C(1) : 0);
}

/* ---- reading ---- */

typedef struct {
    const char *from;
    size_t left;
    int wrong;
} reader;

static const void *take(reader *r, size_t bytes)
{
    const void *p = r->from;
    if (r->wrong || bytes > r->left) {
        r->wrong = 1;
        return NULL;
    }
    r->from += bytes;
    r->left -= bytes;
    return p;
}

static void take_into(reader *r, void *to, size_t bytes)
{
    const void *p = take(r, bytes);
    if (p != NULL && bytes > 0)
        memcpy(to, p, bytes);
}

/* 0 .. max */
static uint64_t take_number(reader *r, uint64_t max)
{
    uint64_t v = 0;
    take_into(r, &v, sizeof v);
    r->wrong |= v > max;
    return r->wrong ? 0 : v;
}

/* NULL for no text. */
static const char *take_text(reader *r)
{
    size_t n = (size_t)take_number(r, r->left);
    const char *s = take(r, n);
    if (n == 0 || s == NULL)
        return NULL;
    r->wrong |= s[n - 1] != '\0';
    return r->wrong ? NULL : s;
}

static const adj_op *op_of(const char *name)
{
    for (const adj_op *const *op = adj_ops; name != NULL && *op != NULL; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

static adj_node *take_const(reader *r, adj_graph *g, const adj_const_attrs *a)
{
    int64_t elems = adj_shape_elems(a->shape);
    size_t size = adj_dtype_size((adj_dtype)a->dtype);
    if (elems < 0 || (size > 0 && (uint64_t)elems > r->left / size)) {
        r->wrong = 1;
        return NULL;
    }
    const void *data = take(r, (size_t)elems * size);
    return r->wrong ? NULL : adj_const(g, (adj_dtype)a->dtype, a->shape, data);
}

static adj_node *take_node(reader *r, adj_graph *g, adj_node *const node[], int n_node)
{
    _Alignas(16) char attrs[MAX_ATTR] = {0};
    adj_node *in[64] = {NULL};
    const adj_op *op = op_of(take_text(r));
    const char *name = take_text(r);
    g->role = (adj_role)take_number(r, ADJ_ROLE_UPDATE);
    int n_in = (int)take_number(r, 64);
    for (int k = 0; k < n_in; k++) {
        uint64_t id = take_number(r, UINT32_MAX);
        r->wrong |= id >= (uint64_t)n_node;
        in[k] = r->wrong ? NULL : node[id];
    }
    size_t size = (size_t)take_number(r, MAX_ATTR);
    take_into(r, attrs, size);
    r->wrong |= op == NULL || size != op->attr_size;
    if (r->wrong)
        return NULL;
    adj_node *n = op == &adj_op_const ? take_const(r, g, (const adj_const_attrs *)(void *)attrs)
                                      : adj_node_new(g, op, n_in, in, attrs);
    return adj_label(n, name);
}

/* By id; NULL: out of memory. */
static adj_node **take_graph(reader *r, adj_graph *g, region *p, int *n_node)
{
    *n_node = (int)take_number(r, r->left);
    adj_node **node = region_alloc(p, (size_t)*n_node + 1, sizeof(adj_node *));
    for (int id = 0; id < *n_node && node != NULL && !r->wrong; id++)
        if ((node[id] = take_node(r, g, node, id)) == NULL || node[id]->id != (uint32_t)id)
            r->wrong = 1;
    return adj_graph_status(g) == ADJ_ENOMEM ? NULL : node;
}

static adj_status take_leaves(reader *r, adj_node *const node[], int n_node, trial *t, region *p)
{
    for (int i = 0; i < t->n_leaf && !r->wrong; i++) {
        uint64_t id = take_number(r, UINT32_MAX);
        r->wrong |= id >= (uint64_t)n_node;
        const void *data = r->wrong ? NULL : take(r, bytes_of(node[id]));
        if (r->wrong)
            break;
        void *copy = region_alloc(p, bytes_of(node[id]) + 1, 1); /* aligned */
        if (copy == NULL)
            return ADJ_ENOMEM;
        memcpy(copy, data, bytes_of(node[id]));
        t->leaf[i] = node[id];
        t->data[i] = copy;
    }
    return ADJ_OK;
}

static adj_status take_trial(reader *r, region *p, adj_compare_config *config, trial *t)
{
    r->wrong |= take_number(r, UINT64_MAX) != magic;
    take_into(r, config, sizeof *config);
    config->name[sizeof config->name - 1] = '\0';
    config->backend[sizeof config->backend - 1] = '\0';
    config->isa[sizeof config->isa - 1] = '\0';
    config->impl[sizeof config->impl - 1] = '\0';
    t->config = config;
    t->quarantine = take_text(r);
    t->runs = (int)take_number(r, 1000);
    t->threads = (int)take_number(r, 1024);
    t->bare = (int)take_number(r, 1);
    int n_node;
    adj_node **node = t->g != NULL ? take_graph(r, t->g, p, &n_node) : NULL;
    if (node == NULL)
        return ADJ_ENOMEM;
    t->n_fetch = (int)take_number(r, r->left);
    t->fetch = region_alloc(p, (size_t)t->n_fetch + 1, sizeof(adj_node *));
    for (int i = 0; i < t->n_fetch && t->fetch != NULL && !r->wrong; i++) {
        uint64_t id = take_number(r, UINT32_MAX);
        r->wrong |= id >= (uint64_t)n_node;
        t->fetch[i] = r->wrong ? NULL : node[id];
    }
    t->n_leaf = (int)take_number(r, r->left);
    t->leaf = region_alloc(p, (size_t)t->n_leaf + 1, sizeof(adj_node *));
    t->data = region_alloc(p, (size_t)t->n_leaf + 1, sizeof(void *));
    if (t->fetch == NULL || t->leaf == NULL || t->data == NULL)
        return ADJ_ENOMEM;
    return take_leaves(r, node, n_node, t, p);
}

static adj_status take_plan(reader *r, const trial *t, region *p, outcome *o)
{
    const adj_graph_opts opts = {.allocator = &p->allocator};
    int n_node;
    o->image = region_alloc(p, (size_t)t->g->n_node, sizeof(adj_node *));
    o->plan = adj_graph_new_with(ADJ_VERSION, &opts);
    if (o->image == NULL || o->plan == NULL)
        return ADJ_ENOMEM;
    adj_node **node = take_graph(r, o->plan, p, &n_node);
    if (node == NULL)
        return ADJ_ENOMEM;
    r->wrong |= o->n_plan != n_node;
    for (int id = 0; id < t->g->n_node && !r->wrong; id++) {
        uint64_t k = take_number(r, (uint64_t)n_node);
        o->image[id] = k > 0 ? node[k - 1] : NULL;
        r->wrong |= k > 0 && !adj_shape_equal(node[k - 1]->type.shape, t->g->node[id]->type.shape);
    }
    for (int i = 0; i < t->n_fetch; i++)
        r->wrong |= o->image[t->fetch[i]->id] == NULL;
    return ADJ_OK;
}

static adj_status take_outcome(reader *r, const trial *t, region *p, outcome *o)
{
    r->wrong |= take_number(r, UINT64_MAX) != magic;
    take_into(r, o, sizeof *o);
    o->info = NULL;
    o->value = NULL;
    o->step_of = NULL;
    o->n_plan = 0;
    o->plan = NULL;
    o->image = NULL;
    o->message[sizeof o->message - 1] = '\0';
    int whole = (int)take_number(r, 1);
    r->wrong |= o->n != t->n_fetch || whole != (o->status == ADJ_OK);
    if (r->wrong || !whole)
        return ADJ_OK;
    o->info = region_alloc(p, (size_t)o->n, sizeof *o->info);
    o->value = region_alloc(p, (size_t)o->n, sizeof *o->value);
    if (o->info == NULL || o->value == NULL)
        return ADJ_ENOMEM;
    take_into(r, o->info, (size_t)o->n * sizeof *o->info);
    for (int i = 0; i < o->n; i++) {
        fetch_info *f = &o->info[i];
        f->backend[sizeof f->backend - 1] = '\0';
        f->implementation[sizeof f->implementation - 1] = '\0';
        f->why[sizeof f->why - 1] = '\0';
    }
    for (int i = 0; i < o->n; i++) {
        if ((o->value[i] = region_alloc(p, bytes_of(t->fetch[i]) + 1, 1)) == NULL)
            return ADJ_ENOMEM;
        take_into(r, o->value[i], bytes_of(t->fetch[i]));
    }
    o->n_plan = (int)take_number(r, r->left / sizeof *o->step_of);
    o->step_of = region_alloc(p, (size_t)o->n_plan + 1, sizeof *o->step_of);
    if (o->step_of == NULL)
        return ADJ_ENOMEM;
    take_into(r, o->step_of, (size_t)o->n_plan * sizeof *o->step_of);
    return t->bare ? take_plan(r, t, p, o) : ADJ_OK;
}

/* ---- the two ends ---- */

static void no_answer(outcome *o, const char *what)
{
    *o = (outcome){.status = ADJ_EBACKEND, .crashed = 1};
    snprintf(o->message, sizeof o->message, "%s", what);
}

adj_status trial_elsewhere(const trial *t, const adj_compare_opts *opts, region *p, outcome *o)
{
    writer w = {0};
    char message[128] = "";
    void *answer = NULL;
    size_t bytes = 0;
    put_trial(&w, t);
    w = (writer){.to = adj_alloc(&p->allocator, w.n)};
    if (w.to == NULL)
        return ADJ_ENOMEM;
    put_trial(&w, t);
    adj_status status = opts->elsewhere(opts->user, t->config->isa, w.to, w.n, &answer, &bytes,
                                        message, sizeof message);
    adj_release(&p->allocator, w.to);
    if (status != ADJ_OK) {
        no_answer(o, message);
        return status == ADJ_ENOMEM ? status : ADJ_OK;
    }
    reader r = {.from = answer, .left = bytes};
    status = take_outcome(&r, t, p, o);
    if (status == ADJ_OK && r.wrong) {
        adj_graph_free(o->plan);
        no_answer(o, "the answer is cut off");
    }
    free(answer);
    return status;
}

adj_status adj_trial_run(const void *request, size_t bytes, void **answer, size_t *answer_bytes)
{
    if (request == NULL || answer == NULL || answer_bytes == NULL)
        return ADJ_EARG;
    reader r = {.from = request, .left = bytes};
    region p = {.allocator = default_allocator()};
    trial t = {.g = adj_graph_new()};
    adj_compare_config config;
    outcome o = {0};
    *answer = NULL;
    adj_status status = take_trial(&r, &p, &config, &t);
    if (status == ADJ_OK && r.wrong)
        status = ADJ_EARG;
    if (status == ADJ_OK)
        status = trial_here(&t, &p, &o);
    if (status == ADJ_OK) {
        writer w = {0};
        put_outcome(&w, &t, &o);
        *answer = w.to = malloc(w.n);
        *answer_bytes = w.n;
        w.n = 0;
        if (w.to == NULL)
            status = ADJ_ENOMEM;
        else
            put_outcome(&w, &t, &o);
    }
    adj_graph_free(o.plan);
    adj_graph_free(t.g);
    region_free(&p);
    return status;
}
