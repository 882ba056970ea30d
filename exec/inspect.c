/* inspect.c - what each step of a plan is and what it cost, and the plan itself for check/. */
#include "base/hash.h"
#include "candidate.h"
#include "exec.h"
#include "inspect.h"

static size_t bytes_of(const adj_exec *e, const int *buffers, int n)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += slot_of(e, buffers[i])->bytes;
    return sum;
}

adj_status count_moved_bytes(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++) {
        const step *s = &e->step[i];
        if (s->invariance != RUN_VARIANT)
            continue;
        e->info.read_bytes += bytes_of(e, s->in, s->n_in);
        e->info.written_bytes += bytes_of(e, s->out, s->n_out);
    }
    return ADJ_OK;
}

/* The user's node of that image; also one that is a cast of it, computed in another type. */
static adj_node *user_node(const adj_exec *e, const adj_node *image)
{
    adj_node *cast = NULL;
    for (int id = 0; id < e->n_user; id++) {
        const adj_node *i = e->image[id];
        if (i == image)
            return e->user->node[id];
        if (i != NULL && i->op == &adj_op_cast && i->in[0] == image &&
            e->user->node[id]->op == image->op)
            cast = e->user->node[id];
    }
    return cast;
}

int adj_exec_step_count(const adj_exec *e)
{
    return e != NULL && e->status == ADJ_OK ? e->n_step : 0;
}

/* Who builds a net names its layers, less often what follows them. */
static const char *name_of_group(const adj_group *g)
{
    int i = g->n_node - 1;
    while (i > 0 && adj_node_name(g->node[i])[0] == '\0')
        i--;
    return adj_node_name(g->node[i]);
}

adj_step_info adj_exec_step_at(const adj_exec *e, int i)
{
    adj_step_info info = {.op = "", .name = "", .backend = "", .impl = ""};
    if (i < 0 || i >= adj_exec_step_count(e))
        return info;
    const step *s = &e->step[i];
    const adj_node *value = e->buffer[s->out[0]].value;
    info.op = s->kind == STEP_REORDER ? "reorder" : "copy";
    info.name = adj_node_name(value);
    if (s->kind == STEP_KERNEL) {
        info.op = s->group.node[0]->op->name;
        info.impl = s->prep.impl;
        info.why = s->why;
        info.n_node = s->group.n_node;
        value = s->group.node[s->group.n_node - 1];
        info.name = name_of_group(&s->group);
        for (int k = 0; k < s->group.n_node; k++)
            info.flop += flop_of(s->group.node[k]);
    }
    if (s->kind != STEP_COPY)
        info.backend = e->backend[s->backend]->name;
    info.node = user_node(e, value);
    info.dtype = value->type.dtype;
    info.bytes = bytes_of(e, s->in, s->n_in) + bytes_of(e, s->out, s->n_out);
    info.seconds = s->seconds;
    info.tuned_seconds = s->tuned;
    return info;
}

/* NULL: it is no kernel's. */
static const step *kernel_step(const adj_exec *e, int i)
{
    int is_one = i >= 0 && i < adj_exec_step_count(e) && e->step[i].kind == STEP_KERNEL;
    return is_one ? &e->step[i] : NULL;
}

const adj_group *adj_exec_step_group(const adj_exec *e, int i)
{
    const step *s = kernel_step(e, i);
    return s != NULL ? &s->group : NULL;
}

const char *adj_exec_step_layout(const adj_exec *e, int i, const adj_node *value)
{
    const step *s = kernel_step(e, i);
    int in = s != NULL ? adj_group_in(&s->group, value) : NONE;
    int out = s != NULL ? adj_group_out(&s->group, value) : NONE;
    if (in < 0 && out < 0)
        return "";
    return layout_name_of(e->backend[s->backend], in >= 0 ? s->prep.in[in] : s->prep.out[out]);
}

/* ---- for check/ ---- */

int exec_n_nodes(const adj_exec *e) { return e->graph->n_node; }

void exec_list_steps(const adj_exec *e, int step[])
{
    for (int id = 0; id < e->graph->n_node; id++)
        step[id] = NONE;
    for (int i = 0; i < e->n_step; i++)
        for (int k = 0; e->step[i].kind == STEP_KERNEL && k < e->step[i].group.n_node; k++)
            step[e->step[i].group.node[k]->id] = i;
}

static uint64_t add_word(uint64_t hash, const char *word)
{
    return hash_text(hash_text(hash, word), " ");
}

static uint64_t mix_layouts(const adj_exec *e, const int *buffers, int n, uint64_t hash)
{
    for (int i = 0; i < n; i++) {
        const buffer *b = &e->buffer[buffers[i]];
        hash = add_word(hash, layout_text(e, b->layout, b->backend));
    }
    return hash;
}

uint64_t exec_hash_kernels(const adj_exec *e)
{
    uint64_t all = 0;
    for (int i = 0; i < e->n_step; i++) {
        const step *s = &e->step[i];
        uint64_t hash = HASH_START;
        if (s->kind != STEP_KERNEL)
            continue;
        for (int k = 0; k < s->group.n_node; k++)
            hash = add_word(add_word(hash, s->group.node[k]->op->name),
                            adj_shape_text(s->group.node[k]->type.shape).s);
        hash = add_word(add_word(hash, e->backend[s->backend]->name), s->prep.impl);
        all += mix_layouts(e, s->out, s->n_out, mix_layouts(e, s->in, s->n_in, hash));
    }
    return all;
}

int exec_was_overrun(const adj_exec *e) { return e != NULL && e->overrun; }

adj_graph *exec_take_graph(adj_exec *e, const adj_node *image[])
{
    adj_graph *g = e->graph;
    for (int id = 0; id < e->n_user; id++)
        image[id] = e->image[id];
    e->graph = NULL;
    return g;
}
