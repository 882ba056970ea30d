/* in_place.c - detects kernels whose in-place results are wrong: see inspect.h.
 *
 * Each step with in-place results runs on the operands of the plan and writes its results to
 * separate memory. It runs again for each operand that may be overwritten, with the result on a
 * copy of that operand. Both result buffers start with the operand's bytes, so bytes that a kernel
 * leaves unwritten, such as the padding of a layout, are equal. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "inspect.h"
#include "memory.h"
#include "run.h"

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

/* Tries every in-place claim of step s, whose operands have been computed. */
static adj_status try_step(adj_exec *e, const step *s, exec_false_alias *f, int *found)
{
    adj_status status = ADJ_OK;
    for (int a = 0; a < ADJ_MAX_ALIASES && status == ADJ_OK; a++)
        for (int k = 0; k < s->n_in && k < 32 && status == ADJ_OK && !*found; k++) {
            const adj_alias alias = s->prep.alias[a];
            if (!(alias.operands >> k & 1) || !may_take_over(&e->plan, s, k, alias.out))
                continue;
            status = try_alias(e, s, k, alias.out, found);
            *f = (exec_false_alias){s->group.out[alias.out], s->group.in[k], s->prep.impl};
        }
    return status;
}

static int claims_aliases(const step *s)
{
    int claims = 0;
    for (int a = 0; a < ADJ_MAX_ALIASES && s->kind == STEP_KERNEL; a++)
        claims |= s->prep.alias[a].operands != 0;
    return claims;
}

int exec_find_false_alias(adj_exec *e, exec_false_alias *f)
{
    int last = e->plan.n_step, found = 0;
    while (last > 0 && !claims_aliases(&e->plan.step[last - 1]))
        last--;
    const int callers = omp_get_max_threads();
    adj_status status = ADJ_OK;
    omp_set_num_threads(e->opts.threads);
    for (int i = 0; i < last && status == ADJ_OK && !found; i++) {
        const step *s = &e->plan.step[i];
        if (claims_aliases(s))
            status = try_step(e, s, f, &found);
        if (status == ADJ_OK && !found)
            status = run_step(e, s);
    }
    omp_set_num_threads(callers);
    return status == ADJ_ENOMEM ? -1 : status == ADJ_OK && found;
}
