/* test_memory.c - memory of an executor: owner, time and size; no allocation during a run, memory
 * running out anywhere, a small arena, NaN in it where no kernel has written, and huge pages. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adjoint_nn.h"
#include "exec/report.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/counter.h"
#include "tests/plan.h"

/* The graph of a failed plan is as good as before. */
static void plan_again(adj_graph *g, const adj_exec_opts *o, counter *c)
{
    long failed_at = c->fail_at;
    c->fail_at = 0;
    cr_assert_eq(adj_graph_status(g), ADJ_OK);
    adj_exec *e = plan_of(g, o);
    adj_exec_free(e);
    c->fail_at = failed_at;
}

/* A step of a small network - conv, bias, relu, loss, their gradient, an optimizer - built,
 * differentiated, planned and run with one allocator; the status it ended with. Whatever runs out,
 * what is there can be freed; and a plan that failed alone can be made again. */
static adj_status small_network(counter *c, const char *backend)
{
    adj_allocator a = {count_alloc, count_free, c};
    adj_graph_opts go = {.allocator = &a};
    scoped(release_graph) adj_graph *g = adj_graph_new_with(ADJ_VERSION, &go);
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 6, 6, 1}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    adj_node *h = adj_layer_max_pool(adj_relu(adj_layer_conv2d(x, "conv", &conv)), 2);
    adj_node *loss = adj_loss_softmax(adj_layer_dense(h, "dense", 3, NULL), labels, NULL);
    adj_updates *u = adj_optimizer(loss, NULL);
    adj_status status = adj_graph_status(g);
    scoped(release_exec) adj_exec *e = NULL;
    adj_exec_opts o = {.n_fetch = 1, .fetch = &loss, .updates = u, .backend = backend};
    if (status == ADJ_OK) {
        status = adj_exec_new(g, &o, &e);
        if (status == ADJ_ENOMEM)
            plan_again(g, &o, c);
    }
    if (status == ADJ_OK) {
        float image[72] = {1, 2, 3, 4}, rate = 0.1F, value;
        const long calls_before_run = c->calls;
        adj_set(e, x, image, sizeof image);
        adj_set(e, labels, (int32_t[]){0, 2}, 8);
        adj_set(e, adj_find(g, "learning_rate"), &rate, 4);
        for (int i = 0; i < 3 && status == ADJ_OK; i++)
            status = adj_run(e);
        cr_assert_eq(status, ADJ_OK, "%s", adj_exec_message(e));
        cr_assert_eq(adj_get(e, loss, &value, 4), ADJ_OK);
        cr_assert(value > 0 && value < 100);
        cr_assert_eq(c->calls, calls_before_run, "adj_run allocated");
    } else
        cr_assert(e == NULL || adj_exec_message(e)[0] != '\0');
    return status;
}

static adj_status by_naive(counter *c) { return small_network(c, "naive"); }
static adj_status by_onednn(counter *c) { return small_network(c, NULL); }

/* An inference, whose filters are packed once: one by Winograd's algorithm, where there is AVX2,
 * and one by gemm. */
static adj_status plan_packed_filters(counter *c)
{
    const adj_allocator a = {count_alloc, count_free, c};
    scoped(release_graph) adj_graph *g =
        adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &a});
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 32, 32, 16}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 16, 16}}, (adj_init){0});
    adj_node *y[] = {adj_conv2d(x, w, &(adj_conv){.padding = ADJ_SAME}),
                     adj_conv2d(x, w, &(adj_conv){.padding = ADJ_SAME, .stride = {1, 2, 2, 1}})};
    scoped(release_exec) adj_exec *e = NULL;
    const adj_exec_opts o = {.n_fetch = 2, .fetch = y, .backend = "direct", .math = ADJ_MATH_FAST};
    adj_status status = adj_graph_status(g);
    if (status == ADJ_OK)
        status = adj_exec_new(g, &o, &e);
    if (status == ADJ_OK) {
        const float image[32 * 32 * 16] = {1};
        cr_assert_eq(adj_set(e, x, image, sizeof image), ADJ_OK);
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    }
    return status;
}

/* Allocations are counted here, and tuning makes as many as it has time for: no other plans,
 * whatever all tests are run with. */
TestSuite(memory, .init = plan_as_usual);

Test(memory, out_of_memory_naive) { run_out_of_memory(by_naive); }
Test(memory, out_of_memory_onednn) { run_out_of_memory(by_onednn); }
Test(memory, out_of_memory_of_packed_filters) { run_out_of_memory(plan_packed_filters); }

/* A chain of elementwise nodes needs one buffer, or two when something else is read later. */
Test(memory, the_arena_is_small)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {1024}}), *y = x;
    for (int i = 0; i < 20; i++)
        y = adj_relu(adj_scale(y, 1 + i));
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
    adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_exec_stats(e).arena_bytes, 4096);
    cr_assert_eq(adj_exec_details(e).live_bytes, 4096);
    adj_exec_free(e);
    adj_node *z = adj_add(y, adj_neg(adj_exp(y)));
    o.fetch = &z;
    e = plan_of(g, &o);
    cr_assert_eq(adj_exec_stats(e).arena_bytes, 8192);
    adj_exec_free(e);
}

/* The largest allocated block. */
typedef struct {
    unsigned char *data;
    size_t bytes;
} largest;

static void *note_largest(void *user, size_t bytes)
{
    largest *l = user;
    void *p = malloc(bytes);
    if (p != NULL && bytes > l->bytes)
        *l = (largest){p, bytes};
    return p;
}

static void forget(void *user, void *p)
{
    (void)user;
    free(p);
}

/* A kernel that leaves out an element gives NaN instead of a zero that could be right: every test
 * of numbers relies on it. The arena holds one value, far larger than all else. */
Test(memory, the_arena_starts_as_nan)
{
    largest block = {0};
    const adj_allocator a = {note_largest, forget, &block};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {512, 1}});
    adj_node *y = adj_matmul(x, x, ADJ_TRANSPOSE_B);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive", .allocator = &a};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    size_t arena = adj_exec_stats(e).arena_bytes, at = block.bytes - arena;
    cr_assert(arena >= 1 << 20 && block.bytes >= arena && at < 256);
    for (size_t i = at; i < arena; i++)
        cr_assert_eq(block.data[i], 0xff, "byte %zu of %zu", i, block.bytes);
}

/* ---- huge pages ---- */

enum { HUGE_BYTES = 2 << 20 };

/* How many bytes lie from p on in mappings for which huge pages have been asked: by the system's
 * flag, as it gives them only while it has some. */
static size_t asked_bytes_from(const void *p)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    uintptr_t next = (uintptr_t)p, first = 0, end = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) != 2 &&
            strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL && next >= first &&
            next < end)
            next = end;
    if (f != NULL)
        fclose(f);
    return next - (uintptr_t)p;
}

/* True if huge pages can be requested and the request can be observed. */
static int has_huge_pages(void)
{
    char *p =
        mmap(NULL, 4 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return 0;
    const int has = madvise(p, 4 * HUGE_BYTES, MADV_HUGEPAGE) == 0 && asked_bytes_from(p) > 0;
    munmap(p, 4 * HUGE_BYTES);
    return has;
}

/* Returns the bytes of whole huge pages in a value as large as the arena. */
static size_t asked_bytes_of(int64_t elems)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {elems}}), *y = adj_relu(x);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
    void *at;
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_set_in_place(e, x, &at), ADJ_OK);
    memset(at, 0, adj_type_bytes(adj_node_type(x)));
    cr_assert_eq(adj_run(e), ADJ_OK);
    const size_t asked = asked_bytes_from((const char *)adj_data(e, y) + HUGE_BYTES);
    return asked;
}

Test(memory, huge_pages)
{
    if (!has_huge_pages())
        cr_skip_test("the system has no huge pages to ask for");
    /* The small one first: the advice for huge pages outlives the addresses' first use. */
    cr_expect_eq(asked_bytes_of(3 * HUGE_BYTES / 2 / 4), 0);
    cr_expect_geq(asked_bytes_of(8 * HUGE_BYTES / 4), 6 * HUGE_BYTES);
}

enum { MANY = 2500, LENGTH = 100 };

/* Value i holds i + 1 everywhere, and is there until its sum has been taken; the sums, which are
 * smaller, lie where values were. */
Test(memory, many_values_share_a_small_arena)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {LENGTH}}), *value[MANY], *sum[MANY];
    for (int i = 0; i < MANY; i++)
        value[i] = adj_scale(x, i + 1);
    for (int i = MANY - 1; i >= 0; i--)
        sum[i] = adj_reduce_sum(value[i], (adj_axes){.n = ADJ_ALL, .keep_dims = 1});
    adj_node *all = adj_concat(MANY, sum, 0);
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &all,
                             .backend = "naive",
                             .debug =
                                 &(adj_exec_debug){.no_fusion = 1, .no_passes = 1, .canaries = 1}};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    const size_t live = adj_exec_details(e).live_bytes;
    cr_expect_leq(adj_exec_stats(e).arena_bytes, live + live / 10);
    void *at;
    cr_assert_eq(adj_set_in_place(e, x, &at), ADJ_OK);
    for (int i = 0; i < LENGTH; i++)
        ((float *)at)[i] = 1;
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    const float *got = adj_data(e, all);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq((double)got[i], LENGTH * (i + 1.0), "value %d", i);
}
