/* print.c - prints the plan: what each step computes, by which implementation, which buffers it
 * reads and writes, their layouts and positions, and why the preferred backend does not compute a
 * node. */
#include "base/c_locale.h"
#include "exec.h"

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
