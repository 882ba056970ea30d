/* inspect.c - reports each step of a plan with its time, and gives check/ access to the plan
 * itself. */
#include "base/hash.h"
#include "candidate.h"
#include "exec.h"
#include "inspect.h"
#include "report.h"

/* Returns the user's node of that image; also one that is a cast of it, computed in another type.
 */
static adj_node *user_node(const plan *p, const adj_node *image)
{
    adj_node *cast = NULL;
    for (int id = 0; id < p->n_user; id++) {
        const adj_node *i = p->image[id];
        if (i == image)
            return p->user->node[id];
        if (i != NULL && i->op == &adj_op_cast && i->in[0] == image &&
            p->user->node[id]->op == image->op)
            cast = p->user->node[id];
    }
    return cast;
}

int adj_exec_step_count(const adj_exec *e)
{
    return e != NULL && e->status == ADJ_OK ? e->plan.n_step : 0;
}

/* Returns the last name in the group, as nets name their layers more often than the nodes behind
 * them. */
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
    const plan *p = &e->plan;
    const step *s = &p->step[i];
    const adj_node *value = p->buffer[s->out[0]].value;
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
        info.backend = e->backends.list[s->backend]->name;
    info.node = user_node(p, value);
    info.dtype = value->type.dtype;
    info.bytes = bytes_of_buffers(p, s->n_in, s->in) + bytes_of_buffers(p, s->n_out, s->out);
    info.seconds = e->run.seconds[i];
    info.tuned_seconds = s->tuned;
    return info;
}

const adj_group *adj_exec_step_group(const adj_exec *e, int i)
{
    const int is_kernel =
        i >= 0 && i < adj_exec_step_count(e) && e->plan.step[i].kind == STEP_KERNEL;
    return is_kernel ? &e->plan.step[i].group : NULL;
}

const char *adj_exec_step_layout(const adj_exec *e, int i, const adj_node *value)
{
    const adj_group *g = adj_exec_step_group(e, i);
    const int in = g != NULL ? adj_group_in(g, value) : NONE;
    const int out = g != NULL ? adj_group_out(g, value) : NONE;
    if (in < 0 && out < 0)
        return "";
    const step *s = &e->plan.step[i];
    return layout_text(e, &e->plan.buffer[in >= 0 ? s->in[in] : s->out[out]]);
}

/* ---- for check/ ---- */

int exec_n_nodes(const adj_exec *e) { return e->plan.graph->n_node; }

void exec_list_steps(const adj_exec *e, int step[])
{
    for (int id = 0; id < exec_n_nodes(e); id++)
        step[id] = NONE;
    for (int i = 0; i < e->plan.n_step; i++) {
        const adj_group *g = adj_exec_step_group(e, i);
        for (int k = 0; g != NULL && k < g->n_node; k++)
            step[g->node[k]->id] = i;
    }
}

static uint64_t add_word(uint64_t hash, const char *word)
{
    return hash_text(hash_text(hash, word), " ");
}

static uint64_t add_layouts(const adj_exec *e, int n, const int buffer[], uint64_t hash)
{
    for (int i = 0; i < n; i++)
        hash = add_word(hash, layout_text(e, &e->plan.buffer[buffer[i]]));
    return hash;
}

uint64_t exec_hash_kernels(const adj_exec *e)
{
    uint64_t all = 0;
    for (int i = 0; i < e->plan.n_step; i++) {
        const step *s = &e->plan.step[i];
        uint64_t hash = HASH_START;
        if (s->kind != STEP_KERNEL)
            continue;
        for (int k = 0; k < s->group.n_node; k++)
            hash = add_word(add_word(hash, s->group.node[k]->op->name),
                            adj_shape_text(s->group.node[k]->type.shape).s);
        hash = add_word(add_word(hash, e->backends.list[s->backend]->name), s->prep.impl);
        hash = add_layouts(e, s->n_in, s->in, hash);
        all += add_layouts(e, s->n_out, s->out, hash);
    }
    return all;
}

int exec_was_overrun(const adj_exec *e) { return e != NULL && e->run.overrun; }

int exec_has_wrong_plan(const adj_exec *e) { return e != NULL && e->plan_is_wrong; }

adj_graph *exec_take_graph(adj_exec *e, const adj_node *image[])
{
    adj_graph *g = e->plan.graph;
    for (int id = 0; id < e->plan.n_user; id++)
        image[id] = e->plan.image[id];
    e->plan.graph = NULL;
    return g;
}
