/* direct.h - declarations shared by the direct backend: kernels for ops that oneDNN lacks or
 * computes slowly, on plain channels-last memory.
 *
 * Kernels are compiled once per instruction set (isa.h); opening the backend selects the best
 * one that the CPU has. Cases that are not fast here are refused and left to the next backend. */
#ifndef DIRECT_H
#define DIRECT_H

#include <stddef.h>

#include "base/machine/job_shares.h"
#include "graph/op.h"

struct gemm_code;
struct group_norm_code;
struct max_pool_code;
struct winograd_code;

typedef struct { /* The code of work that is partitioned into jobs; the plan is c->state. */
    void (*begin)(const adj_call *c); /* called once before the jobs; may be NULL */
    void (*job)(const adj_call *c, ptrdiff_t job, int thread);
    void (*end)(const adj_call *c, ptrdiff_t job); /* called after all jobs; may be NULL */
} direct_code;

typedef struct { /* arguments of direct_run: the first member of a kernel's state */
    const direct_code *code;
    ptrdiff_t jobs;
    ptrdiff_t ends; /* jobs of the end, for all threads; 0: the caller runs job 0 alone */
    int threads;
} direct_work;

typedef struct { /* the code for one instruction set */
    const char *name;
    const direct_code *dropout, *fused_pointwise, *resize, *softmax;
    ptrdiff_t vector_bytes;
    /* [is f64] */
    const struct gemm_code *gemm[2];
    const direct_code *filter_gemm[2], *depthwise_image[2], *depthwise_filter[2];
    /* [is bf16] */
    const struct group_norm_code *group_norm_rows[2], *group_norm_image[2];
    const struct max_pool_code *max_pool[2];
    const struct winograd_code *winograd_image[2], *winograd_filter[2];
} direct_isa;

typedef struct { /* packing of a kernel's filter; `of`: the part of its state that packing needs */
    size_t of_bytes;
    int (*is_same)(const void *of, const void *other); /* true if both read the same layout */
    size_t (*bytes)(const void *of);
    void (*pack)(const void *of, const void *filter, void *packed);
} direct_packing;

struct adj_layout { /* see direct.c */
    adj_layout *next;
    size_t bytes;
    const direct_packing *packing; /* NULL: bytes */
    void *packed_of;
    char name[16];
};

extern const direct_isa direct_isa_base, direct_isa_avx2, direct_isa_avx512;

typedef struct {
    adj_allocator allocator;
    const direct_isa *isa;
    int has_avx512_bf16; /* may run code compiled as ISA_avx512_bf16 */
    int has_amx;
    int threads;
    ptrdiff_t second_cache; /* bytes of a core's, for blocks that affect no order of sums */
    adj_math math;
    adj_layout *layouts;
} direct;

typedef struct { /* size of an image */
    ptrdiff_t h, w, c;
} direct_size;

/* Sets the size of src, which a convolution's windows read (x, or dy for dx), and of dst, which
 * has a window per pixel (y, dx, or dy for dw). */
static inline void direct_set_sizes(const adj_conv_geom *g, int is_dx, direct_size *src,
                                    direct_size *dst)
{
    const direct_size x = {g->ih, g->iw, g->ic}, y = {g->oh, g->ow, g->oc};
    *src = is_dx ? y : x;
    *dst = is_dx ? x : y;
}

/* True if the format is NHWC and no size or pad exceeds max. */
int direct_conv_fits(const adj_conv_geom *g, int64_t max);
/* True if the format is NHWC, there are no groups, and all sizes are 1 to max, so that products
 * of a few sizes cannot overflow. */
int direct_conv_has_sizes(const adj_conv_geom *g, int64_t max);
/* Returns how many threads the operations of a convolution or its gradients justify. */
int direct_conv_threads(const direct *d, const adj_node *n);

/* ---- helpers of kernels; a state is one allocation ---- */

static inline void *direct_scratch(const adj_call *c, size_t offset)
{
    return (char *)c->scratch + offset;
}

/* direct_refuse ends prepare() with ADJ_ENOKERNEL and a reason, formatted as by printf.
 * direct_accept ends it with a copy of the state; the implementation is printed as "impl:isa".
 * All layouts are plain then; a kernel with others sets them afterwards. */
adj_status direct_refuse(adj_prep *prep, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
adj_status direct_accept(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                         const void *state, size_t size);
/* direct_accept for code compiled for another instruction set than d->isa, printed as
 * "impl:isa". */
adj_status direct_accept_as(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                            const char *isa, const void *state, size_t size);
/* direct_accept with operand `in` of the group in that layout; layout is NULL if it could not be
 * allocated. */
adj_status direct_accept_packed(const direct *d, const adj_group *g, adj_prep *prep,
                                const char *impl, const void *state, size_t size, int in,
                                const adj_layout *layout);
/* Adds the seconds for that many bytes of a filter that the kernel packs, in each run or once. */
void direct_count_packed(adj_prep *prep, int is_once, double bytes);
/* Returns how many jobs divisible work should be cut into: enough for a thread on a slower
 * processor to do fewer, and few enough that the overhead of a job does not matter. */
static inline ptrdiff_t direct_jobs_for(int threads) { return threads > 1 ? 16 * threads : 1; }
/* Runs the jobs of c->state's work. */
adj_status direct_run(const adj_call *c);
void direct_drop(void *backend, void *state);

/* Layouts: of an i32 value of `elems` elements, all from 0 to 255, as bytes; and of
 * a filter that is packed before it enters a kernel. NULL if out of memory. */
const adj_layout *direct_bytes(direct *d, int64_t elems);
const adj_layout *direct_packed_filter(direct *d, const direct_packing *packing, const void *of,
                                       const char *name);
/* True if the filter, operand `in` of the group, can be packed before it enters the kernel: no
 * run changes it (adj_prep.invariant), and no other node of the group reads it. */
int direct_packs_once(const adj_group *g, const adj_prep *prep, int in);

extern const adj_kernel direct_conv_bf16, direct_fused_pointwise, direct_gemm, direct_depthwise,
    direct_dropout, direct_filter_bf16, direct_filter_gemm, direct_group_norm, direct_max_pool,
    direct_resize, direct_softmax, direct_winograd;

#endif
