/* roofline.c - see roofline.h. */
#include "roofline.h"

#include "base/machine/isa_level.h"

static const double hertz = 3e9, bytes_per_second = 8e9; /* of an ordinary core */

roofline roofline_nominal(void)
{
    const double threads = 2; /* whatever a plan has: its bits follow from its choices */
    /* two multiply-adds of a vector at a time */
    const double f32 = threads * hertz * 2 * 2 * machine_vector_floats();
    return (roofline){
        .f32 = f32, .f64 = f32 / 2, .bf16 = f32, .f16 = f32, .memory = threads * bytes_per_second};
}

double flop_of(const adj_node *n)
{
    return n->op->flop != NULL ? n->op->flop(n) : (double)adj_shape_elems(n->type.shape);
}

static double arithmetic(const roofline *r, const adj_node *n)
{
    const adj_dtype type = n->n_in > 0 ? n->in[0]->type.dtype : n->type.dtype;
    const double rate = type == ADJ_F64    ? r->f64
                        : type == ADJ_BF16 ? r->bf16
                        : type == ADJ_F16  ? r->f16
                                           : r->f32;
    return flop_of(n) / rate;
}

static double max_of(double a, double b) { return a > b ? a : b; }

double bytes_of_values(int n, const adj_node *const value[])
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)adj_type_bytes(value[i]->type);
    return bytes;
}

double roofline_node(const roofline *r, const adj_node *n)
{
    const double bytes =
        (double)adj_type_bytes(n->type) + bytes_of_values(n->n_in, (const adj_node *const *)n->in);
    return max_of(arithmetic(r, n), bytes / r->memory);
}

double roofline_arithmetic(const roofline *r, const adj_group *g)
{
    double seconds = 0;
    for (int i = 0; i < g->n_node; i++)
        seconds += arithmetic(r, g->node[i]);
    return seconds;
}

double roofline_memory(const roofline *r, const adj_group *g)
{
    return (bytes_of_values(g->n_in, g->in) + bytes_of_values(g->n_out, g->out)) / r->memory;
}

double roofline_group(const roofline *r, const adj_group *g)
{
    return max_of(roofline_arithmetic(r, g), roofline_memory(r, g));
}

double nominal_seconds(const roofline *r, const adj_group *g) { return 2 * roofline_group(r, g); }

double roofline_copy(const roofline *r, adj_type type)
{
    return 2 * (double)adj_type_bytes(type) / r->memory;
}
