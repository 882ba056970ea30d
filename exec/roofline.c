/* roofline.c - see roofline.h. */
#include "roofline.h"

#include "base/machine/isa_level.h"

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
