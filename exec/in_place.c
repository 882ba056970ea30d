/* in_place.c - see inspect.h: is a result that a kernel may compute in place the same there?
 *
 * Each step that claims it runs on the operands that the plan gives it, and leaves its results in
 * memory of their own; then once more for each operand that may be overwritten, on a copy of that
 * in which the result is to appear. What a kernel leaves unwritten, such as a layout's padding, has
 * the operand's bytes both times. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "inspect.h"
#include "memory.h"
#include "run.h"

typedef struct {
    adj_exec *e;
    step *s;
    const void **in;
    void **plain, **shared; /* results, by group.out */
} pair;

static adj_status open_results(pair *t)
{
    const adj_allocator *a = &t->e->region.allocator;
    const size_t n_in = (size_t)t->s->n_in, n_out = (size_t)t->s->n_out;
    t->in = adj_alloc(a, (n_in + 1) * sizeof(void *));
    t->plain = adj_alloc(a, (n_out + 1) * sizeof(void *));
    t->shared = adj_alloc(a, (n_out + 1) * sizeof(void *));
    int missing = t->in == NULL || t->plain == NULL || t->shared == NULL;
    for (size_t k = 0; k < n_out && !missing; k++) {
        const size_t bytes = slot_of(&t->e->plan, t->s->out[k])->bytes;
        t->plain[k] = adj_alloc(a, bytes + 1);
        t->shared[k] = adj_alloc(a, bytes + 1);
        missing = t->plain[k] == NULL || t->shared[k] == NULL;
    }
    return missing ? no_memory(t->e) : ADJ_OK;
}

static void close_results(pair *t)
{
    const adj_allocator *a = &t->e->region.allocator;
    for (int k = 0; k < t->s->n_out && t->plain != NULL && t->shared != NULL; k++) {
        adj_release(a, t->plain[k]);
        adj_release(a, t->shared[k]);
    }
    adj_release(a, t->in);
    adj_release(a, t->plain);
    adj_release(a, t->shared);
}

static adj_status call_with(const pair *t, void *const out[])
{
    adj_call call = t->s->call;
    call.in = t->in;
    call.out = out;
    return run_kernel(t->e, t->s, &call);
}

/* The result `out` over operand k. *differs: in bits, this or another result. */
static adj_status try_alias(pair *t, int k, int out, int *differs)
{
    const void *operand = t->s->call.in[k];
    const size_t bytes = slot_of(&t->e->plan, t->s->out[out])->bytes;
    for (int i = 0; i < t->s->n_out; i++) {
        memset(t->plain[i], 0, slot_of(&t->e->plan, t->s->out[i])->bytes);
        memset(t->shared[i], 0, slot_of(&t->e->plan, t->s->out[i])->bytes);
    }
    memcpy(t->in, t->s->call.in, (size_t)t->s->n_in * sizeof *t->in);
    memcpy(t->plain[out], operand, bytes);
    memcpy(t->shared[out], operand, bytes);
    adj_status status = call_with(t, t->plain);
    t->in[k] = t->shared[out];
    if (status == ADJ_OK)
        status = call_with(t, t->shared);
    for (int i = 0; i < t->s->n_out && status == ADJ_OK; i++)
        *differs |=
            memcmp(t->plain[i], t->shared[i], slot_of(&t->e->plan, t->s->out[i])->bytes) != 0;
    return status;
}

/* Every claim of step s, whose operands are there. */
static adj_status try_step(adj_exec *e, step *s, exec_false_alias *f, int *found)
{
    pair t = {.e = e, .s = s};
    adj_status status = open_results(&t);
    for (int a = 0; a < ADJ_MAX_ALIASES && status == ADJ_OK; a++)
        for (int k = 0; k < s->n_in && k < 32 && status == ADJ_OK && !*found; k++) {
            const adj_alias alias = s->prep.alias[a];
            if (!(alias.operands >> k & 1) || !may_take_over(&e->plan, s, k, alias.out))
                continue;
            status = try_alias(&t, k, alias.out, found);
            *f = (exec_false_alias){s->group.out[alias.out], s->group.in[k], s->prep.impl};
        }
    close_results(&t);
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
        step *s = &e->plan.step[i];
        if (claims_aliases(s))
            status = try_step(e, s, f, &found);
        if (status == ADJ_OK && !found)
            status = run_step(e, s);
    }
    omp_set_num_threads(callers);
    return status == ADJ_ENOMEM ? -1 : status == ADJ_OK && found;
}
