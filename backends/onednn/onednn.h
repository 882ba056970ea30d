/* onednn.h - declarations shared by the oneDNN backend.
 *
 * Everything is created while planning: prepare() creates a primitive and its memory objects; run()
 * only sets the memory objects' buffers and executes. */
#ifndef ONEDNN_H
#define ONEDNN_H

#include <stdio.h>

#include "version.h"

typedef struct {
    adj_allocator allocator;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* the caller brings the scratchpad */
    adj_layout *layouts;        /* the interned layouts */
    int isa; /* a bit for each level; a higher level has all bits of the lower ones */
    int no_quarantine;
    adj_math math;
} onednn;

/* ---- onednn.c: statuses, types, sizes, fused nodes ---- */

/* Returns ADJ_ENOMEM, or ADJ_ENOKERNEL with why: "op: oneDNN refuses ...". */
adj_status onednn_refuse(dnnl_status_t status, const char *op, char *why);
/* Returns dnnl_data_type_undef for types that oneDNN lacks. */
dnnl_data_type_t onednn_type(adj_dtype dtype);
/* Checks that n's result and operands are not empty and have sizes and types that oneDNN
 * supports; ADJ_ENOKERNEL with why if not. */
adj_status onednn_check(const adj_node *n, char *why);
/* Checks an op on images as onednn_check does. Images are in NHWC, by a pass of the executor. */
adj_status onednn_check_image(const adj_node *n, const adj_conv_geom *g, char *why);
/* Returns ADJ_ENOKERNEL with why if sums of products of n's type are emulated and slower than
 * f32. */
adj_status onednn_check_products(const onednn *o, const adj_node *n, char *why);
/* Returns oneDNN's name of an implementation. */
const char *pd_name(const_pd d);
/* True if it is oneDNN's reference code, which is slower than naive. */
int is_reference(const_pd d);
/* Writes {root, bias_add, cast to f32}, or root with one of them or alone, to group; max is at
 * least 1. */
int tail_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);
/* True if g is such a group. *bias: the vector that it adds, NULL if none. */
int tail_of(const adj_group *g, const adj_node **bias);

/* ---- layout.c ---- */

/* A layout of a value: its memory descriptor, and that of the value's plain row-major memory,
 * with the same logical dimensions. */
struct adj_layout {
    md memory, plain;
    size_t bytes;
    char name[48];
    adj_layout *next;
};

/* Sets *out to the unique layout equal to (memory, plain), NULL if both are the same memory.
 * axes: a letter per logical dimension, for the name. */
adj_status layout_of(onednn *o, const_md memory, const_md plain, const char *axes,
                     const adj_layout **out);
/* True if both place the same bytes at the same addresses. */
int layout_is_same(const_md a, const_md b);
size_t layout_bytes(const adj_layout *l);
const char *layout_name(const adj_layout *l);
adj_status layout_reorder_prepare(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch);
adj_status layout_reorder_run(void *state, const void *in, void *out, void *scratch);

/* ---- primitive.c: a primitive that is ready to run ---- */

typedef enum { AT_IN, AT_OUT, AT_SCRATCH } place;
typedef struct {
    int arg; /* DNNL_ARG_SRC, ...; 0 ends a list */
    place at;
    size_t where; /* index in group->in or group->out */
    const_md memory;
} primitive_arg;

/* Creates the primitive that runs d, for primitive_run, and sets *scratch to its bytes of scratch.
 * On failure *state is NULL. */
dnnl_status_t primitive_new(onednn *o, const_pd d, const primitive_arg *args, void **state,
                            size_t *scratch);
adj_status primitive_run(const adj_call *c);
void primitive_drop(void *backend, void *state); /* state may be NULL */
/* Ends prepare(): creates the primitive that runs d and stores it in p, with its scratch and d's
 * name. On failure returns a status and sets p->why. */
adj_status primitive_prepare(onednn *o, const adj_node *n, const_pd d, const primitive_arg *args,
                             adj_prep *p);

/* ---- quarantine.c ---- */

/* The kinds of computation that rows of the quarantine distinguish. */
typedef enum {
    TASK_FORWARD,
    TASK_BACKWARD_DATA,
    TASK_BACKWARD_WEIGHTS,
    TASK_AVG_POOL,
    TASK_AVG_POOL_BACKWARD
} task;
typedef struct {
    task task;
    const adj_conv_geom *geom;
    adj_dtype dtype;
    const char *name; /* pd_name(); NULL for any implementation */
    int channels_last;
} implementation;
/* Returns why this implementation must not be run, or NULL if it may. */
const char *quarantined(const onednn *o, const implementation *i);
/* Returns why the built-in rows forbid the implementation on an instruction set, or NULL. */
const char *known_fault(const implementation *i, int isa);
/* Return the number of built-in rows, and whether that row applies to i on an instruction set. */
int n_known_fault(void);
int is_known_fault(int row_number, const implementation *i, int isa);

extern const adj_kernel onednn_conv, onednn_matmul, onednn_avg_pool, onednn_eltwise,
    onednn_transpose;

#endif
