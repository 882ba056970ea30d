/* stray_writes.c - detects kernels that write outside their results. exec/verify.c proves that the
 * plan overwrites no value that is read later, provided that kernels write only their results. Here
 * the steps run one by one: each must leave all other values unchanged, and give the same bits in
 * place of each operand that its kernel may overwrite. */
#include <omp.h>
#include <string.h>

#include "base/hash.h"
#include "compare.h"
#include "exec/memory.h"
#include "exec/run.h"

void name_node(const adj_node *n, char *text, size_t size)
{
    const char *name = adj_node_name(n);
    snprintf(text, size, name[0] != '\0' ? "%s \"%.40s\"" : "%s", adj_node_op(n), name);
}

void name_operand(const adj_node *n, int k, char *text, size_t size)
{
    const char *name = k < ADJ_NAMED_OPERANDS ? n->op->operand[k] : NULL;
    snprintf(text, size, name != NULL ? "operand %d (%.40s)" : "operand %d", k, name);
}

/* Returns zeroed, 64-aligned memory for the results of s, of which `out` has the operand's bytes;
 * NULL: out of memory. */
static void **new_results(const adj_exec *e, region *r, const step *s, int out, const void *operand)
{
    void **result = region_alloc(r, (size_t)s->n_out, sizeof *result);
    for (int i = 0; i < s->n_out && result != NULL; i++) {
        char *bytes = region_alloc(r, 1, slot_of(&e->plan, s->out[i])->bytes + 64);
        if (bytes == NULL)
            return NULL;
        result[i] = bytes + (64 - (uintptr_t)bytes % 64) % 64;
    }
    if (result != NULL)
        memcpy(result[out], operand, slot_of(&e->plan, s->out[out])->bytes);
    return result;
}

/* Computes the step with result `out` in separate memory, then in place of operand k. Sets *differs
 * to 1 if any result differs in a bit. */
static adj_status try_alias(adj_exec *e, const step *s, int k, int out, int *differs)
{
    region r = {.allocator = e->region.allocator};
    const void **in = region_alloc(&r, (size_t)s->n_in, sizeof *in);
    void **plain = new_results(e, &r, s, out, s->call.in[k]);
    void **shared = new_results(e, &r, s, out, s->call.in[k]);
    if (in == NULL || plain == NULL || shared == NULL) {
        region_free(&r);
        return no_memory(e);
    }
    adj_call call = s->call;
    memcpy(in, s->call.in, (size_t)s->n_in * sizeof *in);
    call.in = in;
    call.out = plain;
    adj_status status = run_kernel(e, s, &call);
    in[k] = shared[out];
    call.out = shared;
    if (status == ADJ_OK)
        status = run_kernel(e, s, &call);
    for (int i = 0; i < s->n_out && status == ADJ_OK; i++)
        *differs |= memcmp(plain[i], shared[i], slot_of(&e->plan, s->out[i])->bytes) != 0;
    region_free(&r);
    return status;
}

static void describe_alias(const step *s, int k, int out, outcome *o)
{
    const adj_node *result = s->group.out[out], *operand = s->group.in[k];
    const int position = adj_operand_position(result, operand);
    char name[80];
    if (position >= 0)
        name_operand(result, position, name, sizeof name);
    else /* in a group, and after transposes */
        snprintf(name, sizeof name, "%s", adj_node_op(operand));
    snprintf(
        o->plan_fault, sizeof o->plan_fault,
        "memory: %s by %.60s computed in place of %s differs from its result in separate memory",
        adj_node_op(result), s->prep.impl, name);
}

/* Tries every in-place claim of step s, whose operands have been computed, also those that the plan
 * does not use. */
static adj_status try_step(adj_exec *e, const step *s, outcome *o, int *found)
{
    adj_status status = ADJ_OK;
    for (int a = 0; a < ADJ_MAX_ALIASES && status == ADJ_OK; a++)
        for (int k = 0; k < s->n_in && k < 32 && status == ADJ_OK && !*found; k++) {
            const adj_alias alias = s->prep.alias[a];
            if (!(alias.operands >> k & 1) || !may_take_over(&e->plan, s, k, alias.out))
                continue;
            status = try_alias(e, s, k, alias.out, found);
            if (status == ADJ_OK && *found)
                describe_alias(s, k, alias.out, o);
        }
    return status;
}

/* ---- writes outside the results ---- */

/* True if step i must not change the slot's value. */
static int is_to_stay(const plan *p, int i, const slot *of)
{
    const step *s = &p->step[i];
    for (int k = 0; k < s->n_out; k++)
        if (slot_of(p, s->out[k]) == of)
            return 0;
    if (s->scratch != NONE && &p->slot[s->scratch] == of)
        return 0;
    return of->kept || (of->first < i && of->last >= i);
}

/* Updates the slots' hashes after step i (NONE: initial). Returns 1 if the step changed a value
 * that is not its result. */
static int has_written_elsewhere(const plan *p, int i, uint64_t sum[])
{
    int found = 0;
    for (int k = 0; k < p->n_slot; k++) {
        const slot *of = &p->slot[k];
        if (!of->kept && (of->first > i || of->last < i))
            continue;
        const uint64_t now = hash_words(HASH_START, of->data, of->bytes);
        found |= i != NONE && now != sum[k] && is_to_stay(p, i, of);
        sum[k] = now;
    }
    return found;
}

static void describe_write(const plan *p, const step *s, outcome *o)
{
    char name[80];
    name_node(p->buffer[s->out[0]].value, name, sizeof name);
    snprintf(o->plan_fault, sizeof o->plan_fault,
             "memory: %s by %.60s writes over a value that is not its result", name, s->prep.impl);
}

adj_status find_memory_fault(adj_exec *e, outcome *o)
{
    const plan *p = &e->plan;
    region r = {.allocator = e->region.allocator};
    uint64_t *sum = region_alloc(&r, (size_t)p->n_slot + 1, sizeof *sum);
    const int callers = omp_get_max_threads();
    int found = 0;
    adj_status status = sum != NULL ? ADJ_OK : ADJ_ENOMEM;
    omp_set_num_threads(e->opts.threads);
    if (status == ADJ_OK)
        (void)has_written_elsewhere(p, NONE, sum);
    for (int i = 0; i < p->n_step && status == ADJ_OK && !found; i++) {
        const step *s = &p->step[i];
        status = try_step(e, s, o, &found);
        if (status == ADJ_OK && !found)
            status = run_step(e, s);
        if (status == ADJ_OK && !found && has_written_elsewhere(p, i, sum)) {
            found = 1;
            describe_write(p, s, o);
        }
    }
    if (found)
        o->fault_of = ADJ_BLAME_KERNEL;
    omp_set_num_threads(callers);
    region_free(&r);
    return status == ADJ_ENOMEM ? status : ADJ_OK;
}

void report_plan_fault(comparison *c, const outcome *o, compare_row *row)
{
    const int has_other =
        row->verdict != ADJ_VERDICT_PASS || is_wrong(&row->isolated) || !row->repeats;
    if (o->plan_fault[0] == '\0' || (has_other && o->fault_of != ADJ_BLAME_PLAN))
        return;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = o->fault_of;
    row->reason = log_text(&c->log, "%s", o->plan_fault);
}
