/* test_compare_reorder.c - a reorder that changes values is named, and no kernel beside it. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { ELEMS = 48, N_FAULT = 5 };

struct adj_layout {
    int unused;
};
static const adj_layout backwards = {0};

/* A fault of the reorder to the layout. */
typedef enum { SOUND, SCALES, LOSES_SIGNS, ROUNDS, EXCHANGES } fault;
static fault planted;
static int is_one_way; /* no reorder leaves the layout, which is only for what changes in no run */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_exp || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    if (!is_one_way)
        p->in[0] = p->out[0] = &backwards;
    else if (p->invariant & 1)
        p->in[0] = &backwards;
    p->state = is_one_way && p->in[0] != NULL ? &is_one_way : NULL;
    strcpy(p->impl, "backwards:exp");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    for (int i = 0; i < ELEMS; i++)
        ((float *)c->out[0])[i] =
            expf(((const float *)c->in[0])[c->state != NULL ? ELEMS - 1 - i : i]);
    return ADJ_OK;
}

static size_t bytes_of(const adj_layout *l)
{
    (void)l;
    return ELEMS * sizeof(float);
}

static const char *name_of(const adj_layout *l)
{
    (void)l;
    return "backwards";
}

static char to_layout, to_plain; /* states */

static adj_status prepare_reorder(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch)
{
    (void)backend, (void)from, (void)type;
    *scratch = 0;
    *state = to != NULL ? &to_layout : &to_plain;
    return to == NULL && is_one_way ? ADJ_ENOKERNEL : ADJ_OK;
}

static adj_status run_reorder(void *state, const void *in, void *out, void *scratch)
{
    const float *x = in;
    const fault f = state == &to_layout ? planted : SOUND;
    (void)scratch;
    for (int i = 0; i < ELEMS; i++) {
        const float v = x[f == EXCHANGES && i < 2 ? 1 - i : i];
        ((float *)out)[ELEMS - 1 - i] = f == SCALES        ? 1.05F * v
                                        : f == LOSES_SIGNS ? fabsf(v)
                                        : f == ROUNDS      ? ldexpf(rintf(ldexpf(v, 7)), -7)
                                                           : v;
    }
    return ADJ_OK;
}

static void drop_reorder(void *backend, void *state) { (void)backend, (void)state; }

static const adj_kernel kernel = {.name = "backwards", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend backend = {.version = ADJ_VERSION,
                                    .name = "backwards",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels,
                                    .layout_bytes = bytes_of,
                                    .layout_name = name_of,
                                    .reorder_prepare = prepare_reorder,
                                    .reorder_run = run_reorder,
                                    .reorder_drop = drop_reorder};

static const char says[] = "from plain to backwards by backwards is wrong";

static adj_node *exponential(adj_graph *g)
{
    const adj_shape shape = {4, {1, 4, 4, 3}};
    return adj_exp(
        is_one_way ? adj_param(g, "x", ADJ_F32, shape, (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1})
                   : adj_input(g, "x", ADJ_F32, shape));
}

/* Blamed where it is wrong, on the reorder. */
static void compare_with(fault f)
{
    const adj_backend *const backends[] = {&backend, naive_backend(), NULL};
    adj_graph *g = adj_graph_new();
    planted = f;
    const adj_comparison *c =
        compared(exponential(g), "backwards", (adj_compare_opts){.exec.backends = backends});
    const compare_row *row = adj_comparison_row_at(c, 0);
    const compare_result whole = adj_comparison_result_at(c, 1);
    cr_expect_str_eq(row->implementation, "backwards:exp");
    cr_expect_eq(row->verdict, f != SOUND ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "fault %d", f);
    cr_expect_eq(row->blame, f != SOUND ? ADJ_BLAME_PLAN : ADJ_BLAME_NONE, "fault %d", f);
    cr_expect_eq(strstr(row->reason, says) != NULL, f != SOUND, "fault %d: %s", f, row->reason);
    cr_expect_eq(strstr(whole.reason, says) != NULL, f != SOUND, "fault %d: %s", f, whole.reason);
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(compare_reorder, is_named)
{
    for (int f = 0; f < N_FAULT; f++)
        compare_with((fault)f);
}

/* Without a way back its reader, which takes plain values as well, shows it. */
Test(compare_reorder, one_way_is_named)
{
    is_one_way = 1;
    for (int f = 0; f < N_FAULT; f++)
        compare_with((fault)f);
}

Test(compare_reorder, is_named_by_gradcheck)
{
    const adj_backend *const backends[] = {&backend, naive_backend(), NULL};
    const adj_gradcheck_opts o = {
        .exec.backend = "backwards", .exec.threads = 1, .exec.backends = backends};
    for (int f = 0; f < N_FAULT; f++) {
        adj_graph *g = adj_graph_new();
        planted = (fault)f;
        const adj_gradcheck_report *r = checked(exponential(g), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, f != SOUND ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        cr_expect_eq(row->fault, f != SOUND ? ADJ_FAULT_PLAN : ADJ_FAULT_NONE);
        cr_expect_eq(strstr(row->blame, says) != NULL, f != SOUND, "fault %d: %s", f, row->blame);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}
