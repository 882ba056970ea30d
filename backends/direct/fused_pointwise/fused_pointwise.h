/* fused_pointwise.h - fused pointwise groups: connected elementwise nodes of one shape, with
 * per-channel operands and per-channel sums of their values, in one pass over memory.
 *
 * The pass goes chunk by chunk. Within a chunk each node is one vector loop (prelu_grad_slope is
 * two: its terms, then their sum), and inner values are buffers of a chunk's size, in the first
 * cache. A tensor [..., c] is treated as rows of `row` elements, a multiple of c. A vector [c]
 * is tiled to a row once, so that loops need not know the channels, and a sum per channel is a
 * sum per column, folded modulo c at the end. Loops that do know the channels, and the most
 * frequent groups, are row kernels (row_kernel.h).
 *
 * Values and arithmetic are float, except for curved activations, hard_sigmoid, hard_swish, and
 * gradients, which functions.h computes in double and rounds once. f32, bf16 and f16 differ only
 * in how chunks are loaded and stored. Each result, inner ones included, is rounded to its
 * node's type: a group gives the same bits as its nodes one by one, whichever nodes it has. Sums
 * have two levels, float for some rows and double above, in a fixed number of segments that are
 * added in order: results do not depend on the number of threads. Terms that overflow a float
 * sum are added in double (rows.c). */
#ifndef DIRECT_FUSED_POINTWISE_H
#define DIRECT_FUSED_POINTWISE_H

#include "backends/direct/direct.h"

enum {
    FUSED_NODES = 16,
    FUSED_LOOPS = 2 * FUSED_NODES, /* most loops: one for each node, or two */
    FUSED_VALUES = 48,             /* registers: operands, results, tiled vectors */
    FUSED_TILED = 24,              /* vectors repeated to a row */
    FUSED_CHUNK = 2048,            /* approximate elements of a chunk */
    FUSED_CHANNELS = 4096,
    FUSED_SEGMENTS = 64,
    FUSED_CONSTANTS = 5,
    FUSED_OPERANDS = 3, /* operands of a node, as values */
    ROW_KERNEL_OPERANDS = 5,
    ROW_KERNEL_WIDTH = 64 /* columns of a row kernel */
};

typedef enum {
    FUSED_COPY, /* cast */
    FUSED_RELU,
    FUSED_RELU6,
    FUSED_LEAKY_RELU,
    FUSED_SCALE, /* k0 x */
    FUSED_SQUARE,
    FUSED_SQRT,
    FUSED_EXP,
    FUSED_LOG,
    FUSED_CLIP, /* k3 above k2, k1 below k0 */
    FUSED_HARD_SIGMOID,
    FUSED_HARD_SWISH,
    FUSED_ELU,
    FUSED_GELU_ERF,
    FUSED_GELU_TANH,
    FUSED_ERF,
    FUSED_ADD,
    FUSED_SUB,
    FUSED_MUL,
    FUSED_DIV,
    FUSED_RELU_GRAD,
    FUSED_RELU6_GRAD,
    FUSED_LEAKY_RELU_GRAD,
    FUSED_SIGMOID_GRAD,
    FUSED_TANH_GRAD,
    FUSED_CLIP_GRAD, /* k: bounds k0 and k2 */
    FUSED_HARD_SIGMOID_GRAD,
    FUSED_HARD_SWISH_GRAD,
    FUSED_ELU_GRAD,
    FUSED_GELU_ERF_GRAD,
    FUSED_GELU_TANH_GRAD,
    FUSED_PRELU,
    FUSED_PRELU_GRAD,
    FUSED_PRELU_TERM, /* terms of prelu_grad_slope, summed by FUSED_SUM */
    FUSED_NORM,       /* (x - p0) p1 + p2 */
    FUSED_NORM_GRAD,  /* p1 (dy - p3 - (x - p0) p2) */
    FUSED_SELECT,     /* k0 is 1 or 0 */
    FUSED_MOMENTUM,
    FUSED_SGD_STEP,
    FUSED_EMA,
    FUSED_ADAM_STEP,
    FUSED_SUM,       /* per channel: sum of dy */
    FUSED_NORM_SUMS, /* per channel: sum of dy (x - p0), sum of dy */
    FUSED_STATS      /* per channel: mean and variance */
} fused_code;

typedef enum { AT_IN, AT_OUT, AT_CHUNK, AT_TILED } fused_place;

typedef struct { /* a value in rows: the place of its chunk */
    fused_place at;
    int where;       /* index in group->in, group->out, the chunk buffers, or the tiled vectors */
    int in, out;     /* indices in group->in and group->out of loads and stores; -1 if none */
    adj_dtype dtype; /* dtype of loads or stores */
    int is_read;     /* read by a node of the group after the one that computes it */
} fused_value;

/* The nodes with constants or sums in a row kernel. */
typedef enum {
    ROLE_NONE,
    ROLE_NORM,
    ROLE_GRAD,
    ROLE_SUM,
    ROLE_SUMS,
    ROLE_MORE_SUMS,
    ROW_KERNEL_ROLES
} row_kernel_role;

/* bits: those of a pattern of pattern.c. */
struct row_kernel_args;
typedef void row_kernel(const struct row_kernel_args *s, int bits);

/* One loop's computation (row_kernel.h) and its operands. */
typedef struct {
    int bits; /* 0 if there is none */
    int is_half;
    int x[ROW_KERNEL_OPERANDS], y; /* values; -1 if none */
    int node[ROW_KERNEL_ROLES];    /* nodes of the group */
} row_kernel_plan;

typedef struct {
    fused_code code;
    const adj_node *node;
    int n_x, x[FUSED_OPERANDS]; /* operands, as values */
    int y;                      /* value; -1 for sums */
    int tiled, n_tiled;         /* its tiled vectors: the first, and how many */
    int sum;                    /* index among the sums; -1 if none */
    row_kernel_plan row_kernel; /* the node alone, over floats */
} fused_node;

typedef struct fused_group {
    direct_work work; /* a job: one segment of the pass */
    int64_t n;        /* elements */
    int64_t channels; /* 1 if no node needs them */
    int64_t row, chunk;
    int64_t sum_width; /* columns of a sum, a divisor of row: each channel equally often */
    int n_node;        /* loops in node[] */
    int n_value, n_buffer, n_tiled, n_sum;
    /* Loops, in order. A node of the graph is one of them, or two with the same .node: the terms
     * of its sum (FUSED_PRELU_TERM), with .y, followed by the sum. */
    fused_node node[FUSED_LOOPS];
    fused_value value[FUSED_VALUES];
    row_kernel_plan row_kernel; /* all nodes together */
    row_kernel *half_kernel;    /* NULL for that of the pass's instruction set */
    /* offsets in the scratch */
    size_t buffers, buffers_each; /* per thread */
    size_t tiled;                 /* float[n_tiled][row] */
    size_t constants;             /* float[n_node][FUSED_CONSTANTS] */
    size_t columns,
        columns_each; /* per thread and sum: double[2], float[FUSED_ACCUMULATORS] [sum_width] */
    size_t partials, partials_each; /* per segment and sum: double[3][channels] */
} fused_group;

/* Returns tiled vector number i: a row. */
static inline float *fused_tiled(const fused_group *p, const adj_call *c, int i)
{
    return (float *)direct_scratch(c, p->tiled) + i * p->row;
}

static inline float *fused_constants(const fused_group *p, const adj_call *c, const fused_node *d)
{
    return (float *)direct_scratch(c, p->constants) + (d - p->node) * FUSED_CONSTANTS;
}

/* Returns a segment's partial sums of d. */
static inline double *fused_partial(const fused_group *p, const adj_call *c, int segment,
                                    const fused_node *d)
{
    return direct_scratch(c,
                          p->partials + p->partials_each * (size_t)(segment * p->n_sum + d->sum));
}

/* A kind of node in a group. */
typedef struct {
    const adj_op *op;
    fused_code code;
    const char *roles; /* by operand: f full, b full or broadcast, p needed before the pass */
    int tiled;         /* tiled vectors of its own, computed from the p operands */
    int is_sum;
} fused_kind;

/* ---- match.c ---- */

/* Returns the kind of op, or NULL if it is never part of a group. */
const fused_kind *fused_kind_of(const adj_op *op);
/* Returns the kind's code, or that of the variant that n's attributes select. */
fused_code fused_code_of(const fused_kind *kind, const adj_node *n);
/* Returns the shape of the operand that gives the group its shape. */
adj_shape fused_shape(const adj_node *n);
/* True if n can be part of a group of that shape. */
int fused_takes(const adj_node *n, adj_shape shape);
/* True if n needs the number of channels; otherwise rows may be cut anywhere. */
int fused_needs_channels(const adj_node *n);

/* adj_kernel.match */
int fused_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);

/* ---- prologue.c: work before and after the pass ---- */

void fused_prologue(const adj_call *c);
void fused_epilogue(const adj_call *c, ptrdiff_t job);

/* ---- run.c (and loops.c), per instruction set: the pass ---- */

/* Floats of a sum's column: two sums, the shift subtracted first, and two copies of the sums. */
enum { FUSED_ACCUMULATORS = 7 };
/* Sets the elements of a segment: begin .. end. */
void fused_bounds(const fused_group *p, int segment, int64_t *begin, int64_t *end);

#endif
