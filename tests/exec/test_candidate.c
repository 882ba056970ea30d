/* test_candidate.c - the enumerator of candidates over a planted backend: in which order candidates
 * are prepared, with which layouts, and where their values lie. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "exec/candidate.h"
#include "tests/plan.h"

/* ---- a backend of three kernels with 2, 0 and 1 candidates ---- */

struct adj_layout {
    size_t bytes;
    const char *name;
};
static const adj_layout packed = {100, "packed100"};

static int dropped;

static adj_status prepare(const char *name, int limit, int candidate, adj_prep *p)
{
    snprintf(p->impl, sizeof p->impl, "%s%d", name, candidate);
    if (candidate >= limit)
        return ADJ_ENOKERNEL;
    p->in[0] = candidate == 1 ? &packed : p->in[0];
    p->scratch = 64; /* what one prepares to must not be seen by the next */
    return ADJ_OK;
}

static adj_status prepare_a(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)g;
    cr_assert_str_eq(backend, "opened");
    cr_assert_eq(p->scratch, 0);
    return prepare("a", 2, candidate, p);
}

static adj_status prepare_b(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g;
    memset(p->why, 'x', ADJ_WHY); /* without an end */
    return prepare("b", 0, candidate, p);
}

static adj_status prepare_c(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g;
    return prepare("c", 1, candidate, p);
}

static void drop(void *backend, void *state)
{
    (void)backend, (void)state;
    dropped++;
}

static size_t layout_bytes(const adj_layout *l) { return l->bytes; }

static const char *layout_name(const adj_layout *l) { return l->name; }

static const adj_kernel a = {.name = "a", .prepare = prepare_a, .drop = drop},
                        b = {.name = "b", .prepare = prepare_b},
                        c = {.name = "c", .prepare = prepare_c};
static const adj_kernel *const kernels[] = {&a, &b, &c, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .kernels = kernels,
                                    .layout_bytes = layout_bytes,
                                    .layout_name = layout_name};

/* ---- tests ---- */

/* add(relu(x), mul(relu(x), z)) as one group: x and z enter, in order of first use. */
Test(candidate, operands_of_a_group)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}});
    adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){1, {5}});
    adj_node *r = adj_relu(x), *m = adj_mul(r, z), *s = adj_add(r, m), *q = adj_mul(x, x);
    const adj_node *const all[] = {r, m, s}, *const two[] = {m, s}, *const one[] = {q};
    const adj_node *in[6];
    cr_assert_eq(list_operands(3, all, in), 2);
    cr_assert(in[0] == x && in[1] == z);
    cr_assert_eq(list_operands(2, two, in), 2);
    cr_assert(in[0] == r && in[1] == z);
    cr_assert_eq(list_operands(1, one, in), 1);
    cr_assert(in[0] == x);
}

/* relu(x), x of 5 numbers: what each candidate is prepared to. */
Test(candidate, every_kernels_every_candidate)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}});
    const adj_node *y = adj_relu((adj_node *)x);
    const adj_layout *in[1] = {&packed}, *out[1] = {&packed};
    const adj_group group = {1, &y, 1, &x, 1, &y};
    adj_prep prep = {.in = in, .out = out, .scratch = 1};
    candidate k = {.backend = &planted, .opened = "opened", .group = &group, .prep = &prep};
    char seen[256] = "", layouts[64];
    FILE *f = fmemopen(seen, sizeof seen, "w");
    while (next_kernel(&k)) {
        for (; prepare_candidate(&k) == ADJ_OK; k.number++) {
            name_layouts(&k, layouts, sizeof layouts);
            fprintf(f, "%s: %s; ", prep.impl, layouts);
            drop_candidate(&k);
        }
        cr_assert_lt(strlen(prep.why), ADJ_WHY);
    }
    fclose(f);
    cr_assert_str_eq(seen, "a0: plain -> plain; a1: packed100 -> plain; c0: plain -> plain; ");
    cr_assert_eq(dropped, 2);
    cr_assert_not(next_kernel(&k));

    k.kernel = &c; /* the layout that the operand has reaches the kernel */
    init_prep(&k);
    in[0] = &packed;
    cr_assert_eq(query_kernel(&k), ADJ_OK);
    cr_assert_eq(in[0], &packed);
}

/* sparse_softmax_cross_entropy of 3x10 logits in 100 bytes and 3 labels, with gaps of 128. */
Test(candidate, areas)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_input(g, "logits", ADJ_F32, (adj_shape){2, {3, 10}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {3}});
    const adj_node *y = adj_sparse_softmax_cross_entropy(logits, labels, 0);
    const adj_node *in[2];
    const adj_group group = {1, &y, list_operands(1, &y, in), in, 1, &y};
    const adj_layout *in_layout[2] = {&packed, NULL}, *out_layout[1] = {NULL};
    adj_prep prep = {.in = in_layout, .out = out_layout};
    const candidate k = {.backend = &planted, .group = &group, .prep = &prep};
    size_t bytes[N_AREA];
    const void *from[2];
    void *to[1];
    bind_areas(&k, 128, NULL, bytes, from, to);
    cr_assert_eq(bytes[FLOAT_AREA], 128 + 128 + 128);
    cr_assert_eq(bytes[INTEGER_AREA], 128 + 64 + 128);
    cr_assert_eq(bytes[RESULT_AREA], 128 + 64 + 128);

    static char memory[N_AREA][384];
    char *const area[N_AREA] = {memory[0], memory[1], memory[2]};
    bind_areas(&k, 128, area, bytes, from, to);
    cr_assert(from[0] == memory[FLOAT_AREA] + 128 && from[1] == memory[INTEGER_AREA] + 128);
    cr_assert(to[0] == memory[RESULT_AREA] + 128);

    in_layout[0] = NULL; /* plain: 120 bytes */
    bind_areas(&k, 0, NULL, bytes, from, to);
    cr_assert_eq(bytes[FLOAT_AREA], 128);
    cr_assert_eq(layout_bytes_of(&planted, NULL, adj_node_type(logits)), 120);
}
