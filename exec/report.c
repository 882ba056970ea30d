/* report.c - figures of a plan: each step with its time; and its printout: what each step computes,
 * by which implementation, which buffers it reads and writes, their layouts and positions, and why
 * the preferred backend does not compute a node. */
#include "base/c_locale.h"
#include "candidate.h"
#include "exec.h"
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

/* ---- the printout ---- */

static void print_buffer(FILE *f, const adj_exec *e, int i)
{
    const buffer *b = &e->plan.buffer[i];
    const slot *s = slot_of(&e->plan, i);
    fprintf(f, " %%%u", b->value->id);
    if (b->layout != NULL)
        fprintf(f, ":%s", layout_text(e, b));
    if (s->kept)
        fputs("@kept", f);
    else
        fprintf(f, "@%zu", s->offset);
}

static void print_step(FILE *f, const adj_exec *e, int i)
{
    static const char *const kind_name[] = {[STEP_REORDER] = "reorder", [STEP_COPY] = "copy"};
    const step *s = &e->plan.step[i];
    fprintf(f, "%4d ", i);
    if (s->kind == STEP_KERNEL) {
        for (int k = 0; k < s->group.n_node; k++) {
            fprintf(f, "%s", k > 0 ? " + " : "");
            print_node(f, s->group.node[k]);
        }
        fprintf(f, " [%s %s]", e->backends.list[s->backend]->name, s->prep.impl);
        if (s->tuned > 0)
            c_fprintf(f, " tuned %.3g us", 1e6 * s->tuned);
    } else {
        fprintf(f, "%s ", kind_name[s->kind]);
        print_node(f, e->plan.buffer[s->out[0]].value);
    }
    if (s->is_invariant)
        fputs(" (only when a parameter has changed)", f);
    fputs(" :", f);
    for (int k = 0; k < s->n_in; k++)
        print_buffer(f, e, s->in[k]);
    fputs(" ->", f);
    for (int k = 0; k < s->n_out; k++)
        print_buffer(f, e, s->out[k]);
    for (int k = 0; k < s->n_in * s->n_out; k++) /* a result lies where an operand was */
        if (slot_of(&e->plan, s->in[k / s->n_out]) == slot_of(&e->plan, s->out[k % s->n_out]))
            fputs(" (in place)", f);
    if (s->prep.sums_by_threads)
        fputs(" (sums depend on the number of threads)", f);
    if (s->prep.scratch > 0)
        fprintf(f, " scratch %zu@%zu", s->prep.scratch, e->plan.slot[s->scratch].offset);
    if (s->why != NULL)
        fprintf(f, " because %s", s->why);
    fputc('\n', f);
}

void adj_exec_print(FILE *f, const adj_exec *e)
{
    if (e == NULL || e->status != ADJ_OK) {
        fprintf(f, "no plan: %s\n", adj_exec_message(e));
        return;
    }
    fprintf(f,
            "plan: %d steps (%d reorders, %d on %s), %d threads, arena %zu bytes (%zu live at "
            "most), kept %zu bytes; a run reads %zu bytes and writes %zu\n",
            e->info.steps, e->details.reorders, e->info.naive_steps,
            e->backends.list[e->backends.fallback]->name, e->opts.threads, e->info.arena_bytes,
            e->details.live_bytes, e->info.storage_bytes, e->details.read_bytes,
            e->details.written_bytes);
    for (int i = 0; i < e->plan.n_step; i++)
        print_step(f, e, i);
    for (int i = 0; i < e->plan.n_update; i++) {
        fputs("    ", f);
        print_name(f, adj_node_name(e->plan.leaf[e->plan.update[i].leaf].node));
        fputs(" :=", f);
        print_buffer(f, e, e->plan.update[i].next);
        fputs(e->plan.update[i].in_place ? " (in place)\n" : "\n", f);
    }
}
