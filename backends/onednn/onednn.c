/* onednn.c - the oneDNN backend: opens it; helpers of all its kernels.
 *
 * A node is supported if oneDNN creates a primitive for it; the plan's printout shows the reason
 * of a refusal. Each executor opens its own backend, so executors share only oneDNN's own
 * primitive cache, which is thread-safe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn.h"

adj_status onednn_refuse(dnnl_status_t status, const char *op, char *why)
{
    if (status == dnnl_out_of_memory) {
        snprintf(why, ADJ_WHY, "%s: oneDNN is out of memory", op);
        return ADJ_ENOMEM;
    }
    snprintf(why, ADJ_WHY, "%s: oneDNN has no%s implementation (status %d)", op,
             status == dnnl_unimplemented ? "" : " valid", (int)status);
    return ADJ_ENOKERNEL;
}

dnnl_data_type_t onednn_type(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F32: return dnnl_f32;
    case ADJ_BF16: return dnnl_bf16;
    case ADJ_F16: return dnnl_f16;
    default: return dnnl_data_type_undef;
    }
}

/* Checks that sizes fit the int that oneDNN's kernels count in. */
static adj_status check_value(const adj_node *n, const char *op, char *why)
{
    int64_t elements = adj_shape_elems(n->type.shape);
    if (onednn_type(n->type.dtype) == dnnl_data_type_undef) {
        snprintf(why, ADJ_WHY, "%s: oneDNN has no %s", op, adj_dtype_name(n->type.dtype));
        return ADJ_ENOKERNEL;
    }
    if (elements < 1 || elements > INT32_MAX || n->type.shape.rank < 1) {
        snprintf(why, ADJ_WHY, "%s: oneDNN does not take an operand or result this size", op);
        return ADJ_ENOKERNEL;
    }
    return ADJ_OK;
}

adj_status onednn_check(const adj_node *n, char *why)
{
    adj_status status = check_value(n, n->op->name, why);
    for (int i = 0; i < n->n_in && status == ADJ_OK; i++)
        status = check_value(n->in[i], n->op->name, why);
    return status;
}

/* Refuses products without avx512_bf16: oneDNN emulates each by many instructions, which is
 * slower than f32. */
adj_status onednn_check_products(const onednn *o, const adj_node *n, char *why)
{
    const int avx512 = dnnl_cpu_isa_avx512_core, bf16 = dnnl_cpu_isa_avx512_core_bf16;
    if (n->in[0]->type.dtype != ADJ_BF16 || (o->isa & avx512) != avx512 || (o->isa & bf16) == bf16)
        return ADJ_OK;
    snprintf(why, ADJ_WHY, "%s: oneDNN emulates bf16 without avx512_bf16, which is slow",
             n->op->name);
    return ADJ_ENOKERNEL;
}

adj_status onednn_check_image(const adj_node *n, const adj_conv_geom *g, char *why)
{
    if (g->format == ADJ_NHWC)
        return onednn_check(n, why);
    snprintf(why, ADJ_WHY, "%s: only in NHWC", n->op->name);
    return ADJ_ENOKERNEL;
}

const char *pd_name(const_pd d)
{
    const char *name = NULL;
    if (dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &name) != dnnl_success ||
        name == NULL)
        return "unnamed";
    return name;
}

int is_reference(const_pd d) { return strncmp(pd_name(d), "ref", 3) == 0; }

/* ---- nodes fused into a convolution or matmul ----
 *
 * A bias_add is the primitive's bias argument, and a cast of a half result to f32 its result type.
 * Both save a pass over memory, and the result is rounded once. A relu is not fused: oneDNN's turns
 * NaN into 0, which would hide that a network has diverged. A value inside a group has one user and
 * is not fetched. */

/* True if next adds a bias along root's last axis, where a matrix has its channels in both
 * formats. */
static int is_bias_of(const adj_node *next, const adj_node *root)
{
    return next != NULL && next->op == &adj_op_bias_add && next->in[0] == root &&
           (root->type.shape.rank == 2 || adj_format_of(next) == ADJ_NHWC);
}

static int is_widening(const adj_node *n)
{
    return n->op == &adj_op_cast && n->type.dtype == ADJ_F32;
}

int tail_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    int n = 1;
    group[0] = root;
    if (n < max && is_bias_of(adj_only_user(root, uses), root))
        group[n++] = adj_only_user(root, uses);
    const adj_node *next = adj_only_user(group[n - 1], uses);
    if (n < max && next != NULL && is_widening(next))
        group[n++] = next;
    return n;
}

int tail_of(const adj_group *g, const adj_node **bias)
{
    int n = 1;
    *bias = NULL;
    if (n < g->n_node && g->node[n]->op == &adj_op_bias_add)
        *bias = g->node[n++]->in[1];
    if (n < g->n_node && is_widening(g->node[n]))
        n++;
    return n == g->n_node;
}

/* ---- the backend ---- */

static void close_backend(void *backend)
{
    onednn *o = backend;
    if (o == NULL)
        return;
    for (adj_layout *l = o->layouts, *next; l != NULL; l = next) {
        next = l->next;
        md_free(&o->allocator, l->memory);
        md_free(&o->allocator, l->plain);
        adj_release(&o->allocator, l);
    }
    if (o->attr != NULL)
        dnnl_primitive_attr_destroy(o->attr);
    if (o->stream != NULL)
        dnnl_stream_destroy(o->stream);
    if (o->engine != NULL)
        dnnl_engine_destroy(o->engine);
    adj_allocator allocator = o->allocator;
    adj_release(&allocator, o);
}

/* Sets the quarantine. ADJOINT_QUARANTINE=off allows implementations known to be wrong. */
static adj_status set_quarantine(onednn *o, const adj_backend_opts *opts)
{
    const char *word = getenv("ADJOINT_QUARANTINE");
    o->no_quarantine = word != NULL && strcmp(word, "off") == 0;
    if (word == NULL || word[0] == '\0' || o->no_quarantine)
        return ADJ_OK;
    snprintf(opts->message, ADJ_WHY, "ADJOINT_QUARANTINE must be off or empty (got %.60s)", word);
    return ADJ_EARG;
}

/* opts->threads is not used: oneDNN takes OpenMP's number, which the plan has set. */
static adj_status open_backend(const adj_backend_opts *opts, void **backend)
{
    dnnl_status_t status;
    onednn *o = adj_alloc(opts->allocator, sizeof *o);
    *backend = NULL;
    if (o == NULL)
        return ADJ_ENOMEM;
    o->allocator = *opts->allocator;
    o->math = opts->math;
    o->isa = (int)dnnl_get_effective_cpu_isa(); /* slow in a virtual machine: asked once */
    adj_status quarantine = set_quarantine(o, opts);
    if (quarantine != ADJ_OK) {
        close_backend(o);
        return quarantine;
    }
    if ((status = dnnl_engine_create(&o->engine, dnnl_cpu, 0)) != dnnl_success ||
        (status = dnnl_stream_create(&o->stream, o->engine, dnnl_stream_default_flags)) !=
            dnnl_success ||
        (status = dnnl_primitive_attr_create(&o->attr)) != dnnl_success ||
        (status = dnnl_primitive_attr_set_scratchpad_mode(o->attr, dnnl_scratchpad_mode_user)) !=
            dnnl_success) {
        close_backend(o);
        return status == dnnl_out_of_memory ? ADJ_ENOMEM : ADJ_EBACKEND;
    }
    *backend = o;
    return ADJ_OK;
}

/* "2.6.3 avx512_core": oneDNN's version and instruction set. */
static void describe(char *text, size_t size)
{
    const dnnl_version_t *v = dnnl_version();
    char isa[ISA_NAME];
    isa_spell((int)dnnl_get_effective_cpu_isa(), isa);
    snprintf(text, size, "%d.%d.%d %s", v->major, v->minor, v->patch, isa);
}

static const adj_kernel *const kernels[] = {
    &onednn_conv, &onednn_matmul, &onednn_avg_pool, &onednn_eltwise, &onednn_transpose, NULL,
};

const adj_backend adj_backend_onednn = {
    .version = ADJ_VERSION,
    .name = "onednn",
    .open = open_backend,
    .close = close_backend,
    .kernels = kernels,
    .describe = describe,
    .layout_bytes = layout_bytes,
    .layout_name = layout_name,
    .reorder_prepare = layout_reorder_prepare,
    .reorder_run = layout_reorder_run,
    .reorder_drop = primitive_drop,
};
