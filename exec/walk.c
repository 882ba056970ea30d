/* walk.c - see walk.h. */
#include <stdio.h>
#include <string.h>

#include "candidate.h"
#include "walk.h"

/* ---- the map ---- */

/* Returns range i of the map, by address. */
static range *range_at(const walk *w, int i) { return &w->range[w->order[i]]; }

/* Returns how many ranges of the map start before `at`. */
static int count_before(const walk *w, uintptr_t at)
{
    int low = 0, high = w->n_order;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (range_at(w, middle)->start < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the content of the range that begins at start and reaches at least to end, or NULL. */
static const content *read_range(const walk *w, uintptr_t start, uintptr_t end)
{
    const int i = count_before(w, start);
    const range *r = i < w->n_order ? range_at(w, i) : NULL;
    return r != NULL && r->start == start && r->end >= end ? &r->held : NULL;
}

/* Returns the content of a range that overlaps the bytes from start to end, or NULL. */
static const content *find_any(const walk *w, uintptr_t start, uintptr_t end)
{
    const int i = count_before(w, end);
    return i > 0 && range_at(w, i - 1)->end > start ? &range_at(w, i - 1)->held : NULL;
}

/* Enters the content of the bytes from start to end, replacing every range that overlaps them.
 * Returns the old content if one range had exactly these bounds, else one without a value. */
static content write_range(walk *w, uintptr_t start, uintptr_t end, const content *held)
{
    const int end_at = count_before(w, end);
    int at = count_before(w, start);
    if (at > 0 && range_at(w, at - 1)->end > start)
        at--;
    range *same = end_at == at + 1 ? range_at(w, at) : NULL;
    if (same != NULL && same->start == start && same->end == end) {
        const content old = same->held;
        same->held = *held;
        return old;
    }
    memmove(w->order + at + 1, w->order + end_at, (size_t)(w->n_order - end_at) * sizeof *w->order);
    w->n_order += at + 1 - end_at;
    w->order[at] = w->n_range;
    w->range[w->n_range++] = (range){start, end, *held};
    return (content){.step = NONE};
}

/* ---- messages ---- */

void name_place(const adj_exec *e, const place *p, char text[NAME])
{
    const adj_node *value = p->value;
    const char *name = value != NULL ? adj_node_name(value) : "";
    const char *in =
        p->layout != NULL ? layout_name_of(e->backends.list[p->backend], p->layout) : "";
    snprintf(text, NAME, "%s%s%.50s%s%s%.30s", value != NULL ? value->op->name : "scratch",
             name[0] != '\0' ? " \"" : "", name, name[0] != '\0' ? "\"" : "",
             in[0] != '\0' ? " in " : "", in);
}

void name_step(const walk *w, int i, char text[NAME])
{
    static const char *const kind[] = {
        [STEP_KERNEL] = "", [STEP_REORDER] = "reorder of ", [STEP_COPY] = "copy of "};
    const plan *p = &w->e->plan;
    char name[NAME];
    if (i < 0 || i >= p->n_step) {
        snprintf(text, NAME, i < 0 ? "adj_set" : "the end of the run");
        return;
    }
    const step *s = &p->step[i];
    const place last = {.value = s->kind == STEP_KERNEL ? s->group.node[s->group.n_node - 1]
                                                        : p->buffer[s->in[0]].value};
    name_place(w->e, &last, name);
    snprintf(text, NAME, "step %d (%s%.80s)", i, kind[s->kind], name);
}

/* Fails because the place does not hold the value that `reader` needs. */
static adj_status fail_read(walk *w, const char *reader, const place *p)
{
    char value[NAME], other[NAME], writer[NAME] = "";
    const uintptr_t at = (uintptr_t)p->data, gap = w->e->plan.gap;
    const content *c = find_any(w, at - gap, at + p->bytes + gap);
    name_place(w->e, p, value);
    if (c == NULL)
        return set_error(w->e, ADJ_EBACKEND, "adj_exec_new: plan: %s reads %s before it is written",
                         reader, value);
    const place there = {.value = c->value, .layout = c->layout, .backend = c->backend};
    name_place(w->e, &there, other);
    if (c->step != NONE)
        name_step(w, c->step, writer);
    return set_error(w->e, ADJ_EBACKEND,
                     "adj_exec_new: plan: %s reads %s, but its memory holds %s%s%s", reader, value,
                     other, writer[0] != '\0' ? ", written by " : "", writer);
}

adj_status fail_step(walk *w, int i, const char *what, const place *p)
{
    char step[NAME], value[NAME];
    name_step(w, i, step);
    name_place(w->e, p, value);
    return set_error(w->e, ADJ_EBACKEND, "adj_exec_new: plan: %s %s %s", step, what, value);
}

/* ---- places ---- */

static place place_of(const adj_exec *e, const adj_node *value, const adj_layout *layout,
                      int backend, const void *data)
{
    const adj_backend *owner = layout != NULL ? e->backends.list[backend] : NULL;
    return (place){value, layout, backend, data, layout_bytes_of(owner, layout, value->type)};
}

place plain_place(const adj_exec *e, const adj_node *value, const void *data)
{
    return place_of(e, value, NULL, NONE, data);
}

/* Returns the place of a buffer that lies at data. */
static place buffer_place(const adj_exec *e, int i, const void *data)
{
    const buffer *b = &e->plan.buffer[i];
    return place_of(e, b->value, b->layout, b->backend, data);
}

place operand_of(const adj_exec *e, const step *s, int k)
{
    return s->kind == STEP_KERNEL
               ? place_of(e, s->group.in[k], s->prep.in[k], s->backend, s->call.in[k])
               : buffer_place(e, s->in[k], s->call.in[k]);
}

place result_of(const adj_exec *e, const step *s, int k)
{
    return s->kind == STEP_KERNEL
               ? place_of(e, s->group.out[k], s->prep.out[k], s->backend, s->call.out[k])
               : buffer_place(e, s->out[k], s->call.out[k]);
}

/* ---- contents of places ---- */

/* Returns the value whose bytes are in the place; for a plain view, the viewed value. */
static const adj_node *held_value(const walk *w, const place *p)
{
    return p->value == NULL || p->layout != NULL ? p->value : w->base[p->value->id];
}

const content *find_held(const walk *w, const place *p)
{
    const size_t gap = w->e->plan.gap;
    const uintptr_t at = (uintptr_t)p->data;
    const content *c = read_range(w, at - gap, at + p->bytes + gap);
    return c != NULL && c->value == held_value(w, p) && c->layout == p->layout ? c : NULL;
}

int is_constant(const walk *w, const place *p)
{
    const adj_node *value = held_value(w, p);
    return value != NULL && value->op == &adj_op_const && p->layout == NULL &&
           p->data == ((const adj_const_attrs *)value->attrs)->data;
}

int is_held(const walk *w, const place *p)
{
    return p->bytes == 0 || is_constant(w, p) || find_held(w, p) != NULL;
}

adj_status require(walk *w, const char *reader, const place *p)
{
    return is_held(w, p) ? ADJ_OK : fail_read(w, reader, p);
}

static int is_inside(const exec_area *a, uintptr_t start, uintptr_t end)
{
    return start >= (uintptr_t)a->data && end <= (uintptr_t)a->data + a->bytes;
}

adj_status hold(walk *w, const place *p, int step, int lasts)
{
    const plan *plan = &w->e->plan;
    const exec_memory *m = &w->e->memory;
    const uintptr_t at = (uintptr_t)p->data, start = at - plan->gap,
                    end = at + (p->bytes + 63) / 64 * 64 + plan->gap;
    const content c = {held_value(w, p), p->layout, p->backend, step, lasts};
    if (p->bytes == 0)
        return ADJ_OK;
    if (at % 64 != 0 || !(is_inside(&m->arena, start, end) || is_inside(&m->storage, start, end)))
        return fail_step(w, step,
                         at % 64 != 0 ? "writes to an address that is not a multiple of 64:"
                                      : "writes outside the executor's memory:",
                         p);
    const content old = write_range(w, start, end, &c);
    if (step != NONE && old.value != NULL && old.step == NONE)
        w->overwritten = old.value;
    return ADJ_OK;
}
