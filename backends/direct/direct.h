/* direct.h - what the files of the direct backend share: our own fast kernels for what oneDNN lacks
 * or does slowly, on plain channels-last memory.
 *
 * Kernels are compiled once per instruction set (isa.h); opening the backend picks the best one
 * that the CPU has. What is not fast here is refused and left to the next backend. */
#ifndef DIRECT_H
#define DIRECT_H

#include <stddef.h>

#include "adjoint_ext.h"
#include "base/machine/job_shares.h"

struct conv_bf16_code;
struct filter_bf16_code;
struct filter_gemm_code;
struct gemm_code;
struct group_norm_code;
struct max_pool_code;
struct winograd_code;

typedef struct { /* of work that is cut into jobs; what is planned is c->state */
    void (*begin)(const adj_call *c); /* once, before; or NULL */
    void (*job)(const adj_call *c, ptrdiff_t job, int thread);
    void (*end)(const adj_call *c); /* once, after; or NULL */
} direct_code;

typedef struct { /* what direct_run does: the first member of a kernel's state */
    const direct_code *code;
    ptrdiff_t jobs;
    int threads;
} direct_work;

typedef struct { /* the code for one instruction set */
    const char *name;
    const direct_code *dropout, *fused_pointwise, *resize, *softmax;
    ptrdiff_t vector_bytes;
    /* [is it f64] */
    const struct gemm_code *gemm[2];
    const struct filter_gemm_code *filter_gemm[2];
    const direct_code *depthwise_image[2], *depthwise_filter[2];
    /* [is it bf16] */
    const struct group_norm_code *group_norm_rows[2], *group_norm_image[2];
    const struct max_pool_code *max_pool[2];
    const struct winograd_code *winograd_image[2], *winograd_filter[2];
} direct_isa;

typedef struct { /* how a kernel packs its filter; `of`: what of its state packing needs */
    size_t of_bytes;
    int (*is_same)(const void *of, const void *other); /* do both read the same layout? */
    size_t (*bytes)(const void *of);
    void (*pack)(const void *of, const void *filter, void *packed);
} direct_packing;

struct adj_layout { /* see layouts.c */
    adj_layout *next;
    size_t bytes;
    const direct_packing *packing; /* of a filter; NULL: it is of bytes */
    void *packed_of;
    char name[16];
};

extern const direct_isa direct_isa_base, direct_isa_avx2, direct_isa_avx512;

typedef struct {
    adj_allocator allocator;
    const direct_isa *isa;
    const struct filter_bf16_code *bf16_code;    /* NULL: no instructions for products in bf16 */
    const struct conv_bf16_code *conv_bf16_code; /* NULL: no AMX */
    int has_avx512_bf16;                         /* may run what is compiled as ISA_avx512_bf16 */
    int threads;
    ptrdiff_t second_cache; /* bytes, of a core: for blocks that decide no sum's order */
    adj_math math;
    adj_layout *layouts;
} direct;

typedef struct { /* of an image */
    ptrdiff_t h, w, c;
} direct_size;

/* Of the images that a convolution's windows read (x, or dy for dx) and of those that they belong
 * to (y, dx, or dy for dw). */
static inline void direct_set_sizes(const adj_conv_geom *g, int is_dx, direct_size *src,
                                    direct_size *dst)
{
    const direct_size x = {g->ih, g->iw, g->ic}, y = {g->oh, g->ow, g->oc};
    *src = is_dx ? y : x;
    *dst = is_dx ? x : y;
}

/* NHWC, and no size or pad of it above max? */
int direct_conv_fits(const adj_conv_geom *g, int64_t max);
/* NHWC, without groups, nothing of it empty and nothing above max: products of a few sizes stay far
 * from an overflow. */
int direct_conv_has_sizes(const adj_conv_geom *g, int64_t max);
/* Is n a bias of root's last axis? A bias along another one is nobody's. */
int direct_is_bias_of(const adj_node *n, const adj_node *root);
/* Writes root and the bias_add that alone reads it to group; returns how many these are. */
int direct_match_bias(const adj_node *root, const adj_uses *uses, int max, const adj_node **group);
/* Is n a cast to f32? */
int direct_is_widening(const adj_node *n);
/* Writes root, a filter's gradient, to group and, if it is in bf16, the cast to f32 that alone
 * reads it; returns how many these are. */
int direct_match_filter(const adj_node *root, const adj_uses *uses, int max,
                        const adj_node **group);
/* The threads that a convolution's, or its gradients', operations are worth. */
int direct_conv_threads(const direct *d, const adj_node *n);

/* ---- what kernels are made of; a state is one allocation ---- */

static inline void *direct_scratch(const adj_call *c, size_t offset)
{
    return (char *)c->scratch + offset;
}

/* Ends a preparation: with a reason, as printf, and ADJ_ENOKERNEL; or with a copy of the state,
 * whose implementation is printed as "impl:isa". All layouts are plain then; a kernel sets those
 * that are others for it (layouts.c) afterwards. */
adj_status direct_refuse(adj_prep *prep, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
adj_status direct_accept(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                         const void *state, size_t size);
/* The same of code that is for other instructions than d->isa: printed as "impl:isa". */
adj_status direct_accept_as(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                            const char *isa, const void *state, size_t size);
/* The same with operand `in` of the group in that layout; NULL: there was no memory for it. */
adj_status direct_accept_packed(const direct *d, const adj_group *g, adj_prep *prep,
                                const char *impl, const void *state, size_t size, int in,
                                const adj_layout *layout);
/* How many jobs work that can be cut anywhere is worth: enough for a thread on a slower processor
 * to do fewer, and not so many that their beginnings count. */
static inline ptrdiff_t direct_jobs_for(int threads) { return threads > 1 ? 16 * threads : 1; }
/* Runs the jobs of c->state's work. */
adj_status direct_run(const adj_call *c);
void direct_drop(void *backend, void *state);

/* layouts.c: the layout of an i32 value of so many elements, all from 0 to 255, that has a byte for
 * each; of a filter that is packed before it enters a kernel. NULL: out of memory. */
const adj_layout *direct_bytes(direct *d, int64_t elems);
const adj_layout *direct_packed_filter(direct *d, const direct_packing *packing, const void *of,
                                       const char *name);
/* May the filter, number `in` of the group's operands, be packed before it enters the kernel:
 * because no run changes it (adj_prep.invariant), and nothing else of the group reads it? */
int direct_packs_once(const adj_group *g, const adj_prep *prep, int in);
void direct_free_layouts(direct *d);
size_t direct_layout_bytes(const adj_layout *l);
const char *direct_layout_name(const adj_layout *l);
adj_status direct_reorder_prepare(const adj_reorder *r, void **state, size_t *scratch);
adj_status direct_reorder_run(void *state, const void *in, void *out, void *scratch);

extern const adj_kernel direct_conv_bf16, direct_fused_pointwise, direct_gemm, direct_depthwise,
    direct_dropout, direct_filter_bf16, direct_filter_gemm, direct_group_norm, direct_max_pool,
    direct_resize, direct_softmax, direct_winograd;

#endif
