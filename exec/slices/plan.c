/* plan.c - a group's slice as a graph and plans of its own: whole operands are its parameters,
 * images its inputs, and what leaves the group is fetched. */
#include <stdio.h>
#include <string.h>

#include "exec/backends.h"
#include "run.h"

/* ---- the graph ---- */

static adj_shape sliced(adj_shape shape, int64_t images)
{
    shape.dim[0] = images;
    return shape;
}

/* What enters under a name of its own; attributes and values are another plan's. */
static adj_node *new_leaf(const slices *s, int i)
{
    char name[24];
    const adj_type t = s->group.in[i]->type;
    snprintf(name, sizeof name, "in%d", i);
    if (s->in_is_batch[i])
        return adj_input(s->graph, name, t.dtype, sliced(t.shape, s->images));
    return adj_param(s->graph, name, t.dtype, t.shape, (adj_init){.kind = ADJ_INIT_CONSTANT});
}

/* The attributes of as many images. */
static void set_images(const adj_node *n, int64_t images, char attrs[MAX_ATTR])
{
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    if (adj_node_geom(n) != NULL)
        ((adj_conv_geom *)(attrs + n->op->schema->geom))->n = images;
}

/* image: by id of the whole graph; mean: what stands for sums that are divided by the elements of
 * all images, which are divided by those of a slice. */
static adj_node *copy_node(const slices *s, const adj_node *n, adj_node *const image[],
                           adj_node *const mean[])
{
    union {
        char bytes[MAX_ATTR];
        double align;
    } attrs;
    adj_node *in[ADJ_NAMED_OPERANDS];
    for (int k = 0; k < n->n_in; k++)
        in[k] = n->op->mean_in >> k & 1 ? mean[n->in[k]->id] : image[n->in[k]->id];
    if (adj_attr_size(n->op) > 0)
        set_images(n, s->images, attrs.bytes);
    s->graph->role = n->role;
    s->graph->clone = n->clone;
    return adj_node_new(s->graph, n->op, n->n_in, in, n->attrs != NULL ? attrs.bytes : NULL);
}

/* image, mean: by id of the whole graph, all NULL. */
static adj_status copy_into(slices *s, adj_node *image[], adj_node *mean[])
{
    for (int i = 0; i < s->group.n_in; i++) {
        const int id = (int)s->group.in[i]->id;
        if ((s->leaf[i] = image[id] = new_leaf(s, i)) == NULL)
            break;
        if (adj_is_float(s->leaf[i]->type.dtype) && !s->in_is_batch[i])
            mean[id] = adj_scale(s->leaf[i], 1 / (double)s->n_slice);
    }
    for (int i = 0; i < s->group.n_node; i++) {
        const adj_node *n = s->group.node[i];
        if (n->n_in > ADJ_NAMED_OPERANDS)
            return ADJ_ENOKERNEL;
        image[n->id] = s->copy[i] = adj_label(copy_node(s, n, image, mean), n->name);
    }
    for (int i = 0; i < s->group.n_out; i++)
        s->fetch[i] = image[s->group.out[i]->id];
    return adj_graph_status(s->graph);
}

static adj_status copy_group(adj_exec *e, slices *s)
{
    const adj_allocator *a = &e->region.allocator;
    const size_t n = (size_t)e->graph->n_node;
    adj_node **image = adj_alloc(a, 2 * n * sizeof *image);
    const adj_status status = image != NULL ? copy_into(s, image, image + n) : ADJ_ENOMEM;
    adj_release(a, image);
    return status;
}

/* ---- a plan of it ---- */

/* Every place where the plan's steps look for the value in that slot. */
static void list_places(const adj_exec *e, int slot, places *p)
{
    for (int i = 0; i < e->n_step; i++) {
        const step *s = &e->step[i];
        for (int k = 0; k < s->n_in; k++)
            if (e->buffer[s->in[k]].slot == slot) {
                if (p->at != NULL)
                    p->at[p->n] = (void **)(void *)&((const void **)s->call.in)[k];
                p->n++;
            }
        for (int k = 0; k < s->n_out; k++)
            if (e->buffer[s->out[k]].slot == slot) {
                if (p->at != NULL)
                    p->at[p->n] = (void **)&((void **)s->call.out)[k];
                p->n++;
            }
    }
}

static adj_status find_places(adj_exec *e, const adj_exec *plan, int buffer, places *p)
{
    const int slot = plan->buffer[buffer].slot;
    *p = (places){0};
    list_places(plan, slot, p);
    if ((p->at = exec_alloc(e, (size_t)p->n, sizeof *p->at)) == NULL)
        return e->status;
    p->n = 0;
    list_places(plan, slot, p);
    return ADJ_OK;
}

/* The plan of one thread's slices. */
static adj_status plan_one(adj_exec *e, const adj_exec_opts *o, slices *s, slice_plan *p)
{
    const int is_first = p == s->thread; /* the one whose kernels before_kernel is told of */
    const adj_group *g = &s->group;
    const adj_allocator a = e->region.allocator;
    const adj_exec_opts opts = {.fetch = s->fetch,
                                .n_fetch = g->n_out,
                                .backend = o->backend,
                                .threads = s->n_slice > 1 ? 1 : e->threads,
                                .math = o->math,
                                .debug = {.no_passes = 1,
                                          .backends = s->backends,
                                          .quarantine = o->debug.quarantine,
                                          .canaries = o->debug.canaries,
                                          .no_sharing = o->debug.no_sharing,
                                          .before_kernel = is_first ? o->debug.before_kernel : NULL,
                                          .user = o->debug.user}};
    if ((p->plan = adj_alloc(&a, sizeof *p->plan)) == NULL)
        return no_memory(e);
    p->plan->region.allocator = a;
    p->plan->slice = s->out_is_batch;
    const adj_status status = plan_executor(p->plan, s->graph, &opts);
    if (status != ADJ_OK)
        return status;
    p->in = exec_alloc(e, (size_t)g->n_in, sizeof *p->in);
    p->out = exec_alloc(e, (size_t)g->n_out, sizeof *p->out);
    p->seconds = exec_alloc(e, (size_t)p->plan->n_step, sizeof *p->seconds);
    for (int i = 0; i < g->n_in && e->status == ADJ_OK; i++) {
        const adj_node *image = p->plan->image[s->leaf[i]->id];
        find_places(e, p->plan, p->plan->leaf[p->plan->leaf_of[image->id]].buffer, &p->in[i]);
    }
    for (int i = 0; i < g->n_out && e->status == ADJ_OK; i++)
        find_places(e, p->plan, p->plan->fetch[i], &p->out[i]);
    return e->status;
}

/* ---- memory ---- */

/* Of a thread: its own sums; for all: what each slice gives where that is not added up. */
static void lay_out(slices *s)
{
    for (int i = 0; i < s->group.n_out; i++) {
        const size_t bytes = aligned(adj_type_bytes(s->group.out[i]->type));
        s->out_at[i] = s->out_is_batch[i] ? 0 : s->sum_bytes;
        if (!s->out_is_batch[i] && s->group.out[i]->op->merge == NULL)
            s->sum_bytes += bytes;
    }
    for (int i = 0; i < s->group.n_out; i++)
        if (!s->out_is_batch[i] && s->group.out[i]->op->merge != NULL) {
            s->out_at[i] = s->part_bytes;
            s->part_bytes += aligned(adj_type_bytes(s->group.out[i]->type) * (size_t)s->n_slice);
        }
}

/* ---- made ---- */

static slices *new_slices(adj_exec *e, const sliced_nodes *nodes)
{
    const adj_allocator a = e->region.allocator;
    step described = {.kind = STEP_KERNEL};
    const node_group g = {.n = nodes->n, .node = nodes->node, .backend = NONE};
    slices *s = exec_alloc(e, 1, sizeof *s);
    if (s == NULL || describe_step(e, &g, &described) != ADJ_OK)
        return NULL;
    s->group = described.group;
    s->images = nodes->images;
    s->n_slice = nodes->batch / nodes->images;
    s->tuned = nodes->tuned;
    s->n_thread = s->n_slice > 1 ? e->threads : 1;
    for (int i = 0, n = 0; i < e->n_backend; i++)
        if (e->backend[i]->progress == NULL) /* which a thread alone may call */
            s->backends[n++] = e->backend[i];
    s->in_is_batch = exec_alloc(e, (size_t)s->group.n_in, 1);
    s->out_is_batch = exec_alloc(e, (size_t)s->group.n_out, 1);
    s->out_at = exec_alloc(e, (size_t)s->group.n_out, sizeof *s->out_at);
    s->leaf = exec_alloc(e, (size_t)s->group.n_in, sizeof(adj_node *));
    s->copy = exec_alloc(e, (size_t)s->group.n_node, sizeof(adj_node *));
    s->fetch = exec_alloc(e, (size_t)s->group.n_out, sizeof(adj_node *));
    s->thread = exec_alloc(e, (size_t)s->n_thread, sizeof *s->thread);
    if (e->status != ADJ_OK)
        return NULL;
    for (int i = 0; i < s->group.n_node; i++)
        for (int k = 0; k < s->group.node[i]->n_in; k++) {
            const int in = adj_group_in(&s->group, s->group.node[i]->in[k]);
            if (in >= 0)
                s->in_is_batch[in] |= (char)is_batch_operand(s->group.node[i], k);
        }
    for (int i = 0; i < s->group.n_out; i++)
        s->out_is_batch[i] = (char)is_batch_result(s->group.out[i]);
    if ((s->graph = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &a})) == NULL)
        no_memory(e);
    return s;
}

void drop_slices(slices *s)
{
    for (int t = 0; s != NULL && t < s->n_thread; t++)
        adj_exec_free(s->thread[t].plan);
    if (s != NULL)
        adj_graph_free(s->graph);
}

/* Does a sum of a half type leave the kernel that computes it? A slice's would be rounded, one by
 * one, before they are added up: where they cancel, that is more than rounding the whole once. */
static int rounds_sums(const slices *s)
{
    const adj_exec *plan = s->thread[0].plan;
    int rounds = 0;
    for (int i = 0; i < plan->n_buffer && !rounds; i++) {
        const adj_node *n = plan->buffer[i].value;
        rounds = n->op->images != 0 && !is_batch_result(n) && n->type.dtype != ADJ_F32 &&
                 n->type.dtype != ADJ_F64;
    }
    return rounds;
}

/* Is more than one pass over images made of them? Else slices save nothing. */
static int has_passes(const slices *s)
{
    const adj_exec *plan = s->thread[0].plan;
    return plan->n_step - plan->n_invariant > 1;
}

/* Has each thread the first one's steps and places, so that it may read what that one keeps? A file
 * of quarantined kernels may change while they are planned. */
static int are_alike(const slices *s)
{
    const adj_exec *first = s->thread[0].plan;
    int are = 1;
    for (int t = 1; t < s->n_thread && are; t++) {
        const adj_exec *plan = s->thread[t].plan;
        are = plan->n_step == first->n_step && plan->n_slot == first->n_slot &&
              plan->info.storage_bytes == first->info.storage_bytes;
        for (int i = 0; i < first->n_step && are; i++)
            are = plan->step[i].kernel == first->step[i].kernel &&
                  strcmp(plan->step[i].prep.impl, first->step[i].prep.impl) == 0;
        for (int i = 0; i < first->n_slot && are; i++)
            are = plan->slot[i].offset == first->slot[i].offset &&
                  plan->slot[i].bytes == first->slot[i].bytes;
    }
    return are;
}

slices *plan_slices(adj_exec *e, const adj_exec_opts *o, const sliced_nodes *nodes)
{
    slices *s = new_slices(e, nodes);
    if (s == NULL)
        return NULL;
    adj_status status = e->status == ADJ_OK ? copy_group(e, s) : e->status;
    if (status == ADJ_OK)
        status = plan_one(e, o, s, &s->thread[0]);
    const int is_taken = status == ADJ_OK && has_passes(s) && !rounds_sums(s);
    for (int t = 1; t < s->n_thread && status == ADJ_OK && is_taken; t++)
        status = plan_one(e, o, s, &s->thread[t]);
    if (status == ADJ_OK && is_taken && are_alike(s)) {
        lay_out(s);
        return s;
    }
    if (status == ADJ_ENOMEM)
        no_memory(e);
    drop_slices(s);
    return NULL;
}

/* Do all whole operands change only when a parameter is set? */
static int keeps(const adj_exec *e, const slices *s)
{
    int all = 1;
    for (int i = 0; i < s->group.n_in; i++)
        all &= s->in_is_batch[i] || is_invariant(e, s->group.in[i]);
    return all;
}

size_t keep_slices(const step *s, size_t at)
{
    if (plan_of_slice(s) == NULL)
        return 0;
    slices *of = s->prep.state;
    of->kept_at = at;
    return of->part_of != NULL ? of->kept_bytes * (size_t)of->n_kept : 0;
}

const adj_exec *take_slices(const adj_exec *e, slices *of, step *s, int in_plan)
{
    s->kernel = slices_backend.kernels[0];
    s->backend = e->n_backend;
    s->prep.state = of;
    of->part_of = in_plan && keeps(e, of) ? e : NULL;
    of->thread_bytes = of->sum_bytes + aligned(of->thread[0].plan->info.arena_bytes);
    of->kept_bytes = aligned(of->thread[0].plan->info.storage_bytes);
    of->n_kept = e->no_sharing || e->canaries ? of->n_thread : 1;
    s->prep.scratch = of->thread_bytes * (size_t)of->n_thread + of->part_bytes +
                      (of->part_of == NULL ? of->kept_bytes * (size_t)of->n_kept : 0);
    s->prep.sums_by_threads = of->n_slice > 1; /* slices follow from it, and kernels from slices */
    snprintf(s->prep.impl, sizeof s->prep.impl, "%lldx%lld", (long long)of->n_slice,
             (long long)of->images);
    s->tuned = of->tuned;
    return of->thread[0].plan;
}

const adj_exec *plan_of_slice(const step *s)
{
    return s->kernel == slices_backend.kernels[0] ? ((const slices *)s->prep.state)->thread[0].plan
                                                  : NULL;
}

/* What stands in the slices' graph for it, as a node of the whole one; NULL: it is not of that. */
static const adj_node *whole_node(const slices *s, const adj_node *n)
{
    for (int i = 0; i < s->group.n_in; i++)
        if (s->leaf[i] == n)
            return s->group.in[i];
    for (int i = 0; i < s->group.n_node; i++)
        if (s->copy[i] == n)
            return s->group.node[i];
    return NULL;
}

void time_slices(slices *of)
{
    for (int t = 0; t < of->n_thread; t++)
        of->thread[t].plan->profile = 1;
}

/* Of what all steps took on all threads, the k-th one's. */
static double share_of_step(const slices *s, int k)
{
    double all = 0, its = 0;
    for (int t = 0; t < s->n_thread; t++) {
        its += s->thread[t].seconds[k];
        for (int i = 0; i < s->thread[t].plan->n_step; i++)
            all += s->thread[t].seconds[i];
    }
    return all > 0 ? its / all : 0;
}

adj_step_info step_of_slices(const step *s, int k, const adj_node **value)
{
    const slices *of = s->prep.state;
    const adj_exec *plan = of->thread[0].plan;
    const int is_for_each = plan->step[k].invariance == RUN_VARIANT;
    adj_step_info info = adj_exec_step_at(plan, k);
    *value = info.node != NULL ? whole_node(of, info.node) : NULL;
    info.node = NULL;
    if (info.n_node == 0) /* a leaf has another name there */
        info.name = *value != NULL ? adj_node_name(*value) : "";
    info.flop *= is_for_each ? (double)of->n_slice : 1;
    info.bytes *= is_for_each ? (size_t)of->n_slice : 1;
    info.slices = (int)of->n_slice;
    info.seconds = s->seconds * share_of_step(of, k);
    return info;
}

int was_slice_overrun(const slices *s)
{
    int was = 0;
    for (int t = 0; t < s->n_thread; t++)
        was |= s->thread[t].plan->overrun;
    return was;
}
