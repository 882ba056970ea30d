/* test_plan_faults.c - wrong passes, reorders, claims to work in place and plans that are refused
 * are named and blamed, and no kernel beside them. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/check/checked.h"
#include "tests/plan.h"
#include "tests/reference.h"

/* ---- passes ---- */

TestSuite(compare_pass, .init = plan_as_usual);

static adj_node *square_and_more(const adj_node *n, adj_node *const in[])
{
    (void)n;
    return adj_scale(adj_mul(in[0], in[0]), 1.05);
}

/* batch norm's own. */
static adj_node *(*fold)(const adj_node *n, adj_node *const in[]);

static adj_node *fold_and_more(const adj_node *n, adj_node *const in[])
{
    adj_node *folded = fold(n, in);
    return folded != NULL ? adj_scale(folded, 1.05) : NULL;
}

/* An op's own rules, where the library reads them: no list of ops can be given. */
static void plant_op(const adj_op *op, adj_op planted)
{
    const union {
        const adj_op *read;
        adj_op *written;
    } place = {.read = op};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), in_page = (uintptr_t)op % page;
    cr_assert_eq(
        mprotect((char *)place.written - in_page, in_page + sizeof planted, PROT_READ | PROT_WRITE),
        0);
    memcpy(place.written, &planted, sizeof planted);
}

static adj_node *squares(adj_graph *g)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {40}});
    return adj_add(adj_square(x), x);
}

/* Returns a convolution and an inference batch norm, whose fixed statistics are folded into the
 * filter. */
static adj_node *convolution_and_norm(adj_graph *g)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 5, 5, 3}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}}, adj_init_normal(0, 1));
    adj_node *stats = adj_state(g, "stats", ADJ_F32, (adj_shape){2, {2, 4}}, adj_init_constant(1));
    adj_node *gamma = adj_param(g, "gamma", ADJ_F32, (adj_shape){1, {4}}, adj_init_constant(1));
    adj_node *beta = adj_param(g, "beta", ADJ_F32, (adj_shape){1, {4}}, adj_init_constant(0));
    const adj_conv same = {.padding = ADJ_SAME};
    return adj_batch_norm(adj_conv2d(x, w, &same), stats, gamma, beta, 1e-3, ADJ_NHWC);
}

static void compare_op(adj_node *(*build)(adj_graph *g), const char *says)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_comparison) const adj_comparison *c =
        compared(build(g), "direct", (adj_compare_opts){.exec.seed = 1});
    const compare_result r = adj_comparison_result_at(c, 1);
    cr_expect_eq(r.verdict, says[0] != '\0' ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS);
    cr_expect_eq(strncmp(r.reason, says, strlen(says)), 0, "%s", r.reason);
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        cr_expect(row->verdict == ADJ_VERDICT_PASS || row->blame == ADJ_BLAME_PLAN, "%s: %s",
                  adj_compare_row_name(row), row->reason);
    }
}

Test(compare_pass, is_named)
{
    adj_op planted = adj_op_square;
    planted.simplify = square_and_more;
    compare_op(squares, "");
    plant_op(&adj_op_square, planted);
    compare_op(squares, "pass simplify changes %2 add by 0.0");
}

/* The graph of compare --infer. */
Test(compare_pass, folding_is_named)
{
    adj_op planted = adj_op_batch_norm;
    fold = planted.fold;
    planted.fold = fold_and_more;
    compare_op(convolution_and_norm, "");
    plant_op(&adj_op_batch_norm, planted);
    compare_op(convolution_and_norm, "pass fold changes ");
}

/* ---- reorders ---- */

enum { ELEMS = 48, N_FAULT = 5 };

static const adj_layout backwards = {ELEMS * sizeof(float), "backwards"};

/* A fault of the reorder to the layout. */
typedef enum { SOUND, SCALES, LOSES_SIGNS, ROUNDS, EXCHANGES } fault;
static fault planted;
static int is_one_way; /* no reorder leaves the layout, which is only for what changes in no run */

static adj_status prepare_exp(void *backend, const adj_group *g, int candidate, adj_prep *p)
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

static adj_status run_exp(const adj_call *c)
{
    for (int i = 0; i < ELEMS; i++)
        ((float *)c->out[0])[i] =
            expf(((const float *)c->in[0])[c->state != NULL ? ELEMS - 1 - i : i]);
    return ADJ_OK;
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

static const adj_kernel exp_kernel = {.name = "backwards", .prepare = prepare_exp, .run = run_exp};
static const adj_kernel *const turning_kernels[] = {&exp_kernel, NULL};
static const adj_backend turning = {.name = "backwards",
                                    .kernels = turning_kernels,
                                    .layout_bytes = layout_bytes,
                                    .layout_name = layout_name,
                                    .reorder_prepare = prepare_reorder,
                                    .reorder_run = run_reorder,
                                    .reorder_drop = drop_nothing};

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
    scoped(release_graph) adj_graph *g = adj_graph_new();
    planted = f;
    scoped(release_comparison) const adj_comparison *c = compared(
        exponential(g), "backwards", (adj_compare_opts){.exec.backends = beside_naive(turning)});
    const compare_row *row = adj_comparison_row_at(c, 0);
    const compare_result whole = adj_comparison_result_at(c, 1);
    cr_expect_str_eq(row->implementation, "backwards:exp");
    cr_expect_eq(row->verdict, f != SOUND ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "fault %d", f);
    cr_expect_eq(row->blame, f != SOUND ? ADJ_BLAME_PLAN : ADJ_BLAME_NONE, "fault %d", f);
    cr_expect_eq(strstr(row->reason, says) != NULL, f != SOUND, "fault %d: %s", f, row->reason);
    cr_expect_eq(strstr(whole.reason, says) != NULL, f != SOUND, "fault %d: %s", f, whole.reason);
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
    const adj_gradcheck_opts o = {
        .exec.backend = "backwards", .exec.threads = 1, .exec.backends = beside_naive(turning)};
    for (int f = 0; f < N_FAULT; f++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        planted = (fault)f;
        scoped(release_gradcheck) const adj_gradcheck_report *r = checked(exponential(g), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, f != SOUND ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        cr_expect_eq(row->fault, f != SOUND ? ADJ_FAULT_PLAN : ADJ_FAULT_NONE);
        cr_expect_eq(strstr(row->blame, says) != NULL, f != SOUND, "fault %d: %s", f, row->blame);
    }
}

/* ---- in place: a kernel that is right alone ---- */

enum { N = 24 };
static int is_claimed;
static int leaves_unwritten; /* the last element */

/* ---- relu that clears its result first ---- */

static adj_status prepare_clearing(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    p->alias[0].operands = is_claimed; /* bit 0 */
    return prepare_one(&adj_op_relu, ADJ_F32, "clears", g, candidate, p);
}

static adj_status run_clearing(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    const int n = N - leaves_unwritten;
    memset(y, 0, (size_t)n * sizeof *y);
    for (int i = 0; i < n; i++)
        y[i] = x[i] > 0 || isnan(x[i]) ? x[i] : 0;
    return ADJ_OK;
}

static const adj_kernel clearing = {
    .name = "relu", .prepare = prepare_clearing, .run = run_clearing};

TestSuite(compare_memory, .init = plan_as_usual);

static const adj_comparison *compare(adj_graph *g)
{
    const adj_backend *const *backends = before_naive("planted", &clearing);
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    adj_node *y = adj_mul(adj_label(adj_relu(adj_label(adj_add(x, x), "sum")), "bent"), x);
    return compared(y, "planted", (adj_compare_opts){.exec.seed = 1, .exec.backends = backends});
}

/* The node is right alone, but not in place, which is tried; what reads it is fed wrong numbers. */
static void expect_row(const compare_row *row)
{
    const char *op = adj_node_op(row->node);
    const int is_relu = is_claimed && strcmp(op, "relu") == 0;
    const int is_fed = is_claimed && strcmp(op, "mul") == 0;
    cr_expect_eq(row->verdict, is_relu ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s", op);
    cr_expect_eq(row->blame,
                 is_relu  ? ADJ_BLAME_KERNEL
                 : is_fed ? ADJ_BLAME_UPSTREAM
                          : ADJ_BLAME_NONE,
                 "%s", op);
    cr_expect_str_eq(row->reason, !is_relu
                                      ? ""
                                      : "memory: relu by clears computed in place of operand 0 "
                                        "differs from its result in separate memory");
    cr_expect(row->isolated.wrong == 0 && row->repeats, "%s", op);
}

Test(compare_memory, a_false_claim_to_work_in_place)
{
    for (is_claimed = 0; is_claimed < 2; is_claimed++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_comparison) const adj_comparison *c = compare(g);
        const compare_result reference = adj_comparison_result_at(c, 0),
                             r = adj_comparison_result_at(c, 1);
        cr_expect_eq(reference.verdict, ADJ_VERDICT_PASS, "%s", reference.reason);
        cr_expect_eq(r.verdict, is_claimed ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s", r.reason);
        cr_expect_str_eq(r.reason, !is_claimed
                                       ? ""
                                       : "memory: relu by clears computed in place of operand 0 "
                                         "differs from its result in separate memory");
        for (int i = 0; i < c->n_row; i++)
            expect_row(adj_comparison_row_at(c, i));
    }
}

/* The executor's new memory holds NaN. */
Test(compare_memory, a_kernel_that_leaves_some_unwritten)
{
    leaves_unwritten = 1;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_comparison) const adj_comparison *c = compare(g);
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        if (strcmp(adj_node_op(row->node), "relu") != 0)
            continue;
        cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
        cr_expect_eq(row->isolated.nan, 1);
        cr_expect_eq(row->isolated.at, N - 1);
    }
    cr_expect_gt(c->n_failed, 0);
}

/* ---- plans that are refused: no kernel has run ---- */

/* A layout whose size grows with each call, so that no slot has the right size. */
static const adj_layout growing;
static size_t told = 1024;

static size_t more_bytes(const adj_layout *l)
{
    (void)l;
    return told += 64;
}

static adj_status prepare_refused(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const char *op = g->node[0]->op->name;
    const int is_one =
        strcmp(op, "relu") == 0 || strcmp(op, "relu_grad") == 0 || strcmp(op, "sgd_step") == 0;
    if (!is_one || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = &growing;
    strcpy(p->impl, "never run");
    return ADJ_OK;
}

static adj_status run_refused(const adj_call *c)
{
    cr_assert_null(c, "a refused plan was run");
    return ADJ_OK;
}

static const adj_kernel refused_kernel = {
    .name = "planted", .prepare = prepare_refused, .run = run_refused};
static const adj_kernel *const refused_kernels[] = {&refused_kernel, NULL};
static const adj_backend refused = {.name = "planted",
                                    .kernels = refused_kernels,
                                    .layout_bytes = more_bytes,
                                    .reorder_prepare = prepare_no_state};

static const char wrong[] = "plan: step 0 (reorder of input \"in0\") finds a slot of another size "
                            "for input \"in0\" in packed";

static void expect_gradcheck(adj_node *n)
{
    const adj_gradcheck_opts o = {
        .exec.backend = "planted", .exec.threads = 1, .exec.backends = beside_naive(refused)};
    scoped(release_gradcheck) const adj_gradcheck_report *r = checked(n, &o);
    const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
    cr_assert_not_null(row);
    cr_expect_eq(r->n_row, 1);
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_FAIL);
    cr_expect_eq(row->fault, ADJ_FAULT_PLAN, "%s: %s", adj_node_op(n), row->blame);
    cr_expect_eq(strncmp(row->blame, wrong, sizeof wrong - 1), 0, "%s", row->blame);
}

TestSuite(wrong_plan, .init = plan_as_usual);

Test(wrong_plan, gradcheck)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    expect_gradcheck(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {24}})));
}

Test(wrong_plan, gradcheck_of_an_update)
{
    const adj_shape s = {1, {24}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, s, (adj_init){0});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    expect_gradcheck(adj_sgd_step(p, adj_input(g, "d", ADJ_F32, s), lr, 0));
}

Test(wrong_plan, compare)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {24}}));
    scoped(release_comparison) const adj_comparison *c =
        compared(y, "planted", (adj_compare_opts){.exec.backends = beside_naive(refused)});
    const compare_result whole = adj_comparison_result_at(c, 1);
    cr_expect_eq(whole.verdict, ADJ_VERDICT_FAIL);
    expect_text(whole.reason, "finds a slot of another size");
    cr_assert_eq(c->n_row, 1);
    const compare_row *row = adj_comparison_row_at(c, 0);
    cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
    cr_expect_eq(row->blame, ADJ_BLAME_PLAN, "%s", row->reason);
    cr_expect_eq(strncmp(row->reason, wrong, sizeof wrong - 1), 0, "%s", row->reason);
}
