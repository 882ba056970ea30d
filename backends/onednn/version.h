/* version.h - the C APIs of oneDNN 2.x and 3.x behind one set of names; this header and
 * version.c alone depend on which one is installed.
 *
 * They differ in two ways. A memory descriptor is a struct in 2.x and a handle in 3.x: here it
 * is a pointer, created and freed. A primitive descriptor is created in 2.x from an operation
 * descriptor and an iterator that holds raw pointers to it, and in 3.x by one call whose result
 * is advanced: here by pd_*(). */
#ifndef ONEDNN_VERSION_H
#define ONEDNN_VERSION_H

#include <oneapi/dnnl/dnnl.h>

#include "graph/op.h"

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md;
typedef const_dnnl_memory_desc_t const_md;
#else
typedef dnnl_memory_desc_t *md;
typedef const dnnl_memory_desc_t *const_md;
#endif
typedef dnnl_primitive_desc_t pd;
typedef const_dnnl_primitive_desc_t const_pd;

/* Arguments common to the pd_*() functions: engine and attributes. */
typedef struct {
    dnnl_engine_t engine;
    const_dnnl_primitive_attr_t attr;
} pd_query;

/* Creates a descriptor. strides in elements; NULL: oneDNN chooses the layout. */
dnnl_status_t md_new(const adj_allocator *a, md *out, int n_dim, const int64_t *dims,
                     dnnl_data_type_t type, const int64_t *strides);
dnnl_status_t md_copy(const adj_allocator *a, md *out, const_md from);
void md_free(const adj_allocator *a, md d); /* d may be NULL */

/* The parts of a memory descriptor; it owns the arrays. */
typedef struct {
    int n_dim, n_block;
    int blocked; /* 0: a format without strides; only type, n_dim and dim are set */
    dnnl_data_type_t type;
    const int64_t *dim, *padded, *stride;
    const int64_t *block, *block_dim; /* the inner blocks, outermost first */
} md_parts;
md_parts md_look(const_md d);

dnnl_status_t md_point(dnnl_memory_t memory, void *data, dnnl_stream_t stream);

typedef struct {
    dnnl_prop_kind_t direction; /* forward_training, backward_data, backward_weights */
    dnnl_alg_kind_t kind;       /* convolution_direct, convolution_winograd */
    const_md x, w, b, y;        /* x, w, b, y, or their gradients; b may be NULL */
    dnnl_dims_t stride, dilation, before, after;
} conv_request;
/* True to accept an implementation. The functions return the first accepted one of oneDNN's
 * list; dnnl_unimplemented if none is. */
typedef int pd_accept(void *user, const_pd d);
dnnl_status_t pd_conv(const pd_query *q, const conv_request *r, pd_accept *accept, void *user,
                      pd *out);

typedef struct {
    dnnl_alg_kind_t kind;
    const_md x, y; /* x and y, or their gradients */
    dnnl_dims_t stride, window, before, after;
} pool_request;
dnnl_status_t pd_pool(const pd_query *q, const pool_request *r, pd *out);
dnnl_status_t pd_pool_backward(const pd_query *q, const pool_request *r, const_pd forward, pd *out);

typedef struct {
    dnnl_alg_kind_t kind;
    const_md data; /* descriptor of every operand and the result */
    float alpha;
} eltwise_request;
dnnl_status_t pd_eltwise(const pd_query *q, const eltwise_request *r, pd *out);
dnnl_status_t pd_eltwise_backward(const pd_query *q, const eltwise_request *r, const_pd forward,
                                  pd *out);

dnnl_status_t pd_matmul(const pd_query *q, const_md a, const_md b, const_md bias, const_md y,
                        pd *out);

/* Instruction sets are bit sets: a higher one has all bits of the lower. */
enum { ISA_NAME = 24 };
/* Writes the name of dnnl_get_effective_cpu_isa()'s value; "isa_0x..." if it has no name here,
 * as on aarch64. */
void isa_spell(int isa, char name[ISA_NAME]);

#endif
