/* version.c - see version.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "version.h"

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t md_new(const adj_allocator *a, md *out, int n_dim, const int64_t *dims,
                     dnnl_data_type_t type, const int64_t *strides)
{
    (void)a;
    *out = NULL;
    if (strides == NULL)
        return dnnl_memory_desc_create_with_tag(out, n_dim, dims, type, dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(out, n_dim, dims, type, strides);
}

dnnl_status_t md_copy(const adj_allocator *a, md *out, const_md from)
{
    (void)a;
    *out = NULL;
    return dnnl_memory_desc_clone(out, from);
}

void md_free(const adj_allocator *a, md d)
{
    (void)a;
    if (d != NULL)
        dnnl_memory_desc_destroy(d);
}

static const int64_t *query_dims(const_md d, dnnl_query_t quantity)
{
    const dnnl_dims_t *dims = NULL;
    dnnl_memory_desc_query(d, quantity, &dims);
    return dims != NULL ? *dims : NULL;
}

md_parts md_look(const_md d)
{
    md_parts p = {.dim = query_dims(d, dnnl_query_dims)};
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    dnnl_memory_desc_query(d, dnnl_query_ndims_s32, &p.n_dim);
    dnnl_memory_desc_query(d, dnnl_query_data_type, &p.type);
    dnnl_memory_desc_query(d, dnnl_query_format_kind, &kind);
    if (kind != dnnl_blocked)
        return p;
    p.blocked = 1;
    dnnl_memory_desc_query(d, dnnl_query_inner_nblks_s32, &p.n_block);
    p.padded = query_dims(d, dnnl_query_padded_dims);
    p.stride = query_dims(d, dnnl_query_strides);
    p.block = query_dims(d, dnnl_query_inner_blks);
    p.block_dim = query_dims(d, dnnl_query_inner_idxs);
    return p;
}

dnnl_status_t md_point(dnnl_memory_t memory, void *data, dnnl_stream_t stream)
{
    (void)stream;
    return dnnl_memory_set_data_handle(memory, data);
}

static dnnl_status_t create_conv(const pd_query *q, const conv_request *r, pd *out)
{
    *out = NULL;
    if (r->direction == dnnl_backward_data)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, q->engine, r->kind, r->x, r->w, r->y, r->stride, r->dilation, r->before, r->after,
            NULL, q->attr);
    if (r->direction == dnnl_backward_weights)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, q->engine, r->kind, r->x, r->w, r->b, r->y, r->stride, r->dilation, r->before,
            r->after, NULL, q->attr);
    return dnnl_convolution_forward_primitive_desc_create(
        out, q->engine, r->direction, r->kind, r->x, r->w, r->b, r->y, r->stride, r->dilation,
        r->before, r->after, q->attr);
}

/* True if both handles are one object, which the primitive cache then owns. */
static int one_object(const_pd a, const_pd b)
{
    return dnnl_primitive_desc_query_md(a, dnnl_query_scratchpad_md, 0) ==
           dnnl_primitive_desc_query_md(b, dnnl_query_scratchpad_md, 0);
}

/* The list's position does not advance if oneDNN's primitive cache already holds (operation,
 * position): the walk then returns the same implementation endlessly. So two walks run side by
 * side. Where both return one object, it is from the cache and is skipped, except at the first
 * position. */
dnnl_status_t pd_conv(const pd_query *q, const conv_request *r, pd_accept *accept, void *user,
                      pd *out)
{
    pd twin = NULL;
    dnnl_status_t status = create_conv(q, r, out);
    if (status != dnnl_success)
        return status;
    if (accept(user, *out))
        return dnnl_success;
    status = create_conv(q, r, &twin);
    int cached = status == dnnl_success && one_object(*out, twin), found = 0;
    while (status == dnnl_success && !found) {
        status = dnnl_primitive_desc_next_impl(*out);
        if (status == dnnl_success)
            status = dnnl_primitive_desc_next_impl(twin);
        if (status != dnnl_success || one_object(*out, twin))
            continue;
        found = !cached && accept(user, *out);
        cached = 0;
    }
    if (twin != NULL)
        dnnl_primitive_desc_destroy(twin);
    if (status != dnnl_success) {
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
    }
    return status == dnnl_last_impl_reached ? dnnl_unimplemented : status;
}

static const dnnl_dims_t no_dilation;

dnnl_status_t pd_pool(const pd_query *q, const pool_request *r, pd *out)
{
    *out = NULL;
    return dnnl_pooling_forward_primitive_desc_create(out, q->engine, dnnl_forward_training,
                                                      r->kind, r->x, r->y, r->stride, r->window,
                                                      no_dilation, r->before, r->after, q->attr);
}

dnnl_status_t pd_pool_backward(const pd_query *q, const pool_request *r, const_pd forward, pd *out)
{
    *out = NULL;
    return dnnl_pooling_backward_primitive_desc_create(out, q->engine, r->kind, r->x, r->y,
                                                       r->stride, r->window, no_dilation, r->before,
                                                       r->after, forward, q->attr);
}

dnnl_status_t pd_eltwise(const pd_query *q, const eltwise_request *r, pd *out)
{
    *out = NULL;
    return dnnl_eltwise_forward_primitive_desc_create(
        out, q->engine, dnnl_forward_training, r->kind, r->data, r->data, r->alpha, 0, q->attr);
}

dnnl_status_t pd_eltwise_backward(const pd_query *q, const eltwise_request *r, const_pd forward,
                                  pd *out)
{
    *out = NULL;
    return dnnl_eltwise_backward_primitive_desc_create(out, q->engine, r->kind, r->data, r->data,
                                                       r->data, r->alpha, 0, forward, q->attr);
}

dnnl_status_t pd_matmul(const pd_query *q, const_md a, const_md b, const_md bias, const_md y,
                        pd *out)
{
    *out = NULL;
    return dnnl_matmul_primitive_desc_create(out, q->engine, a, b, bias, y, q->attr);
}

#else /* 2.x */

dnnl_status_t md_new(const adj_allocator *a, md *out, int n_dim, const int64_t *dims,
                     dnnl_data_type_t type, const int64_t *strides)
{
    *out = adj_alloc(a, sizeof **out);
    if (*out == NULL)
        return dnnl_out_of_memory;
    dnnl_status_t status =
        strides == NULL ? dnnl_memory_desc_init_by_tag(*out, n_dim, dims, type, dnnl_format_tag_any)
                        : dnnl_memory_desc_init_by_strides(*out, n_dim, dims, type, strides);
    if (status != dnnl_success) {
        adj_release(a, *out);
        *out = NULL;
    }
    return status;
}

dnnl_status_t md_copy(const adj_allocator *a, md *out, const_md from)
{
    *out = adj_alloc(a, sizeof **out);
    if (*out == NULL)
        return dnnl_out_of_memory;
    memcpy(*out, from, sizeof **out);
    return dnnl_success;
}

void md_free(const adj_allocator *a, md d) { adj_release(a, d); }

md_parts md_look(const_md d)
{
    if (d->format_kind != dnnl_blocked)
        return (md_parts){.n_dim = d->ndims, .type = d->data_type, .dim = d->dims};
    const dnnl_blocking_desc_t *b = &d->format_desc.blocking;
    return (md_parts){.n_dim = d->ndims,
                      .n_block = b->inner_nblks,
                      .blocked = 1,
                      .type = d->data_type,
                      .dim = d->dims,
                      .padded = d->padded_dims,
                      .stride = b->strides,
                      .block = b->inner_blks,
                      .block_dim = b->inner_idxs};
}

dnnl_status_t md_point(dnnl_memory_t memory, void *data, dnnl_stream_t stream)
{
    return dnnl_memory_set_data_handle_v2(memory, data, stream);
}

/* Finds the first implementation of *op's list, from *position on, that is accepted (any, if
 * accept is NULL), and its position. The iterator points into *op and to the forward hint, which
 * must outlive it; fetched descriptors own copies. status: of *op's initialization. */
static dnnl_status_t walk(const pd_query *q, dnnl_status_t status, const_dnnl_op_desc_t op,
                          const_pd forward, pd_accept *accept, void *user, int *position, pd *out)
{
    dnnl_primitive_desc_iterator_t iterator = NULL;
    *out = NULL;
    if (status == dnnl_success)
        status = dnnl_primitive_desc_iterator_create(&iterator, op, q->attr, q->engine, forward);
    for (int i = 0; status == dnnl_success; i++) {
        if (i >= *position) {
            *position = i;
            *out = dnnl_primitive_desc_iterator_fetch(iterator);
            status = *out != NULL ? dnnl_success : dnnl_out_of_memory;
            if (*out == NULL || accept == NULL || accept(user, *out))
                break;
            dnnl_primitive_desc_destroy(*out);
            *out = NULL;
        }
        status = dnnl_primitive_desc_iterator_next(iterator);
    }
    if (iterator != NULL)
        dnnl_primitive_desc_iterator_destroy(iterator);
    return status == dnnl_iterator_ends ? dnnl_unimplemented : status;
}

static dnnl_status_t fetch(const pd_query *q, dnnl_status_t status, const_dnnl_op_desc_t op,
                           const_pd forward, pd *out)
{
    int first = 0;
    return walk(q, status, op, forward, NULL, NULL, &first, out);
}

/* The iterator does not advance if oneDNN's primitive cache already holds (operation, position):
 * it then returns the same implementation endlessly. So operations are made to differ in a field
 * that has no effect: one operation whose list is searched, of which no primitive is created,
 * and one for each position that is accepted. */
dnnl_status_t pd_conv(const pd_query *q, const conv_request *r, pd_accept *accept, void *user,
                      pd *out)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t status;
    int position = 0;
    if (r->direction == dnnl_backward_data)
        status = dnnl_dilated_convolution_backward_data_desc_init(
            &d, r->kind, r->x, r->w, r->y, r->stride, r->dilation, r->before, r->after);
    else if (r->direction == dnnl_backward_weights)
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, r->kind, r->x, r->w, r->b, r->y, r->stride, r->dilation, r->before, r->after);
    else
        status = dnnl_dilated_convolution_forward_desc_init(&d, r->direction, r->kind, r->x, r->w,
                                                            r->b, r->y, r->stride, r->dilation,
                                                            r->before, r->after);
    d.strides[DNNL_MAX_NDIMS - 1] = -1;
    status = walk(q, status, &d, NULL, accept, user, &position, out);
    if (status != dnnl_success)
        return status;
    dnnl_primitive_desc_destroy(*out);
    d.strides[DNNL_MAX_NDIMS - 1] = position;
    return walk(q, status, &d, NULL, NULL, NULL, &position, out);
}

dnnl_status_t pd_pool(const pd_query *q, const pool_request *r, pd *out)
{
    dnnl_pooling_desc_t d;
    dnnl_status_t status = dnnl_pooling_forward_desc_init(
        &d, dnnl_forward_training, r->kind, r->x, r->y, r->stride, r->window, r->before, r->after);
    return fetch(q, status, &d, NULL, out);
}

dnnl_status_t pd_pool_backward(const pd_query *q, const pool_request *r, const_pd forward, pd *out)
{
    dnnl_pooling_desc_t d;
    dnnl_status_t status = dnnl_pooling_backward_desc_init(&d, r->kind, r->x, r->y, r->stride,
                                                           r->window, r->before, r->after);
    return fetch(q, status, &d, forward, out);
}

dnnl_status_t pd_eltwise(const pd_query *q, const eltwise_request *r, pd *out)
{
    dnnl_eltwise_desc_t d;
    dnnl_status_t status =
        dnnl_eltwise_forward_desc_init(&d, dnnl_forward_training, r->kind, r->data, r->alpha, 0);
    return fetch(q, status, &d, NULL, out);
}

dnnl_status_t pd_eltwise_backward(const pd_query *q, const eltwise_request *r, const_pd forward,
                                  pd *out)
{
    dnnl_eltwise_desc_t d;
    dnnl_status_t status =
        dnnl_eltwise_backward_desc_init(&d, r->kind, r->data, r->data, r->alpha, 0);
    return fetch(q, status, &d, forward, out);
}

dnnl_status_t pd_matmul(const pd_query *q, const_md a, const_md b, const_md bias, const_md y,
                        pd *out)
{
    dnnl_matmul_desc_t d;
    dnnl_status_t status = dnnl_matmul_desc_init(&d, a, b, bias, y);
    return fetch(q, status, &d, NULL, out);
}

#endif

/* ---- instruction sets ---- */

void isa_spell(int isa, char name[ISA_NAME])
{
    snprintf(name, ISA_NAME, "isa_0x%x", (unsigned)isa);
#if defined(__x86_64__) /* elsewhere these bits stand for sets that dnnl.h does not name */
    static const struct {
        const char *name;
        int bits;
    } isas[] = {
        {"sse41", dnnl_cpu_isa_sse41},
        {"avx", dnnl_cpu_isa_avx},
        {"avx2", dnnl_cpu_isa_avx2},
        {"avx2_vnni", dnnl_cpu_isa_avx2_vnni},
        {"avx512_core", dnnl_cpu_isa_avx512_core},
        {"avx512_core_vnni", dnnl_cpu_isa_avx512_core_vnni},
        {"avx512_core_bf16", dnnl_cpu_isa_avx512_core_bf16},
        {"avx512_core_amx", dnnl_cpu_isa_avx512_core_amx},
#if DNNL_VERSION_MAJOR >= 3
        {"avx2_vnni_2", dnnl_cpu_isa_avx2_vnni_2},
        {"avx512_core_fp16", dnnl_cpu_isa_avx512_core_fp16},
        {"avx512_core_amx_fp16", dnnl_cpu_isa_avx512_core_amx_fp16},
#endif
    };
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        if (isa == isas[i].bits)
            snprintf(name, ISA_NAME, "%s", isas[i].name);
#endif
}
