/* serialize.c - serializes a trial, so that another process can run it, and its outcome.
 *
 * Both processes run the same program, so structs are sent as they are. A process that is about to
 * crash may send anything: every length is checked. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "compare.h"

static const uint64_t magic = UINT64_C(0x61646a7472693031);

/* ---- serialization: one function counts, writes or reads ---- */

typedef struct {
    enum { COUNTS, WRITES, READS } way;
    char *at;  /* next byte; NULL while counting */
    size_t n;  /* bytes so far; while reading: bytes left */
    region *p; /* memory of what is read */
    int wrong; /* 1: malformed input */
    int no_memory;
} wire;

static const void *pass(wire *w, const void *data, size_t bytes)
{
    if (w->way != READS) {
        if (w->way == WRITES && bytes > 0) {
            memcpy(w->at, data, bytes);
            w->at += bytes;
        }
        w->n += bytes;
        return data;
    }
    w->wrong |= bytes > w->n;
    if (w->wrong)
        return NULL;
    data = w->at;
    w->at += bytes;
    w->n -= bytes;
    return data;
}

static void pass_into(wire *w, void *data, size_t bytes)
{
    const void *p = pass(w, data, bytes);
    if (w->way == READS && p != NULL && bytes > 0)
        memcpy(data, p, bytes);
}

/* 0 .. max */
static uint64_t pass_number(wire *w, uint64_t v, uint64_t max)
{
    pass_into(w, &v, sizeof v);
    w->wrong |= w->way == READS && v > max;
    return w->wrong ? 0 : v;
}

static int pass_int(wire *w, int v, uint64_t max) { return (int)pass_number(w, (uint64_t)v, max); }

/* NULL for no text. */
static const char *pass_text(wire *w, const char *s)
{
    size_t n = (size_t)pass_number(w, s != NULL ? strlen(s) + 1 : 0, w->n);
    s = pass(w, s, n);
    if (n == 0 || s == NULL)
        return NULL;
    w->wrong |= s[n - 1] != '\0';
    return w->wrong ? NULL : s;
}

/* Returns memory while reading; else `there`. */
static void *room(wire *w, void *there, size_t count, size_t size)
{
    if (w->way != READS)
        return there;
    void *p = region_alloc(w->p, count + 1, size);
    w->no_memory |= p == NULL;
    w->wrong |= p == NULL;
    return p;
}

static void *pass_array(wire *w, void *v, size_t count, size_t size)
{
    v = room(w, v, count, size);
    if (v != NULL)
        pass_into(w, v, count * size);
    return v;
}

static adj_node *pass_node(wire *w, const adj_graph *g, adj_node *n)
{
    uint64_t id = pass_number(w, n != NULL ? n->id : 0, UINT32_MAX);
    if (w->way != READS)
        return n;
    w->wrong |= id >= (uint64_t)g->n_node;
    return w->wrong ? NULL : g->node[id];
}

/* ---- graphs ---- */

static const adj_op *op_of(const char *name)
{
    for (const adj_op *const *op = adj_ops; name != NULL && *op != NULL; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

static adj_node *read_const(wire *w, adj_graph *g, const adj_const_attrs *a)
{
    const void *data = pass(w, NULL, adj_type_bytes((adj_type){(adj_dtype)a->dtype, a->shape}));
    return w->wrong ? NULL : adj_const(g, (adj_dtype)a->dtype, a->shape, data);
}

/* Writes n, or returns the node read; NULL: invalid. */
static adj_node *pass_new_node(wire *w, adj_graph *g, adj_node *n)
{
    _Alignas(16) char attrs[MAX_ATTR] = {0};
    adj_node *in[MAX_IN] = {NULL};
    const adj_op *op = n != NULL ? n->op : NULL;
    const char *op_name = pass_text(w, n != NULL ? op->name : NULL);
    const char *name = pass_text(w, n != NULL ? n->name : NULL);
    adj_role role = (adj_role)pass_number(w, n != NULL ? n->role : 0, ADJ_ROLE_UPDATE);
    int clone = pass_int(w, n != NULL ? n->clone : 0, INT_MAX); /* number among equal nodes */
    int n_in = pass_int(w, n != NULL ? n->n_in : 0, MAX_IN);
    for (int k = 0; k < n_in; k++)
        in[k] = pass_node(w, g, n != NULL ? n->in[k] : NULL);
    size_t size = (size_t)pass_number(w, n != NULL ? adj_attr_size(op) : 0, MAX_ATTR);
    if (n != NULL) {
        pass(w, n->attrs, size);
        if (op == &adj_op_const)
            pass(w, ((const adj_const_attrs *)n->attrs)->data, adj_type_bytes(n->type));
        return n;
    }
    pass_into(w, attrs, size);
    op = op_of(op_name);
    w->wrong |= op == NULL || size != adj_attr_size(op);
    if (w->wrong)
        return NULL;
    if (op->flags & ADJ_OP_LEAF && op != &adj_op_const && size == sizeof(adj_leaf_attrs))
        ((adj_leaf_attrs *)(void *)attrs)->is_drawn = 0; /* it is set; its data are the sender's */
    g->role = role;
    g->clone = clone;
    n = op == &adj_op_const ? read_const(w, g, (const adj_const_attrs *)(void *)attrs)
                            : adj_node_new(g, op, n_in, in, attrs);
    g->clone = 0;
    return adj_label(n, name);
}

static void pass_graph(wire *w, adj_graph *g)
{
    int n = pass_int(w, g->n_node, w->n);
    for (int id = 0; id < n && !w->wrong; id++) {
        const adj_node *node = pass_new_node(w, g, w->way != READS ? g->node[id] : NULL);
        w->wrong |= node == NULL || node->id != (uint32_t)id;
    }
    w->no_memory |= adj_graph_status(g) == ADJ_ENOMEM;
}

/* ---- a trial, and its outcome ---- */

/* Ends what may have been sent without an end. */
static void end_text(wire *w, char *text, size_t size)
{
    if (w->way == READS)
        text[size - 1] = '\0';
}

static void pass_updates(wire *w, trial *t)
{
    const adj_updates *u = t->updates;
    const int n = pass_int(w, adj_updates_count(u), w->n);
    adj_updates *made = w->way == READS && n > 0 ? adj_updates_new(t->g) : NULL;
    for (int i = 0; i < n && !w->wrong; i++) {
        adj_node *leaf = pass_node(w, t->g, w->way != READS ? adj_updates_leaf_at(u, i) : NULL);
        adj_node *next = pass_node(w, t->g, w->way != READS ? adj_updates_next_at(u, i) : NULL);
        w->wrong |= w->way == READS && adj_updates_add(made, leaf, next) != ADJ_OK;
    }
    if (w->way == READS)
        t->updates = made;
    w->no_memory |= adj_graph_status(t->g) == ADJ_ENOMEM;
}

static void pass_trial(wire *w, adj_compare_config *config, trial *t)
{
    w->wrong |= pass_number(w, magic, UINT64_MAX) != magic;
    pass_into(w, config, sizeof *config);
    end_text(w, config->name, sizeof config->name);
    end_text(w, config->backend, sizeof config->backend);
    end_text(w, config->isa, sizeof config->isa);
    end_text(w, config->impl, sizeof config->impl);
    t->runs = pass_int(w, t->runs, 1000);
    t->threads = pass_int(w, t->threads, 1024);
    t->aliases = pass_int(w, t->aliases, 1);
    t->bare = pass_int(w, t->bare, 1);
    t->watched = pass_int(w, t->watched, 1);
    pass_graph(w, t->g);
    t->n_fetch = pass_int(w, t->n_fetch, w->n);
    t->fetch = room(w, t->fetch, (size_t)t->n_fetch, sizeof(adj_node *));
    for (int i = 0; i < t->n_fetch && !w->wrong; i++)
        t->fetch[i] = pass_node(w, t->g, t->fetch[i]);
    t->n_leaf = pass_int(w, t->n_leaf, w->n);
    t->leaf = room(w, t->leaf, (size_t)t->n_leaf, sizeof(adj_node *));
    t->data = room(w, t->data, (size_t)t->n_leaf, sizeof(void *));
    for (int i = 0; i < t->n_leaf && !w->wrong; i++) {
        t->leaf[i] = pass_node(w, t->g, t->leaf[i]);
        if (!w->wrong)
            t->data[i] = pass_array(w, (void *)t->data[i], adj_type_bytes(t->leaf[i]->type), 1);
    }
    pass_updates(w, t);
}

static void pass_plan(wire *w, const trial *t, outcome *o)
{
    const adj_graph_opts opts = {.allocator = w->way == READS ? &w->p->allocator : NULL};
    if (w->way == READS && (o->plan = adj_graph_new_with(ADJ_VERSION, &opts)) == NULL)
        w->no_memory = 1;
    o->image = room(w, (void *)o->image, (size_t)t->g->n_node, sizeof(adj_node *));
    if (o->plan == NULL || o->image == NULL)
        return;
    pass_graph(w, o->plan);
    w->wrong |= o->n_plan != o->plan->n_node;
    for (int id = 0; id < t->g->n_node && !w->wrong; id++) {
        const adj_node *x = o->image[id];
        uint64_t k = pass_number(w, x != NULL ? x->id + UINT64_C(1) : 0, (uint64_t)o->n_plan);
        x = o->image[id] = k > 0 ? o->plan->node[k - 1] : NULL;
        w->wrong |= x != NULL && !adj_shape_equal(x->type.shape, t->g->node[id]->type.shape);
    }
    for (int i = 0; i < t->n_fetch; i++)
        w->wrong |= o->image[t->fetch[i]->id] == NULL;
}

static void pass_outcome(wire *w, const trial *t, outcome *o)
{
    w->wrong |= pass_number(w, magic, UINT64_MAX) != magic;
    outcome sent = *o;
    pass_into(w, &sent, sizeof sent);
    if (w->way == READS) { /* pointers are the sender's */
        *o = sent;
        o->info = NULL;
        o->value = NULL;
        o->step_of = NULL;
        o->n_plan = 0;
        o->plan = NULL;
        o->image = NULL;
    }
    end_text(w, o->message, sizeof o->message);
    end_text(w, o->plan_fault, sizeof o->plan_fault);
    int is_whole = pass_int(w, o->status == ADJ_OK, 1);
    w->wrong |= o->n != t->n_fetch || is_whole != (o->status == ADJ_OK);
    if (w->wrong || !is_whole)
        return;
    o->info = pass_array(w, o->info, (size_t)o->n, sizeof *o->info);
    o->value = room(w, o->value, (size_t)o->n, sizeof *o->value);
    for (int i = 0; i < o->n && !w->wrong; i++) {
        end_text(w, o->info[i].backend, sizeof o->info[i].backend);
        end_text(w, o->info[i].implementation, sizeof o->info[i].implementation);
        end_text(w, o->info[i].why, sizeof o->info[i].why);
        o->value[i] = pass_array(w, o->value[i], adj_type_bytes(t->fetch[i]->type), 1);
    }
    o->n_plan = pass_int(w, o->n_plan, w->n / sizeof *o->step_of);
    o->step_of = pass_array(w, o->step_of, (size_t)o->n_plan, sizeof *o->step_of);
    if (t->bare && !w->no_memory)
        pass_plan(w, t, o);
}

/* ---- the two ends ---- */

static void no_response(outcome *o, const char *why)
{
    *o = (outcome){.status = ADJ_EBACKEND, .crashed = 1};
    snprintf(o->message, sizeof o->message, "%s", why);
}

adj_status trial_elsewhere(const trial *t, const adj_trial_opts *opts, region *p, outcome *o)
{
    trial sent = *t;
    adj_compare_config config = *t->config;
    wire w = {.way = COUNTS};
    adj_error error = {0};
    void *response = NULL;
    size_t bytes = 0;
    pass_trial(&w, &config, &sent);
    char *request = adj_alloc(&p->allocator, w.n);
    if (request == NULL)
        return ADJ_ENOMEM;
    w = (wire){.way = WRITES, .at = request};
    pass_trial(&w, &config, &sent);
    adj_status status =
        opts->elsewhere(opts->user, t->config->isa, request, w.n, &response, &bytes, &error);
    adj_release(&p->allocator, request);
    if (status != ADJ_OK) {
        no_response(o, error.message);
        return status == ADJ_ENOMEM ? status : ADJ_OK;
    }
    w = (wire){.way = READS, .at = response, .n = bytes, .p = p};
    *o = (outcome){0};
    pass_outcome(&w, t, o);
    if (w.wrong && !w.no_memory) {
        adj_graph_free(o->plan);
        no_response(o, "the response is cut off");
    }
    free(response);
    return w.no_memory ? ADJ_ENOMEM : ADJ_OK;
}

typedef struct {
    void (*tell)(void *user, const char *note);
    void *user;
} listener;

/* Callback for before_kernel; user: the listener. */
static void tell_kernel(void *user, const adj_node *first, const char *backend, const char *impl,
                        double estimate)
{
    const listener *l = user;
    char name[80], text[240];
    name_node(first, name, sizeof name);
    c_snprintf(text, sizeof text, "%s by %s %s (estimated at %.2g s)", name, backend, impl,
               estimate);
    l->tell(l->user, text);
}

adj_status adj_trial_run(const void *request, size_t bytes,
                         void (*tell)(void *user, const char *note), void *user, void **response,
                         size_t *response_bytes)
{
    if (request == NULL || response == NULL || response_bytes == NULL)
        return ADJ_EARG;
    region p = {.allocator = default_allocator()};
    wire w = {.way = READS, .at = (char *)request, .n = bytes, .p = &p};
    adj_compare_config config;
    listener l = {tell, user};
    const adj_exec_internal internal = {.before_kernel = tell_kernel, .user = &l};
    trial t = {
        .g = adj_graph_new(), .config = &config, .internal = tell != NULL ? &internal : NULL};
    outcome o = {0};
    *response = NULL;
    if (t.g != NULL)
        pass_trial(&w, &config, &t);
    adj_status status = t.g == NULL || w.no_memory ? ADJ_ENOMEM : w.wrong ? ADJ_EARG : ADJ_OK;
    if (tell != NULL)
        tell(user, "planning");
    if (status == ADJ_OK)
        status = trial_here(&t, &p, &o);
    if (status == ADJ_OK) {
        w = (wire){.way = COUNTS};
        pass_outcome(&w, &t, &o);
        *response = malloc(w.n);
        *response_bytes = w.n;
        w = (wire){.way = WRITES, .at = *response};
        if (*response == NULL)
            status = ADJ_ENOMEM;
        else
            pass_outcome(&w, &t, &o);
    }
    adj_graph_free(o.plan);
    adj_graph_free(t.g);
    region_free(&p);
    return status;
}
