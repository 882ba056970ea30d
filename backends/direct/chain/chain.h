/* chain.h - chains: connected elementwise nodes of one shape, with what they need per channel and
 * the per-channel sums of their values, in one pass over memory.
 *
 * The pass goes chunk by chunk; within a chunk each node is one vector loop, and values that
 * stay inside live in buffers of a chunk's size, in the first cache. A tensor [..., c] is seen
 * as rows of `row` elements, a multiple of c: a vector [c] is tiled to a row once, so that loops
 * know nothing of channels, and a sum per channel is a sum per column, folded modulo c at the
 * end. What does know channels, alone or with its neighbours, is a strip (strip.h).
 *
 * Arithmetic is in float; f32, bf16 and f16 differ only in how chunks are loaded and stored: what
 * leaves in a half type is read rounded within the chain as well. Sums have two levels, float for
 * some rows and double above, in a fixed number of segments that are added in order: results do not
 * depend on the number of threads. */
#ifndef DIRECT_CHAIN_H
#define DIRECT_CHAIN_H

#include "backends/direct/direct.h"

enum {
    CHAIN_NODES = 16,
    CHAIN_VALUES = 48,  /* registers: operands, results, tiled vectors */
    CHAIN_TILED = 24,   /* vectors repeated to a row */
    CHAIN_CHUNK = 2048, /* elements, about */
    CHAIN_CHANNELS = 4096,
    CHAIN_SEGMENTS = 16,
    CHAIN_CONSTANTS = 5,
    STRIP_IN = 5,
    STRIP_WIDTH = 64 /* columns */
};

typedef enum {
    CHAIN_COPY, /* cast */
    CHAIN_RELU,
    CHAIN_RELU6,
    CHAIN_LEAKY_RELU,
    CHAIN_SCALE, /* k0 x */
    CHAIN_SQUARE,
    CHAIN_SQRT,
    CHAIN_ADD,
    CHAIN_SUB,
    CHAIN_MUL,
    CHAIN_DIV,
    CHAIN_RELU_GRAD,
    CHAIN_RELU6_GRAD,
    CHAIN_LEAKY_RELU_GRAD,
    CHAIN_NORM,      /* (x - p0) p1 + p2 */
    CHAIN_NORM_GRAD, /* p1 (dy - p3 - (x - p0) p2) */
    CHAIN_MOMENTUM,
    CHAIN_SGD_STEP,
    CHAIN_EMA,
    CHAIN_ADAM_STEP,
    CHAIN_SUM,       /* per channel: sum of dy */
    CHAIN_NORM_SUMS, /* per channel: sum of dy (x - p0), sum of dy */
    CHAIN_STATS      /* per channel: mean and variance */
} chain_code;

typedef enum { AT_IN, AT_OUT, AT_CHUNK, AT_TILED } chain_place;

typedef struct { /* a value in rows: where a chunk of it is found */
    chain_place at;
    int where;       /* among group->in, group->out, the chunk buffers, the tiled vectors */
    int in, out;     /* loaded from, stored to: among group->in, group->out; -1: not */
    adj_dtype dtype; /* as loaded or stored */
    int is_read;     /* by a node of the chain that comes after the one that makes it */
} chain_value;

/* The nodes that have constants or sums in a strip. */
typedef enum {
    ROLE_NONE,
    ROLE_NORM,
    ROLE_GRAD,
    ROLE_SUM,
    ROLE_SUMS,
    ROLE_SUMS_TOO,
    STRIP_ROLES
} strip_role;

/* What one loop computes (strip.h), and where its operands are. */
typedef struct {
    int bits; /* 0: no strip */
    int is_half;
    int x[STRIP_IN], y;    /* values; -1: none */
    int node[STRIP_ROLES]; /* of the chain */
} chain_plan;

typedef struct {
    chain_code code;
    const adj_node *node;
    int n_x, x[3];      /* values */
    int y;              /* value; -1 for sums */
    int tiled, n_tiled; /* its own: the first, and how many */
    int sum;            /* number among the sums; -1: none */
    chain_plan strip;   /* the node by itself, over floats */
} chain_node;

typedef struct chain {
    const direct_code *code; /* a job: one segment of the pass */
    int64_t n;               /* elements */
    int64_t channels;        /* 1: no node asks for them */
    int64_t row, chunk;
    int64_t sum_width; /* columns of a sum: a part of a row that has each channel equally often */
    int n_node, n_value, n_buffer, n_tiled, n_sum;
    chain_node node[CHAIN_NODES];
    chain_value value[CHAIN_VALUES];
    int threads, segments;
    chain_plan strip; /* of all nodes */
    /* offsets in the scratch */
    size_t buffers, buffers_each; /* per thread */
    size_t tiled;                 /* float[n_tiled][row] */
    size_t constants;             /* float[n_node][CHAIN_CONSTANTS] */
    size_t columns,
        columns_each; /* per thread and sum: double[2][sum_width], float[3][sum_width] */
    size_t partials, partials_each; /* per segment and sum: double[3][channels] */
} chain;

/* What a node is in a chain. */
typedef struct {
    const adj_op *op;
    chain_code code;
    const char *roles; /* of its operands: f full, b full or broadcast, p known before the pass */
    int tiled;         /* of its own, made from the p operands */
    int is_sum;
} chain_kind;

/* ---- kind.c ---- */

/* NULL: op is never part of a chain. */
const chain_kind *chain_kind_of(const adj_op *op);
/* The operand that gives the chain its shape. */
adj_shape chain_shape(const adj_node *n);
/* Can n be part of a chain of that shape? */
int chain_takes(const adj_node *n, adj_shape shape);
/* Does it ask for the number of channels, or may rows be cut anywhere? */
int chain_needs_channels(const adj_node *n);

/* ---- prologue.c: what is done once, before and after the pass ---- */

void chain_prologue(const adj_call *c);
void chain_epilogue(const adj_call *c);

/* ---- run.c (and loops.c), per instruction set: the pass ---- */

enum { CHAIN_ACCUMULATORS = 3 }; /* of a sum, floats: two sums and what is subtracted first */
extern const direct_code direct_chain_base, direct_chain_avx2, direct_chain_avx512;
/* The elements of a segment: from .. to. */
void chain_bounds(const chain *p, int segment, int64_t *from, int64_t *to);

#endif
