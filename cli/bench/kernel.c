/* kernel.c - the opened backends and their kernels, to time the kernels of one node. */
#include "kernel.h"

#include <omp.h>
#include <stdlib.h>

#include "base/backend_option.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "cli/command.h"

enum { MAX_BACKENDS = 16, MAX_COLD = 64 << 20 };
static const size_t default_l3 = (size_t)32 << 20;

struct bench_kernels {
    int n;
    const adj_backend *backend[MAX_BACKENDS];
    void *opened[MAX_BACKENDS];
};

/* ---- backends ---- */

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

static const adj_backend *const *backends_of(const bench_opts *o)
{
    return o->backends != NULL ? o->backends : adj_backends;
}

/* Returns the backends of --backend onednn,direct as a bit mask, or prints an error and returns 0.
 */
static int read_list(const bench_opts *o, const char *list, unsigned *backends)
{
    *backends = 0;
    while (list != NULL) {
        adj_error error;
        const adj_op *op;
        int i;
        if (next_backend_part(&list, backends_of(o), "", &op, &i, &error) != ADJ_OK)
            return complain("bench", 0, "--backend: %s", error.message);
        if (op != NULL)
            return complain("bench", 0,
                            "--backend: expected backend names only (got a choice for op %s)",
                            op->name);
        *backends |= 1U << i;
    }
    return 1;
}

bench_kernels *bench_kernels_open(const bench_opts *o)
{
    static const adj_allocator allocator = {allocate, release, NULL};
    const char *list = o->all || o->raw ? o->backend : NULL;
    unsigned only;
    if (!read_list(o, list, &only))
        return NULL;
    const adj_backend *const *all = backends_of(o);
    bench_kernels *k = calloc(1, sizeof *k);
    if (k == NULL)
        return complain("bench", 0, "out of memory"), NULL;
    omp_set_num_threads((int)o->threads);
    for (int i = 0; all[i] != NULL && k->n < MAX_BACKENDS; i++) {
        const adj_backend *b = all[i];
        char message[ADJ_WHY] = "";
        const adj_backend_opts opts = {.allocator = &allocator,
                                       .threads = (int)o->threads,
                                       .math = o->math_mode,
                                       .message = message};
        if (list != NULL && !(only >> i & 1))
            continue;
        if (b->open(&opts, &k->opened[k->n]) != ADJ_OK) {
            complain("bench", 0, "%s: %s", b->name, message);
            bench_kernels_close(k);
            return NULL;
        }
        if (message[0] != '\0')
            complain("bench", EXIT_OK, "%s", message);
        k->backend[k->n++] = b;
    }
    return k;
}

void bench_kernels_close(bench_kernels *k)
{
    for (int i = 0; k != NULL && i < k->n; i++)
        k->backend[i]->close(k->opened[i]);
    free(k);
}

int bench_next_kernel(const bench_kernels *k, candidate *c)
{
    while (c->backend == NULL || !next_kernel(c)) {
        int i = c->backend == NULL ? 0 : c->index + 1;
        if (i >= k->n)
            return 0;
        c->index = i;
        c->backend = k->backend[i];
        c->opened = k->opened[i];
        c->kernel_list = NULL;
    }
    return 1;
}

size_t bench_cold_bytes(const bench_opts *o, size_t touched)
{
    const machine_facts m = machine_look("");
    const machine_cache *c = machine_data_cache(&m, 3);
    const size_t cache = c != NULL ? c->bytes : default_l3;
    size_t bytes = touched < cache ? touched : cache;
    if (o->warm)
        return 0;
    return bytes < MAX_COLD ? bytes : MAX_COLD;
}
