/* planted.c - see planted.h. */
#include "tests/cli/planted.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 8, FINE = 0, HANG = -1 };

static const adj_backend *real;       /* oneDNN's backend */
static const adj_kernel *convolution; /* its kernel */

/* State of a prepared convolution. */
typedef struct {
    void *real_state;
    int fault;
} planted;

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

/* The backend without a quarantine, opened once. */
static void *bare_backend(void)
{
    static const adj_allocator allocator = {allocate, release, NULL};
    static char message[ADJ_WHY];
    static void *bare;
    const adj_backend_opts opts = {.allocator = &allocator, .threads = 1, .message = message};
    if (bare != NULL)
        return bare;
    const char *word = getenv("ADJOINT_QUARANTINE");
    char *before = word != NULL ? strdup(word) : NULL;
    setenv("ADJOINT_QUARANTINE", "off", 1);
    if (real->open(&opts, &bare) != ADJ_OK)
        abort();
    if (before != NULL)
        setenv("ADJOINT_QUARANTINE", before, 1);
    else
        unsetenv("ADJOINT_QUARANTINE");
    free(before);
    return bare;
}

/* given: nominal seconds, by which implementations are ordered. */
static int is_first_choice(const adj_group *g, const char *impl, const adj_prep *given)
{
    const adj_layout *in[MAX] = {NULL}, *out[MAX] = {NULL};
    adj_prep p = *given;
    p.in = in;
    p.out = out;
    if (convolution->prepare(bare_backend(), g, 0, &p) != ADJ_OK)
        return 0;
    if (convolution->drop != NULL)
        convolution->drop(bare_backend(), p.state);
    return strcmp(p.impl, impl) == 0;
}

static int fault_of(const adj_group *g, const char *impl, const adj_prep *given)
{
    const adj_node *n = g->node[0];
    if (strcmp(n->op->name, "conv2d_backprop_filter") != 0 || n->type.dtype != ADJ_F32 ||
        g->n_in > MAX || g->n_out > MAX)
        return FINE;
    const adj_conv_geom *geom = &((const adj_conv_attrs *)n->attrs)->geom;
    if (geom->kh == PLANTED_IMAGES_KERNEL && geom->oc >= 32)
        return geom->ic == 32 && geom->n > PLANTED_IMAGES ? PLANTED_WRONG : FINE;
    if (!is_first_choice(g, impl, given))
        return FINE;
    return geom->kh == PLANTED_HANG_KERNEL && geom->oc == 3 ? HANG : (int)geom->sh;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_prep given = *p;
    adj_status status = convolution->prepare(backend, g, candidate, p);
    if (status != ADJ_OK)
        return status;
    planted *s = malloc(sizeof *s);
    if (s == NULL)
        abort();
    *s = (planted){p->state, fault_of(g, p->impl, &given)};
    p->state = s;
    p->seconds *= 1e-3; /* that plans take it, and no other backend's */
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const planted *s = c->state;
    adj_call real_call = *c;
    real_call.state = s->real_state;
    adj_status status = convolution->run(&real_call);
    float *y = c->out[0];
    if (s->fault == PLANTED_WRONG)
        y[0] += 1;
    else if (s->fault == PLANTED_NAN)
        y[0] = NAN;
    else if (s->fault == PLANTED_CRASH)
        raise(SIGSEGV);
    while (s->fault == HANG)
        pause();
    return status;
}

static void drop(void *backend, void *state)
{
    planted *s = state;
    if (convolution->drop != NULL)
        convolution->drop(backend, s->real_state);
    free(s);
}

const adj_backend *const *planted_backends(void)
{
    static adj_kernel kernel;
    static adj_backend backend;
    static const adj_kernel *kernels[2 * MAX];
    static const adj_backend *list[MAX];
    if (real != NULL)
        return list;
    for (int i = 0; adj_backends[i] != NULL; i++) {
        int is_real = strcmp(adj_backends[i]->name, "onednn") == 0;
        list[i] = is_real ? &backend : adj_backends[i];
        real = is_real ? adj_backends[i] : real;
    }
    backend = *real;
    backend.kernels = kernels;
    for (int i = 0; real->kernels[i] != NULL; i++) {
        kernels[i] = real->kernels[i];
        if (strcmp(kernels[i]->name, "convolution") == 0) {
            convolution = kernels[i];
            kernels[i] = &kernel;
        }
    }
    kernel = *convolution;
    kernel.prepare = prepare;
    kernel.run = run;
    kernel.drop = drop;
    return list;
}

void planted_use_tool(void)
{
    const char *build = getenv("BUILD");
    char path[256];
    snprintf(path, sizeof path, "%s/tests/planted", build != NULL ? build : "build");
    setenv("BUILD", path, 1);
    unsetenv("ADJOINT_PLAN");
}
