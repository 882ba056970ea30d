/* race.c - times all candidates of one node alternately, until a deadline.
 *
 * They run interleaved and on the same memory, so that a disturbance affects all of them, and the
 * least time of each counts. Before each run, as many bytes are read as a step of the whole graph
 * touches between two runs of the node (as exec/tune/time.c does). A candidate far slower than the
 * fastest is dropped early, a planned one never. */
#include "bench.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"

enum { MAX_ROUNDS = 30 };

/* Rounds after which a candidate is dropped, and by which factor it must be slower than the
 * fastest. The first run is no reason, since it may have been disturbed. */
static const struct {
    int round;
    double times;
} limits[] = {{0, 4}, {1, 2}, {4, 1.25}};

typedef struct {
    candidate c;
    adj_prep prep;
    const adj_layout *in_layout[MAX_OPERANDS], *out_layout[1];
    const void *in[MAX_OPERANDS]; /* into the race's memory */
    void *out[1];
    size_t bytes; /* bytes of operands and result */
    int planned;  /* nodes planned so: the node and its equals */
    int is_out;   /* 1: dropped */
    samples seconds;
    double best;
    char why[ADJ_WHY]; /* it failed */
} entrant;

typedef struct {
    const bench_race *wanted;
    adj_group group;
    int n, n_planned; /* numbers of entrants; the planned ones are first */
    double deadline;  /* limit on seconds_now() */
    entrant **list;
    char *area[N_AREA], *scratch, *cold;
    uint64_t seen;
} race;

/* ---- entrants ---- */

/* True for the last backend, the reference, which is timed only if no other has a kernel. */
static int is_reference(const adj_backend *b)
{
    int n = 0;
    while (adj_backends[n + 1] != NULL)
        n++;
    return b == adj_backends[n];
}

/* True if the candidate has that implementation and those layouts. */
static int is_planned(const candidate *c, const planned_choice *p)
{
    const adj_group *g = c->group;
    int same = strcmp(c->backend->name, p->backend) == 0 && strcmp(c->prep->impl, p->impl) == 0;
    for (int i = 0; same && i <= g->n_in; i++) {
        const adj_layout *l = i < g->n_in ? c->prep->in[i] : c->prep->out[0];
        same = p->layout[i] == NULL || strcmp(p->layout[i], layout_name_of(c->backend, l)) == 0;
    }
    return same;
}

static int is_wanted(const race *r, const bench_opts *o, const entrant *e)
{
    if (o->impl != NULL && strstr(e->prep.impl, o->impl) == NULL)
        return 0;
    if (r->wanted->planned_alone)
        return r->n == 0 && is_planned(&e->c, r->wanted->planned);
    return o->all || r->n == 0 || !is_reference(e->c.backend);
}

static void drop(entrant *e)
{
    drop_candidate(&e->c);
    samples_free(&e->seconds);
    free(e);
}

/* Enters all candidates of c's kernel. */
static void enter_kernel(race *r, const bench_opts *o, candidate *c)
{
    for (;; c->number++) {
        entrant *e = allocate(1, sizeof *e);
        e->prep.in = e->in_layout;
        e->prep.out = e->out_layout;
        e->c = *c;
        e->c.prep = &e->prep;
        if (prepare_candidate(&e->c) != ADJ_OK) {
            free(e);
            return;
        }
        if (!is_wanted(r, o, e)) {
            drop(e);
            continue;
        }
        r->list = make_room(r->list, r->n, sizeof(entrant *));
        r->list[r->n++] = e;
    }
}

/* Returns the entrant of the planned implementation, in its layouts if possible, else in any. */
static entrant *find_planned(const race *r, planned_choice p)
{
    for (int exact = 1; exact >= 0; exact--) {
        for (int i = 0; i < r->n; i++)
            if (is_planned(&r->list[i]->c, &p))
                return r->list[i];
        memset(p.layout, 0, sizeof p.layout);
    }
    return NULL;
}

/* Marks the planned entrants and moves them to the front. */
static void mark_planned(race *r, bench_rows *rows)
{
    for (int i = 0; i < r->wanted->n_planned; i++) {
        const planned_choice *p = &r->wanted->planned[i];
        entrant *e = find_planned(r, *p);
        if (e == NULL)
            rows->unmatched += p->count;
        else
            e->planned += p->count;
    }
    for (int i = 0; i < r->n; i++) {
        entrant *e = r->list[i];
        if (e->planned == 0)
            continue;
        memmove(r->list + r->n_planned + 1, r->list + r->n_planned,
                (size_t)(i - r->n_planned) * sizeof e);
        r->list[r->n_planned++] = e;
    }
}

/* ---- memory ---- */

/* Returns zeroed, 64-byte aligned memory that was touched, so that the first run has no page
 * faults. */
static char *new_memory(size_t bytes)
{
    size_t padded = (bytes + 64) / 64 * 64;
    return memset(or_exit(aligned_alloc(64, padded)), 0, padded);
}

static size_t max_of(size_t a, size_t b) { return a > b ? a : b; }

/* Allocates buffers for the largest operands and results, filled with values that are ordinary
 * numbers in every float type. */
static void make_memory(race *r)
{
    size_t max[N_AREA] = {0}, scratch = 0;
    for (int i = 0; i < r->n; i++) {
        entrant *e = r->list[i];
        size_t bytes[N_AREA];
        bind_areas(&e->c, 0, NULL, bytes, e->in, e->out);
        for (int k = 0; k < N_AREA; k++) {
            max[k] = max_of(max[k], bytes[k]);
            e->bytes += bytes[k];
        }
        scratch = max_of(scratch, e->prep.scratch);
    }
    for (int k = 0; k < N_AREA; k++)
        r->area[k] = new_memory(max[k]);
    r->scratch = new_memory(scratch);
    r->cold = new_memory(r->wanted->cold);
    adj_draw(ADJ_BF16, r->area[FLOAT_AREA], (int64_t)(max[FLOAT_AREA] / 2),
             (adj_init){.kind = ADJ_INIT_UNIFORM, .a = 0.5, .b = 1.5}, 1, 0);
    for (int i = 0; i < r->n; i++) {
        entrant *e = r->list[i];
        size_t bytes[N_AREA];
        bind_areas(&e->c, 0, r->area, bytes, e->in, e->out);
    }
}

/* ---- the race ---- */

static void run_once(race *r, entrant *e, int threads)
{
    const adj_call call = {.group = &r->group,
                           .state = e->prep.state,
                           .in = e->in,
                           .out = e->out,
                           .scratch = r->scratch,
                           .threads = threads,
                           .message = e->why};
    if (r->wanted->cold > 0)
        r->seen += cool_caches(r->cold, r->wanted->cold);
    double start = seconds_now();
    adj_status status = e->c.kernel->run(&call);
    double took = seconds_now() - start;
    if (status == ADJ_OK && samples_add(&e->seconds, took))
        e->best = e->seconds.n == 1 || took < e->best ? took : e->best;
    if (status != ADJ_OK) {
        e->is_out = 1;
        e->seconds.n = 0;
        if (e->why[0] == '\0')
            snprintf(e->why, sizeof e->why, "%s", adj_status_name(status));
    }
}

static double fastest_time(const race *r)
{
    double best = 0;
    for (int i = 0; i < r->n; i++)
        if (r->list[i]->seconds.n > 0 && (best == 0 || r->list[i]->best < best))
            best = r->list[i]->best;
    return best;
}

static double limit_of(int round)
{
    double times = limits[0].times;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (round >= limits[i].round)
            times = limits[i].times;
    return times;
}

/* Runs rounds until the deadline; the planned entrants run at least once. */
static void run_rounds(race *r, int threads)
{
    const int n_sure = r->n_planned > 0 ? r->n_planned : 1;
    for (int round = 0; round < MAX_ROUNDS; round++)
        for (int i = 0; i < r->n; i++) {
            entrant *e = r->list[i];
            if (e->is_out)
                continue;
            if (seconds_now() >= r->deadline && (round > 0 || i >= n_sure))
                return;
            run_once(r, e, threads);
            e->is_out |= e->planned == 0 && e->best > limit_of(round) * fastest_time(r);
        }
}

/* Adds a row for each entrant. */
static void add_rows(const race *r, bench_rows *rows)
{
    int count = 0;
    for (int i = 0; i < r->wanted->n_planned; i++)
        count += r->wanted->planned[i].count;
    for (int i = 0; i < r->n; i++) {
        entrant *e = r->list[i];
        if (e->seconds.n == 0 && e->why[0] == '\0') {
            rows->untimed++;
            continue;
        }
        bench_row *row = bench_new_row(rows, &e->c);
        memcpy(row->why, e->why, sizeof row->why);
        row->time = samples_spread(&e->seconds);
        row->bytes = e->bytes;
        row->count = count;
        row->planned = e->planned;
    }
}

static void close(race *r)
{
    for (int i = 0; i < r->n; i++)
        drop(r->list[i]);
    for (int k = 0; k < N_AREA; k++)
        free(r->area[k]);
    free(r->scratch);
    free(r->cold);
    free(r->list);
}

void bench_race_run(const bench_opts *o, const bench_race *wanted, bench_rows *rows)
{
    const adj_node *in[MAX_OPERANDS];
    race r = {
        .wanted = wanted,
        .group = {1, &wanted->node, list_operands(1, &wanted->node, in), in, 1, &wanted->node}};
    candidate c = {.group = &r.group, .nominal = nominal_of_group(&r.group)};
    omp_set_num_threads((int)o->threads);
    for (; (c.backend = adj_exec_backend_at(wanted->exec, c.index, &c.opened)) != NULL; c.index++) {
        c.kernel_list = NULL;
        while (wanted->backends >> c.index & 1 && next_kernel(&c))
            enter_kernel(&r, o, &c);
    }
    mark_planned(&r, rows);
    if (r.n > 0) {
        make_memory(&r);
        r.deadline = seconds_now() + wanted->seconds * (wanted->each ? r.n : 1);
        run_rounds(&r, (int)o->threads);
        add_rows(&r, rows);
    }
    close(&r);
}
