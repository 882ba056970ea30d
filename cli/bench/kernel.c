/* kernel.c - one node's kernels by themselves: a candidate is prepared as the plan would,
 * given operands in the layouts it asks for, and run again and again on one set of buffers (warm),
 * or on sets that together exceed the last-level cache (cold), as in a step of a large net. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "cli/command.h"

enum { MAX_BACKENDS = 16, MAX_SETS = 4096 };
static const size_t usual_l3 = (size_t)32 << 20;

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

/* Is name in the list "onednn,direct"? */
static int is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return 1;
    }
    return 0;
}

/* Every name of the list is a backend's, or a complaint. */
static int check_list(const char *option, const char *list)
{
    char known[128] = "";
    size_t used = 0;
    for (int i = 0; adj_backends[i] != NULL && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                                 adj_backends[i]->name);
    for (const char *p = list; p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        size_t n = strcspn(p, ",");
        int found = 0;
        for (int i = 0; adj_backends[i] != NULL; i++)
            found |= strlen(adj_backends[i]->name) == n && memcmp(adj_backends[i]->name, p, n) == 0;
        if (!found)
            return complain("bench", 0, "%s: unknown backend (got \"%.*s\", expected some of %s)",
                            option, (int)(n < 64 ? n : 64), p, known);
    }
    return 1;
}

bench_kernels *bench_kernels_open(const bench_opts *o)
{
    static const adj_allocator allocator = {allocate, release, NULL};
    const char *only = o->all || o->raw ? o->backend : NULL;
    if (!check_list("--backend", only) || !check_list("--without", o->without))
        return NULL;
    bench_kernels *k = calloc(1, sizeof *k);
    if (k == NULL)
        return complain("bench", 0, "out of memory"), NULL;
    omp_set_num_threads((int)o->threads);
    for (int i = 0; adj_backends[i] != NULL && k->n < MAX_BACKENDS; i++) {
        const adj_backend *b = adj_backends[i];
        char message[ADJ_WHY] = "";
        const adj_backend_opts opts = {.allocator = &allocator,
                                       .threads = (int)o->threads,
                                       .math = o->math_mode,
                                       .message = message};
        if ((only != NULL && !is_listed(only, b->name)) || is_listed(o->without, b->name))
            continue;
        if (b->open(&opts, &k->opened[k->n]) != ADJ_OK) {
            complain("bench", 0, "%s: %s", b->name, message);
            bench_kernels_close(k);
            return NULL;
        }
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

size_t bench_l3_bytes(void)
{
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    char text[32] = "";
    if (f == NULL)
        return usual_l3;
    size_t kilo = fgets(text, sizeof text, f) != NULL ? strtoul(text, NULL, 10) : 0;
    fclose(f);
    return kilo > 0 ? kilo << 10 : usual_l3;
}

/* ---- a candidate's memory ---- */

static size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t bytes_in(const adj_backend *b, const adj_layout *l, adj_type t)
{
    return l != NULL ? b->layout_bytes(l)
                     : (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
}

static char *new_memory(size_t bytes)
{
    char *p = aligned_alloc(64, padded(bytes + 1));
    if (p != NULL)
        memset(p, 0, padded(bytes + 1)); /* touched: the first run meets no page faults */
    return p;
}

/* The memory of all sets, one behind the other: operands, then results. */
typedef struct {
    const adj_backend *b;
    void *opened;
    adj_group group;
    const adj_node *in[MAX_OPERANDS];
    const adj_layout *in_layout[MAX_OPERANDS], *out_layout[1];
    adj_prep prep;
    const adj_kernel *kernel;
    size_t at[MAX_OPERANDS + 1]; /* within a set; the last: the result */
    size_t set_bytes;
    int sets;
    char *memory, *scratch;
} candidate;

/* Operand i of set 0: random, in the candidate's layout. */
static adj_status fill_operand(candidate *c, int i)
{
    const adj_type t = c->in[i]->type;
    adj_reorder r = {c->opened, NULL, c->in_layout[i], t};
    int64_t elems = adj_shape_elems(t.shape);
    char *plain = new_memory(bytes_in(c->b, NULL, t)), *scratch = NULL;
    void *state = NULL;
    size_t scratch_bytes = 0;
    if (plain == NULL)
        return ADJ_ENOMEM;
    if (t.dtype != ADJ_I32) /* labels and steps stay 0 */
        adj_draw(t.dtype, plain, elems, (adj_init){ADJ_INIT_UNIFORM, -1, 1}, 1, (uint64_t)i);
    adj_status status = ADJ_OK;
    if (c->in_layout[i] == NULL) {
        memcpy(c->memory + c->at[i], plain, bytes_in(c->b, NULL, t));
    } else if ((status = c->b->reorder_prepare(&r, &state, &scratch_bytes)) == ADJ_OK) {
        scratch = new_memory(scratch_bytes);
        status = scratch != NULL ? c->b->reorder_run(state, plain, c->memory + c->at[i], scratch)
                                 : ADJ_ENOMEM;
        c->b->reorder_drop(c->opened, state);
    }
    free(scratch);
    free(plain);
    return status;
}

static adj_status make_memory(candidate *c, int cold)
{
    const adj_node *y = c->group.out[0];
    size_t used = 0;
    for (int i = 0; i < c->group.n_in; i++) {
        c->at[i] = used;
        used += padded(bytes_in(c->b, c->in_layout[i], c->in[i]->type));
    }
    c->at[c->group.n_in] = used;
    c->set_bytes = used + padded(bytes_in(c->b, c->out_layout[0], y->type));
    size_t sets = cold && c->set_bytes > 0 ? 2 * bench_l3_bytes() / c->set_bytes + 2 : 1;
    c->sets = sets < MAX_SETS ? (int)sets : MAX_SETS;
    c->memory = new_memory((size_t)c->sets * c->set_bytes);
    c->scratch = new_memory(c->prep.scratch);
    adj_status status = c->memory != NULL && c->scratch != NULL ? ADJ_OK : ADJ_ENOMEM;
    for (int i = 0; i < c->group.n_in && status == ADJ_OK; i++)
        status = fill_operand(c, i);
    for (int s = 1; s < c->sets && status == ADJ_OK; s++)
        memcpy(c->memory + (size_t)s * c->set_bytes, c->memory, used);
    return status;
}

/* ---- running it ---- */

static adj_status run_set(const candidate *c, int set, int threads, char *message, double *seconds)
{
    const void *in[MAX_OPERANDS];
    char *start_of = c->memory + (size_t)set * c->set_bytes;
    void *out[1] = {start_of + c->at[c->group.n_in]};
    for (int i = 0; i < c->group.n_in; i++)
        in[i] = start_of + c->at[i];
    const adj_call call = {.group = &c->group,
                           .state = c->prep.state,
                           .in = in,
                           .out = out,
                           .scratch = c->scratch,
                           .threads = threads,
                           .message = message};
    double start = seconds_now();
    adj_status status = c->kernel->run(&call);
    *seconds = seconds_now() - start;
    return status;
}

static void time_candidate(candidate *c, const bench_opts *o, bench_row *row)
{
    samples s = {0};
    double seconds = 0;
    int cold = o->op.op != NULL ? !o->warm : o->cold;
    adj_status status = make_memory(c, cold);
    if (status == ADJ_OK)
        status = run_set(c, 0, (int)o->threads, row->why, &seconds); /* not counted */
    double end = seconds_now() + o->seconds;
    for (int i = 1; status == ADJ_OK; i++) {
        status = run_set(c, i % c->sets, (int)o->threads, row->why, &seconds);
        if (status == ADJ_OK && (!samples_add(&s, seconds) || seconds_now() >= end))
            break;
    }
    if (status != ADJ_OK && row->why[0] == '\0')
        snprintf(row->why, sizeof row->why, "%s", adj_status_name(status));
    row->time = samples_spread(&s);
    row->sets = c->sets;
    row->bytes = c->set_bytes;
    samples_free(&s);
    free(c->memory);
    free(c->scratch);
    c->memory = c->scratch = NULL;
}

/* ---- all candidates of a node ---- */

static bench_row *new_row(bench_rows *rows)
{
    if (rows->n == rows->max) {
        int max = rows->max > 0 ? 2 * rows->max : 32;
        bench_row *more = realloc(rows->row, (size_t)max * sizeof *more);
        if (more == NULL)
            return NULL;
        rows->row = more;
        rows->max = max;
    }
    rows->row[rows->n] = (bench_row){0};
    return &rows->row[rows->n++];
}

/* Makes the conversation with a kernel about a node; 0: it has too many operands. */
static int start_candidate(candidate *c, const adj_node *const *n)
{
    int n_in = 0;
    for (int k = 0; k < (*n)->n_in; k++) {
        int known = 0;
        for (int i = 0; i < n_in; i++)
            known |= c->in[i] == (*n)->in[k];
        if (!known && n_in == MAX_OPERANDS)
            return 0;
        if (!known)
            c->in[n_in++] = (*n)->in[k];
    }
    for (int i = 0; i < n_in; i++)
        c->in_layout[i] = NULL;
    c->out_layout[0] = NULL;
    c->group = (adj_group){1, n, n_in, c->in, 1, n};
    c->prep = (adj_prep){.in = c->in_layout, .out = c->out_layout};
    return 1;
}

static const char *name_of(const adj_backend *b, const adj_layout *l)
{
    return l != NULL && b->layout_name != NULL ? b->layout_name(l) : "plain";
}

static void describe(const candidate *c, bench_row *row)
{
    size_t used = 0, size = sizeof row->layouts;
    for (int i = 0; i < c->group.n_in && used < size; i++)
        used += (size_t)snprintf(row->layouts + used, size - used, "%s ",
                                 name_of(c->b, c->in_layout[i]));
    if (used < size)
        snprintf(row->layouts + used, size - used, "-> %s", name_of(c->b, c->out_layout[0]));
    row->backend = c->b->name;
    snprintf(row->impl, sizeof row->impl, "%s", c->prep.impl);
}

static int is_planned(const planned_choice *p, const candidate *c)
{
    return strcmp(c->b->name, p->backend) == 0 && strcmp(c->prep.impl, p->impl) == 0;
}

/* Times what is wanted of one kernel's candidates. */
static int time_kernel(candidate *c, const bench_opts *o, const adj_node *n,
                       const planned_choice *p, int all, bench_rows *rows)
{
    int ok = 1, found = 0; /* found: the planned one */
    for (int which = 0; ok && start_candidate(c, &n); which++) {
        if (c->kernel->prepare(c->opened, &c->group, which, &c->prep) != ADJ_OK)
            break;
        int planned = !found && is_planned(p, c);
        if ((planned || all) && (o->impl == NULL || strstr(c->prep.impl, o->impl) != NULL)) {
            bench_row *row = new_row(rows);
            ok = row != NULL;
            if (ok) {
                describe(c, row);
                row->flop = bench_flop(n);
                row->planned = planned;
                time_candidate(c, o, row);
            }
        }
        found |= planned;
        if (c->kernel->drop != NULL)
            c->kernel->drop(c->opened, c->prep.state);
    }
    return ok;
}

int bench_node(bench_kernels *k, const bench_opts *o, const adj_node *n, const planned_choice *p,
               int all, bench_rows *rows)
{
    int ok = 1;
    for (int b = 0; ok && b < k->n; b++) {
        candidate c = {.b = k->backend[b], .opened = k->opened[b]};
        for (int i = 0; ok && c.b->kernels[i] != NULL; i++) {
            c.kernel = c.b->kernels[i];
            ok = time_kernel(&c, o, n, p, all, rows);
        }
    }
    return ok;
}

bench_row *bench_fastest(bench_rows *rows, int first)
{
    bench_row *best = NULL;
    for (int i = first; i < rows->n; i++)
        if (rows->row[i].time.n > 0 &&
            (best == NULL || rows->row[i].time.median < best->time.median))
            best = &rows->row[i];
    if (best != NULL)
        best->fastest = 1;
    return best;
}
