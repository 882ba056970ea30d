/* candidate.c - see candidate.h. */
#include <omp.h>
#include <stdio.h>

#include "candidate.h"

#include "base/machine/isa_level.h"

enum { ALIGNMENT = 64 };
/* Nominal seconds. Small operands are in a cache, about four times as fast as memory. */
static const double parallel_above = 1.25e-6, parallel_above_memory = 5e-6;

/* ---- nominal time ---- */

/* Rates of two ordinary cores, whatever a plan has. */
static const double hertz = 2 * 3e9, memory = 2 * 8e9;

double flop_of(const adj_node *n)
{
    return n->op->flop != NULL ? n->op->flop(n) : (double)adj_shape_elems(n->type.shape);
}

/* Returns the seconds of a node's arithmetic at two multiply-adds of a vector a cycle. A vector has
 * half as many numbers of f64. */
static double arithmetic(const adj_node *n)
{
    const adj_dtype type = n->n_in > 0 ? n->in[0]->type.dtype : n->type.dtype;
    const double f32 = hertz * 2 * 2 * machine_vector_floats();
    return flop_of(n) / (type == ADJ_F64 ? f32 / 2 : f32);
}

static double bytes_of_values(int n, const adj_node *const value[])
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)adj_type_bytes(value[i]->type);
    return bytes;
}

nominal_time nominal_of_group(const adj_group *g)
{
    nominal_time t = {.byte = 1 / memory};
    for (int i = 0; i < g->n_node; i++)
        t.arithmetic += arithmetic(g->node[i]);
    t.memory = (bytes_of_values(g->n_in, g->in) + bytes_of_values(g->n_out, g->out)) / memory;
    t.seconds = 2 * (t.arithmetic > t.memory ? t.arithmetic : t.memory);
    return t;
}

double nominal_copy(adj_type type) { return 2 * 2 * (double)adj_type_bytes(type) / memory; }

/* ---- kernels ---- */

int list_operands(int n, const adj_node *const node[], const adj_node *in[])
{
    int n_in = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < node[i]->n_in; k++)
            if (adj_position(n, node, node[i]->in[k]) < 0 &&
                adj_position(n_in, in, node[i]->in[k]) < 0)
                in[n_in++] = node[i]->in[k];
    return n_in;
}

int next_kernel(candidate *c)
{
    if (c->kernel_list == NULL)
        c->kernel_list = c->backend->kernels;
    c->kernel = *c->kernel_list;
    c->kernel_list += c->kernel != NULL;
    c->number = 0;
    return c->kernel != NULL;
}

static double nominal_seconds(const candidate *c)
{
    return c->nominal.seconds > 0 ? c->nominal.seconds : 1;
}

void init_prep(const candidate *c)
{
    const adj_layout **in = c->prep->in, **out = c->prep->out;
    *c->prep = (adj_prep){.in = in,
                          .out = out,
                          .invariant = c->invariant,
                          .arithmetic = c->nominal.seconds > 0 ? c->nominal.arithmetic : 1,
                          .memory = c->nominal.memory,
                          .byte = c->nominal.byte,
                          .seconds = nominal_seconds(c)};
    for (int i = 0; i < c->group->n_in; i++)
        in[i] = NULL;
    for (int i = 0; i < c->group->n_out; i++)
        out[i] = NULL;
}

/* Prepares a small group for one thread: others take longer to start than the group to run. */
adj_status query_kernel(const candidate *c)
{
    const int threads = omp_get_max_threads();
    const nominal_time *t = &c->nominal;
    if (t->seconds > 0 && t->arithmetic < parallel_above && t->memory < parallel_above_memory)
        omp_set_num_threads(1);
    adj_status status = c->kernel->prepare(c->opened, c->group, c->number, c->prep);
    omp_set_num_threads(threads);
    c->prep->why[ADJ_WHY - 1] = '\0';
    if (!(c->prep->seconds >= 0)) /* nor a number at all */
        c->prep->seconds = nominal_seconds(c);
    return status;
}

adj_status prepare_candidate(const candidate *c)
{
    init_prep(c);
    return query_kernel(c);
}

void drop_candidate(const candidate *c)
{
    if (c->kernel->drop != NULL)
        c->kernel->drop(c->opened, c->prep->state);
}

/* ---- memory ---- */

size_t layout_bytes_of(const adj_backend *b, const adj_layout *l, adj_type type)
{
    return l != NULL ? b->layout_bytes(l) : adj_type_bytes(type);
}

const char *layout_name_of(const adj_backend *b, const adj_layout *l)
{
    if (l == NULL)
        return "plain";
    return b->layout_name != NULL ? b->layout_name(l) : "packed";
}

void name_layouts(const candidate *c, char *text, size_t size)
{
    const adj_group *g = c->group;
    size_t used = 0;
    for (int i = 0; i < g->n_in + g->n_out && used < size; i++) {
        const adj_layout *l = i < g->n_in ? c->prep->in[i] : c->prep->out[i - g->n_in];
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", i > 0 ? " " : "",
                                 i == g->n_in ? "-> " : "", layout_name_of(c->backend, l));
    }
}

/* Puts a value of so many bytes behind the others of its area; used: bytes before it. */
static char *place(char *area, size_t gap, size_t *used, size_t bytes)
{
    char *at = area != NULL ? area + *used : NULL;
    *used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + gap;
    return at;
}

void bind_areas(const candidate *c, size_t gap, char *const area[N_AREA], size_t bytes[N_AREA],
                const void *in[], void *out[])
{
    const adj_group *g = c->group;
    static char *const nowhere[N_AREA];
    char *const *at = area != NULL ? area : nowhere;
    for (int k = 0; k < N_AREA; k++)
        bytes[k] = gap;
    for (int i = 0; i < g->n_in; i++) {
        adj_type t = g->in[i]->type;
        area_kind k = adj_is_float(t.dtype) ? FLOAT_AREA : INTEGER_AREA;
        in[i] = place(at[k], gap, &bytes[k], layout_bytes_of(c->backend, c->prep->in[i], t));
    }
    for (int i = 0; i < g->n_out; i++)
        out[i] = place(at[RESULT_AREA], gap, &bytes[RESULT_AREA],
                       layout_bytes_of(c->backend, c->prep->out[i], g->out[i]->type));
}

/* Every thread reads its part, as its caches are its own. */
uint64_t cool_caches(const void *memory, size_t bytes)
{
    enum { CACHE_LINE = 64 };
    const uint64_t *word = memory;
    const int64_t n = (int64_t)(bytes / sizeof *word);
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
    for (int64_t i = 0; i < n; i += CACHE_LINE / (int64_t)sizeof *word)
        sum += word[i];
    return sum;
}
