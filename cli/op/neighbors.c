/* neighbors.c - see variants.h. Kernels work in blocks of 8, 16, 32 or 64 channels and share images
 * among threads: shapes close to these sizes reach code that full blocks do not. Rows of 16 pixels
 * are blocks, too: some kernels treat narrower rows differently. */
#include <string.h>

#include "line.h"
#include "variants.h"

enum { EDGE = 17, MAX_SIDE = 64, MAX_CHANNELS = 96 };

/* Sizes of a variant of the shape; 0: the op's own size. */
typedef struct {
    int64_t images, side, channels, outputs;
    int other_strides; /* 2 becomes of 1, and 1 of larger sizes */
} sizes;

static const sizes around[] = {
    {.images = EDGE},
    {.images = 1, .channels = 15},
    {.channels = EDGE, .outputs = EDGE},
    {.side = 7, .channels = 33, .other_strides = 1},
    {.channels = 1, .outputs = 33},
    {.images = 3, .side = 15, .channels = 8, .outputs = 8},
    {.side = 5, .channels = 65, .outputs = 15},
    {.images = 9, .side = 4, .channels = 16, .outputs = 16, .other_strides = 1},
};

static void set(int64_t *to, int64_t value, int64_t max)
{
    *to = value > 0 && *to > 0 ? value : *to;
    *to = *to > max ? max : *to;
}

static void move_strides(op_line *l)
{
    int64_t *stride =
        (l->is_conv ? l->conv.stride : l->pool.stride) + (l->format == ADJ_NCHW ? 2 : 1);
    for (int i = 0; i < 2; i++)
        stride[i] = stride[i] == 1 ? 2 : 1;
}

static void move_image(op_line *l, const sizes *s)
{
    const int nchw = l->format == ADJ_NCHW;
    set(&l->in.dim[0], s->images, EDGE);
    if (s->other_strides)
        move_strides(l);
    for (int i = 0; i < 2; i++) {
        int64_t *side = &l->in.dim[(nchw ? 2 : 1) + i];
        if (!l->is_conv || s->side == 0 ||
            s->side >= l->conv.dilation[nchw ? 2 + i : 1 + i] * (l->filter.dim[i] - 1) + 1)
            set(side, s->side > 0 ? s->side + i : 0, MAX_SIDE);
    }
    if (l->is_conv) {
        set(&l->filter.dim[2], s->channels, MAX_CHANNELS);
        set(&l->outputs, strncmp(l->text.args.op, "depthwise", 9) == 0 ? 0 : s->outputs,
            MAX_CHANNELS);
    } else {
        set(&l->in.dim[nchw ? 1 : 3], s->channels, MAX_CHANNELS);
    }
}

static void move_array(op_line *l, const sizes *s)
{
    const int64_t last = l->in.rank - 1;
    if (last < 0)
        return;
    set(&l->in.dim[0], s->images, MAX_CHANNELS);
    set(&l->in.dim[last], s->channels, MAX_CHANNELS);
    if (l->is_product)
        set(&l->filter.dim[1 - l->filter_inner], s->outputs, MAX_CHANNELS);
}

int op_neighbor(const adj_node *n, int i, op_text *t)
{
    op_line l;
    if (i >= (int)(sizeof around / sizeof *around) || !op_line_of(n, &l))
        return 0;
    if (l.is_conv || l.is_pool)
        move_image(&l, &around[i]);
    else
        move_array(&l, &around[i]);
    op_line_settle(&l);
    (void)op_line_args(&l, t);
    return 1;
}

int op_is_possible(const op_args *args)
{
    adj_graph *alone = adj_graph_new();
    const int is_possible = op_args_build(args, alone, NULL) != NULL;
    adj_graph_free(alone);
    return is_possible;
}
