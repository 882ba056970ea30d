/* kernel.c - one node's kernels by themselves: a candidate is prepared as the plan would,
 * given operands in the layouts it asks for, and run again and again on one set of buffers (warm),
 * or on sets that together exceed the last-level cache (cold), as in a step of a large net. */
#include "kernel.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "exec/backend_option.h"
#include "exec/clock.h"
#include "exec/machine/machine.h"

enum { MAX_BACKENDS = 16, MAX_SETS = 4096 };
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

/* The backends of the list "onednn,direct" as bits, or a complaint and 0. */
static int read_list(const bench_opts *o, const char *option, const char *list, unsigned *backends)
{
    *backends = 0;
    while (list != NULL) {
        adj_error error;
        const adj_op *op;
        int i;
        if (next_backend_part(&list, backends_of(o), "", &op, &i, &error) != ADJ_OK)
            return complain("bench", 0, "%s: %s", option, error.message);
        if (op != NULL)
            return complain("bench", 0, "%s: expected names of backends (got one for %s)", option,
                            op->name);
        *backends |= 1U << i;
    }
    return 1;
}

bench_kernels *bench_kernels_open(const bench_opts *o)
{
    static const adj_allocator allocator = {allocate, release, NULL};
    const char *list = o->all || o->raw ? o->backend : NULL;
    unsigned only, without;
    if (!read_list(o, "--backend", list, &only) || !read_list(o, "--without", o->without, &without))
        return NULL;
    const adj_backend *const *all = backends_of(o);
    bench_kernels *k = calloc(1, sizeof *k);
    if (k == NULL)
        return complain(o->command, 0, "out of memory"), NULL;
    omp_set_num_threads((int)o->threads);
    for (int i = 0; all[i] != NULL && k->n < MAX_BACKENDS; i++) {
        const adj_backend *b = all[i];
        char message[ADJ_WHY] = "";
        const adj_backend_opts opts = {.allocator = &allocator,
                                       .threads = (int)o->threads,
                                       .math = o->math_mode,
                                       .message = message};
        if ((list != NULL && !(only >> i & 1)) || without >> i & 1)
            continue;
        if (b->open(&opts, &k->opened[k->n]) != ADJ_OK) {
            complain(o->command, 0, "%s: %s", b->name, message);
            bench_kernels_close(k);
            return NULL;
        }
        if (message[0] != '\0')
            complain(o->command, EXIT_OK, "%s", message);
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

int bench_is_planned(const candidate *c, const planned_choice *p)
{
    const adj_group *g = c->group;
    int same = strcmp(c->backend->name, p->backend) == 0 && strcmp(c->prep->impl, p->impl) == 0;
    for (int i = 0; same && i <= g->n_in; i++) {
        const adj_layout *l = i < g->n_in ? c->prep->in[i] : c->prep->out[0];
        same = p->layout[i] == NULL || strcmp(p->layout[i], layout_name_of(c->backend, l)) == 0;
    }
    return same;
}

size_t bench_cache_bytes(void)
{
    const machine_facts m = machine_look("");
    const machine_cache *c = machine_data_cache(&m, 3);
    return c != NULL ? c->bytes : default_l3;
}

/* ---- a candidate's memory ---- */

/* The memory of all sets, one behind the other; in each float operands, integers, results. */
typedef struct {
    candidate c;
    size_t bytes[N_AREA], set_bytes;
    int sets;
    char *memory, *scratch;
} bench_candidate;

char *bench_memory(size_t bytes)
{
    size_t padded = (bytes + 64) / 64 * 64;
    char *p = aligned_alloc(64, padded);
    if (p != NULL)
        memset(p, 0, padded);
    return p;
}

/* Points in and out into a set. */
static void bind_set(bench_candidate *b, int set, const void *in[], void *out[])
{
    char *area[N_AREA] = {b->memory + (size_t)set * b->set_bytes};
    for (int k = 1; k < N_AREA; k++)
        area[k] = area[k - 1] + b->bytes[k - 1];
    bind_areas(&b->c, 0, area, b->bytes, in, out);
}

/* The operands are random in any layout; labels and steps stay 0. */
static adj_status make_memory(bench_candidate *b, int cold)
{
    const candidate *c = &b->c;
    const void *in[MAX_OPERANDS];
    void *out[1];
    bind_areas(c, 0, NULL, b->bytes, in, out);
    size_t operands = b->bytes[FLOAT_AREA] + b->bytes[INTEGER_AREA];
    b->set_bytes = operands + b->bytes[RESULT_AREA];
    size_t sets = cold && b->set_bytes > 0 ? 2 * bench_cache_bytes() / b->set_bytes + 2 : 1;
    b->sets = sets < MAX_SETS ? (int)sets : MAX_SETS;
    b->memory = bench_memory((size_t)b->sets * b->set_bytes);
    b->scratch = bench_memory(c->prep->scratch);
    if (b->memory == NULL || b->scratch == NULL)
        return ADJ_ENOMEM;
    bind_set(b, 0, in, out);
    for (int i = 0; i < c->group->n_in; i++) {
        const adj_type t = c->group->in[i]->type;
        size_t bytes = layout_bytes_of(c->backend, c->prep->in[i], t);
        if (adj_is_float(t.dtype))
            adj_draw(t.dtype, b->memory + ((const char *)in[i] - b->memory),
                     (int64_t)(bytes / adj_dtype_size(t.dtype)),
                     (adj_init){ADJ_INIT_UNIFORM, -1, 1}, 1, (uint64_t)i);
    }
    for (int s = 1; s < b->sets; s++)
        memcpy(b->memory + (size_t)s * b->set_bytes, b->memory, operands);
    return ADJ_OK;
}

/* ---- running it ---- */

static adj_status run_set(bench_candidate *b, int set, int threads, char *message, double *seconds)
{
    const void *in[MAX_OPERANDS];
    void *out[1];
    const adj_call call = {.group = b->c.group,
                           .state = b->c.prep->state,
                           .in = in,
                           .out = out,
                           .scratch = b->scratch,
                           .threads = threads,
                           .message = message};
    bind_set(b, set, in, out);
    double start = seconds_now();
    adj_status status = b->c.kernel->run(&call);
    *seconds = seconds_now() - start;
    return status;
}

static void time_candidate(const candidate *c, const bench_opts *o, bench_row *row)
{
    bench_candidate b = {.c = *c};
    samples s = {0};
    double seconds = 0;
    adj_status status = make_memory(&b, !o->warm);
    if (status == ADJ_OK)
        status = run_set(&b, 0, (int)o->threads, row->why, &seconds); /* not counted */
    double end = seconds_now() + o->seconds;
    for (int i = 1; status == ADJ_OK; i++) {
        status = run_set(&b, i % b.sets, (int)o->threads, row->why, &seconds);
        if (status == ADJ_OK && (!samples_add(&s, seconds) || seconds_now() >= end))
            break;
    }
    if (status != ADJ_OK && row->why[0] == '\0')
        snprintf(row->why, sizeof row->why, "%s", adj_status_name(status));
    row->time = samples_spread(&s);
    row->sets = b.sets;
    row->bytes = b.set_bytes;
    samples_free(&s);
    free(b.memory);
    free(b.scratch);
}

/* ---- all candidates of a node ---- */

/* 0: out of memory. */
static int add_row(const candidate *c, const bench_opts *o, int planned, bench_rows *rows)
{
    bench_row *row = bench_new_row(rows, c);
    if (row == NULL)
        return 0;
    row->count = 1;
    row->planned = planned;
    time_candidate(c, o, row);
    return 1;
}

/* Times what is wanted of one kernel's candidates. */
static int time_kernel(candidate *c, const bench_opts *o, const planned_choice *p, int all,
                       bench_rows *rows)
{
    int ok = 1, found = 0; /* found: the planned one */
    for (; ok && prepare_candidate(c) == ADJ_OK; c->number++) {
        int planned = !found && bench_is_planned(c, p);
        found |= planned;
        if ((planned || all) && (o->impl == NULL || strstr(c->prep->impl, o->impl) != NULL))
            ok = add_row(c, o, planned, rows);
        drop_candidate(c);
    }
    return ok;
}

/* A node alone, and room for what its candidates are prepared to. */
typedef struct {
    const adj_node *node, *in[MAX_OPERANDS];
    const adj_layout *in_layout[MAX_OPERANDS], *out_layout[1];
    adj_group group;
    adj_prep prep;
} lone_node;

static void set_node(lone_node *l, const adj_node *n)
{
    l->node = n;
    l->group = (adj_group){1, &l->node, list_operands(1, &l->node, l->in), l->in, 1, &l->node};
    l->prep = (adj_prep){.in = l->in_layout, .out = l->out_layout};
}

int bench_node(bench_kernels *k, const bench_opts *o, const adj_node *n, const planned_choice *p,
               int all, bench_rows *rows)
{
    lone_node l;
    int ok = 1;
    set_node(&l, n);
    candidate c = {.group = &l.group, .prep = &l.prep};
    while (ok && bench_next_kernel(k, &c))
        ok = time_kernel(&c, o, p, all, rows);
    return ok;
}

/* Of the kernels' first candidates, the first of the least estimate (exec/select_kernel.c). */
int bench_usual(bench_kernels *k, const adj_node *n, planned_choice *p)
{
    lone_node l;
    double min = HUGE_VAL;
    set_node(&l, n);
    candidate c = {.group = &l.group, .prep = &l.prep};
    while (bench_next_kernel(k, &c)) {
        if (prepare_candidate(&c) != ADJ_OK)
            continue;
        if (l.prep.seconds < min) {
            min = l.prep.seconds;
            snprintf(p->backend, sizeof p->backend, "%s", c.backend->name);
            snprintf(p->impl, sizeof p->impl, "%s", l.prep.impl);
            name_layouts(&c, p->layouts, sizeof p->layouts);
        }
        drop_candidate(&c);
    }
    return min < HUGE_VAL;
}
